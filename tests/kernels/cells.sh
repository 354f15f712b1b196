# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Results of cells, each of which is a machine with another kernel or CPU: TAP on stdout, numbered through all cells; counts
# and reasons at the end; with RECORD=1 a row of doc/tested.md for each cell.

CHECK= # kernels, arch or board
NR=0 NR_FAILED=0
SKIPS=() # CELL: TEST: REASON
PAGE=doc/tested.md

# commit_here: what was tested; with a + if files differ from the commit
commit_here() {
	local commit
	commit=$(git rev-parse --short=8 HEAD 2>/dev/null) || { echo "not from git"; return; }
	git diff --quiet HEAD -- . ":!$PAGE" || commit+=+
	echo "$commit"
}

# cpu_of CELL: as the emulator's command names it
cpu_of() {
	emulator_for "$1" | sed -E 's/^qemu-system-([^ ]*) .*-cpu ([^ ]*).*/\1, \2/; s/^qemu-system-([^ ]*) -M ([^ ]*).*/\1, \2/'
}

# record_cell CELL KERNEL CPU RESULT: puts the row into the page's table, in place of the cell's older one
record_cell() {
	local row new=$PAGE.new
	[ -n "${RECORD:-}" ] || return 0
	row="| $CHECK $1 | $2 | $3 | $(date +%F) | $(commit_here) | ${4//|/\\|} |"
	{
		sed '/^<!-- cells -->$/q' "$PAGE"
		sed -n '/^<!-- cells -->$/,/^<!-- end of cells -->$/p' "$PAGE" | grep '^|' | head -n 2
		{
			sed -n '/^<!-- cells -->$/,/^<!-- end of cells -->$/p' "$PAGE" | grep '^|' | tail -n +3 |
				grep -vF "| $CHECK $1 |"
			echo "$row"
		} | LC_ALL=C sort -t '|' -k 2,2V
		sed -n '/^<!-- end of cells -->$/,$p' "$PAGE"
	} >"$new" && cat "$new" >"$PAGE" && rm "$new"
}

# skip_cell CELL REASON
skip_cell() {
	NR=$((NR + 1))
	SKIPS+=("$1: $2")
	echo "ok $NR - $1 # SKIP $2"
	record_cell "$1" - - "skipped: $2"
}

# tell_cell CELL EMULATED LOG: prints its TAP lines, which come on stdin, with its name; LOG is what the guest said, and
# EMULATED the machine's name for emulator_for
tell_cell() {
	local line what tests=0 failed=() skips=() kernel result
	while IFS= read -r line; do
		[[ $line =~ ^(not )?ok\ ([0-9]+\ )?(-\ )?(.*) ]] || { case $line in 1..*) ;; *) echo "$line" ;; esac; continue; }
		what=${BASH_REMATCH[4]}
		NR=$((NR + 1)) tests=$((tests + 1))
		echo "${BASH_REMATCH[1]}ok $NR - $1: $what"
		if [ -n "${BASH_REMATCH[1]}" ]; then
			failed+=("${what%%[,:]*}")
		elif [[ $what =~ ^(.*)\ \#\ (skip|SKIP)\ (.*) ]]; then
			skips+=("${BASH_REMATCH[1]%%, [0-9]*}: ${BASH_REMATCH[3]}")
		fi
	done
	if [ "$tests" -eq 0 ]; then
		NR=$((NR + 1)) failed=("no test was run")
		echo "not ok $NR - $1: no test was run"
	fi
	NR_FAILED=$((NR_FAILED + ${#failed[@]}))
	[ "${#skips[@]}" -eq 0 ] || SKIPS+=("${skips[@]/#/$1: }")
	result="$((tests - ${#skips[@]})) tests"
	[ "${#failed[@]}" -eq 0 ] || result="${#failed[@]} of $result failed: $(printf '%s; ' "${failed[@]}" | sed 's/; $//')"
	[ "${#skips[@]}" -eq 0 ] || result+="; skipped: $(printf '%s; ' "${skips[@]}" | sed 's/; $//')"
	kernel=$(tr -d '\r' <"$3" 2>/dev/null | sed -n 's/^GUEST-KERNEL //p')
	record_cell "$1" "${kernel:--}" "$(cpu_of "$2")" "$result"
}

# end_cells: the last lines; its status is the check's
end_cells() {
	local skip
	echo "1..$NR"
	for skip in "${SKIPS[@]}"; do
		echo "# skipped: $skip"
	done
	echo "# $CHECK: $((NR - NR_FAILED - ${#SKIPS[@]})) ok, $NR_FAILED failed, ${#SKIPS[@]} skipped"
	[ "$NR_FAILED" -eq 0 ]
}
