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
