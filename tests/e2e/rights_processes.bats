#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Each process of heaptap has no more rights than its row in SECURITY.md says, while it traces (S10).
#
# bats file_tags=full

load ../lib/common
load ../lib/console

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	case $(uname -m) in
	x86_64 | aarch64 | riscv64) ;;
	*) skip "no filters of system calls on this CPU" ;;
	esac
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
	STARTED=()
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	end_started
	[ -z "${bin:-}" ] || rm -rf "$bin"
}

# The capabilities by their numbers in linux/capability.h; "-" = no process of heaptap keeps it.
names=(CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER - KILL SETGID SETUID - - - - - - IPC_LOCK - - - - SYS_PTRACE - SYS_ADMIN - SYS_NICE
	SYS_RESOURCE - - - - - - - - - - - - - PERFMON BPF CHECKPOINT_RESTORE)

# row NAME WORD: what the row of SECURITY.md of a process of this name keeps; of several, that which has WORD
row() {
	grep -F "| \`$1\` |" "$ROOT/SECURITY.md" | grep -F -- "$2" | awk -F'|' '{ print $4 }'
}

# mask KEPT: the capabilities in this text that this test has itself, as a number
mask() {
	local bit sum=0
	for bit in "${!names[@]}"; do
		[ "${names[bit]}" = - ] || ! grep -qw "${names[bit]}" <<<"$1" || sum=$((sum | 1 << bit))
	done
	echo $((sum & 16#$(awk '/^CapPrm/ { print $2 }' /proc/self/status)))
}

# value NAME FILE: of a line in /proc/PID/status
value() { awk -v name="$1:" '$1 == name { print $2 }' <<<"$2"; }

# has_settled PID: it has taken the last step, which is the filter
has_settled() { gone "$1" || grep -qx 'Seccomp:	2' "/proc/$1/status"; }

# family PID: it, and the processes of heaptap that it has made, and these
family() {
	local child
	! is_heaptap "$1" || echo "$1"
	for child in $(pgrep -P "$1"); do
		family "$child"
	done
}

# known PROCESS THREAD: this thread has a row in doc/processes.md, or it is of a library in a helper without rights
known() {
	[[ $1 == heaptap-metrics || $1 == heaptap-push ]] || grep -qF "| \`$2\`" "$ROOT/doc/processes.md" || [ "$2" = heaptap ]
}

# as_promised PID WORD: each process of this family; for "heaptap" itself the row with WORD counts. Their names are in $found.
as_promised() {
	local pid name kept status text
	found=
	for pid in $(family "$1"); do
		name=$(cat "/proc/$pid/comm")
		kept=$(row "$name" "$([ "$name" != heaptap ] || echo "\`$2\`")")
		[ -n "$kept" ] || { echo "$name: no such process in SECURITY.md"; return 1; }
		wait_for has_settled "$pid"
		for status in "/proc/$pid"/task/*/status; do
			# A thread may have ended since the list was made.
			text=$(cat "$status" 2>/dev/null) || continue
			known "$name" "$(value Name "$text")" || { echo "$name: no such thread in doc/processes.md"; return 1; }
			[ "$(value NoNewPrivs "$text")" = 1 ] || { echo "$name: may gain privileges"; return 1; }
			[ "$(value Seccomp "$text")" = 2 ] || { echo "$name: no filter of system calls"; return 1; }
			[ $((16#$(value CapPrm "$text"))) -eq "$(mask "$kept")" ] ||
				{ echo "$name: capabilities $(value CapPrm "$text"), not $(printf %x "$(mask "$kept")")"; return 1; }
			[ $((16#$(value CapEff "$text") & ~16#$(value CapPrm "$text"))) -eq 0 ]
			[[ $kept != *"user 65534"* || "$(value Uid "$text")" = 65534 || $(row "\`$2\`") != *SETUID* ]] ||
				{ echo "$name: not nobody"; return 1; }
		done
		# Files in /proc of a process of another user are root's only if it is not dumpable.
		[[ $kept != *"user 65534"* ]] || is_closed "$pid" || { echo "$name: others of its user can read its memory"; return 1; }
		found+="$name "
	done
}

is_closed() { [ "$(stat -c %u "/proc/$1/mem")" = 0 ]; }

# Names of the process that outlives heaptap, of which each trace has one.
outliving='(links|keeper|tracer)-of-.*'

has_helper() { pgrep -P "$1" -x "$2" >/dev/null; }

# among NAME...: these were there
among() {
	local name
	for name in "$@"; do
		[[ " $found" == *" $name "* ]] || { echo "$name was not there, only $found"; return 1; }
	done
}

# follows BACKEND HELPER...: a trace with metrics, a server for profiles, and names
follows() {
	local name
	spinning
	start python3 "$ROOT/tests/lib/push_server.py"
	wait_for says python3 '^[0-9]'
	attached --backend "$1" --metrics 127.0.0.1:0 --push "http://localhost:$(head -n 1 "$BATS_TEST_TMPDIR/python3.out")/" \
		-i 100ms "$TARGET"
	shift
	for name in "$@" heaptap-names heaptap-metrics heaptap-push; do
		wait_for has_helper "$TAP" "$name"
	done
	as_promised "$TAP" attach
	among heaptap "$@" heaptap-names heaptap-metrics heaptap-push
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
	# The sender has done its work with what it has left.
	[ -s 1.pb.gz ]
}

@test "rights: each process of attach by BPF has what its row promises (S10)" {
	with_bpf_only "the next test is that"
	follows bpf links-of-heapta
}

@test "rights: each process of attach by ptrace has what its row promises (S10)" {
	follows ptrace tracer-of-heapt
}

@test "rights: each process of attach by the inline source has what its row promises (S10)" {
	with_bpf_only "it is part of the inline source"
	[ "$(uname -m)" = x86_64 ] || skip "no inline source on this CPU"
	follows inline keeper-of-heapt
	[[ " $found" != *-of-heap*-of-heap* ]] || { echo "more than one outlives heaptap: $found"; return 1; }
}

@test "rights: each process of run has what its row promises (S10)" {
	start "$HEAPTAP" run -q -o report.json -- "$T/idle"
	TAP=$PID
	wait_for has_helper "$TAP" idle
	wait_for has_helper "$TAP" "$outliving"
	as_promised "$TAP" run
	among heaptap "$(cat "/proc/$(pgrep -P "$TAP" -x "$outliving")/comm")"
	kill "$(pgrep -P "$TAP" -x idle)"
	ended "$TAP" 143
}

@test "rights: each process of serve and of connect has what its row promises (S10)" {
	with_bpf_only "one source is enough for the client"
	spinning
	mkdir -m 700 sock
	start "$HEAPTAP" serve --listen "unix:$PWD/sock/s" "$TARGET"
	SERVER=$PID
	wait_for grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/heaptap.err"
	start "$HEAPTAP" connect -i 100ms -o report.json "unix:$PWD/sock/s"
	TAP=$PID
	wait_for has_probes "$TARGET"
	wait_for has_helper "$SERVER" "$outliving"
	as_promised "$SERVER" serve
	among heaptap "$(cat "/proc/$(pgrep -P "$SERVER" -x "$outliving")/comm")"
	as_promised "$TAP" connect
	among heaptap
	kill -INT "$TAP"
	ended "$TAP" 0
	kill "$SERVER"
	ended "$SERVER" 0
	untouched "$TARGET"
}

@test "rights: each process of system has what its row promises (S10)" {
	not_by_inline "system has no inline source"
	with_bpf_only "system traces by BPF"
	spinning
	start "$HEAPTAP" system --duration 600s --interval 1s
	TAP=$PID
	# The processes of the whole machine are candidates, so nobody knows whether the target gets probes.
	wait_for test -s "$BATS_TEST_TMPDIR/heaptap.out" -o -s "$BATS_TEST_TMPDIR/heaptap.err"
	as_promised "$TAP" system
	among heaptap
	kill -INT "$TAP"
	ended "$TAP" 0
	wait_for untouched "$TARGET"
}

@test "rights: each process of a console that holds a process has what its row promises (S10)" {
	stepping
	asking "$TARGET" -q
	printf 'break malloc\nhelp quit\n' >&"${CON[1]}"
	wait_for has_helper "$CON_PID" holder-of-heapt
	echo 'alloc 1 100' >&"${STEP[1]}"
	wait_for waits
	as_promised "$CON_PID" console
	among heaptap holder-of-heapt
	# With what the helper has left it resumes the process when heaptap is killed.
	kill -KILL "$CON_PID"
	wait_for runs
}

waits() { grep -qE '^State:.*(T \(stopped\)|t \(tracing stop\))' "/proc/$TARGET/status"; }
runs() { ! waits && is_running "$TARGET"; }
