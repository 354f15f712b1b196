#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes doc/report.png: the HTML report on a redis-server under load, in Chromium. Needs root.
# Usage: screenshot.sh HEAPTAP PICTURE
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
heaptap=$1
picture=$2
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$tmp"' EXIT

for program in redis-server redis-benchmark chromedriver; do
	command -v "$program" >/dev/null || { echo "screenshot: no $program: type: sudo tests/deps.sh check-all" >&2; exit 1; }
done
redis-server --port 0 --unixsocket "$tmp/socket" --save '' --dir "$tmp" >"$tmp/log" &
server=$!
until [ -S "$tmp/socket" ]; do sleep 0.05; done
# Until the load is over, however fast the machine is.
"$heaptap" attach -q -o "$tmp/report.html" "$server" &
tracer=$!
sleep 2
redis-benchmark -s "$tmp/socket" -n 30000 -r 8000 -q -t set,lpush,hset,zadd >"$tmp/log"
sleep 0.5
kill -INT "$tracer"
wait "$tracer"
"$root/tests/lib/page.py" "$tmp/report.html" size 1280 1420 eval 1 shot "$picture" >"$tmp/log"
