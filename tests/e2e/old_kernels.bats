#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Kernels from 3.10 on: the system calls that they lack are hidden by a filter (tests/lib/old_kernel.py).

load ../lib/common
load ../lib/remote

OLD=$ROOT/tests/lib/old_kernel.py
PYTHON=/usr/bin/python3 # the first one of PATH may be a script that looks for another

# without CALLS PROGRAM: from now on $HEAPTAP is this program on such a kernel
without() {
	HEAPTAP=$BATS_TEST_TMPDIR/old/heaptap
	mkdir -p "${HEAPTAP%/*}"
	printf '#!/bin/sh\nexec %s %s %s %s "$@"\n' "$PYTHON" "$OLD" "$1" "$2" >"$HEAPTAP"
	chmod +x "$HEAPTAP"
}

# has_verdict: 52 blocks are lost, but for one that some number in the memory of the program may look like
has_verdict() { jq -e '.processes[0].scan | .definite.blocks + .indirect.blocks >= 51' "$report"; }

# runs_well: a verdict, complete stacks, a recording
runs_well() {
	rm -f "$BATS_TEST_TMPDIR/r.heaptap"
	traced --backend ptrace -w "$BATS_TEST_TMPDIR/r.heaptap" -- "$T/leak-static"
	equal status "$status" 0
	has_verdict
	nothing_lost
	jq -e '.processes[0].stacks | length > 0 and all(.complete)' "$report" >/dev/null
	# The host has a younger kernel than the board.
	"$FULL" report -q --force -o "$report" "$BATS_TEST_TMPDIR/r.heaptap"
	has_verdict
}

# attaches_well: a process that runs, and a report meanwhile
attaches_well() {
	attached --backend ptrace "$TARGET"
	works "$TARGET" 20
	kill -USR1 "$TAP"
	wait_for test -s "$report"
	detach
	is .watched true
	is .scan.definite.blocks 0
	nothing_lost
}

# serves_well: a client traces, and has a verdict
serves_well() {
	serving --backend ptrace "$TARGET"
	HEAPTAP=$FULL watching "unix:$SOCKET"
	works "$TARGET" 20
	kill -INT "$TAP"
	ended "$TAP" 0
	is .watched true
	is .scan.definite.blocks 0
	nothing_lost
	kill -TERM "$SERVE"
	ended "$SERVE" 0
}

# works_without CALLS: the full program and the agent do their work without these system calls
works_without() {
	local program
	needs_target leak-static
	FULL=$HEAPTAP
	start "$T/spin-static" 1
	TARGET=$PID
	for program in "$FULL" "$O/musl/heaptap-agent"; do
		[ -x "$program" ] || continue
		without "$1" "$program"
		runs_well || { echo "# run, without $1: $program"; return 1; }
		attaches_well || { echo "# attach, without $1: $program"; return 1; }
		serves_well || { echo "# serve, without $1: $program"; return 1; }
	done
	without "$1" "$FULL"
	"$HEAPTAP" scan "$TARGET" >"$BATS_TEST_TMPDIR/census"
	grep -q '^no leaks' "$BATS_TEST_TMPDIR/census" || { echo "# scan, without $1"; return 1; }
	untouched "$TARGET"
	kill "$TARGET"
	HEAPTAP=$FULL
}

@test "old kernels: a process in the memory of another one is no copy, though no call says so (A16)" {
	without kcmp "$HEAPTAP"
	traced -f -b ptrace -- "$T/sharers" clone
	equal processes "$(jq '.processes | length' "$report")" 1
	as_told calls
	traced -f -b ptrace -- "$T/fork" 1
	equal processes "$(jq '.processes | length' "$report")" 2
}

@test "old kernels: without bpf_loop() a walk goes on with the mappings that it began with (D1, E4)" {
	with_bpf_only "programs of the kernel walk there"
	# A copy has to ask: heaptap keeps what it knows of a kernel for each program file.
	cp "$HEAPTAP" "$BATS_TEST_TMPDIR/heaptap"
	HEAPTAP=$BATS_TEST_TMPDIR/heaptap LD_PRELOAD=$T/libnoloop.so traced --backend bpf -- "$T/reloads" "$T/plug_own.so"
	equal status "$status" 0
	nothing_lost
	as_told allocs live
}

@test "old kernels: memory and pagemap are read as before Linux 3.15 and 4.2 (E4, H1)" {
	needs_target leak-static
	# Without a random gap and much of an environment, less than a page lies between the frame of main() and the stack's end.
	report=$BATS_TEST_TMPDIR/report.json
	env -i PATH="$PATH" LD_PRELOAD="$T/libold.so" setarch -R "$HEAPTAP" run -b ptrace -o "$report" -- "$T/leak-static"
	has_verdict
	is .scan.definite.blocks 32
	nothing_lost
}

@test "old kernels: all system calls since 3.10 are missing (E4)" {
	works_without all
}

# bats test_tags=full
@test "old kernels: calls that a thread of another process should make: the missing request is named (E4)" {
	needs_target spin-static
	start "$T/spin-static" 1
	without PTRACE_SIGMASK,bpf "$HEAPTAP"
	run "$HEAPTAP" attach --backend inline -t 1s "$PID"
	[[ $output == *'memory cannot be mapped in it: PTRACE_GETSIGMASK is not there (Linux 3.11)'* ]]
	run -0 "$HEAPTAP" scan --snapshot fork "$PID"
	[[ $output == *'it cannot be copied: PTRACE_GETSIGMASK is not there (Linux 3.11)'*'no leaks'* ]]
}

# in_read_only DIRECTORIES COMMAND...: nothing can be written in these
in_read_only() {
	unshare -m bash -c 'for d in $1; do mount --bind "$d" "$d" && mount -o remount,ro,bind "$d"; done; exec "${@:2}"' bash "$@"
}

# bats test_tags=full
@test "old kernels: a file that stands for memory: in any directory, or the missing call is named" {
	needs_target leak-static
	unset TMPDIR
	in_read_only "/tmp" true || skip "no name spaces of mounts"
	run -0 in_read_only "/dev/shm /run /tmp" "$PYTHON" "$OLD" all "$HEAPTAP" run --backend ptrace --no-scan -- "$T/leak-static"
	[[ $output == *' live in '* ]]
	run -0 in_read_only "/dev/shm /run /tmp /var/tmp" "$PYTHON" "$OLD" all "$HEAPTAP" run --backend ptrace --no-scan -- "$T/leak-static"
	[[ $output == *'memfd_create(2) is not there (Linux 3.17)'*'set TMPDIR: Read-only file system'* ]]
}

# bats test_tags=full
@test "old kernels: each system call since 3.10 is missing, one by one" {
	for call in $("$PYTHON" "$OLD" list); do
		works_without "$call"
	done
}
