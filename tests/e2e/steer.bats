#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Commands over a connection: stop and start of events, depth, filter, who holds what; and who is there already.

load ../lib/common
load ../lib/remote
load ../lib/console

# steered [OPTIONS] TARGET...: as serving; steer "tune PAUSED DEPTH MIN MAX" then commands the server in the client's name
steered() {
	serving "$@"
	WHEEL=$DIR/wheel
	coproc STEER { exec python3 "$NET/steer.py" "$WHEEL" "$SOCKET" 2>/dev/null 3>&-; }
	STARTED+=("$STEER_PID")
	steer_says ready
}

steer_says() {
	local answer
	read -r -t 120 answer <&"${STEER[0]}"
	[ "$answer" = "$1" ] || { echo "answer: $answer"; return 1; }
}

steer() {
	echo "$1" >&"${STEER[1]}"
	steer_says "${2:-ok}"
}

# same WHAT HAVE WANTED
same() { [ "$2" = "$3" ] || { echo "$1: $2, not $3"; return 1; }; }

# stop_and_start BACKEND
stop_and_start() {
	own_libc
	stepping
	steered -b "$1" "$TARGET"
	watching --check "unix:$WHEEL"
	step "alloc 100 48"
	steer "tune 1 64 0 0"
	step "alloc 10 64"
	step "free 30"
	step "burst 1000"
	steer "tune 0 64 0 0"
	step "alloc 5 32"
	step "free 25"
	step "burst 100"
	kill -INT "$TAP"
	ended "$TAP" 0
	# Of the 30 that were freed unseen 20 had been seen; the 5 and 20 of the 80 others were freed since.
	is .totals.allocs 205
	is .totals.frees 125
	is .totals.unknown_frees 0
	is .totals.live_blocks 80
	is .scan.definite.blocks 0
	is .scan.unsure.blocks 80
	is '.errors | length' 0
	nothing_lost
	untouched "$TARGET"
}

# bats test_tags=core
@test "steer: while events are stopped nothing is seen, and nothing is wrong for it" {
	stop_and_start bpf
}

# bats test_tags=full
@test "steer: the same by ptrace" {
	stop_and_start ptrace
}

# bats test_tags=full
@test "steer: frees of blocks that were allocated unseen are no errors" {
	stepping
	steered "$TARGET"
	watching --check "unix:$WHEEL"
	steer "tune 1 64 0 0"
	step "alloc 40 48"
	steer "tune 0 64 0 0"
	step "free 40"
	step "alloc 3 10"
	kill -INT "$TAP"
	ended "$TAP" 0
	is .totals.allocs 3
	is .totals.unknown_frees 40
	is '.errors | length' 0
	is .scan.reachable.blocks 3
	nothing_lost
}

# depth_of BYTES: frames of the stack of blocks of this size
depth_of() { jq -r --argjson b "$1" '.processes[0].stacks[] | select(.live_bytes == $b) | .frames | length' "$report"; }

# deeper_and_back BACKEND
deeper_and_back() {
	own_libc
	stepping
	steered -b "$1" "$TARGET"
	watching "unix:$WHEEL"
	step "alloc 1 1000"
	steer "tune 0 1 0 0"
	step "alloc 1 2000"
	steer "tune 0 0 0 0"
	step "alloc 1 3000"
	steer "tune 0 64 0 0"
	step "alloc 1 4000"
	kill -INT "$TAP"
	ended "$TAP" 0
	# The first and the last one have the same stack.
	[ "$(depth_of 5000)" -gt 3 ]
	[ "$(depth_of 2000)" -eq 1 ]
	[ "$(depth_of 3000)" -eq 0 ]
	nothing_lost
}

# bats test_tags=core
@test "steer: the depth of stacks is changed, from 1 to 0 to 64" {
	deeper_and_back bpf
}

@test "steer: the same depths by ptrace" {
	deeper_and_back ptrace
}

@test "steer: stacks cannot be had if it began without, and that is said" {
	stepping
	steered "$TARGET"
	watching -d 0 "unix:$WHEEL"
	steer "tune 0 8 0 0" "tracing began without stacks (--depth 0); they cannot be switched on now"
	step "alloc 4 16"
	kill -INT "$TAP"
	ended "$TAP" 0
	is .totals.allocs 4
}

# bats test_tags=full
@test "steer: a filter at the source, from the start and changed" {
	stepping
	steered "$TARGET"
	watching --check --thin --min-size 100 "unix:$WHEEL"
	step "alloc 10 99"
	step "alloc 10 100"
	step "free 15"
	steer "tune 0 64 0 50"
	step "alloc 7 50"
	step "alloc 8 51"
	kill -INT "$TAP"
	ended "$TAP" 0
	is .totals.allocs 17
	is .totals.frees 10
	is .totals.unknown_frees 5
	is .totals.live_blocks 7
	is .scan.definite.blocks 0
	is '.errors | length' 0
	is '.notes[0]' "18 allocations left out for their size, in all sums"
	nothing_lost
}

