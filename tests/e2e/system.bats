#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap system: which process of this machine grows, and where.

load ../lib/common
load ../lib/screen

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
	# Other tests have programs of the same name.
	SWELL=swell-$$
	cp "$T/swell" "$SWELL"
}

teardown() {
	end_screen
	end_started
}

# swelling BYTES [MS]: a process that forgets so many bytes every MS milliseconds (100); its pid is in $TARGET
swelling() {
	start "./$SWELL" "$@"
	TARGET=$PID
	wait_for says "$SWELL" ready
}

# watching [OPTIONS]: heaptap system in the background; its pid is in $TAP, what it prints in $rows and $err
watching() {
	start "$HEAPTAP" system "$@"
	TAP=$PID
	rows=$BATS_TEST_TMPDIR/heaptap.out
	err=$BATS_TEST_TMPDIR/heaptap.err
}

# of PID FILTER: the last line of JSON about a process
of() { tail -n 1 "$rows" | jq -e ".processes[] | select(.pid == $1) | $2" >/dev/null 2>&1; }

# is_first PATTERN: of the rows of a table in text
is_first() { grep -A 2 '^20.* processes, ' text | grep -Eq "$1"; }

@test "system: a process that grows comes first, with its rate and the time until a limit" {
	swelling 65536
	grower=$TARGET
	swelling 0
	# Others on this machine may grow faster.
	start bash -c "exec '$HEAPTAP' system -i 1s -n 5 --zoom 0 --pid $TARGET --pid $grower >text"
	table=$PID
	watching --json -i 1s -n 0
	# 640 KiB a second, or less on a busy machine. All that grows is a leak: the line through it is straight. Each line is
	# a new measurement, and the last one may be half written.
	wait_for of "$grower" '.growth.state == "grows" and .growth.bytes_per_hour > 0 and
		.growth.error_per_hour < .growth.bytes_per_hour and .limit.reached_in_ns > 0 and .growth.since_ns > 0'
	wait_for of "$TARGET" ".growth.state == \"none\" and .comm == \"$SWELL\""
	kill -INT "$TAP"
	ended "$TAP" 0
	wait_for is_first "^ *$grower  $SWELL .*/min .*\(.*\)"
	kill -INT "$table"
	ended "$table" 0
	untouched "$TARGET"
	grep -Eq '^20.* [0-9]+ processes, .* resident; heaptap .* of a CPU' text
}

# bats test_tags=full
@test "system: processes are chosen by name, program, user and PID" {
	swelling 0
	for choice in "--comm ${SWELL%?}*" "--exe $PWD/$SWELL" "--exe $SWELL" "--pid $TARGET" "-p $SWELL"; do
		read -ra words <<<"$choice"
		"$HEAPTAP" system "${words[@]}" --uid "$(id -u)" --json -i 1s -t 100ms -n 0 >one
		[ "$(tail -n 1 one | jq .watched)" -eq 1 ] || { echo "$choice"; cat one; return 1; }
		tail -n 1 one | jq -e ".processes[0].pid == $TARGET"
	done
	"$HEAPTAP" system --pid "$TARGET" --uid 12345 --json -i 1s -t 100ms >none
	[ "$(tail -n 1 none | jq .watched)" -eq 0 ]
	run -2 "$HEAPTAP" system --uid 'no such user'
	# A tenth of a second shows no growth.
	"$HEAPTAP" system -q --comm "$SWELL" --zoom 0 -t 100ms >short
	grep -qx 'No process has grown yet: growth shows after some 15 seconds.' short
	"$HEAPTAP" system -q --uid 12345 -t 100ms >none
	grep -qx 'No process matches: --comm, --exe, --pid, --uid, --cgroup, --container.' none
}

