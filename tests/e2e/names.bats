#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Names come from a process without rights, which may die of a file: the rest of the report is as without that.

load ../lib/common

# poisoned WHERE: a report on a program by which libdw crashes, into $report; the program as it is without heaptap
poisoned() {
	report=$BATS_TEST_TMPDIR/report.json
	printf x >"$BATS_TEST_TMPDIR/x"
	objcopy --add-section ".poison=$BATS_TEST_TMPDIR/x" "$T/leak" "$BATS_TEST_TMPDIR/leak"
	HEAPTAP_POISON=$1 LD_PRELOAD=$T/libpoison.so "$HEAPTAP" run -q -o "$report" -o "$BATS_TEST_TMPDIR/report.txt" -- \
		"$BATS_TEST_TMPDIR/leak" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err"
	"$BATS_TEST_TMPDIR/leak" >"$BATS_TEST_TMPDIR/control"
	cmp "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/control"
	jq -e '.unread_modules == 1' "$report"
	grep -q '^1 file could not be read to the end: names are missing$' "$BATS_TEST_TMPDIR/report.txt"
}

# frames FILTER: how many frames of $report in the program fit the jq expression
frames() { jq "[.processes[].stacks[].frames[] | select(.module | endswith(\"/leak\")) | select($1)] | length" "$report"; }

# bats test_tags=core,anyone
@test "names: libdw crashes in the debug information of a file: names without lines, and said (S12)" {
	poisoned dwarf
	grep -q 'leak: the reader of its names was ended by signal 11 .*: names without its debug information' "$BATS_TEST_TMPDIR/err"
	[ "$(frames '.function != null')" -gt 0 ]
	[ "$(frames '.line != null')" -eq 0 ]
	[ "$(grep -c 'the reader of its names' "$BATS_TEST_TMPDIR/err")" -eq 1 ]
}

# bats test_tags=anyone
@test "names: libdw crashes in the symbols of a file: no names of it, those of other files (S12)" {
	poisoned symbols
	grep -q 'leak: the reader of its names was ended by signal 11 .*: no names of it' "$BATS_TEST_TMPDIR/err"
	[ "$(frames '.function != null')" -eq 0 ]
	[ "$(frames 'true')" -gt 0 ]
	[ "$(jq '[.processes[].stacks[].frames[] | select(.module | endswith("/libc.so.6")) | select(.function != null)] | length' "$report")" -gt 0 ]
	[ "$(grep -c 'the reader of its names' "$BATS_TEST_TMPDIR/err")" -eq 2 ]
}

# bats test_tags=anyone,full
@test "names: each allocation of the reader fails in turn: the report is whole, with fewer names (A7, S12)" {
	local n r=$BATS_TEST_TMPDIR/r.heaptap sums='.processes[0] | [.totals, .functions, [.stacks[] | [.allocs, .live_bytes]]]'
	"$HEAPTAP" run -q -w "$r" -- "$T/leak" >/dev/null 2>&1
	report=$BATS_TEST_TMPDIR/report.json
	"$HEAPTAP" report -q -o "$report" "$r"
	want=$(jq -c "$sums" "$report")
	[ "$(frames '.function != null')" -gt 0 ]
	for n in 1 2 3 5 8 13 21 34 55 89 144 233 377 610 987 1597; do
		HEAPTAP_FAIL_READER=1 HEAPTAP_FAIL_AT=$n LD_PRELOAD=$T/libfail.so timeout -k 5 120 \
			"$HEAPTAP" report --force -o "$report" "$r" 2>"$BATS_TEST_TMPDIR/err" || { echo "N=$n: $?"; return 1; }
		[ "$(jq -c "$sums" "$report")" = "$want" ]
		[ "$(jq .unread_modules "$report")" -eq 0 ] || grep -q 'the reader of its names' "$BATS_TEST_TMPDIR/err"
	done
}

# bats test_tags=anyone,full
@test "names: a function of D has the name that its programmer knows, with debug information and without" {
	local program=$BATS_TEST_TMPDIR/d_names how
	report=$BATS_TEST_TMPDIR/report.json
	cp "$T/d_names" "$program"
	for how in whole stripped; do
		[ "$how" = whole ] || strip --strip-debug "$program"
		"$HEAPTAP" run -q --force -o "$report" -o "$program.txt" -- "$program"
		[ "$(jq -r '[.processes[0].stacks[] | select(.alloc_bytes == 40).frames[0].function] | first' "$report")" = \
			'list.Tree.makeNode(int)' ]
		[ "$(jq -r '[.processes[0].stacks[] | select(.alloc_bytes == 24).frames[1].function] | first' "$report")" = \
			'list.Tree.makeNode(int)' ]
		grep -q 'list\.Tree\.makeNode(int)' "$program.txt"
		fails grep -q '_D4list' "$program.txt"
	done
}

@test "names: the reader has stack enough under a small limit (S12)" {
	report=$BATS_TEST_TMPDIR/report.json
	(ulimit -s 64 && exec "$HEAPTAP" run -q -o "$report" -- "$T/leak") >"$BATS_TEST_TMPDIR/err" 2>&1
	fails grep 'reader of its names' "$BATS_TEST_TMPDIR/err"
	[ "$(jq '[.processes[0].stacks[].frames[] | select(.function == "open_session").line] | any(. > 0)' "$report")" = true ]
}

# reader_of PID: the reader among the children of all its threads
reader_of() {
	local pid
	for pid in $(cat "/proc/$1"/task/*/children 2>/dev/null); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != heaptap-names ] || echo "$pid"
	done
}
has_reader() { [ -n "$(reader_of "$1")" ]; }

# bats test_tags=full
@test "names: the reader has no rights, and nothing open but the files that it reads (S11)" {
	local status reader fd
	[ "$(id -u)" = 0 ] || skip "needs root"
	case $(uname -m) in x86_64 | aarch64 | riscv64) ;; *) skip "no filter of system calls on this CPU" ;; esac
	"$HEAPTAP" run -q -w "$BATS_TEST_TMPDIR/r.heaptap" -- "$T/leak" >/dev/null 2>&1
	# The report stops in the middle, because nobody reads it to its end.
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	exec 8<>"$BATS_TEST_TMPDIR/fifo"
	printf '%65536s' '' >&8
	start bash -c 'exec "$0" run -- "$1" 2>&8 >/dev/null' "$HEAPTAP" "$T/leak"
	TAP=$PID
	wait_for has_reader "$TAP"
	reader=$(reader_of "$TAP")
	status=/proc/$reader/status
	wait_for grep -q 'Seccomp:	2' "$status"
	grep -qx 'CapEff:	0*' "$status"
	grep -qx 'CapPrm:	0*' "$status"
	grep -qx 'CapInh:	0*' "$status"
	grep -qx 'NoNewPrivs:	1' "$status"
	grep -qE '^Uid:	65534	65534	65534	65534$' "$status"
	grep -qE '^Groups:	 *$' "$status"
	[ "$(cat "/proc/$reader/oom_score_adj")" -eq 1000 ]
	for fd in "/proc/$reader/fd"/*; do
		case $(readlink "$fd") in
		socket:* | /dev/null | "/proc/$reader/statm" | /usr/* | /lib/* | "$T"/* | /memfd:symbols*) ;;
		*) echo "open: $(readlink "$fd")"; return 1 ;;
		esac
	done
	# When heaptap dies, the reader ends by itself.
	kill -9 "$TAP"
	wait_for gone "$reader"
	exec 8>&-
}
