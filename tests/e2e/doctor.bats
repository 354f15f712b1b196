#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap doctor: with everything there, as nobody, without BPF; with too little (A13, E1, E3, E5).

load ../lib/common

setup() {
	nobpf=$O/tests/targets/nobpf
	out=$BATS_TEST_TMPDIR/out
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

# need_bpf: what is tested is that something is missing, so everything must be there at first
need_bpf() {
	need_root
	"$HEAPTAP" doctor >"$out" 2>&1 || skip "no backend here: $(sed -n '/^Backend/{n;p}' "$out")"
}

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
}

# json FILE PATH: the value at PATH, as JSON
json() {
	jq -c ".$2" "$1"
}

# bats test_tags=core
@test "doctor: root has the bpf backend, and text and JSON agree" {
	need_bpf
	run -0 "$HEAPTAP" doctor
	[[ "$output" == "heaptap works here"*"Backend: bpf"* ]] || { echo "$output"; return 1; }
	[[ "$output" == *"BPF maps and programs          yes"* ]]
	"$HEAPTAP" doctor --json >"$out"
	[ "$(json "$out" schema)" = '"heaptap-doctor/1"' ]
	[ "$(json "$out" backend)" = '"bpf"' ]
	[ "$(json "$out" features.bpf)" = true ]
	[ "$(json "$out" features.uprobes)" = true ]
	[ "$(json "$out" privileges.CAP_BPF)" = true ]
	[ "$(json "$out" kernel)" = "\"$(uname -r)\"" ]
}

# bats test_tags=full
@test "doctor: nothing is left of the trials" {
	need_bpf
	# links belong to processes: without one there are none
	cp "$HEAPTAP" "$BATS_TEST_TMPDIR/heaptap"
	"$BATS_TEST_TMPDIR/heaptap" doctor >/dev/null
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/exe")" != "$BATS_TEST_TMPDIR/heaptap" ] || { echo "$p still runs"; return 1; }
	done
}

@test "doctor: nobody is told which privileges are missing, and what to type" {
	need_root
	run -0 as_nobody "$HEAPTAP" doctor
	[[ "$output" == *"Backend: ptrace"* ]]
	[[ "$output" == *"CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN and CAP_SYS_PTRACE missing"* ]]
	[[ "$output" == *"This would help"*"sudo heaptap"* ]]
	as_nobody "$HEAPTAP" doctor --json >"$out"
	[ "$(json "$out" backend)" = '"ptrace"' ]
	[ "$(json "$out" privileges.CAP_PERFMON)" = false ]
	[ "$(json "$out" features.bpf)" = false ]
	[ "$(json "$out" features.uprobes)" = null ]
	[ "$(json "$out" help[0])" = '"sudo heaptap ..."' ]
}

@test "doctor: nobody is told the source that run takes then" {
	need_root
	local never told
	for never in "" 1; do
		told=$(HEAPTAP_NO_CODE=$never as_nobody "$HEAPTAP" doctor)
		HEAPTAP_NO_CODE=$never run -0 as_nobody "$HEAPTAP" run -- true
		if [[ "$output" == *", source inline,"* ]]; then
			[[ -z "$never" && "$told" == *" run: inline; attach: inline; bpf: "* ]]
		else
			[[ "$output" == *", source ptrace,"* && "$told" == *" run: breakpoints, which are slower: "* ]]
		fi
	done
}

@test "doctor: one privilege less is named alone" {
	need_bpf
	run setpriv --bounding-set -sys_ptrace -- "$HEAPTAP" doctor
	[[ "$output" == *"CAP_SYS_PTRACE                 no"* ]]
	[[ "$output" == *"CAP_BPF                        yes"* ]]
}

@test "doctor: a seccomp filter that forbids bpf(2) is recognized" {
	need_bpf
	for err in ENOSYS EPERM; do
		run -0 "$nobpf" $err all "$HEAPTAP" doctor
		[[ "$output" == *"Backend: ptrace"* ]]
		[[ "$output" == *"bpf(2): forbidden by the seccomp filter"* ]]
		[[ "$output" == *"seccomp=unconfined"* ]]
	done
}

@test "doctor: programs but no probes" {
	need_bpf
	run -0 "$nobpf" EPERM link "$HEAPTAP" doctor
	[[ "$output" == *"BPF maps and programs          yes"* ]]
	[[ "$output" == *"uprobes                        no"* ]]
	[[ "$output" == *"uprobes: forbidden by the seccomp filter"* ]]
}

@test "doctor: no perf events is no harm where multi links work" {
	need_bpf
	"$HEAPTAP" doctor --json >"$out"
	[ "$(json "$out" features.uprobe_multi)" = true ] || skip "no multi links on this kernel"
	"$nobpf" ENOSYS perf "$HEAPTAP" doctor --json >"$out"
	[ "$(json "$out" features.perf_uprobes)" = false ]
	[ "$(json "$out" backend)" = '"bpf"' ]
}