# bats test_tags=full
@test "system: new processes are watched, ended ones leave, and the table is bounded" {
	watching --comm "$SWELL" --json -i 1s -n 0
	swelling 0
	wait_for of "$TARGET" '.pid'
	kill "$TARGET"
	wait_for gone "$TARGET"
	left_table() { tail -n 1 "$rows" | jq -e "all(.processes[]; .pid != $TARGET)" >/dev/null 2>&1; }
	wait_for left_table
	kill -INT "$TAP"
	ended "$TAP" 0
	swelling 0
	swelling 0
	watching --comm "$SWELL" --watch 1 --json -i 1s -n 0
	is_bounded() { tail -n 1 "$rows" | jq -e '.watched == 1 and .evicted >= 1' >/dev/null 2>&1; }
	wait_for is_bounded
	fails jq -se 'any(.watched > 1)' "$rows"
	kill -INT "$TAP"
	ended "$TAP" 0
}

# ---- tracing ----

# told TEXT: heaptap has said so on stderr
told() { grep -q -- "$1" "$err"; }

# bats test_tags=full
@test "system: of 200 processes the one that leaks is found, traced and named without any option" {
	local i
	for ((i = 0; i < 199; i++)); do swelling 0; done
	idle=$TARGET
	swelling 65536
	watching
	wait_for told "traces $SWELL (pid $TARGET): it grows by"
	wait_for told "$SWELL (pid $TARGET): leaks .*: swell_forgets ([^)]*) < main"
	has_probes "$TARGET"
	untouched "$idle"
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
	# The report at the end names the process, the function and the verdict. Others on this machine may grow faster.
	grep -q "^$SWELL (pid $TARGET)  by .*traced for" "$rows"
	grep -A 1 "^$SWELL (pid $TARGET)" "$rows" | grep -q 'leaks .* in [0-9,]* blocks: swell_forgets ([^)]*) < main'
	never_in "$err" "pid $idle"
}

# bats test_tags=rounds,full
@test "system: a leak of 1 MiB a minute in one of 200 processes is found and named" {
	local i
	[ "$HEAPTAP_ROUNDS" -ge 100 ] || skip "takes a minute: make soak runs it"
	for ((i = 0; i < 199; i++)); do swelling 0; done
	swelling 1747
	watching
	wait_for told "traces $SWELL (pid $TARGET): it grows by"
	wait_for told "$SWELL (pid $TARGET): leaks .*: swell_forgets ([^)]*) < main"
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}

@test "system: a chosen process is traced although it does not grow, and JSON has the answer" {
	spinning
	# However dear a trap is here, it is traced until it ends.
	watching --pid "$TARGET" --json -i 1s --max-cost 0%
	wait_for told "traces spin (pid $TARGET): it was chosen"
	wait_for of "$TARGET" '.zoom.finding == "held" and (.zoom.function | startswith("spin_allocates"))'
	kill "$TARGET"
	wait_for told "leaves spin (pid $TARGET): it has ended"
	kill -INT "$TAP"
	ended "$TAP" 0
	tail -n 1 "$rows" | jq -e ".findings[] | select(.pid == $TARGET) | .traced == false"
}

# bats test_tags=full
@test "system: growth that is in no block, as of Python's pools, is said" {
	start python3 -c 'if True:
		import time
		kept = []
		print("ready", flush=True)
		while True:
			kept.append([float(i) for i in range(20000)])
			time.sleep(0.1)'
	TARGET=$PID
	wait_for says python3 ready
	watching --pid "$TARGET" --json -i 1s
	wait_for of "$TARGET" '.zoom.elsewhere_bytes > 1048576'
	wait_for told "of its growth since is in no block: it maps memory itself"
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}

@test "system: --backend inline names the function that grows" {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source was tried on x86_64 only"
	swelling 65536 10
	watching --pid "$TARGET" --json -i 1s --backend inline
	wait_for of "$TARGET" '.zoom.traced and .zoom.finding == "leaks"'
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
	run --separate-stderr "$HEAPTAP" system --everything --backend inline
	[ "$status" -eq 2 ]
	[[ $stderr == *"--everything: its probes are in all processes: use --backend bpf"* ]]
}