@test "steer: --thin: frees of blocks from before do not travel, and are counted" {
	stepping
	step "alloc 1000 48"
	serving "$TARGET"
	watching --thin --record "$BATS_TEST_TMPDIR/r" "unix:$SOCKET"
	step "free 700"
	step "alloc 300 48"
	step "free 100"
	detach
	is .totals.unknown_frees 700
	is .totals.frees 100
	is .totals.live_blocks 200
	nothing_lost
	"$HEAPTAP" report --events "$BATS_TEST_TMPDIR/r" >"$BATS_TEST_TMPDIR/list"
	# One bit may stand for two addresses: a few of the 700 may have come.
	[ "$(grep -c ' free ' "$BATS_TEST_TMPDIR/list")" -lt 150 ] || { head "$BATS_TEST_TMPDIR/list"; false; }
	"$HEAPTAP" report --force -o "$report" "$BATS_TEST_TMPDIR/r"
	is .totals.unknown_frees 700
	untouched "$TARGET"
}

@test "steer: --thin: where its memory cannot be had all frees travel, and that is said" {
	stepping
	step "alloc 100 48"
	HEAPTAP_FAIL_SIZE=$((1 << 20)) LD_PRELOAD=$T/libfail.so serving "$TARGET"
	watching --thin --record "$BATS_TEST_TMPDIR/r" "unix:$SOCKET"
	wait_for grep -q "no memory for --thin: all frees are sent" "$err"
	step "free 70"
	detach
	is .totals.unknown_frees 70
	nothing_lost
	[ "$("$HEAPTAP" report --events "$BATS_TEST_TMPDIR/r" | grep -c ' free ')" -eq 70 ]
	untouched "$TARGET"
}

@test "steer: a recording without a folder is refused" {
	run "$HEAPTAP" connect -w /nowhere/x.heaptap unix:/nowhere/s
	[ "$status" -eq 2 ]
}

# bats test_tags=full
@test "steer: a second client is told who the first one is" {
	spinning
	serving "$TARGET"
	watching "unix:$SOCKET"
	run timeout 60 "$HEAPTAP" connect "unix:$SOCKET"
	[ "$status" -eq 4 ]
	[[ $output == *"connect: another client is served, since "*" s: PID $TAP of user 0"* ]]
	[ "$(grep -c . <<<"$output")" -eq 1 ]
	kill -INT "$TAP"
	ended "$TAP" 0
	nothing_lost
	serving_tcp "$TARGET"
	watching --token-file "$TOKEN" "tcp://127.0.0.1:$PORT"
	run timeout 60 "$HEAPTAP" connect --token-file "$TOKEN" "tcp://127.0.0.1:$PORT"
	[ "$status" -eq 4 ]
	[[ $output == *"connect: another client is served, since "*" s: 127.0.0.1:"* ]]
}

# bats test_tags=full
@test "steer: markers in the recording of a connection: all that was before, nothing of what comes" {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	stepping
	serving "$TARGET"
	watching -w "$BATS_TEST_TMPDIR/r.heaptap" "unix:$SOCKET"
	step "alloc 10 100"
	"$HEAPTAP" mark "$TAP" before
	step "alloc 7 1000"
	step "free 2"
	"$HEAPTAP" mark "$TAP" "half way"
	step "burst 500"
	step "alloc 5 50"
	# The PID that the server has for the target is the PID of another process here.
	run "$HEAPTAP" mark "$TARGET" never
	[ "$status" -eq 3 ]
	[[ $output == *"no heaptap of yours traces it"* ]]
	kill -INT "$TAP"
	ended "$TAP" 0
	"$HEAPTAP" report -q --between "before,half way" -o "$BATS_TEST_TMPDIR/part.json" "$BATS_TEST_TMPDIR/r.heaptap"
	same part "$(jq -c '.processes[0].totals | [.allocs, .alloc_bytes, .live_blocks]' "$BATS_TEST_TMPDIR/part.json")" '[7,7000,5]'
	"$HEAPTAP" report -q --between "half way,end" -o "$BATS_TEST_TMPDIR/part.json" --force "$BATS_TEST_TMPDIR/r.heaptap"
	same rest "$(jq -c '.processes[0].totals | [.allocs, .live_blocks]' "$BATS_TEST_TMPDIR/part.json")" '[505,5]'
}

