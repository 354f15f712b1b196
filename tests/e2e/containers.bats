#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Targets in namespaces and in a chroot, and the files of packaging/ that start heaptap there.

load ../lib/common

bats_require_minimum_version 1.5.0

teardown() {
	end_started
	[ -z "${jail:-}" ] || { umount "$jail"/lib* "$jail/proc" 2>/dev/null || true; rmdir "$jail/proc" || true; }
}

need_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }

@test "containers: a process in PID, mount and network namespaces, from outside and from inside" {
	local inner
	need_root
	unshare -pmnf --mount-proc true 2>/dev/null || skip "no such namespaces here"
	start unshare -pmnf --mount-proc --kill-child "$T/spin"
	wait_for says unshare ready
	inner=$(pgrep -P "$PID")
	attached "$inner"
	works "$inner"
	detach
	is .pid "$inner"
	[ "$(field .totals.allocs)" -gt 0 ]
	report=$BATS_TEST_TMPDIR/inside.json
	start nsenter -t "$inner" -p -m "$HEAPTAP" attach -t 1s -o "$report" 1
	wait_for gone "$PID"
	is .pid 1
	[ "$(field .totals.allocs)" -gt 0 ]
	untouched "$inner"
}

@test "containers: without /dev/null heaptap works, or says why not" {
	local dir
	need_root
	jail=$BATS_TEST_TMPDIR/jail
	mkdir -p "$jail/proc"
	for dir in lib lib64; do
		[ -e "/$dir" ] || continue
		mkdir "$jail/$dir"
		mount --bind "$(readlink -f "/$dir")" "$jail/$dir" || skip "no bind mounts here"
	done
	cp "$HEAPTAP" "$jail/heaptap"
	chroot "$jail" /heaptap --version >"$BATS_TEST_TMPDIR/out" || skip "libraries of heaptap are elsewhere here"
	grep -q '^heaptap ' "$BATS_TEST_TMPDIR/out"
	run -3 bash -c 'chroot "$1" /heaptap --version 0<&- 2>&1' _ "$jail"
	[[ "$output" == *"/dev/null: No such file or directory"* ]]
}

@test "containers: systemd knows all lines of the units" {
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze here"
	local unit
	for unit in heaptap@.service heaptap-system.service; do
		sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' "$ROOT/packaging/$unit" >"$BATS_TEST_TMPDIR/$unit"
		run -0 systemd-analyze --man=no verify "$BATS_TEST_TMPDIR/$unit"
		[[ "$output" != *"$unit"* ]]
	done
}

@test "containers: heaptap knows all options of the units" {
	local option command
	for command in attach:heaptap@ system:heaptap-system; do
		for option in $(grep -oE -- ' --[a-z-]+' "$ROOT/packaging/${command#*:}.service"); do
			"$HEAPTAP" help "${command%:*}" | grep -q -- "$option\b"
		done
	done
}

@test "containers: Kubernetes files are YAML, and ask for the capabilities that doctor names" {
	local advised
	python3 -c 'import yaml' 2>/dev/null || skip "python3 has no yaml here"
	advised="BPF PERFMON SYS_PTRACE DAC_READ_SEARCH"
	run -0 python3 - "$ROOT"/packaging/kubernetes/*.yaml <<-'END'
		import sys, yaml
		for path in sys.argv[1:]:
		    for part in yaml.safe_load_all(open(path)):
		        spec = part.get("spec", {}).get("template", {}).get("spec", {"containers": [part]})
		        for c in spec.get("containers", []):
		            caps = c.get("securityContext", {}).get("capabilities")
		            if caps:
		                assert caps["drop"] == ["ALL"], path
		                print(" ".join(caps["add"]))
	END
	[ "$output" = "$advised
$advised" ]
	grep -q -- "$(printf -- '--cap-add %s' BPF)" "$ROOT/packaging/Dockerfile"
	grep -q "^CapabilityBoundingSet=$(printf 'CAP_%s ' $advised | sed 's/ $//')$" "$ROOT/packaging/heaptap@.service"
}
