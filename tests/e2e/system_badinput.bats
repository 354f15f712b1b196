#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Processes of a machine that are too many, too short, have too many mappings, or lose what they are in.
#
# bats file_tags=full

load ../lib/common

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	STARTED=()
	GROUP=
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	end_started
	[ -z "$GROUP" ] || [ ! -d "$GROUP" ] || rmdir "$GROUP"
}

# watching [OPTIONS]: heaptap system in the background; its pid is in $TAP, what it prints in $rows and $err
watching() {
	start "$HEAPTAP" system "$@"
	TAP=$PID
	rows=$BATS_TEST_TMPDIR/heaptap.out
	err=$BATS_TEST_TMPDIR/heaptap.err
}

# told TEXT: heaptap has said so
told() { grep -q -- "$1" "$err"; }

# parent NAME SCRIPT: a shell of this name runs SCRIPT when it has read a line from the FIFO "go"; its pid is in $TARGET
parent() {
	mkfifo go never
	cp "$(readlink -f "$(command -v dash)")" "$1"
	start "./$1" -c "read line <go; $2; echo made; read line <never"
	TARGET=$PID
}

# sum FILTER: over the first process of each report
sum() { jq -s "map(.processes[0] | $1) | add" ./*-1.json; }

@test "system: a fork bomb under --everything is bounded, and what is left out is said (A17)" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	# The children end when the only writer does.
	mkfifo block
	parent bomb 'exec 3<>block; i=0; while [ $i -lt 400 ]; do (exec 3>&-; read x <block) & i=$((i + 1)); done'
	watching --everything --comm bomb --watch 100 --no-scan -o '%p-%n.json'
	wait_for told '1 processes are traced'
	echo go >go
	wait_for says bomb made
	kill -INT "$TAP"
	ended "$TAP" 0
	[ "$(pgrep -c -P "$TARGET")" -eq 400 ]
	files=(./*-1.json)
	# The parent, 100 children, and one that has come in a place that was free for a moment.
	[ "${#files[@]}" -ge 100 ] && [ "${#files[@]}" -le 102 ] || { echo "${#files[@]} reports"; return 1; }
	jq -e '.processes[0].notes | any(test("^(29[0-9]|300) children are not followed: more than --max-procs"))' "$TARGET-1.json"
	[ "$(sum '.lost | .allocs + .frees + .stacks + .other')" -eq 0 ]
	untouched "$TARGET"
	for pid in $(pgrep -P "$TARGET" | sed -n '1p;100p;400p'); do
		untouched "$pid"
	done
}

@test "system: programs that end at once are all counted under --everything, and none is lost (A16)" {
	with_bpf_only "by ptrace each process has breakpoints of its own"
	parent brief 'i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i + 1)); done'
	watching --everything --comm brief --no-scan -o '%p-%n.json'
	wait_for told '1 processes are traced'
	echo go >go
	wait_for says brief made
	kill -INT "$TAP"
	ended "$TAP" 0
	fails told "not in the report"
	# The shell, its programs, and those that ended before heaptap could look, which it counts.
	files=(./*-1.json)
	unlisted=$(jq -r '[.processes[0].notes[] | capture("^(?<nr>[0-9]+) programs? of (a child|its children) ended before").nr | tonumber] | add // 0' "$TARGET-1.json")
	[ "$((${#files[@]} + unlisted))" -eq 301 ] || { echo "${#files[@]} reports, $unlisted unlisted"; return 1; }
	[ "$(sum '.lost | .allocs + .frees + .stacks + .other')" -eq 0 ]
	untouched "$TARGET"
}

@test "attach: a process with all mappings that it may have is traced, and goes on (F2)" {
	start python3 -c 'import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.malloc.restype = ctypes.c_void_p
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
nr = min(int(open("/proc/sys/vm/max_map_count").read()), 65530)
base = libc.mmap(None, ctypes.c_size_t(nr * 4096 * 2), 1, 0x4022, -1, ctypes.c_size_t(0))
for i in range(nr // 2 - 300): libc.mprotect(base + i * 8192, 4096, 0)
print("ready", flush=True)
while not os.path.exists("enough"): libc.malloc(5000); time.sleep(0.01)
libc.munmap(ctypes.c_void_p(base), ctypes.c_size_t(nr * 4096 * 2))
print("few", flush=True)
time.sleep(1000)'
	TARGET=$PID
	wait_for says python3 ready
	[ "$(wc -l <"/proc/$TARGET/maps")" -gt $(($(cat /proc/sys/vm/max_map_count) < 65530 ? 0 : 64000)) ]
	attached --no-scan "$TARGET"
	works "$TARGET" 10
	detach
	jq -e '.processes[0] | .totals.allocs > 0 and (.lost | .allocs + .frees + .stacks + .other) == 0' "$report"
	# The comparison of its code would read all of them.
	: >enough
	wait_for says python3 few
	untouched "$TARGET"
}

@test "system: a control group with the limit of a process that grows vanishes (E5)" {
	local root=/sys/fs/cgroup/memory file=memory.limit_in_bytes
	[ -e "$root/$file" ] || { root=/sys/fs/cgroup file=memory.max; }
	mkdir "$root/heaptap-test-$$" 2>/dev/null && GROUP=$root/heaptap-test-$$
	[ -n "$GROUP" ] && echo $((512 << 20)) >"$GROUP/$file" || skip "no memory cgroups here"
	start bash -c 'echo $$ >"$1/cgroup.procs"; exec "$2" 65536' swell "$GROUP" "$T/swell"
	TARGET=$PID
	watching --pid "$TARGET" --zoom 0 --json -i 1s
	limit() { tail -n 1 "$rows" | jq -e ".processes[0].limit.kind == \"$1\""; }
	wait_for limit cgroup
	echo "$TARGET" >"$root/cgroup.procs"
	rmdir "$GROUP"
	wait_for limit RAM
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}
