#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap-agent with musl: its size, what it does and what it says that it is without.

load ../lib/common

setup() {
	agent=$O/musl/heaptap-agent
	[ -x "$agent" ] || skip "no agent here, as there is no musl-gcc: see make agent-musl"
	STARTED=()
	err=$BATS_TEST_TMPDIR/heaptap.err
	report=$BATS_TEST_TMPDIR/report.json
}

# refuses WORD ARGS...: one line, which names WORD, and the status of a wrong command line
refuses() {
	run -2 "$agent" "${@:2}"
	[ "$output" = "heaptap: $1: is not in the agent" ]
}

@test "agent: at most 384 KiB" {
	bytes=$(stat -c %s "$agent")
	echo "# $((bytes / 1024)) KiB" >&3
	[ "$bytes" -le $((384 * 1024)) ]
	user=$BATS_TEST_DIRNAME/../../user
	"$user/agent/size.sh" "$agent" | grep -qE "^$bytes all"
	readelf -l "$agent" | grep -q INTERP && { echo "it is not static"; return 1; }
	fails grep -q symtab <(readelf -S "$agent")
}

@test "agent: counts, stacks and verdicts as run has them by ptrace" {
	"$agent" run -q -o "$report" -- "$T/leak" >/dev/null
	nothing_lost
	is .scan.definite.blocks 32
	is .scan.indirect.blocks 20
	jq -e '.processes[0].stacks | length > 0 and all(.complete)' "$report"
	"$agent" run -q -w "$BATS_TEST_TMPDIR/r.heaptap" -o "$BATS_TEST_TMPDIR/r.txt" -- "$T/leak" >/dev/null
	grep -q 'definite' "$BATS_TEST_TMPDIR/r.txt"
	# Names come from the host.
	"$HEAPTAP" report -q -o "$report" --force "$BATS_TEST_TMPDIR/r.heaptap"
	is .scan.definite.blocks 32
	jq -e 'any(.processes[0].stacks[].frames[]; .function == "main")' "$report"
}

@test "agent: as typed, with 0 to 3 descriptors beside the standard ones: run, serve" {
	SOCKET=$BATS_TEST_TMPDIR/net/s
	mkdir -m 700 "${SOCKET%/*}"
	for n in {0..3}; do
		run with_descriptors "$n" "$agent" run "$T/leak"
		[[ $output == *"in 32 blocks"*"lost        nothing"* ]] || { echo "$n: $output"; return 1; }
		start_as serve with_descriptors "$n" "$agent" serve --wait --listen "unix:$SOCKET" -- "$T/leak"
		wait_for test -S "$SOCKET"
		run with_descriptors "$n" "$HEAPTAP" connect --sysroot / "unix:$SOCKET"
		[[ $output == *"in 32 blocks"*"lost        nothing"* ]] || { echo "$n: $output"; return 1; }
		ended "$PID" 0
	done
}

@test "agent: a program runs as another user, with the groups of that user" {
	"$agent" run -q --no-scan -u nobody -o "$report" -- id >"$BATS_TEST_TMPDIR/out"
	[ "$(cat "$BATS_TEST_TMPDIR/out")" = "$(id nobody)" ]
	run "$agent" run -q -u nobody-there -- id
	[ "$output" = "heaptap: run: nobody-there: unknown user" ]
}

# Without a decoder the guardian steps over an instruction at each return, and its mail comes by signals.
@test "agent: mail for the guardian does not spoil its steps: the target lives" {
	stepping
	start "$agent" attach --no-scan -o "$report" "$TARGET"
	AGENT=$PID
	wait_for grep -q 'attached to' "$BATS_TEST_TMPDIR/heaptap-agent.err"
	guard=$(pgrep -P "$AGENT" -x tracer-of-heapt)
	start perl -e 'kill "IO", $ARGV[0] or exit while 1' "$guard"
	step 'alloc 2000 24'
	kill "$PID"
	step 'alloc 3 8'
	kill -INT "$AGENT"
	wait "$AGENT"
	is .totals.allocs 2003
	untouched "$TARGET"
}

@test "agent: what it is without is said in one line, and not in its help" {
	refuses report report x.heaptap
	refuses diff diff a b
	refuses connect connect unix:/x
	refuses console console x.heaptap
	refuses scan scan 1
	refuses mark mark 1 here
	refuses doctor doctor
	refuses --suppressions run --suppressions x true
	refuses --ignore run --ignore=x true
	refuses --gen-suppressions run --gen-suppressions true
	refuses --config run --config x true
	refuses --why run --why 3 true
	refuses --between attach --between 1s,2s 1
	fails grep -qE '^ *(report|diff|connect|console|scan|mark|doctor) ' <("$agent" help)
	fails grep -qE -- '--(ignore|suppressions|gen-suppressions)' <("$agent" help run)
	for command in run attach serve; do "$agent" help "$command" | grep -q Usage; done
}