# bats test_tags=full
@test "system: programs that are spared are never traced" {
	swelling 65536
	watching --spare "${SWELL%?}?"
	wait_for told "does not trace $SWELL (pid $TARGET): named by --spare"
	kill -INT "$TAP"
	ended "$TAP" 0
	grep -A 1 "^$SWELL (pid $TARGET)" "$rows" | grep -q 'not traced'
	# Others on this machine may grow, and be traced.
	never_in "$err" ": traces $SWELL"
	watching --pid $$ --pid "$TARGET" --zoom 0 -t 3s
	ended "$TAP" 0
	never_in "$err" trace
	watching --pid $$
	wait_for told "does not trace .* (pid $$): heaptap itself, or what it was started from"
	kill -INT "$TAP"
	ended "$TAP" 0
}

# bats test_tags=full
@test "system: --everything says that chosen processes are spared" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	swelling 4096
	watching --everything --comm "$SWELL" --spare "${SWELL%?}?" -o "$BATS_TEST_TMPDIR/%p-%n.json"
	wait_for told "does not trace $SWELL (pid $TARGET), and processes like it: named by --spare"
	kill -INT "$TAP"
	ended "$TAP" 0
}

# bats test_tags=full
@test "system: a process that ends makes room for the next one" {
	swelling 65536
	first=$TARGET
	# Chosen, because others on this machine may grow faster.
	watching --zoom 1 --comm "$SWELL"
	wait_for told "traces $SWELL (pid $first)"
	swelling 300000
	kill "$first"
	wait_for told "leaves $SWELL (pid $first): it has ended"
	wait_for told "traces $SWELL (pid $TARGET)"
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
	grep "^$SWELL (pid $first)" "$rows" | grep -Eq 'has ended|killed by signal 15'
}

# bats test_tags=full
@test "system: tracing that costs too much is made cheaper, step by step, and each step is said" {
	start "$T/spin" 0
	TARGET=$PID
	watching --pid "$TARGET" --max-cost 0.1% --json -i 1s
	wait_for told "spin (pid $TARGET): tracing costs it .* of a CPU, more than --max-cost 0.1 %: stacks have 16 frames"
	wait_for told "leaves spin (pid $TARGET): tracing costs it .* it is traced again in"
	wait_for of "$TARGET" '.zoom.traced == false and .zoom.windows == 1 and .zoom.cost_permyriad > 10'
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
	watching --pid "$TARGET" --max-cost 0% --json -i 1s
	wait_for of "$TARGET" '.zoom.finding == "held" and .zoom.cost_permyriad > 10'
	kill -INT "$TAP"
	ended "$TAP" 0
	never_in "$err" max-cost
}

# bats test_tags=full
@test "system: a process in a PID namespace has both of its PIDs" {
	unshare -p true 2>/dev/null || skip "no PID namespaces here"
	start unshare -p -f "./$SWELL" 0
	wait_for says unshare ready
	TARGET=$(pgrep -P "$PID")
	STARTED+=("$TARGET")
	watching --comm "$SWELL" --json -i 1s
	wait_for of "$TARGET" '.pid_inside == 1'
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}

# ---- reports ----

# bats test_tags=full
@test "system: SIGUSR1 reports now, the end reports last, and names of files are kept apart" {
	swelling 65536
	watching --comm "$SWELL" -o '%p-%n.json' --keep 2
	wait_for told "$SWELL (pid $TARGET): leaks"
	kill -USR1 "$TAP"
	wait_for test -s "$TARGET-1.json"
	kill -USR1 "$TAP"
	wait_for test -s "$TARGET-2.json"
	kill -INT "$TAP"
	ended "$TAP" 0
	[ -s "$TARGET-3.json" ]
	[ ! -e "$TARGET-1.json" ]
	jq -e '.processes[0].scan.definite.bytes > 0' "$TARGET-3.json"
	jq -e --argjson pid "$TARGET" '.processes[0].pid == $pid' "$TARGET-2.json"
	run -2 "$HEAPTAP" system -o one.json
	[[ $output == *'needs %p or %n'* ]]
}

