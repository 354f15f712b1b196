#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A build by many short processes at once, under heaptap system --everything.
#
# bats file_tags=full

load ../lib/common

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() { end_started; }

# told TEXT: heaptap has said so
told() { grep -q -- "$1" "$BATS_TEST_TMPDIR/heaptap.err"; }

# project FILES: a program of so many source files, whose objects do not depend on the time
project() {
	local i
	mkdir project
	for ((i = 0; i < $1; i++)); do
		printf '#include <stdlib.h>\nint part_%d(int n) { int *p = malloc(n * %d); if (!p) return 0; p[0] = n; n += p[0]; free(p); return n; }\n' \
			"$i" "$((i + 4))" >"project/part_$i.c"
	done
	{
		for ((i = 0; i < $1; i++)); do echo "int part_$i(int);"; done
		echo 'int main(void) { int n = 1;'
		for ((i = 0; i < $1; i++)); do echo "n = part_$i(n) % 1000 + 1;"; done
		echo 'return n > 1000; }'
	} >project/main.c
	printf 'OBJS := $(patsubst %%.c,%%.o,$(wildcard *.c))\nprogram: $(OBJS)\n\tgcc -o $@ $(OBJS)\n%%.o: %%.c\n\tgcc -O1 -c -o $@ $<\n' >project/Makefile
}

# results FILE: checksums of all that the build has made
results() { (cd project && sha256sum program ./*.o) >"$1"; }

# as_oracle FILE NR: the last image of each process that executed a program made the calls that the oracle has counted,
# of at least NR processes
as_oracle() {
	local pid page
	jq '.processes[].pid' "$1" | sort -u >pids
	while read -r pid; do
		page=$(count_page "$pid")
		# The parent was traced later than it began.
		[ "$pid" != "$TARGET" ] && [ -f "$page" ] || continue
		echo "{ \"pid\": $pid, \"counted\":"
		"$ORACLE/count-read" "$page"
		echo '}'
	done <pids >counts
	jq -n --slurpfile r "$1" --slurpfile counts counts --argjson least "$2" '
		($r[0].processes | group_by(.pid) | map(last | { key: "\(.pid)", value: . }) | from_entries) as $have
		| [$counts[] | .pid as $pid | .counted.functions as $want
			| ($have["\($pid)"].functions | with_entries(select(.value > 0))) as $got
			| select($got != $want) | { $pid, $got, $want }] as $wrong
		| { nr: ($counts | length), $wrong }' >compared
	jq -e --argjson least "$2" '.nr >= $least and .wrong == []' compared || { jq -c . compared | head -c 2000; return 1; }
}

@test "system: make -j4 under --everything has the same results, and all calls are counted (A16)" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	local files=12
	[ "$HEAPTAP_ROUNDS" -lt 100 ] || files=100
	project "$files"
	make -s -C project -j4
	results before
	rm project/program project/*.o
	mkfifo go never
	cp "$(readlink -f "$(command -v dash)")" builder
	HEAPTAP_COUNT=$BATS_TEST_TMPDIR/count LD_PRELOAD=$ORACLE/count.so \
		start ./builder -c "read line <go; make -s -C project -j4 && echo made; read line <never"
	TARGET=$PID
	start "$HEAPTAP" system --everything --comm builder --nocpp --no-scan -o 'all-%n.json'
	TAP=$PID
	wait_for told "1 processes are traced"
	echo go >go
	wait_for says builder made
	kill -INT "$TAP"
	ended "$TAP" 0
	results after
	diff before after
	jq -e '[.processes[].lost | .allocs + .frees + .stacks + .other] | add == 0' all-1.json
	fails told "not in the report"
	# For each file gcc, cc1 and as; make; and gcc, collect2 and ld.
	as_oracle all-1.json $((3 * files + 4))
	untouched "$TARGET"
}
