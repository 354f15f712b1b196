#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The rights of heaptap as root while it reads files, and what a peer or a process says (S10).

load ../lib/common

bats_require_minimum_version 1.5.0

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	# A directory of another user, where root without capabilities makes no file.
	mkdir -m 755 of_nobody
	chown 65534:65534 of_nobody
}

teardown() {
	end_started
	[ -z "${bin:-}" ] || rm -rf "$bin"
}

# capabilities PID: those that it can have, as numbers of bits
capabilities() {
	local bit mask
	mask=$((16#$(awk '/^CapPrm/ { print $2 }' "/proc/$1/status")))
	for ((bit = 0; bit < 63; bit++)); do
		[ $((mask >> bit & 1)) -eq 0 ] || printf '%s ' "$bit"
	done
}

# keeps PID BITS: no thread of this process has more capabilities than BITS, which it has all, or could get some, or is
# without a filter of system calls; and nobody but root reads its memory
keeps() {
	local status text nr=0 capabilities
	capabilities=$(grep CapPrm "/proc/$1/status")
	for status in "/proc/$1"/task/*/status; do
		# A thread may have ended meanwhile.
		text=$(cat "$status" 2>/dev/null) || continue
		nr=$((nr + 1))
		grep -qx 'NoNewPrivs:	1' <<<"$text" || { echo "$status: may gain privileges"; return 1; }
		case $(uname -m) in
		x86_64 | aarch64 | riscv64) grep -qx 'Seccomp:	2' <<<"$text" || { echo "$status: no filter"; return 1; } ;;
		*) echo "# no filter of system calls on this CPU" >&3 ;;
		esac
		grep -qxF "$capabilities" <<<"$text" || { echo "$status: other capabilities"; return 1; }
	done
	[ "$nr" -ge 1 ] || { echo "$1: no thread of it could be read"; return 1; }
	[ "$(capabilities "$1")" = "$2" ] || { echo "capabilities of $1: $(capabilities "$1"), not $2"; return 1; }
}

# has_dropped PID: it has taken the last step of that, which is the filter, or has ended
has_dropped() {
	! gone "$1" || return 0
	case $(uname -m) in
	x86_64 | aarch64 | riscv64) grep -qx 'Seccomp:	2' "/proc/$1/status" ;;
	*) grep -qx 'NoNewPrivs:	1' "/proc/$1/status" ;;
	esac
}

# The numbers of linux/capability.h.
read_search="2 "
others_directory="1 2 "
for_sudo="0 2 3 "
of_scan="0 1 2 3 5 19 23 40 "

# full_pipe: descriptor 9 is a pipe that takes no byte more, until drain
full_pipe() {
	mkfifo pipe
	exec 9<>pipe
	# The last write of 64 KiB fails.
	dd if=/dev/zero of=pipe bs=64K count=64 oflag=nonblock status=none 2>/dev/null || true
	while dd if=/dev/zero of=pipe bs=1 count=1 oflag=nonblock status=none 2>/dev/null; do :; done
}

drain() { start bash -c 'exec cat pipe 9>&-'; }

# begun COMMAND...: heaptap, which waits for the reader of its output; its PID is in $TAP
begun() {
	start bash -c 'exec "$0" "$@" >&9 9>&-' "$HEAPTAP" "$@"
	TAP=$PID
	wait_for is_stuck_or_gone "$TAP"
	! gone "$TAP" || { cat bash.err; return 1; }
}

is_stuck_or_gone() { gone "$1" || is_stuck "$1"; }

# recorded: a recording, in rec
recorded() { "$HEAPTAP" run -q -w rec -o run.json -- "$T/leak_kinds" >/dev/null; }

# bats test_tags=core
@test "rights: report reads a recording without rights, and writes its reports (S10)" {
	recorded
	mkfifo in
	exec 8<>in
	for where in . of_nobody; do
		start bash -c 'exec "$0" report -q -o "$1/report.json" --html "$1/page.html" - <in 8>&-' "$HEAPTAP" "$where"
		TAP=$PID
		wait_for has_dropped "$TAP"
		# Nothing has been read yet.
		case $where in
		.) keeps "$TAP" "$read_search" ;;
		*) keeps "$TAP" "$others_directory" ;;
		esac
		cat rec >&8
		exec 8>&-
		ended "$TAP" 0
		exec 8<>in
		jq -e '.processes[0].definite // .processes[0].scan' "$where/report.json" >/dev/null
		[ -s "$where/page.html" ]
	done
	# Names came from files: the reader works.
	jq -r '.functions[].name' report.json | grep -q main
}

# bats test_tags=full
@test "rights: report under sudo gives its files to the caller, and keeps what that takes (S10)" {
	recorded
	mkfifo in
	exec 8<>in
	export SUDO_UID=65534 SUDO_GID=65534
	start bash -c 'exec "$0" report -q -o report.json - <in 8>&-' "$HEAPTAP"
	TAP=$PID
	wait_for has_dropped "$TAP"
	keeps "$TAP" "$for_sudo"
	cat rec >&8
	exec 8>&-
	ended "$TAP" 0
	[ "$(stat -c %u report.json)" = 65534 ]
}

# reads_without_rights COMMAND...: heaptap keeps the right to open files and no other one, while its output waits
reads_without_rights() {
	full_pipe
	begun "$@"
	keeps "$TAP" "$read_search"
	drain
	ended "$TAP" 0
	exec 9>&-
	wait_for gone "$PID"
	rm pipe
}

# bats test_tags=full
@test "rights: report of a series and diff read files without rights (S10)" {
	recorded
	reads_without_rights diff run.json rec
	reads_without_rights diff run.json run.json
	reads_without_rights diff run.json rec run.json
	"$HEAPTAP" diff -q -o of_nobody/page.html run.json rec
	[ -s of_nobody/page.html ]
}

# bats test_tags=full
@test "rights: scan of a core reads it without rights (S10)" {
	command -v gcore >/dev/null || skip "no gcore here: install gdb"
	kinds
	built
	gcore -o core "$TARGET" >/dev/null 2>&1
	zstd -q "core.$TARGET"
	reads_without_rights scan "core.$TARGET"
	reads_without_rights scan "core.$TARGET.zst"
	"$HEAPTAP" scan -o of_nobody/scan.json "core.$TARGET"
	jq -e .blocks of_nobody/scan.json >/dev/null || jq -e keys of_nobody/scan.json
}

# bats test_tags=full
@test "rights: scan of a process keeps what reading it takes (S10)" {
	kinds
	built
	full_pipe
	begun scan "$TARGET"
	keeps "$TAP" "$of_scan"
	drain
	ended "$TAP" 0
	untouched "$TARGET"
	# As another user, whose memory file takes a capability; and with a snapshot by a copy.
	"$HEAPTAP" scan -q -o of_nobody/scan.json "$TARGET"
	[ -s of_nobody/scan.json ]
}

# bats test_tags=full
@test "rights: scan of a process whose filter forbids a copy suspends this filter (S10, B6)" {
	start "$T/confined" no-fork
	TARGET=$PID
	wait_for says confined ready
	full_pipe
	begun scan --snapshot fork --format json "$TARGET"
	# Only a process without a filter may suspend one.
	grep -qx 'Seccomp:	0' "/proc/$TAP/status"
	[ "$(capabilities "$TAP")" = "0 1 2 3 5 19 21 23 40 " ]
	drain
	ended "$TAP" 0
	[[ "$(cat bash.err)" != *"forbids it"* ]]
	untouched "$TARGET"
}

# bats test_tags=full
@test "rights: connect reads what a server sends without rights (S10)" {
	with_bpf_only "one source is enough for the client"
	spinning
	mkdir -m 700 sock
	start "$HEAPTAP" serve --listen "unix:$PWD/sock/s" "$TARGET"
	SERVER=$PID
	wait_for grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/heaptap.err"
	start bash -c 'exec "$0" connect --no-scan -o of_nobody/report.json "$1"' "$HEAPTAP" "unix:$PWD/sock/s"
	TAP=$PID
	wait_for has_dropped "$TAP"
	keeps "$TAP" "$others_directory"
	wait_for has_probes "$TARGET"
	works "$TARGET"
	kill -INT "$TAP"
	ended "$TAP" 0
	jq -e '.processes[0]' of_nobody/report.json >/dev/null
	kill "$SERVER"
	ended "$SERVER" 0
	untouched "$TARGET"
}

# helper NAME: the process of heaptap with this name; its PID is in $HELPER
helper() {
	HELPER=$(pgrep -P "$TAP" -x "$1")
	[ -n "$HELPER" ]
}

is_closed() { [ "$(stat -c %u "/proc/$1/mem")" = 0 ]; }

# The numbers of linux/capability.h.
of_links="5 19 21 38 39 "
of_guarding="1 2 5 14 19 23 40 "
of_keeping="1 2 5 14 19 21 23 38 39 40 "

# bats test_tags=core
@test "rights: the process that keeps links has no more than that takes (S10)" {
	with_bpf_only "only it has links"
	spinning
	attached --backend bpf --no-scan "$TARGET"
	wait_for helper links-of-heapta
	keeps "$HELPER" "$of_links"
	detach
	untouched "$TARGET"
}

# bats test_tags=full
@test "rights: the guardian of the ptrace source has no more than that takes (S10)" {
	spinning
	attached --backend ptrace --no-scan "$TARGET"
	wait_for helper tracer-of-heapt
	keeps "$HELPER" "$of_guarding"
	works "$TARGET"
	# The guardian still does its work alone.
	kill -KILL "$TAP"
	wait_for gone "$HELPER"
	untouched "$TARGET"
}

# bats test_tags=full
@test "rights: the user of a trace cannot read the memory of its guardian (S10)" {
	bin=$(mktemp -d)
	chmod 755 "$bin"
	install -m 755 "$HEAPTAP" "$T/idle" "$bin"
	start setpriv --reuid=65534 --regid=65534 --clear-groups -- \
		"$bin/heaptap" run --backend ptrace -q --no-scan -- "$bin/idle"
	TAP=$PID
	wait_for helper tracer-of-heapt
	# The files in /proc of a process that is not dumpable are root's.
	wait_for is_closed "$HELPER"
	kill "$(pgrep -P "$TAP" -x idle)"
	ended "$TAP" 143
}

# bats test_tags=full
@test "rights: the guard of the inline source has no more than that takes (S10)" {
	with_bpf_only "it is part of the inline source"
	[ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ] || skip "no inline source on this CPU"
	spinning
	attached --backend inline --no-scan "$TARGET"
	wait_for helper keeper-of-heapt
	keeps "$HELPER" "$of_keeping"
	kill -KILL "$TAP"
	wait_for gone "$HELPER"
	untouched "$TARGET"
}

# bats test_tags=full
@test "rights: the console of a recording has no rights to trace (S10)" {
	recorded
	mkfifo commands
	exec 8<>commands
	start bash -c 'exec "$0" console rec <commands 8>&-' "$HEAPTAP"
	TAP=$PID
	wait_for has_dropped "$TAP"
	keeps "$TAP" "0 1 2 3 "
	echo quit >&8
	ended "$TAP" 0
}