# bats test_tags=full
@test "system: a process over a threshold is traced and reported on once" {
	swelling 30000000 600000
	watching --comm "$SWELL" --zoom 1 --threshold 20M --threshold growth:900%/h -o 'over-%p-%n.json'
	wait_for test -s "over-$TARGET-1.json"
	told "$SWELL (pid $TARGET): --threshold: needs 2[0-9.]* MiB"
	jq -e '.processes[0].scan.definite != null' "over-$TARGET-1.json"
	kill -INT "$TAP"
	ended "$TAP" 0
	# The second one is that of the end.
	[ -s "over-$TARGET-2.json" ]
	[ ! -e "over-$TARGET-3.json" ]
}

# bats test_tags=full
@test "system: --everything traces all chosen processes at once, also new ones, and loses nothing" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	swelling 65536
	leaking=$TARGET
	swelling 4096
	watching --everything --comm "$SWELL" -o '%p-%n.json'
	wait_for told '2 processes are traced'
	swelling 1024
	wait_for told '3 processes are traced'
	wait_for has_probes "$TARGET"
	wait_for grep -Eq "^ *$leaking  $SWELL .*/min" "$rows"
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
	for pid in "${STARTED[@]:0:2}"; do
		# A register may still hold the newest block.
		jq -e '.processes[0] | .scan.definite.blocks >= .totals.live_blocks - 1 and .totals.live_blocks > 1' "$pid-1.json"
		jq -e '.processes[0].lost | .allocs + .frees + .stacks + .other == 0' "$pid-1.json"
	done
	[ -s "$TARGET-1.json" ]
	grep -A 1 "^$SWELL (pid $leaking)" "$rows" | grep -q 'leaks .*: swell_forgets ([^)]*) < main'
}

# bats test_tags=full
@test "system: --everything has room for new processes when others have ended" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	swelling 65536
	first=$TARGET
	watching --everything --comm "$SWELL" --watch 1
	wait_for told '1 processes are traced'
	kill -KILL "$first"
	wait_for gone "$first"
	swelling 4096
	wait_for has_probes "$TARGET"
	kill -INT "$TAP"
	ended "$TAP" 0
	never_in "$err" 'were not traced'
}

# three_runs NAME [OPTIONS]: this target runs three times, one after the other, under system with --everything and --comm,
# which then ends; reports are in all-1.json. Not in the process group of heaptap: what reads its output is there.
three_runs() {
	local i brief=brief-$$
	cp "$T/$1" "$brief"
	shift
	watching --everything --comm "${brief%?}[0-9]" -i 1s -o 'all-%n.json' "$@"
	wait_for test -s "$rows"
	for i in 1 2 3; do
		setsid --wait "./$brief" >/dev/null || true
	done
	kill -INT "$TAP"
	ended "$TAP" 0
}

# bats test_tags=full
@test "system: --everything traces programs of some milliseconds from their exec on, by their name" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	not_by_inline "it stops a process before its code goes in"
	three_runs work
	fails told 'ended before'
	told '3 programs of the chosen names were traced from their exec on'
	# Each has the buffer of its output.
	jq -e '[.processes[].totals | [.allocs, .frees]] == [[301, 300], [301, 300], [301, 300]]' all-1.json
	jq -e '[.processes[].lost | .allocs + .frees + .stacks + .other] | add == 0' all-1.json
	jq -e '[.processes[].notes[] | select(test("first calls"))] == []' all-1.json
	# The rest of the choice does not fit, or a program has ended before it could be asked.
	rm all-1.json
	three_runs work --exe nosuch
	fails told 'were traced from their exec on'
	jq -e '.processes == []' all-1.json
}

# bats test_tags=full
@test "system: --everything says which chosen programs began before the probes of their file were in" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	not_by_inline "it stops a process before its code goes in"
	three_runs leak-static
	fails told 'ended before'
	jq -e '[.processes[] | select(.watched and ([.notes[] | test("first calls, or all, may be missing")] | any | not))
		| .totals.allocs] | unique | length <= 1' all-1.json
	jq -e '.processes[0] | .watched == false or any(.notes[]; test("first calls, or all, may be missing"))' all-1.json
}

