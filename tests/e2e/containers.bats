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
	[ -z "${bin:-}" ] || rm -rf "$bin"
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

# The capabilities that Docker and podman leave to root.
docker_caps=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw
docker_caps+=,+sys_chroot,+mknod,+audit_write,+setfcap

# judged COMMAND...: in front of heaptap, which runs leak by ptrace and by its own choice: nothing is lost, the report is right
judged() {
	local backend
	out=$bin/out
	report=$bin/report.json
	for backend in ptrace auto; do
		rm -f "$report"
		"$@" "$bin/heaptap" run -q -b "$backend" --force -o "$report" -- "$bin/leak" --expect >"$out" 2>"$bin/err" ||
			{ echo "$* by $backend: $(cat "$bin/err")"; return 1; }
		as_told && nothing_lost && is .scan.reason null || { echo "$* by $backend"; return 1; }
	done
}

# with_open_bin: a directory with heaptap and leak for all users, who may not look into the build directory of every machine
with_open_bin() {
	bin=$(mktemp -d)
	chmod 777 "$bin"
	install -m 755 "$HEAPTAP" "$T/leak" "$bin/"
}

# bats test_tags=core
@test "containers: run works with default capabilities, and with each other bounding set (T9)" {
	need_root
	with_open_bin
	judged setpriv --bounding-set="$docker_caps"
	judged setpriv --bounding-set="$docker_caps" --no-new-privs
	for caps in -sys_ptrace -all,+net_raw -all,+sys_ptrace -all; do
		judged setpriv --bounding-set="$caps"
	done
	judged setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all,+net_raw --ambient-caps=-all,+net_raw
}

# There BPF works, and the kernel lets nobody open what a process has mapped.
@test "containers: with the capabilities for BPF alone inline names the one that it needs, and auto works (T9)" {
	need_root
	with_open_bin
	judged setpriv --bounding-set=-all,+bpf,+perfmon
	run setpriv --bounding-set=-all,+bpf,+perfmon "$bin/heaptap" run -q -b inline "$bin/leak"
	[[ "$output" == *"CAP_CHECKPOINT_RESTORE"*"use --backend bpf"* ]] || { echo "$output"; return 1; }
}

@test "containers: run works for root of a user namespace, with any bounding set (T9)" {
	need_root
	unshare -Ur true 2>/dev/null || skip "no user namespaces here"
	with_open_bin
	judged unshare -Ur
	judged unshare -Ur setpriv --bounding-set="$docker_caps"
	judged unshare -Ur setpriv --bounding-set=-all
	# The namespace that the program itself makes is heaptap's, too.
	setpriv --bounding-set="$docker_caps" "$bin/heaptap" run -q -b ptrace -o "$bin/r.json" -- unshare -Ur "$bin/leak" >"$bin/out"
	jq -e '.processes[] | select(.comm == "leak") | .scan.definite.blocks > 0' "$bin/r.json"
}

@test "containers: attach and scan work with default capabilities, on what has no more than these (T9)" {
	need_root
	start setpriv --bounding-set="$docker_caps" "$T/spin"
	TARGET=$PID
	wait_for says setpriv ready
	report=$BATS_TEST_TMPDIR/report.json
	for caps in "$docker_caps" -sys_ptrace; do
		setpriv --bounding-set="$caps" "$HEAPTAP" attach -b ptrace -q -t 1s --max-pause 60s --force -o "$report" "$TARGET"
		is .scan.reason null
		[ "$(field .totals.allocs)" -gt 0 ]
		setpriv --bounding-set="$caps" "$HEAPTAP" scan --max-pause 60s "$TARGET"
	done
	untouched "$TARGET"
}

@test "containers: a process with more capabilities than heaptap is refused, and the message names SYS_PTRACE alone (T9)" {
	need_root
	spinning
	run -3 setpriv --bounding-set="$docker_caps" "$HEAPTAP" attach -b ptrace -t 1s "$TARGET"
	[[ "$output" == *"try: give the container the capability SYS_PTRACE, or run heaptap on the host" ]]
	run -3 setpriv --bounding-set="$docker_caps" "$HEAPTAP" scan "$TARGET"
	[[ "$output" == *"which needs CAP_SYS_PTRACE"* ]]
	setpriv --bounding-set="$docker_caps,+sys_ptrace" "$HEAPTAP" attach -b ptrace -q -t 1s --no-scan "$TARGET"
	untouched "$TARGET"
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
			"$HEAPTAP" help --all "${command%:*}" | grep -q -- "$option\b"
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