@test "agent: in an address space of 8, 9, 12 and 16 MiB it traces and judges" {
	local mib
	for mib in 8 9 12 16; do
		rm -f "$report"
		(ulimit -v $((mib * 1024)) && exec "$agent" run -q -o "$report" -- "$T/leak" >/dev/null)
		nothing_lost
		is .scan.definite.blocks 32
		is .scan.indirect.blocks 20
	done
}

# bats test_tags=full
@test "agent: one that only serves is smaller, and a client has counts, stacks, verdicts and names" {
	make -s -C "$BATS_TEST_DIRNAME/../.." O="$O" agent-serve
	full=$(stat -c %s "$agent") agent=$O/serve/heaptap-agent
	bytes=$(stat -c %s "$agent")
	echo "# $((bytes / 1024)) KiB" >&3
	[ "$bytes" -le $((291 * 1024)) ]
	[ "$bytes" -lt "$full" ]
	refuses run run true
	refuses attach attach 1
	refuses --output serve --output x 1
	cd "$BATS_TEST_TMPDIR"
	mkdir -m 700 net
	start "$agent" serve --wait --listen "unix:$PWD/net/s" -- "$T/leak"
	wait_for test -S net/s
	"$HEAPTAP" connect -q --sysroot / -o "$report" "unix:$PWD/net/s"
	nothing_lost
	is .scan.definite.blocks 32
	is .scan.indirect.blocks 20
	[ "$(of_function open_session allocs)" -gt 0 ]
	ended "$PID" 0
	# Children have their parent's blocks by the client's books.
	start "$agent" serve -f --wait --listen "unix:$PWD/net/s" -- "$T/fork"
	wait_for test -S net/s
	"$HEAPTAP" connect -q -f --sysroot / -o forks.json "unix:$PWD/net/s"
	jq -e '.processes | length > 1 and all(.lost.allocs == 0)' forks.json
	ended "$PID" 0
}

# takes_at_most KIB PID
takes_at_most() {
	local kib
	kib=$(python3 "$BATS_TEST_DIRNAME/../lib/written_kib.py" "$2")
	echo "# $kib KiB" >&3
	[ "$kib" -le "$1" ]
}

# bats test_tags=full
@test "agent: one that only serves takes at most 600 KiB while it serves, and so does its tracer" {
	make -s -C "$BATS_TEST_DIRNAME/../.." O="$O" agent-serve
	cd "$BATS_TEST_TMPDIR"
	mkdir -m 700 net
	stepping
	start "$O/serve/heaptap-agent" serve --listen "unix:$PWD/net/s" "$TARGET"
	serve=$PID
	wait_for test -S net/s
	start bash -c "exec '$HEAPTAP' connect --sysroot / -o '$report' 'unix:$PWD/net/s' 2>connect.err"
	wait_for grep -qs 'connected;' connect.err
	step "shuffle 100000"
	[ "$(pgrep -cP "$serve")" -ge 1 ]
	# As soon as the host has what lies in the ring.
	for pid in "$serve" $(pgrep -P "$serve"); do
		wait_for takes_at_most 600 "$pid"
	done
	kill -INT "$PID"
	ended "$PID" 0
	nothing_lost
}

@test "agent: as a 32-bit program on 32-bit programs: counts, verdicts and markers" {
	agent=$O/agent32/heaptap-agent
	[ -x "$agent" ] || skip "no 32-bit agent here: see make agent-32"
	"$agent" run -q -o "$report" -- "$T/leak-32" >/dev/null
	nothing_lost
	is .scan.definite.blocks 32
	is .scan.indirect.blocks 20
	rm -f "$report"
	"$agent" run -q --no-scan -o "$report" -- "$T/marked-32" sections >"$BATS_TEST_TMPDIR/out"
	nothing_lost
	[ "$(jq -r '[.marks[].name] | unique | length' "$report")" -gt 1 ]
	stepping
	run "$agent" attach "$TARGET"
	[[ $status -eq 3 && $output == *"is a 64-bit program: it needs a 64-bit heaptap" ]]
	run "$agent" run -- "$T/leak"
	[[ $output == *"is a 64-bit program"*"not traced"* && $output != *"no leaks"* ]]
}
