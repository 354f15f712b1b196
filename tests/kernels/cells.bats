#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The runner of emulated machines itself: when a guest is dead, what is counted and written down. Boots nothing; no root needed.

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	# shellcheck source=tests/kernels/machine.sh
	. "$BATS_TEST_DIRNAME/machine.sh"
	# shellcheck source=tests/kernels/cells.sh
	. "$BATS_TEST_DIRNAME/cells.sh"
	CHECK=kernels
	LOG=$BATS_TEST_TMPDIR/log
	: >"$LOG"
}

# says_line LINE TIMES: the guest says it at each call; true at the last
says_line() {
	echo "$1" >>"$LOG"
	[ "$(wc -l <"$LOG")" -ge "$2" ]
}

# bats test_tags=full
@test "cells: a guest that goes on has its time, however little that is for the whole" {
	SILENCE_S=1 guest_until "$LOG" $$ says_line "ok 1 - test" 6
}

@test "cells: a guest that says nothing is dead, and one whose kernel says that it hangs" {
	SILENCE_S=1
	run guest_until "$LOG" $$ false
	[ "$status" -eq 1 ]
	[ "$output" = "no new line for 1 s" ]
	run guest_until "$LOG" $$ says_line "[  52.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s!" 1000
	[ "$status" -eq 1 ]
	[ "$output" = "no new line for 1 s" ]
}

# bats test_tags=full
@test "cells: a guest that gets no CPU has its time" {
	cat() { echo "0 $((SECONDS * 1000000000)) 1"; } # as a thread that waits since this shell began
	waits() { [ $((calls += 1)) -gt 8 ]; }
	calls=0
	# The two clocks are read one after the other, and may be a second apart.
	SILENCE_S=2 guest_until "$LOG" $$ waits
}

@test "cells: an emulator that has ended is not waited for" {
	true &
	wait $!
	run guest_until "$LOG" $! false
	[ "$status" -eq 1 ]
	[ "$output" = "the machine is off" ]
	guest_until "$LOG" $! true
}

@test "cells: a dead guest is ended, and a failure says so" {
	set_machine() { MACHINE=(bash -c 'echo "GUEST-KERNEL 6.1"; exec tail -f /dev/null' emulator); }
	SILENCE_S=1
	boot amd64 kernel archive "" "$LOG"
	tell_cell 6.1 amd64 "$LOG" < <(tell_end "$LOG") >told
	grep -qx 'not ok 1 - 6.1: did not come to its end: no new line for 1 s' told
	[ "$NR_FAILED" -eq 1 ]
}

@test "cells: tests that fail or skip are counted and named, in the page too" {
	git init -q .
	mkdir doc
	printf '%s\n' before '<!-- cells -->' '| cell | kernel | CPU | date | commit | result |' '|---|---|---|---|---|---|' \
		'| arch riscv64 | old | riscv64 | then | 1 | 1 tests |' '| kernels 6.1 | old | x86 | then | 1 | 1 tests |' \
		'<!-- end of cells -->' after >doc/tested.md
	cp doc/tested.md page
	git add doc && git -c user.name=a -c user.email=a@b commit -q -m a
	printf '\r\nGUEST-KERNEL 6.1.0\r\n' >"$LOG"
	tests() { printf '%s\n' 'ok 1 - test_a, 3 s' '# a word' 'not ok 2 - test_b, 1 s' '#   why' 'ok 3 - test_c, 0 s # SKIP no | here' 1..3; }
	tell_cell 6.1 amd64 "$LOG" < <(tests) >told
	# A mere check changes no file.
	cmp page doc/tested.md
	export RECORD=1
	tell_cell 6.1 amd64 "$LOG" < <(tests) >>told
	skip_cell 5.10 "no kernel: none" >>told
	! end_cells >>told || return 1
	cat told doc/tested.md
	grep -qx 'not ok 5 - 6.1: test_b, 1 s' told
	grep -qx '# skipped: 6.1: test_c: no | here' told
	grep -qx '# skipped: 5.10: no kernel: none' told
	[ "$(tail -n 1 told)" = "# kernels: 2 ok, 2 failed, 3 skipped" ]
	local today commit
	today=$(date +%F) commit=$(git rev-parse --short=8 HEAD)
	diff doc/tested.md - <<-END
		before
		<!-- cells -->
		| cell | kernel | CPU | date | commit | result |
		|---|---|---|---|---|---|
		| arch riscv64 | old | riscv64 | then | 1 | 1 tests |
		| kernels 5.10 | - | - | $today | $commit | skipped: no kernel: none |
		| kernels 6.1 | 6.1.0 | x86_64, max,-cx16 | $today | $commit | 1 of 2 tests failed: test_b; skipped: test_c: no \\| here |
		<!-- end of cells -->
		after
	END
	echo >a.c
	git add a.c
	[ "$(commit_here)" = "$commit+" ]
}

@test "cells: a report from the console of another CPU is compared with what the program said" {
	local O=${O:-$BATS_TEST_DIRNAME/../../build} heaptap
	heaptap=$(realpath "${HEAPTAP:-$O/heaptap}")
	mkdir targets
	cp "$O/tests/targets/leak" targets/
	{
		printf 'GUEST-KERNEL 6.1.0\n\nGUEST-BEGIN /agent run -o /tmp/leak.json /leak --expect\n'
		"$heaptap" run --backend ptrace -o leak.json -- targets/leak --expect 2>&1
		printf '\nGUEST-STATUS 0\n\nGUEST-BEGIN cat /tmp/leak.json\n'
		sed "s|$PWD/targets/leak|/leak|g" leak.json
		printf '\nGUEST-STATUS 0\n\nGUEST-END ok 0\n'
	} >"$LOG"
	compare() { (cd "$BATS_TEST_DIRNAME/../.." && tests/arch/compare.sh "$LOG" "$BATS_TEST_TMPDIR/targets" "" "$LOG"); }
	compare | tee told
	grep -qx 'ok leak: 862 allocations, stacks of 862 complete' told
	sed -i 's/^expect live 12 768/expect live 13 768/' "$LOG"
	compare | tee told
	grep -qx 'not ok leak' told
	grep -qx '#   live blocks of load_settings: report says 12, the program 13' told
}

@test "cells: without a network a cell is skipped, and has its lists of packages when there is one" {
	command -v apt-get >/dev/null || skip "no apt-get"
	# shellcheck source=tests/kernels/kernel.sh
	. "$BATS_TEST_DIRNAME/kernel.sh"
	CACHE=$PWD
	archive_uri() { echo http://127.0.0.1:1/debian/; }
	apt-get() { command apt-get -o Acquire::Retries=0 "$@"; }
	run kernel_image bookworm amd64 linux-image-cloud-amd64
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "no lists of packages from http://127.0.0.1:1/debian/" ]
	[ ! -e apt-bookworm-amd64/fresh ]
	# A kernel from before is better than none.
	echo image >kernel-bookworm-amd64
	run kernel_image bookworm amd64 linux-image-cloud-amd64
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "$PWD/kernel-bookworm-amd64" ]
}

@test "cells: a report that was expanded before is as it was" {
	local O=${O:-$BATS_TEST_DIRNAME/../../build}
	expand() { jq -L "$BATS_TEST_DIRNAME/../lib" "include \"report\"; expanded$1" "${@:2}"; }
	"${HEAPTAP:-$O/heaptap}" run -q --backend ptrace -o r.json -- "$O/tests/targets/leak" >/dev/null
	expand '' r.json >once
	expand '' once | cmp once -
	expand ' | .processes[0].timeline[0].time_ns > 0' once | grep -qx true
}
