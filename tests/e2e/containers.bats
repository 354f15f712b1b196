#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Targets in namespaces and in a chroot, and the files of packaging/ that start heaptap there.
#
# bats file_tags=full

load ../lib/common

bats_require_minimum_version 1.5.0

teardown() {
	end_started
	[ -z "${inner_root:-}" ] || rm -rf "$inner_root"
	[ -z "${jail:-}" ] || { umount "$jail"/lib* "$jail/proc" 2>/dev/null || true; rmdir "$jail/proc" || true; }
}

# found_leak PID: the last line of rows has its leak, its function, and its PID inside
found_leak() {
	tail -n 1 "$rows" | jq -e ".processes[] | select(.pid == $1) |
		.pid_inside == 1 and .zoom.finding == \"leaks\" and (.zoom.function | test(\"swell_forgets\"))" >/dev/null 2>&1
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
	start nsenter -t "$inner" -p -m "$HEAPTAP" attach -o "$report" 1
	wait_for grep -q 'attached to' "$BATS_TEST_TMPDIR/nsenter.err"
	works "$inner"
	kill -INT "$(pgrep -P "$PID")"
	ended "$PID" 0
	is .pid 1
	[ "$(field .totals.allocs)" -gt 0 ]
	untouched "$inner"
}

# with_inner_root PROGRAM: a root directory with a copy of the program and of its libraries
with_inner_root() {
	local lib
	inner_root=$(mktemp -d /tmp/heaptap-rootless-XXXXXX)
	mkdir "$inner_root/proc"
	cp "$1" "$inner_root/"
	for lib in $(ldd "$1" | grep -o '/[^ ]*'); do
		mkdir -p "$inner_root${lib%/*}"
		cp "$lib" "$inner_root$lib"
	done
	chmod -R a+rX "$inner_root"
}

# rootless COMMAND...: exec it as nobody, who is root in namespaces of its own with another root directory
rootless() {
	exec setpriv --reuid 65534 --regid 65534 --clear-groups unshare --user --map-root-user --pid --mount --fork \
		--kill-child --mount-proc --root="$inner_root" --wd=/ "$@"
}

@test "containers: a rootless one of an ordinary user: traced from outside with its own files, zoomed, left (D5)" {
	local inner rows=$BATS_TEST_TMPDIR/rows
	need_root
	setpriv --reuid 65534 --regid 65534 --clear-groups unshare --user --map-root-user --pid --mount --fork --mount-proc true ||
		skip "an ordinary user makes no namespaces here"
	with_inner_root "$T/swell"
	start rootless /swell 65536
	wait_for says rootless ready
	inner=$(pgrep -P "$PID")
	[ "$(readlink "/proc/$inner/ns/user")" != "$(readlink /proc/self/ns/user)" ]
	[ "$(awk '/^Uid:/ { print $2 }' "/proc/$inner/status")" -eq 65534 ]
	attached "$inner"
	works "$inner"
	detach
	is .pid "$inner"
	jq -e '[.processes[0].stacks[].frames[0].function] | index("swell_forgets") != null' "$report"
	jq -e '.processes[0].scan.definite.blocks > 0' "$report"
	untouched "$inner"
	! by_inline || return 0 # system has no inline source
	start "$HEAPTAP" system --pid "$inner" --json -i 1s
	TAP=$PID
	rows=$BATS_TEST_TMPDIR/heaptap.out
	wait_for found_leak "$inner"
	kill -INT "$TAP"
	ended "$TAP" 0
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