@test "doctor: a user namespace's root is told that it is none" {
	unshare -Ur true || skip "no user namespaces here"
	run -0 unshare -Ur "$HEAPTAP" doctor
	[[ "$output" == *"user namespace"* ]]
}

@test "doctor: a process and its allocator" {
	need_bpf
	sleep 100 3>&- &
	pid=$!
	until [ "$(cat /proc/$pid/comm)" = sleep ]; do sleep 0.05; done
	"$HEAPTAP" doctor --json $pid >"$out"
	kill $pid
	[ "$(json "$out" targets[0].pid)" = $pid ]
	[ "$(json "$out" targets[0].comm)" = '"sleep"' ]
	[ "$(json "$out" targets[0].readable)" = true ]
	[ "$(json "$out" targets[0].objects[0].kind)" = '"glibc"' ]
}

@test "doctor: another user's process is not ours to see" {
	need_root
	run -0 as_nobody "$HEAPTAP" doctor $$
	[[ "$output" == *"not ours to read"* ]]
}

@test "doctor: who cannot be traced is refused with the reason" {
	need_bpf
	run -4 "$HEAPTAP" doctor 2147483647
	[[ "$output" == "heaptap: target: 2147483647: no such process" ]]
	if [ "$(cat /proc/2/comm)" = kthreadd ]; then
		run -4 "$HEAPTAP" doctor 2
		[[ "$output" == "heaptap: target: PID 2 (kthreadd): is a kernel thread" ]]
	fi
}

# poke PID PLACES...: write int3 at these places of the process, as a kernel does that cannot take its probes out
poke() {
	python3 -c '
import sys
with open("/proc/%s/mem" % sys.argv[1], "r+b", buffering=0) as memory:
    for place in sys.argv[2:]:
        memory.seek(int(place))
        memory.write(b"\xcc")' "$@"
}

# probed_places PID: the addresses in its C library where memory and file differ
probed_places() {
	local place
	while read -r place; do
		echo $((place))
	done < <(text_differs "$1" | sed -n 's|.*/libc[-.][^:]*so[^:]*: byte .*, at \(0x[0-9a-f]*\), is .*|\1|p')
}

# A process leaves breakpoints behind, and nobody else is to be seen here: other heaptaps trace on this machine.
breakpoints_left() {
	local places
	out=$BATS_TEST_TMPDIR/doctor.json
	stepping
	attached --mmap --no-scan "$TARGET"
	mapfile -t places < <(probed_places "$TARGET")
	[ "${#places[@]}" -gt 10 ]
	# Probes of a heaptap that traces are not called left behind.
	"$HEAPTAP" doctor --json "$TARGET" >"$out"
	jq -e --argjson h "$TAP" '.breakpoints | .heaptap_pid == $h and .processes[0].left_behind == false' "$out"
	detach
	attached -b inline --no-scan "$TARGET"
	"$HEAPTAP" doctor --json "$TARGET" >"$out"
	jq -e --argjson h "$TAP" '.breakpoints.heaptap_pid == $h and (.help | any(contains("attach --mmap")) | not)' "$out"
	detach
	untouched "$TARGET"
	"$HEAPTAP" doctor --json "$TARGET" >"$out"
	jq -e '.breakpoints == { processes_read: 1, processes_unread: 0, heaptap_pid: null, processes: [] }' "$out"
	poke "$TARGET" "${places[@]}"
	"$HEAPTAP" doctor --json >"$out"
	jq -e --argjson t "$TARGET" --argjson n "${#places[@]}" '.breakpoints.processes | length == 1
		and (.[0] | .pid == $t and .count == $n and .left_behind and (.path | contains("libc")))' "$out"
	cure=$(jq -r '.help[] | select(startswith("heaptap attach"))' "$out")
	[[ $cure == *" $TARGET" ]]
	"$HEAPTAP" ${cure#heaptap } >"$BATS_TEST_TMPDIR/cure.out" 2>&1
	untouched "$TARGET"
	"$HEAPTAP" doctor --json "$TARGET" | jq -e '.breakpoints.processes == []'
	step "alloc 10 10"
}

# bats test_tags=full
@test "doctor: breakpoints that were left behind are found, and the command that it prints removes them (A3)" {
	need_bpf
	[ "$(uname -m)" = x86_64 ] || skip "pokes an instruction of x86"
	unshare -fp --mount-proc true 2>/dev/null || skip "no PID namespaces here"
	unshare -fp --mount-proc bash -c "bats_require_minimum_version() { :; }; . '$ROOT/tests/lib/common.bash'
		$(declare -f poke probed_places breakpoints_left)
		set -e; setup; breakpoints_left; end_started" >"$out" 2>&1 || { cat "$out"; false; }
}

@test "doctor: a full disk is noticed" {
	need_bpf
	run -5 bash -c '"$HEAPTAP" doctor >/dev/full'
}
