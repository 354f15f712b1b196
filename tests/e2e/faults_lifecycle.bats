#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Targets that change: they become other programs, start thousands of threads, end in unusual ways.

load ../lib/common

# blocks_of NR: live blocks of before_exec in the NR-th image
blocks_of() {
	jq "[.processes[$1].stacks[] | select(any(.frames[]; .function == \"before_exec\")) | .live_blocks] | add" "$report"
}

# bats test_tags=full
@test "faults: exec from 64 bits to 32 and back, to a static program (A14)" {
	local images=("$T/exec" "$T/exec-static" "$T/exec")
	[ ! -x "$T/exec-32" ] || [ "${HEAPTAP_BACKEND:-}" = inline ] && echo "# no 32-bit programs here" >&3 || images=("$T/exec" "$T/exec-32" "$T/exec-static" "$T/exec-32" "$T/exec")
	traced -- "${images[@]}" "$T/exitcodes" exit 3
	[ "$status" -eq 3 ]
	jq -e --argjson n "${#images[@]}" '.processes | length == $n + 1' "$report"
	for ((i = 0; i < ${#images[@]}; i++)); do
		[ "$(blocks_of "$i")" -eq 4 ] || { echo "image $i: $(blocks_of "$i")"; return 1; }
	done
	nothing_lost
}

# bats test_tags=full
@test "faults: exec of a set-user-ID program by a user (A14)" {
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_TEST_TMPDIR"
	cp "$T/exec" "$BATS_TEST_TMPDIR/exec"
	cp "$T/exec" "$BATS_TEST_TMPDIR/set-uid"
	chmod 4755 "$BATS_TEST_TMPDIR/set-uid"
	setpriv --reuid nobody --clear-groups "$BATS_TEST_TMPDIR/exec" "$BATS_TEST_TMPDIR/set-uid" /usr/bin/id -u \
		>"$BATS_TEST_TMPDIR/control" || skip "$BATS_TEST_TMPDIR is out of reach for other users"
	traced -u nobody -- "$BATS_TEST_TMPDIR/exec" "$BATS_TEST_TMPDIR/set-uid" /usr/bin/id -u
	[ "$status" -eq 0 ]
	cmp "$out" "$BATS_TEST_TMPDIR/control"
	[ "$(blocks_of 0)" -eq 4 ]
	[ "$(blocks_of 1)" -eq 4 ]
	nothing_lost
}

# bats test_tags=full
@test "faults: exec from a thread while 50 others run: the new image is seen, its libraries were the old one's (A15)" {
	traced -- "$T/exec" -t "$T/exec" -t "$T/exec" "$T/exitcodes" exit 3
	[ "$status" -eq 3 ]
	jq -e '.processes | length == 4' "$report"
	for i in 0 1 2; do
		[ "$(blocks_of $i)" -eq 4 ] || { echo "image $i: $(blocks_of $i)"; return 1; }
	done
}

# bats test_tags=full
@test "faults: attached, exec from a thread while others run (A15)" {
	mkfifo "$BATS_TEST_TMPDIR/go"
	start bash -c "read <'$BATS_TEST_TMPDIR/go'; exec '$T/exec' -t '$T/spin'"
	TARGET=$PID
	attached "$TARGET"
	echo >"$BATS_TEST_TMPDIR/go"
	wait_for says bash ready
	works "$TARGET" 300
	kill -INT "$TAP"
	# By inline the first calls of each program are lost.
	ended "$TAP" $([ "${HEAPTAP_BACKEND:-}" = inline ] && echo 5 || echo 0)
	is '.pid' "$TARGET"
	# The last image is spin, which says nothing but allocates for ever.
	jq -e '.processes[-1] | (.exe | endswith("/spin")) and .totals.allocs > 50' "$report"
	untouched "$TARGET"
}

# bats test_tags=full
@test "faults: 10,000 short threads: all that each did (A18)" {
	traced -d 8 -- "$T/storm" 10000 0
	[ "$status" -eq 0 ]
	as_told live allocs
	[ "$(field '.lost | .allocs + .frees + .other')" -eq 0 ]
}

# bats test_tags=full
@test "faults: 5,000 threads alive at once: no call is lost, stacks that are lost are counted (A18, F2)" {
	traced -d 8 -- "$T/storm" 0 5000
	[ "$status" -eq 0 ]
	[ "$(field '.lost | .allocs + .frees + .other')" -eq 0 ]
	[ "$(calls_of malloc)" -ge 5000 ]
	[ "$(of_function long_thread allocs)" -ge $((5000 - $(field .lost.stacks))) ]
}

# bats test_tags=full
@test "faults: nothing of heaptap is open in the program that it starts, nor left when it is killed (A22)" {
	"$BASH" -c 'ls -l /proc/self/fd | wc -l' >"$BATS_TEST_TMPDIR/control" 3>&-
	traced -q -- "$BASH" -c 'ls -l /proc/self/fd | wc -l'
	[ "$(cat "$out")" -eq "$(cat "$BATS_TEST_TMPDIR/control")" ]
	# heaptap raises its own limits.
	ulimit -Sn 512
	traced -q -- "$BASH" -c 'ulimit -Sn; ulimit -Sl'
	[ "$(cat "$out")" = "$(ulimit -Sn; ulimit -Sl)" ]
	start "$HEAPTAP" run -q -- "$T/spin"
	TAP=$PID
	wait_for says heaptap ready
	TARGET=$(pgrep -P "$TAP" -x spin)
	wait_for has_probes "$TARGET"
	STARTED+=("$TARGET")
	kill -KILL "$TAP"
	wait_for untouched "$TARGET"
}

is_ptrace_stopped() { grep -q '^State:.t' "/proc/$1/status"; }

# bats test_tags=full
@test "faults: kill -9 while a thread that blocks SIGCHLD is stopped at its dlopen (A3)" {
	mkfifo "$BATS_TEST_TMPDIR/go"
	exec 4<>"$BATS_TEST_TMPDIR/go"
	start "$HEAPTAP" run -q -- "$T/dlopen" "$T" blocked wait <&4
	TAP=$PID
	wait_for says heaptap ready
	TARGET=$(pgrep -P "$TAP" -x dlopen)
	STARTED+=("$TARGET")
	kill -STOP "$TAP"
	echo >&4
	# Heaptap cannot resume the thread, and then dies.
	wait_for is_ptrace_stopped "$TARGET"
	kill -KILL "$TAP"
	wait_for says heaptap 'expect live 0 0'
	exec 4>&-
}

# reused SECOND: is traced until its end, and its number then given to SECOND
reused() {
	# In a PID namespace the next number can be chosen without others taking it.
	timeout 120 unshare -p -f --mount-proc bash -c "
		echo 99 >/proc/sys/kernel/ns_last_pid
		'$T/spin' >/dev/null &
		first=\$!
		'$HEAPTAP' attach -t 60s -o '$BATS_TEST_TMPDIR/$1.json' \$first 2>'$BATS_TEST_TMPDIR/$1.said' &
		tap=\$!
		until grep -q 'attached to' '$BATS_TEST_TMPDIR/$1.said'; do sleep 0.05; done
		kill -KILL \$first
		wait \$first
		echo \$((first - 1)) >/proc/sys/kernel/ns_last_pid
		'$T/$1' </dev/zero >/dev/null & second=\$!
		wait \$tap
		echo \"\$? \$first \$second\"
		kill -KILL \$second || true" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&-
	read -r status first second <"$BATS_TEST_TMPDIR/out"
}

# bats test_tags=full
@test "faults: the target's number is given to another process while it is traced (A19)" {
	local program first second
	unshare -p -f --mount-proc sh -c 'echo 99 >/proc/sys/kernel/ns_last_pid' || skip "numbers of processes cannot be chosen here"
	# One that lives on, one that is gone before anybody can look at it. The inline source counts a loss for the second,
	# as for a program that the target executes.
	for program in spin $(by_inline || echo step); do
		reused "$program"
		[ "$first" -eq "$second" ] || skip "the number was taken by another process"
		[ "$status" -eq 0 ] || { echo "status $status"; cat "$BATS_TEST_TMPDIR/$program.said"; return 1; }
		jq -e '.processes | length == 1 and (.[0].exe | endswith("/spin"))' \
			"$BATS_TEST_TMPDIR/$program.json" || { cat "$BATS_TEST_TMPDIR/$program.json"; return 1; }
	done
}
