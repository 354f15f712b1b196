#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Users who are not root and have some capabilities: what works, and what doctor says of it (E1).

load ../lib/common
load ../lib/screen

bats_require_minimum_version 1.5.0

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	[ "${HEAPTAP_BACKEND:-}" != ptrace ] || skip "the ptrace source needs more rights: it writes code"
	"$HEAPTAP" doctor --json | jq -e .features.uprobe_multi >/dev/null ||
		skip "without multi links uprobes need CAP_SYS_ADMIN"
	# A program of its own for nobody, who may not look into the build directory of every machine.
	bin=$(mktemp -d)
	chmod 755 "$bin"
	install -m 755 "$HEAPTAP" "$bin/heaptap"
	mkdir -m 755 "$bin/as"
}

teardown() {
	end_screen
	end_started
	[ -z "${bin:-}" ] || rm -rf "$bin"
}

nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"

# with_caps LIST COMMAND...: as nobody, who has these capabilities alone
with_caps() { $nobody --inh-caps="-all,$1" --ambient-caps="-all,$1" --bounding-set="-all,$1" -- "${@:2}"; }

three=+bpf,+perfmon,+sys_ptrace

# seen: $TARGET, root's, attached to by nobody, by the command in $bin/as/heaptap
seen() {
	report=$BATS_TEST_TMPDIR/heaptap.out
	err=$BATS_TEST_TMPDIR/heaptap.err
	chmod 755 "$bin/as/heaptap"
	start "$bin/as/heaptap" attach --max-pause 60s --format json "$TARGET"
	TAP=$PID
	wait_for is_tracing "$TAP"
	! gone "$TAP" || { cat "$err"; return 1; }
}

# bats test_tags=full
@test "rights: three capabilities are enough for a verdict (E1)" {
	not_by_inline "another user cannot read the file that chooses the source"
	kinds
	cat >"$bin/as/heaptap" <<-END
		#!/bin/sh
		exec $nobody --inh-caps=-all,$three --ambient-caps=-all,$three --bounding-set=-all,$three -- $bin/heaptap "\$@"
	END
	seen
	built
	# The memory file of another user stays closed: heaptap must have another way.
	run ! with_caps "$three" cat "/proc/$TARGET/mem"
	detach
	is .scan.reason null
	is .scan.skipped_bytes 0
	[ "$(field .scan.definite.blocks)" -gt 0 ]
	[ "$(field .scan.reachable.blocks)" -gt 0 ]
	untouched "$TARGET"
}

# bats test_tags=full
@test "rights: doctor names the capabilities of the file that would help (E1)" {
	not_by_inline "another user cannot read the file that chooses the source"
	run -0 with_caps "$three" "$bin/heaptap" doctor
	[[ "$output" == *"Backend: bpf"* ]]
	[[ "$output" == *"CAP_DAC_READ_SEARCH            no"* ]]
	[[ "$output" != *"sudo heaptap"* ]]
	[[ "$output" == *"sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep $bin/heaptap"* ]]
	run -0 with_caps +bpf "$bin/heaptap" doctor
	[[ "$output" == *"sudo heaptap"*"sudo setcap"* ]]
}

# bats test_tags=full
@test "rights: what doctor advises is all that nobody needs (E1)" {
	not_by_inline "another user cannot read the file that chooses the source"
	local advice
	command -v setcap >/dev/null || skip "no setcap here (libcap2-bin)"
	advice=$(with_caps +bpf "$bin/heaptap" doctor | sed -n 's/^ *sudo \(setcap .*\)/\1/p')
	[ -n "$advice" ]
	$advice || skip "file capabilities cannot be set in $bin"
	run -0 $nobody -- "$bin/heaptap" doctor
	[[ "$output" == *"Backend: bpf"* ]]
	[[ "$output" != *"sudo"* ]]
	kinds
	printf '#!/bin/sh\nexec %s -- %s/heaptap "$@"\n' "$nobody" "$bin" >"$bin/as/heaptap"
	seen
	built
	detach
	is .scan.reason null
	[ "$(field .scan.definite.blocks)" -gt 0 ]
}

