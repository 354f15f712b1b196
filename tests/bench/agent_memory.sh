#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# agent_memory.sh AGENT STEP [BLOCKS...]: what the agent and its guardian hold of memory while they trace the target STEP
# (tests/targets/step.c), which has so many live blocks; and the most that they ever held, a leak verdict included.
# Fails when that is more than 3 MiB and 40 bytes a block, with the verdict 64 bytes a block. Root.
set -euo pipefail

agent=$1 step=$2
shift 2
tmp=$(mktemp -d)
target='' tracer=''
end() {
	[ -z "$tracer" ] || kill -INT "$tracer" 2>/dev/null || true
	[ -z "$tracer" ] || wait "$tracer" 2>/dev/null || true
	[ -z "$target" ] || kill "$target" 2>/dev/null || true
	[ -z "$target" ] || wait "$target" 2>/dev/null || true
	target='' tracer=''
	exec 7>&-
}
trap 'end; rm -rf "$tmp"' EXIT

# of FILE FIELD: a number of KiB
of() { awk -v field="$2:" '$1 == field { print $2 }' "$1"; }

# await FILE TEXT: until it is there, or who should write it is gone
await() {
	until grep -q "$2" "$1"; do
		kill -0 "$target" 2>/dev/null && kill -0 "$tracer" 2>/dev/null || { cat "$tmp"/* >&2; exit 2; }
		sleep 0.05
	done
}

# scanned: a report with a verdict; prints how many blocks the agent knows of, -1 if it has lost some
scanned() {
	rm -f "$tmp/attach.json"
	kill -USR1 "$tracer"
	until [ -e "$tmp/attach.json" ]; do
		kill -0 "$tracer" || return
		sleep 0.05
	done
	jq '.processes[0] | if ([.lost[]] | add) == 0 then .totals.live_blocks else -1 end' "$tmp/attach.json"
}

failed=0
printf '%9s %14s %10s %14s %10s\n' blocks 'resident KiB' 'at most' 'scanned KiB' 'at most'
for nr in "${@:-0}"; do
	rm -f "$tmp/in"
	mkfifo "$tmp/in"
	"$step" <"$tmp/in" >"$tmp/step" 2>/dev/null &
	target=$!
	exec 7>"$tmp/in"
	"$agent" attach --scan -o "$tmp/attach.json" --force "$target" 2>"$tmp/log" 7>&- &
	tracer=$!
	await "$tmp/log" 'attached to'
	echo "alloc $nr 24" >&7
	await "$tmp/step" ok
	# The agent may still have records to read.
	while :; do
		live=$(scanned) || exit 2
		[ "$live" != -1 ] || { cat "$tmp/log"; echo "the agent has lost calls, see above; else the machine is too busy"; exit 2; } >&2
		[ "$live" != "$nr" ] || break
	done
	guard=$(pgrep -P "$tracer")
	# The agent's program and the ring are in both, and count once.
	own=$(($(of "/proc/$guard/smaps_rollup" Private_Clean) + $(of "/proc/$guard/smaps_rollup" Private_Dirty)))
	rest=$(($(of "/proc/$tracer/status" VmRSS) + own))
	peak=$(($(of "/proc/$tracer/status" VmHWM) + own))
	printf '%9d %14d %10d %14d %10d\n' "$nr" "$rest" $((3072 + nr * 40 / 1024)) "$peak" $((3072 + nr * 64 / 1024))
	[ "$rest" -le $((3072 + nr * 40 / 1024)) ] && [ "$peak" -le $((3072 + nr * 64 / 1024)) ] || failed=1
	end
done
exit "$failed"