@test "steer: the console over a connection records a part, and marks in it" {
	stepping
	serving "$TARGET"
	asking -q "unix:$SOCKET"
	step "alloc 10 100"
	ask stop
	ask "record $BATS_TEST_TMPDIR/r.heaptap"
	ask start
	step "alloc 3 1000"
	ask "mark one"
	step "alloc 4 50"
	ask "mark two"
	ask record
	step "alloc 100 1"
	leave
	"$HEAPTAP" report -q --between one,two -o "$BATS_TEST_TMPDIR/part.json" "$BATS_TEST_TMPDIR/r.heaptap"
	same part "$(jq -c '.processes[0].totals | [.allocs, .live_blocks]' "$BATS_TEST_TMPDIR/part.json")" '[4,4]'
	"$HEAPTAP" report -q -o "$BATS_TEST_TMPDIR/all.json" "$BATS_TEST_TMPDIR/r.heaptap"
	same all "$(jq -c '.processes[0].totals.live_blocks' "$BATS_TEST_TMPDIR/all.json")" 17
	# By one clock, that of over there: the end is behind the last event, and not hours away.
	jq -e '.duration_ns > 0 and .duration_ns < 600e9' "$BATS_TEST_TMPDIR/all.json"
}

# again "COMMAND": to the again target
again() {
	local line
	echo "$1" >&"${AGAIN[1]}"
	read -r -t 120 line <&"${AGAIN[0]}"
	[ "$line" = ok ]
}

# disguised [OPTIONS]: verdicts over a connection on pointers with marks, at odd addresses, and on what is lost
disguised() {
	local line
	coproc AGAIN { exec "$T/again" 2>/dev/null 3>&-; }
	TARGET=$AGAIN_PID
	STARTED+=("$TARGET")
	read -r -t 120 line <&"${AGAIN[0]}"
	[ "$line" = ready ]
	serving "$TARGET"
	watching --max-pause 60s "$@" "unix:$SOCKET"
	again "mask 3"
	again "skew 4"
	again "lose 2"
	kill -INT "$TAP"
	ended "$TAP" 0
	same lost "$(of_function again_loses definite.blocks)" 2
	echo quit >&"${AGAIN[1]}"
	wait "$TARGET"
	kill -TERM "$SERVE"
	wait_for gone "$SERVE"
}

# bats test_tags=full
@test "steer: pointers in disguise are lost without --pointer-mask and --unaligned, over a connection too" {
	disguised
	same marks "$(of_function again_marks definite.blocks)" 3
	same skews "$(of_function again_skews definite.blocks)" 4
	disguised --pointer-mask 0x0000fffffffffff0 --unaligned
	same marks "$(of_function again_marks reachable.blocks)" 3
	same skews "$(of_function again_skews reachable.blocks)" 4
}

# asked_to_end PID: by another signal each time; true when it has ended
asked_to_end() { kill -TERM "$1" 2>/dev/null; gone "$1"; }

# bats test_tags=full
@test "steer: a server that does not answer for a verdict does not keep the console: a signal ends it (G4)" {
	spinning
	steered "$TARGET"
	asking -q "unix:$WHEEL"
	steer hold
	echo scan >&"${CON[1]}"
	steer_says scan
	# Without a signal the console would wait for ever: the server lives, but does not answer.
	wait_for asked_to_end "$TAP"
	untouched "$TARGET"
}

# root_of FUNCTION JQ: of the chain shown for the blocks that FUNCTION allocated
root_of() {
	jq -r --arg f "$1" "first(.processes[0].stacks[] | select(.frames[0].function == \$f and .why)) | .why | $2" "$report"
}

# whys: of leak_kinds, over there
whys() {
	local main
	serving "$@" --wait -- "$T/leak_kinds" _exit
	watched --why 100 "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	main=$(field .pid)
	same global "$(root_of keep_in_global '.root | [.kind, .variable, .offset] | join(" ")')" "global global_list 0x0"
	same tls "$(root_of keep_in_tls '.root | [.kind, .variable, .thread] | join(" ")')" "tls in_tls $main"
	same stack "$(root_of keep_on_stack '.root | [.kind, .thread] | join(" ")')" "stack $main"
	[[ $(root_of keep_in_register '.root | [.kind, .register, .thread] | join(" ")') =~ ^(register\ r15|stack\ )\ $main$ ]]
	same middle "$(root_of point_to_middle '[.verdict, .root.kind, .chain[0].offset] | join(" ")')" "possible global 13"
	same behind "$(root_of chain_end '[.root.variable, (.chain | length), .chain[0].offset] | join(" ")')" "middle_of_chain 2 48"
	same lost "$(root_of lose_plain .)" ""
}

# bats test_tags=full
@test "steer: who holds what is asked of the other side, and named here" {
	whys
}

