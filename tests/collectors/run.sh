#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prometheus scrapes heaptap system for a minute, promtool checks the page, and go tool pprof reads profiles over HTTP.
#   HEAPTAP=build/heaptap O=build tests/collectors/run.sh
set -euo pipefail

say() { printf 'collectors: %s\n' "$*"; }
die() { printf 'collectors: %s\n' "$*" >&2; cat "$work"/*.err >&2; exit 1; }

work=$(mktemp -d)
pids=()
finish() {
	kill "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT

# Jobs of their own, so that heaptap does not take the process for one of its ancestors.
set -m
"$O/tests/targets/swell" 65536 >"$work/swell.out" 2>&1 &
target=$!
pids+=("$target")
"$HEAPTAP" system --comm swell --metrics 0 -i 10s >"$work/rows" 2>"$work/heaptap.err" &
tap=$!
pids+=("$tap")
set +m
for ((i = 0; i < 600; i++)); do
	url=$(sed -n 's,.*metrics: \(http.*\)/metrics$,\1,p' "$work/heaptap.err")
	[ -z "$url" ] || break
	sleep 0.1
done
[ -n "$url" ] || die "heaptap serves nothing"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$work/prometheus.yml" <<END
global: { scrape_interval: 1s }
scrape_configs:
  - job_name: heaptap
    static_configs: [ { targets: ["${url#http://}"] } ]
END
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" \
	--web.listen-address="127.0.0.1:$port" >"$work/prometheus.out" 2>"$work/prometheus.err" &
pids+=("$!")

ask() { curl -sfG "http://127.0.0.1:$port/api/v1/query" --data-urlencode "query=$1" | jq -r '.data.result[0].value[1] // "none"'; }
say "Prometheus scrapes for a minute"
sleep 65

ups=$(ask 'sum_over_time(up{job="heaptap"}[60s])')
all=$(ask 'count_over_time(up{job="heaptap"}[60s])')
say "$ups of $all scrapes read"
[ "$ups" = "$all" ] && [ "$ups" -ge 30 ] || die "scrapes failed: $(curl -sf "http://127.0.0.1:$port/api/v1/targets" | jq -r '.data.activeTargets[].lastError')"
for query in "heaptap_process_growing{pid=\"$target\"} == 1" \
	"heaptap_heap_live_bytes{pid=\"$target\"} > 0" \
	"rate(heaptap_heap_allocations_total{pid=\"$target\"}[30s]) > 0" \
	"heaptap_heap_verdict_bytes{pid=\"$target\",verdict=\"definite\"} > 0" \
	"heaptap_caller_live_bytes{pid=\"$target\",caller=~\"swell_forgets < main.*\"} > 0" \
	'rate(heaptap_own_cpu_seconds_total[30s]) > 0'; do
	value=$(ask "$query")
	[ "$value" != none ] || die "no sample for $query"
	say "$value  $query"
done
! grep -qiE 'level=(warn|error)' "$work/prometheus.err" || die "Prometheus complains"

export HOME=$work
for kind in heap allocs leaks; do
	go tool pprof -top "$url/debug/pprof/$kind?pid=$target" >"$work/$kind.txt" 2>"$work/go.err" || die "go tool pprof: $kind"
	grep -q swell_forgets "$work/$kind.txt" || die "go tool pprof: $kind lacks the function"
	say "go tool pprof: $kind: $(grep '^Type' "$work/$kind.txt")"
done

kill -INT "$tap"
wait "$tap" || die "heaptap ends with status $?"
say "passed"