libc_is_own() { ! text_differs "$1" | grep -q 'libc\.so'; }

# bats test_tags=full
@test "system: with --everything --max-cost shortens stacks, pauses the dearest process, and leaves its file at last" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	start "$T/spin" 0
	TARGET=$PID
	watching --everything --pid "$TARGET" --max-cost 0.1% -o '%p-%n.json'
	wait_for told "spin (pid $TARGET): tracing costs it .* of a CPU, more than --max-cost 0.1 %: stacks of all processes have 16 frames"
	wait_for told "leaves spin (pid $TARGET): tracing costs it .*: it is traced again in"
	has_probes "$TARGET"
	wait_for told "takes the probes out of .*: their traps cost spin (pid $TARGET) .* of a CPU, more than --max-cost"
	# Probes in the dynamic linker stay.
	wait_for libc_is_own "$TARGET"
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
	jq -e '.processes[0].notes | any(test("are not seen any more, because of --max-cost")) and any(test("exact for window 1"))' "$TARGET-1.json"
	# The last blocks may have been freed since.
	jq -e '.processes[0] | .totals.allocs > 0 and .scan.definite.blocks == 0' "$TARGET-1.json"
}

# dear_at_looks N: all processes paid more than 10 % of a CPU at so many looks
dear_at_looks() { [ "$(jq -s 'map(select(.targets_permyriad > 1000)) | length' "$rows" 2>/dev/null || echo 0)" -ge "$1" ]; }

# bats test_tags=full
@test "system: --everything has no limit of cost unless --max-cost is given" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	start "$T/spin" 0
	TARGET=$PID
	watching --everything --pid "$TARGET" --json -i 1s
	# A limit is kept after three looks at a price above it. The usual limit is 500.
	wait_for dear_at_looks 8
	kill -INT "$TAP"
	ended "$TAP" 0
	never_in "$err" 'max-cost'
	untouched "$TARGET"
}

# bats test_tags=full
@test "system: with --everything SIGUSR1, --interval and a threshold write reports too" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	swelling 65536
	watching --everything --comm "$SWELL" -o 'now-%p-%n.json'
	wait_for told '1 processes are traced'
	kill -USR1 "$TAP"
	wait_for test -s "now-$TARGET-1.json"
	kill -INT "$TAP"
	ended "$TAP" 0
	watching --everything --comm "$SWELL" -i 1s -o 'each-%p-%n.json'
	wait_for test -s "each-$TARGET-3.json"
	kill -INT "$TAP"
	ended "$TAP" 0
	swelling 30000000 600000
	watching --everything --comm "$SWELL" --threshold 20M -o 'over-%p-%n.json'
	wait_for told "$SWELL (pid $TARGET): --threshold: needs"
	wait_for test -s "over-$TARGET-1.json"
	kill -INT "$TAP"
	ended "$TAP" 0
	run -2 "$HEAPTAP" system --zoom 0 --threshold 1G
	[[ $output == *'nothing to report'* ]]
}

# ---- the screen ----

# bats test_tags=full
@test "system: on a terminal it has a screen, with growers at the top, decisions below, and a report at its end" {
	with_tmux
	swelling 65536
	on_screen 120x40 "$HEAPTAP" system --comm "$SWELL"
	shows '^ *1 process, .* resident; heaptap .* of a CPU'
	shows "^ *$TARGET  $SWELL .*/min"
	shows "system: traces $SWELL (pid $TARGET)"
	shows 'leaks .* in [0-9,]* blocks: swell_forgets ([^)]*) < main'
	keys Down
	shows "^ *$SWELL (pid .*resident .* left of"
	keys q
	left 0
	shows "^$SWELL (pid $TARGET)  by"
	untouched "$TARGET"
}
