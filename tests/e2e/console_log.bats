#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The console: calls of allocator functions, printed as they come.

load ../lib/common
load ../lib/console

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
}

# lines_of TEXT: of $output
lines_of() { grep -cF -- "$1" <<<"$output" || true; }

# bats test_tags=core
@test "log: size, address, result, thread and callers of each call" {
	stepping
	asking "$TARGET" -q --check
	ask log
	has 'No function is logged.'
	ask 'log malloc'
	ask log
	has 'malloc: 100 calls a second at most'
	step 'alloc 3 100'
	step 'free 1'
	ask 'wait frees>0 60s'
	[ "$(lines_of "thread $TARGET  malloc(100) = 0x")" -eq 3 ]
	[ "$(lines_of 'step_allocates < main')" -eq 3 ]
	lacks 'free('
	newest=$(grep -o '= 0x[0-9a-f]*' <<<"$output" | tail -n 1)
	ask 'log malloc off'
	ask 'log free'
	step 'alloc 1 100'
	step 'free 2'
	ask 'wait frees>2 60s'
	lacks 'malloc('
	[ "$(lines_of "thread $TARGET  free(0x")" -eq 2 ]
	[ "$(lines_of '  step_frees < main')" -eq 2 ]
	ask 'log off'
	ask log
	has 'No function is logged.'
	step 'free 1'
	ask 'wait frees>3 60s'
	[ -z "$output" ]
	# The blocks are those that the list has.
	[ -n "$newest" ]
	leave
	untouched "$TARGET"
}

# bats test_tags=inline
@test "log: calls of any function of a file, with words and caller" {
	status=0
	stepping
	asking "$TARGET" -q
	ask 'log step:step_allocates'
	ask log
	has 'step:step_allocates: 100 calls a second at most'
	step 'alloc 3 1234'
	step 'alloc 1 5678'
	ask 'wait allocs>3 60s'
	[ "$(lines_of "thread $TARGET  step:step_allocates(3, 1234, ")" -eq 1 ]
	[ "$(lines_of "thread $TARGET  step:step_allocates(1, 0x162e, ")" -eq 1 ]
	[ "$(lines_of '  main (step.c:')" -eq 2 ]
	ask 'log step:step_allocates off'
	# Over code that heaptap has put in the kernel's breakpoint would end the program.
	if [ "${HEAPTAP_BACKEND:-}" = inline ]; then
		ask 'log libc.so.6:malloc'
		has 'its code in memory is not that of the file'
		status=5
	fi
	# The file is not needed.
	ask 'log step_frees 50'
	step 'free 1'
	step 'free 1'
	ask 'wait frees>1 60s'
	lacks 'step_allocates('
	[ "$(lines_of "thread $TARGET  step_frees(1, ")" -eq 2 ]
	ask log
	has 'step_frees: 50 calls a second at most'
	ask 'log off'
	ask log
	has 'No function is logged.'
	leave "$status"
	untouched "$TARGET"
}

@test "log: calls of a function that are left out: one line a second tells how many" {
	start "$T/spin" 1
	wait_for says spin ready
	run "$HEAPTAP" console -q "$PID" -x 'log spin:spin_allocates 1' -x 'wait allocs>2000' -x 'log off'
	[ "$(lines_of ' more of spin:spin_allocates: at most 1 calls a second are printed')" -ge 1 ]
	[ "$(lines_of ' more of ')" -le $(($(lines_of ' spin:spin_allocates(') + 6)) ] || { echo "$output"; false; }
}

# bats test_tags=full
@test "log: reallocs and failures" {
	not_by_inline "attached, it misses the first calls of a program that is executed"
	mkfifo in
	exec 7<>in
	for program in order failed; do
		start bash -c "read -r _ <'$PWD/in'; exec '$T/$program'"
		asking "$PID" -q
		ask "log all 10000"
		printf 'wait end\nreport > %s.json\n' "$program" >&"${CON[1]}"
		echo >&7
		wait_for gone "$PID"
		ask status
		echo "$output" >"$program.log"
		leave
	done
	exec 7>&-
	grep -q '  realloc(0x[0-9a-f]*, [0-9]*) = 0x' order.log
	grep -q '  malloc([0-9]*) = NULL' failed.log
}

# bats test_tags=core
@test "log: no more than asked for, and the others counted" {
	stepping
	asking "$TARGET" -q
	ask 'log malloc 5'
	step 'burst 1000'
	ask 'wait allocs>999 60s'
	shown=$(lines_of '  malloc(32)')
	left_out=$(sed -n 's/^ *\([0-9,]*\) more: .*/\1/p' <<<"$output" | tr -d , | awk '{ n += $1 } END { print n + 0 }')
	[ "$shown" -ge 5 ]
	[ $((shown + left_out)) -eq 1000 ]
	leave
}

@test "log: what is no function, no number, no running process" {
	stepping
	asking "$TARGET" -q
	for bad in 'log mallog' 'log malloc 0' 'log malloc never' 'log malloc 1000000'; do
		ask "$bad"
		has 'log: '
	done
	ask log
	has 'No function is logged.'
	leave 2
}

@test "log: into a file, and from another machine" {
	stepping
	mkdir -m 700 sock
	start "$HEAPTAP" serve --listen "unix:$PWD/sock/s" "$TARGET"
	wait_for grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/heaptap.err"
	asking "unix:$PWD/sock/s" -q --sysroot /
	ask 'log malloc'
	printf 'wait allocs>1 60s > calls\n' >&"${CON[1]}"
	step 'alloc 2 70'
	ask log
	has 'malloc: 100'
	lacks 'malloc(70)'
	[ "$(grep -c "thread $TARGET  malloc(70) = 0x[0-9a-f]*  step_allocates < main" calls)" -eq 2 ]
	leave
}

@test "log: by hand, above the prompt" {
	spinning
	"$ROOT/tests/lib/talk.py" "$HEAPTAP" console "$TARGET" <<SCRIPT
expect heaptap> 
send log malloc
expect malloc(
expect = 0x
expect heaptap> 
type stat
expect malloc(
expect heaptap> stat
send us
expect still running
expect heaptap> 
send quit
end 0
SCRIPT
	untouched "$TARGET"
}
