#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --why names the holder of a block: leak_kinds keeps blocks in each sort of place.

load ../lib/common

# root_of FUNCTION JQ: of the chain shown for the blocks that FUNCTION allocated
root_of() {
	jq -r --arg f "$1" "first(.processes[0].stacks[] | select(.frames[0].function == \$f and .why)) | .why | $2" "$report"
}

# same WHAT HAVE WANTED
same() { [ "$2" = "$3" ] || { echo "$1: $2, not $3"; return 1; }; }

# bats test_tags=core
@test "why: a block in each sort of root is named" {
	local main
	traced --why 100 -- "$T/leak_kinds" _exit
	main=$(field .pid)
	same global "$(root_of keep_in_global '.root | [.kind, .variable, .offset] | join(" ")')" "global global_list 0x0"
	same list "$(root_of keep_in_global '[.chain[].blocks] | add <= 3')" true
	same tls "$(root_of keep_in_tls '.root | [.kind, .variable, .thread] | join(" ")')" "tls in_tls $main"
	same stack "$(root_of keep_on_stack '.root | [.kind, .thread] | join(" ")')" "stack $main"
	[[ $(root_of keep_in_register '.root | [.kind, .register, .thread] | join(" ")') =~ ^(register\ r15|stack\ )\ $main$ ]]
	same middle "$(root_of point_to_middle '[.verdict, .root.kind, .chain[0].offset] | join(" ")')" "possible global 13"
	same behind "$(root_of chain_end '[.root.variable, (.chain | length), .chain[0].offset] | join(" ")')" "middle_of_chain 2 48"
	same thread "$(root_of thread_block '.root.kind')" stack
	same lost "$(root_of lose_plain .)" ""
}

# short_chain FILE: fits a screen, with a count in the middle
short_chain() {
	[ "$(grep -c -- '-> ' "$1")" -le 11 ]
	grep -qE -- '-> \([0-9,]+ more\)' "$1"
	[ "$(wc -l <"$1")" -le 24 ]
}

@test "why: the chain of a long list is its two ends and a count, with all steps in JSON" {
	cd "$BATS_TEST_TMPDIR"
	printf '%s\n' '#include <stdlib.h>' '#include <stdio.h>' '#include <unistd.h>' 'struct n { struct n *next; char b[40]; } *list;' \
		'static struct n *add(struct n *next) { struct n *n = malloc(sizeof(*n)); n->next = next; return n; }' \
		'__attribute__((noinline)) static struct n *odd(struct n *next) { return add(next); }' \
		'__attribute__((noinline)) static struct n *even(struct n *next) { return add(next); }' \
		'int main(void) { struct n *first = 0; for (int i = 0; i < 1000; i++) { list = i & 1 ? odd(list) : even(list); first = first ? first : list; }' \
		'printf("%p\n", (void *)first); fflush(stdout); if (getchar()) return 0; }' >chain.c
	gcc -g -O1 -fno-builtin -fno-optimize-sibling-calls -o chain chain.c
	mkfifo lines
	exec 7<>lines
	start bash -c 'exec ./chain <lines >chain.addr'
	wait_for grep -qs 0x chain.addr
	"$HEAPTAP" scan --why "$(cat chain.addr)" "$PID" >census.txt
	short_chain census.txt
	"$HEAPTAP" scan --why "$(cat chain.addr)" -o census.json "$PID"
	jq -e '(.why.chain | length) + .why.left_out == 1000 and (.why.chain | length) == 64' census.json
	"$HEAPTAP" run -q -n 0 --why 9 --force -o r.txt -o r.json -- ./chain </dev/null
	grep -A30 'one of them is held by list in chain' r.txt | sed '/^$/,$d' >run.txt
	short_chain run.txt
	grep -qE -- '-> 48 B from add < (odd|even) \(0x' run.txt
}

# bats test_tags=full
@test "why: the text report shows the holder below the stack" {
	run --separate-stderr "$HEAPTAP" run -n 0 --why 100 -- "$T/leak_kinds" _exit
	[[ $stderr == *'one of them is held by global_list in leak_kinds'* ]]
	[[ $stderr == *'one of them is held by in_tls in leak_kinds, thread-local, thread '* ]]
	[[ $stderr == *'one of them is held by the stack of thread '* ]]
	# Callers with possible leaks only are listed on demand.
	run --separate-stderr "$HEAPTAP" run -n 0 -s leaked-bytes --why 100 -- "$T/leak_kinds" _exit
	[[ $stderr == *'by a pointer to its byte 13'* ]]
	[[ $stderr == *'held by middle_of_chain in leak_kinds'*'-> 96 B from chain_behind_middle < build, by a pointer to its byte 48'*'-> 80 B from chain_end < chain_behind_middle (0x'* ]]
	run --separate-stderr "$HEAPTAP" run -n 0 --why 0 -- "$T/leak_kinds" _exit
	[[ $stderr != *'is held by'* ]]
}

@test "why: stripped, static, position-dependent, 32 bits, musl: the root is found, named where a symbol is" {
	local v tried=0 FIXED_ADDRESSES
	FIXED_ADDRESSES=$(addresses_can_be_fixed)
	for v in -static -static-pie -nopie -32 -32-static -musl -musl-static; do
		[ -x "$T/leak_kinds$v" ] || { echo "# leak_kinds$v was not built" >&3; continue; }
		# 32-bit programs are refused there.
		[[ $v == -32* ]] && by_inline && continue
		tried=$((tried + 1))
		traced --why 100 -- "$T/leak_kinds$v" _exit
		same "$v" "$(root_of keep_in_global '.root | [.kind, .variable] | join(" ")')" "global global_list"
		same "$v" "$(root_of keep_in_tls '.root | [.kind, .variable] | join(" ")')" "tls in_tls"
	done
	[ "$tried" -gt 0 ]
	traced --why 100 -- "$T/leak_kinds-stripped" _exit
	jq -e '[.processes[0].stacks[].why | select(. != null) | .root | select(.kind == "global" and .variable == null
		and (.object | endswith("/leak_kinds-stripped")))] | length > 0' "$report"
}

@test "why: what follows --why must be a number or an address" {
	for v in some -1 0x 0xg 1001; do
		run "$HEAPTAP" run --why "$v" -- "$T/nothing"
		[ "$status" -eq 2 ]
	done
}
