#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Users who are not root and have some capabilities: what works, and what doctor says of it (E1).

load ../lib/common

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

@test "rights: three capabilities are enough for a verdict (E1)" {
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

@test "rights: doctor names the capabilities of the file that would help (E1)" {
	run -0 with_caps "$three" "$bin/heaptap" doctor
	[[ "$output" == *"Backend: bpf"* ]]
	[[ "$output" == *"CAP_DAC_READ_SEARCH            no"* ]]
	[[ "$output" != *"sudo heaptap"* ]]
	[[ "$output" == *"sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep $bin/heaptap"* ]]
	run -0 with_caps +bpf "$bin/heaptap" doctor
	[[ "$output" == *"sudo heaptap"*"sudo setcap"* ]]
}

@test "rights: what doctor advises is all that nobody needs (E1)" {
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

@test "rights: a set-user-ID program is without its privilege by ptrace, and heaptap says so (A14)" {
	cp "$(command -v id)" "$bin/set-uid"
	chmod 4755 "$bin/set-uid"
	[ "$($nobody -- "$bin/set-uid" -u)" -eq 0 ] || skip "set-user-ID files do not work in $bin"
	run -0 $nobody -- "$bin/heaptap" run -b ptrace -q --no-scan -- "$bin/set-uid" -u
	[[ "$output" == *"its file is set-user-ID or set-group-ID, and traced by a user it runs without that privilege"* ]]
	[[ "$output" == *"$(id -u nobody)"* ]]
	run -0 $nobody -- "$bin/heaptap" run -b ptrace -q --no-scan -- id -u
	[[ "$output" != *"set-user-ID"* ]]
}

@test "rights: attach keeps only the privileges that it needs (S10)" {
	local caps status allowed bit
	spinning
	attached --no-scan "$TARGET"
	# The thread that answers signals is one of them.
	[ "$(find "/proc/$TAP/task" -mindepth 1 -maxdepth 1 | wc -l)" -ge 2 ]
	for status in "/proc/$TAP"/task/*/status; do
		grep -qx 'NoNewPrivs:	1' "$status"
		case $(uname -m) in
		x86_64 | aarch64 | riscv64) grep -qx 'Seccomp:	2' "$status" ;;
		*) echo "# no filter of system calls on this CPU" >&3 ;;
		esac
		# The list of user/source/privileges.c.
		allowed=0
		for bit in 0 1 2 3 5 6 7 14 19 21 23 24 38 39 40; do
			allowed=$((allowed | 1 << bit))
		done
		caps=$((16#$(awk '/^CapEff/ { print $2 }' "$status")))
		[ $((caps & ~allowed)) -eq 0 ]
	done
	caps=$((16#$(awk '/^CapPrm/ { print $2 }' "/proc/$TAP/status")))
	# CAP_NET_RAW, CAP_SYS_MODULE, CAP_SYS_BOOT, CAP_MKNOD
	[ $((caps & (1 << 13 | 1 << 16 | 1 << 22 | 1 << 27))) -eq 0 ]
	# CAP_SYS_PTRACE
	[ $((caps & 1 << 19)) -ne 0 ]
	detach
	untouched "$TARGET"
}