# bats test_tags=full
@test "rights: root without capabilities, as in a container, is told which ones help, and not to use sudo (E1)" {
	not_by_inline "threads are stopped by ptrace, which needs more"
	local caps
	install -m 755 "$T/spin" "$bin/spin"
	start $nobody -- "$bin/spin"
	TARGET=$PID
	wait_for says setpriv ready
	for caps in -all -all,+perfmon,+sys_ptrace -all,+bpf,+sys_ptrace -all,+bpf,+perfmon; do
		run setpriv --bounding-set="$caps" -- "$bin/heaptap" attach -t 100ms "$TARGET"
		[[ "$output" == *"give the container the capabilities BPF, PERFMON, SYS_PTRACE and DAC_READ_SEARCH"* ||
			"$output" == *"give the container the capability SYS_PTRACE"* ||
			"$(unbroken <<<"$output")" == *"scan given up: no permission to stop the process, which needs CAP_SYS_PTRACE"* ]] ||
			{ echo "$caps: $output"; return 1; }
		[[ "$output" != *sudo* && "$output" != *"as root"* && "$output" != *privileged* ]] || { echo "$caps: $output"; return 1; }
	done
	untouched "$TARGET"
}

# bats test_tags=full
@test "rights: a set-user-ID program is without its privilege by ptrace, and heaptap says so (A14)" {
	not_by_inline "another user cannot read the file that chooses the source"
	cp "$(command -v id)" "$bin/set-uid"
	chmod 4755 "$bin/set-uid"
	[ "$($nobody -- "$bin/set-uid" -u)" -eq 0 ] || skip "set-user-ID files do not work in $bin"
	run -0 $nobody -- "$bin/heaptap" run -b ptrace -q --no-scan -- "$bin/set-uid" -u
	[[ "$output" == *"its file is set-user-ID or set-group-ID, and traced by a user it runs without that privilege"* ]]
	[[ "$output" == *"$(id -u nobody)"* ]]
	run -0 $nobody -- "$bin/heaptap" run -b ptrace -q --no-scan -- id -u
	[[ "$output" != *"set-user-ID"* ]]
}

