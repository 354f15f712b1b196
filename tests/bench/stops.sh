# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# How long a process does not run because of a verdict, with no option, as it sees it: tests/bench/run.sh sources this file.

BUSY=8 # programs that want a CPU, for the rows beside a load

# stop_of PID COMMAND...: milliseconds that the process missed because of it; nothing without a verdict
stop_of() {
	local missed
	asked missed
	env -u HEAPTAP_NO_CODE timeout 600 "$heaptap" "${@:2}" -q -o "$tmp/stop.json" --force "$1" 2>>"$tmp/log" || return 0
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

# stop_row WHAT LIMIT-MS COMMAND...: the median of all rounds
stop_row() {
	local stops round begin=$SECONDS
	progress "$1"
	mapfile -t stops < <(for ((round = 0; round < inline_rounds; round++)); do stop_of "$target" "${@:3}"; done | sort -n)
	if [ "${#stops[@]}" -lt "$inline_rounds" ]; then
		missing "$1" "$2 ms" "${#stops[@]} of $inline_rounds had a verdict"
	else
		row "$1" "${stops[inline_rounds / 2]} ms" "$2 ms" "${stops[*]} ms; took $((SECONDS - begin)) s"
	fi
}

# alone_row WHAT: the median of five of what the program misses in a second with no heaptap, because of other programs
alone_row() {
	local missed stops
	mapfile -t stops < <(for _ in {1..5}; do asked missed; sleep 1; asked missed; echo "$missed"; done | sort -n)
	row "$1" "${stops[2]} ms" "" "${stops[*]} ms"
}

# stop_rows BESIDE LIMIT-MS: a scan, and an attach, with all stops for its code or probes, as typed
stop_rows() {
	stop_row "missed by a program for a scan as typed, $1" "$2" scan
	stop_row "missed by it for an attach as typed, $1" "$2" attach -t 1s
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
	stop_rows "$1 MiB" "$2"
	for _ in $(seq "$BUSY"); do
		sh -c 'while :; do :; done' 7>&- &
		busy+=($!)
	done
	alone_row "missed by a program with no verdict, $1 MiB, load $BUSY"
	stop_rows "$1 MiB, load $BUSY" $(($2 * 3))
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
