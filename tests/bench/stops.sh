# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# How long a process does not run because of a verdict, with no option, as it sees it: tests/bench/run.sh sources this file.

BUSY=8 # programs that want a CPU, for the rows beside a load

# stop_of PID: milliseconds that the process missed because of one scan; nothing without a verdict
stop_of() {
	local missed
	asked missed
	timeout 600 "$heaptap" scan -q -o "$tmp/stop.json" --force "$1" 2>>"$tmp/log" || return 0
	asked missed
	! grep -q '"definite"' "$tmp/stop.json" || echo "$missed"
}

# asked NAME: the longest time that the program did not run since it was asked last, in milliseconds
asked() {
	local before
	before=$(wc -l <"$tmp/gaps")
	echo >&7
	until [ "$(wc -l <"$tmp/gaps")" -gt "$before" ]; do sleep 0.05; done
	read -r "$1" < <(tail -n 1 "$tmp/gaps")
}

# stop_row WHAT LIMIT-MS: the median of three
stop_row() {
	local stops
	progress "$1"
	mapfile -t stops < <(for _ in 1 2 3; do stop_of "$target"; done | sort -n)
	if [ "${#stops[@]}" -lt 3 ]; then
		missing "$1" "$2 ms" "${#stops[@]} of 3 scans had a verdict"
	else
		row "$1" "${stops[1]} ms" "$2 ms" "${stops[*]} ms"
	fi
}

# stops_of MIB LIMIT-MS: a program with so much memory in blocks of 1 KiB
stops_of() {
	local busy=() pid
	rm -f "$tmp/lines"
	mkfifo "$tmp/lines"
	"$bench/gap" "$1" <"$tmp/lines" >"$tmp/gaps" &
	target=$!
	exec 7>"$tmp/lines"
	for _ in $(seq 600); do ! grep -qs ready "$tmp/gaps" || break; sleep 0.1; done
	stop_row "missed by a program for a verdict, no option, $1 MiB" "$2"
	for _ in $(seq "$BUSY"); do
		sh -c 'while :; do :; done' 7>&- &
		busy+=($!)
	done
	stop_row "the same beside $BUSY programs that want a CPU" $(($2 * 3))
	for pid in "${busy[@]}"; do
		kill "$pid"
		wait "$pid" 2>/dev/null || true
	done
	exec 7>&-
	wait "$target" || true
	target=
}

bench_stops() {
	stops_of 200 20
	stops_of 1024 40
	stops_of 4096 80
}