# dropped PID: all threads of heaptap, and its child that keeps the links, have only what tracing needs
dropped() {
	local caps allowed=0 bit status words
	# The list of user/lib/privileges.c.
	for bit in 0 1 2 3 5 6 7 14 19 21 23 24 38 39 40; do
		allowed=$((allowed | 1 << bit))
	done
	for status in "/proc/$1"/task/*/status $(pgrep -P "$1" -x 'links-of-heapta|keeper-of-heapt' | sed 's|.*|/proc/&/status|'); do
		# A thread may have ended since the list was made.
		words=$(cat "$status" 2>/dev/null) || continue
		grep -qx 'NoNewPrivs:	1' <<<"$words" || { echo "$status: may gain privileges"; return 1; }
		case $(uname -m) in
		x86_64 | aarch64 | riscv64) grep -qx 'Seccomp:	2' <<<"$words" || { echo "$status: no filter"; return 1; } ;;
		*) echo "# no filter of system calls on this CPU" >&3 ;;
		esac
		caps=$((16#$(awk '/^CapEff/ { print $2 }' <<<"$words")))
		[ $((caps & ~allowed)) -eq 0 ] || { echo "$status: capabilities $caps"; return 1; }
	done
	caps=$((16#$(awk '/^CapPrm/ { print $2 }' "/proc/$1/status")))
	# CAP_NET_RAW, CAP_SYS_MODULE, CAP_SYS_BOOT, CAP_MKNOD
	[ $((caps & (1 << 13 | 1 << 16 | 1 << 22 | 1 << 27))) -eq 0 ]
	# CAP_SYS_PTRACE
	[ $((caps & 1 << 19)) -ne 0 ]
}

# has_dropped PID: it has taken the last step of that, which is the filter
has_dropped() {
	case $(uname -m) in
	x86_64 | aarch64 | riscv64) grep -qx 'Seccomp:	2' "/proc/$1/status" ;;
	*) grep -qx 'NoNewPrivs:	1' "/proc/$1/status" ;;
	esac
}

# bats test_tags=core
@test "rights: attach keeps only the privileges that it needs (S10)" {
	spinning
	attached --no-scan "$TARGET"
	# The thread that answers signals is one of them.
	[ "$(find "/proc/$TAP/task" -mindepth 1 -maxdepth 1 | wc -l)" -ge 2 ]
	dropped "$TAP"
	detach
	untouched "$TARGET"
}

# rights PID: what a process may do
rights() { grep -E '^(Uid|Gid|Groups|Cap[A-Za-z]*|NoNewPrivs|Seccomp):' "/proc/$1/status"; }

# program_of PID: the program that heaptap runs
program_of() { pgrep -P "$1" -x idle; }

# bats test_tags=core
@test "rights: run keeps only the privileges that it needs, and its program has all (S10)" {
	start "$T/idle"
	want=$(rights "$PID")
	start "$HEAPTAP" run -q --no-scan -o "$BATS_TEST_TMPDIR/report.json" -- "$T/idle"
	TAP=$PID
	wait_for program_of "$TAP"
	wait_for has_dropped "$TAP"
	program=$(program_of "$TAP")
	[ "$(rights "$program")" = "$want" ] || { diff <(echo "$want") <(rights "$program"); return 1; }
	dropped "$TAP"
	kill "$program"
	ended "$TAP" 143
}

# bats test_tags=full
@test "rights: serve, console and system keep only the privileges that they need (S10)" {
	not_by_inline "system has no inline source"
	spinning
	mkdir -p -m 700 "$BATS_TEST_TMPDIR/sock"
	start "$HEAPTAP" serve --listen "unix:$BATS_TEST_TMPDIR/sock/s" "$TARGET"
	wait_for has_dropped "$PID"
	dropped "$PID"
	kill "$PID"
	ended "$PID" 0
	mkfifo "$BATS_TEST_TMPDIR/commands"
	exec 8<>"$BATS_TEST_TMPDIR/commands"
	start bash -c 'exec "$0" console --no-scan "$1" <"$2"' "$HEAPTAP" "$TARGET" "$BATS_TEST_TMPDIR/commands"
	wait_for has_dropped "$PID"
	wait_for has_probes "$TARGET"
	dropped "$PID"
	echo quit >&8
	ended "$PID" 0
	exec 8>&-
	start "$HEAPTAP" system --duration 600s --interval 1s
	wait_for has_dropped "$PID"
	dropped "$PID"
	kill -INT "$PID"
	ended "$PID" 0
	untouched "$TARGET"
}

# bats test_tags=core
@test "rights: top keeps only the privileges that it needs (S10)" {
	with_tmux
	spinning
	on_screen 120x40 "$HEAPTAP" top --no-scan "$TARGET"
	wait_for has_probes "$TARGET"
	TAP=$(screen_pid)
	dropped "$TAP"
	keys q
	left 0
	untouched "$TARGET"
}

# bats test_tags=full
@test "rights: serve of a program keeps only the privileges that it needs, and the program has all (S10)" {
	start "$T/idle"
	want=$(rights "$PID")
	mkdir -p -m 700 "$BATS_TEST_TMPDIR/sock"
	start "$HEAPTAP" serve --listen "unix:$BATS_TEST_TMPDIR/sock/s" -- "$T/idle"
	TAP=$PID
	wait_for program_of "$TAP"
	wait_for has_dropped "$TAP"
	[ "$(rights "$(program_of "$TAP")")" = "$want" ]
	dropped "$TAP"
	kill "$(program_of "$TAP")"
	wait_for gone "$TAP"
}
