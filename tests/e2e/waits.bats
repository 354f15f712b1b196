#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Waits of the target go on when heaptap has stopped it: no system call fails with EINTR that would not have without heaptap.

load ../lib/common

# waiting [PROGRAM]: a waits target, all threads of which wait
waiting() {
	coproc WAITS { exec "$T/${1:-waits}" 2>/dev/null 3>&-; }
	TARGET=$WAITS_PID
	STARTED+=("$TARGET")
	listening
	answers ready
}

# listening: the shell closes the descriptors of a coprocess when that has ended, with what it has said last
listening() { exec {SAYS}<&"${WAITS[0]}" {HEARS}>&"${WAITS[1]}"; }

# answers LINE: the next line of the target
answers() {
	local line
	read -r -t 300 line <&"$SAYS"
	[ "$line" = "$1" ] || { echo "the target says: $line"; return 1; }
}

# asked COMMAND LINE: what the target answers to it
asked() {
	echo "$1" >&"$HEARS"
	answers "$2"
}

# fewest: how often that thread has slept which has slept least
fewest() { cat /proc/"$TARGET"/task/*/status | awk '/^voluntary_ctxt/ && (n == "" || $2 < n) { n = $2 } END { print n }'; }

slept() { [ "$(fewest)" -ge "$1" ]; }

# stopped TIMES: wait until every thread was stopped so often. Each time it sleeps twice: in the stop, and in its call again.
stopped() { wait_for slept $(($(fewest) + 2 * $1)); }

all_went_on() { asked end "ended 18 of 18, EINTR 0"; }

# again COMMAND...: one after the other, until every thread was stopped TIMES times
again() {
	local want=$(($(fewest) + 2 * $1))
	shift
	until slept "$want"; do "$@"; done
}

attached_and_detached() {
	attached "$TARGET"
	detach
}

# scanned [OPTIONS]: by a heaptap that has not traced the target
scanned() { "$HEAPTAP" scan --force --max-pause 60s "$@" "$TARGET" >/dev/null 2>&1 || [ "$?" -le 5 ]; }

# bats test_tags=core,ptrace
@test "waits: verdict after verdict: none fails, signals still end them, limits are kept (T1)" {
	waiting
	attached --force --scan -i 100ms "$TARGET"
	stopped 5
	asked "signal 20" "handled 20, EINTR 20"
	asked "limits 2" over
	detach
	all_went_on
}

# bats test_tags=full
@test "waits: a copy by fork for each verdict (T1)" {
	waiting
	attached --force --scan -i 100ms --snapshot fork "$TARGET"
	stopped 5
	asked "signal 20" "handled 20, EINTR 20"
	detach
	all_went_on
}

# bats test_tags=full
@test "waits: a copy made ahead for each verdict (T1)" {
	waiting
	attached --force --scan -i 100ms --snapshot precopy "$TARGET"
	stopped 5
	asked "signal 20" "handled 20, EINTR 20"
	detach
	all_went_on
}

# bats test_tags=full
@test "waits: attached and detached again and again (T1)" {
	waiting
	again 6 attached_and_detached
	all_went_on
}

# bats test_tags=full
@test "waits: scan again and again, by heaptaps that know nothing of each other: limits are kept (T1)" {
	waiting
	again 10 scanned
	echo "limits 2" >&"$HEARS"
	again 10 scanned
	answers over
	all_went_on
}

@test "waits: verdicts of a program that heaptap starts (T1)" {
	coproc WAITS { exec "$HEAPTAP" run --scan -i 100ms --max-pause 60s -o "$BATS_TEST_TMPDIR/report.json" -- "$T/waits" 2>/dev/null 3>&-; }
	STARTED+=("$WAITS_PID")
	listening
	answers ready
	TARGET=$(pgrep -P "$WAITS_PID" -x waits)
	stopped 5
	asked "signal 20" "handled 20, EINTR 20"
	asked "limits 2" over
	all_went_on
}

# bats test_tags=full
@test "waits: attached and scanned by each source and each way to read memory (T1)" {
	local source way
	waiting
	for source in bpf ptrace inline; do
		for way in stop fork precopy; do
			status=0
			"$HEAPTAP" attach -q -b "$source" --snapshot "$way" --max-pause 60s --scan -t 200ms --force \
				-o "$BATS_TEST_TMPDIR/r.json" "$TARGET" >/dev/null 2>"$BATS_TEST_TMPDIR/err" || status=$?
			[ "$status" -eq 0 ] || { echo "$source, $way: $status"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
			again 1 scanned --snapshot "$way"
		done
	done
	all_went_on
}

@test "waits: of a 32-bit program (T1)" {
	needs_target waits-32
	waiting waits-32
	again 10 scanned
	asked "signal 20" "handled 20, EINTR 20"
	all_went_on
}
