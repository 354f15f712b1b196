# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # report is set by traced
# Compares followed processes with what the counting oracle says of each.

# same_live: every process of the report holds what the oracle says of its last image
same_live() {
	local pid page want have
	jq -r '.processes | group_by(.pid)[] | last | [.pid, .totals.live_blocks, .totals.live_bytes, .totals.unknown_frees] | @tsv' \
		"$report" >"$BATS_TEST_TMPDIR/lives"
	while read -r pid have; do
		page=$(count_page "$pid")
		want=$("$ORACLE/count-read" "$page" | jq -r '[.totals.live_blocks, .totals.live_bytes, .totals.unknown_frees] | @tsv')
		[ "$have" = "$want" ] || { echo "PID $pid: report $have, oracle $want"; return 1; }
	done <"$BATS_TEST_TMPDIR/lives"
}

# same_calls: every process that executed a program made as many calls as the oracle says
same_calls() {
	local pid page want have
	jq -c '.processes[0].pid as $first | .processes | group_by(.pid)[] | select(length > 1 or .[0].pid == $first) | last
		| { pid, functions: (.functions | with_entries(select(.value > 0))) }' "$report" >"$BATS_TEST_TMPDIR/calls"
	while read -r have; do
		pid=$(jq .pid <<<"$have")
		page=$(count_page "$pid")
		want=$("$ORACLE/count-read" "$page" | jq -cS .functions)
		have=$(jq -cS .functions <<<"$have")
		[ "$have" = "$want" ] || { echo "PID $pid: report $have, oracle $want"; return 1; }
	done <"$BATS_TEST_TMPDIR/calls"
}

# multiprocessing [OPTIONS]: python's, with three children that have threads
multiprocessing() {
	[ -x /usr/bin/python3 ] || skip "python3 is not installed"
	counted "$@" -f -- /usr/bin/python3 -c '
import multiprocessing
def work(n): return len("x" * 5000 * n)
if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool: print(sum(pool.map(work, range(20))))'
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	[ "$(cat "$out")" -eq 950000 ]
	nothing_lost
	jq -e '.processes | length == 4' "$report"
	jq -e '[.processes[].totals.unknown_frees] | add == 0' "$report"
}
