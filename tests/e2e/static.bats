#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# make static: one file that runs where there is no library, in a root that is empty but for /proc and /sys.
#
# bats file_tags=full

load ../lib/common

setup() {
	STATIC=$O/static/heaptap
	[ -x "$STATIC" ] || skip "not built here: make static needs libcapstone.a, libdw.a and others, see make check-deps"
	needs_target leak-static
	mkdir -p "$BATS_TEST_TMPDIR/root/proc" "$BATS_TEST_TMPDIR/root/sys"
	cp "$STATIC" "$T/leak-static" "$BATS_TEST_TMPDIR/root"
}

# inside COMMAND...: in the root, whose mounts end with it
inside() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare -m bash -c 'root=$1; shift
		mount -t proc proc "$root/proc" && mount -t sysfs sys "$root/sys" && exec chroot "$root" "$@"' - "$BATS_TEST_TMPDIR/root" "$@"
}

@test "static: the file needs no library" {
	run file "$STATIC"
	[[ "$output" == *"statically linked"* ]]
	run chroot "$BATS_TEST_TMPDIR/root" /heaptap --version
	[ "$status" -eq 0 ]
}

@test "static: in an empty root: a program, its leaks with file and line, a recording and its report" {
	not_by_inline "the file that chooses the source is not in that root"
	run inside /heaptap run -q -o /r.json -o /r.txt -w /r.heaptap -- /leak-static --expect
	[ "$status" -eq 0 ] || { echo "$output"; false; }
	unbroken <"$BATS_TEST_TMPDIR/root/r.txt" | grep -q '^leaks 10.8 KiB in 32 blocks, and with them 480 B in 20, most of it from open_session (leak.c:'
	report=$BATS_TEST_TMPDIR/root/r.json
	nothing_lost
	is .scan.definite.blocks 32
	run inside /heaptap report /r.heaptap
	[ "$status" -eq 0 ]
	[[ "$(unbroken <<<"$output")" == "leaks 10.8 KiB in 32 blocks, and with them 480 B in 20, most of it from open_session (leak.c:"* ]]
}