@test "steer: who holds what, of the agent" {
	[ -x "$O/musl/heaptap-agent" ] || skip "no agent here, as there is no musl-gcc: see make agent-musl"
	own_libc
	HEAPTAP=$O/musl/heaptap-agent serving --wait -- "$T/leak_kinds" _exit
	watched --why 100 "unix:$SOCKET"
	same global "$(root_of keep_in_global '.root | [.kind, .variable, .offset] | join(" ")')" "global global_list 0x0"
	same behind "$(root_of chain_end '[.root.variable, (.chain | length), .chain[0].offset] | join(" ")')" "middle_of_chain 2 48"
}

# bats test_tags=full
@test "steer: who holds the block at an address" {
	local addr
	serving --wait -- setarch -R "$T/leak_kinds" _exit
	watched --why 100 "unix:$SOCKET"
	addr=$(jq -r 'first(.processes[-1].stacks[] | select(.frames[0].function == "keep_in_tls" and .why)) | .why.address' "$report")
	[[ $addr == 0x* ]]
	ended "$SERVE" 0
	serving --wait -- setarch -R "$T/leak_kinds" _exit
	watched --why "$addr" "unix:$SOCKET"
	[ "$(jq -r '.processes[-1].scan.why | [.address, .root.variable] | join(" ")' "$report")" = "$addr in_tls" ]
}

# ---- by the console ----

@test "steer: the console over a connection: stop, start, depth, filter, scan, why" {
	stepping
	serving "$TARGET"
	report=$BATS_TEST_TMPDIR/report.json
	asking --sysroot / -o "$report" "unix:$SOCKET"
	step "alloc 100 48"
	ask stop
	step "alloc 10 64"
	step "free 30"
	ask status
	has "calls are not seen until 'start'"
	ask start
	step "alloc 5 32"
	step "free 25"
	ask "depth 1"
	step "alloc 3 2000"
	ask "filter 100 200"
	step "alloc 7 99"
	step "alloc 4 100"
	ask scan
	has reachable
	ask why
	has "is held by blocks+"
	ask "depth 200"
	has "depth: 200: must be"
	ask "kill yes"
	leave 2
	# 105, of which 25 were freed; 3; 4 of 11
	is .totals.allocs 112
	is .totals.frees 25
	is .totals.unknown_frees 0
	is .scan.definite.blocks 0
	# Blocks that were freed unseen may lie where later ones are: those are unsure then, too.
	is '.scan | .unsure.blocks >= 80 and .unsure.blocks + .reachable.blocks == 87' true
	[ "$(depth_of 6400)" -eq 1 ]
	is '.notes | map(select(startswith("stopped 1 time, for "))) | length' 1
	is '.notes | map(select(. == "7 allocations left out for their size, in all sums")) | length' 1
	nothing_lost
	untouched "$TARGET"
	# The end of the program was asked for, and is not allowed.
	is_running "$TARGET"
}

# until_said TEXT: by the console, of itself
until_said() {
	local said=
	for _ in $(seq 300); do
		ask status || return 1
		said+=$output
		[[ $said != *"$1"* ]] || return 0
		sleep 0.1
	done
	echo "not said: $1: $said"
	return 1
}

# bats test_tags=full
@test "steer: a link cut and mended while events are stopped: they stay so, and nothing is lost (feature 44)" {
	stepping
	serving "$TARGET"
	report=$BATS_TEST_TMPDIR/report.json
	start_as proxy python3 "$NET/proxy.py" "$DIR/p" "$SOCKET"
	PROXY=$PID
	wait_for test -S "$DIR/p"
	asking --sysroot / -o "$report" "unix:$DIR/p"
	step "alloc 10 48"
	ask stop
	kill -USR1 "$PROXY"
	until_said "connection lost"
	step "alloc 20 48"
	ask start
	has "there is no connection now"
	kill -USR2 "$PROXY"
	until_said "connection is back"
	step "alloc 40 48"
	ask start
	step "alloc 5 48"
	# A command could not be done.
	leave 5
	is .totals.allocs 15
	is .scan.definite.blocks 0
	nothing_lost
	untouched "$TARGET"
}

# bats test_tags=full
@test "steer: the console ends what is traced over there, with leave" {
	spinning
	serving --allow-kill "$TARGET"
	asking "unix:$SOCKET"
	ask "kill yes"
	wait_for gone "$TARGET"
	wait_for gone "$SERVE"
	leave
}

@test "steer: the console, and nobody at the address, or a wrong one" {
	run timeout 60 "$HEAPTAP" console -x status "unix:$BATS_TEST_TMPDIR/none"
	[ "$status" -eq 4 ]
	run timeout 60 "$HEAPTAP" console -x status tcp://127.0.0.1:1
	[ "$status" -eq 2 ]
	[[ $output == *"needs --token-file"* ]]
}
