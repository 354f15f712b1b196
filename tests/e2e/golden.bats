#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Old recordings, lists of events and JSON reports (tests/data) are read by this heaptap as by the one that wrote them. No root.

load ../lib/common

DATA=$ROOT/tests/data

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# as_expected NAME FORMAT FILE OPTION...: the report on FILE says what stands in expected/NAME, and nothing on stderr
as_expected() {
	"$DATA/read.sh" "$HEAPTAP" "$2" "$3" --sysroot "$DATA/root" "${@:4}" >said 2>err
	diff "$DATA/expected/$1" said
	[ ! -s err ] || { cat err; return 1; }
}

# as_written NAME: all formats; the text has the process, and each function that leaked, and how much
as_written() {
	local word
	as_expected "$1.json" json "$DATA/$1"
	as_expected "$1.folded" folded "$DATA/$1"
	"$HEAPTAP" report -q -n 0 --sysroot "$DATA/root" "$DATA/$1" | tr -d , >text
	for word in $(sed -nE 's/^process ([^ ]*).*/\1/p; s/.*: ([a-z_]*) <.*definite.*/\1/p
		s/^  totals [^ ]* [^ ]* [^ ]* ([^ ]*) ([^ ]*) .*/\1 \2/p' "$DATA/expected/$1.json"); do
		grep -qw -e "$word" text || { echo "not in the text: $word"; return 1; }
	done
}

# bats test_tags=core
@test "golden: a recording by BPF" { as_written bpf.heaptap; }

@test "golden: a recording by ptrace" { as_written ptrace.heaptap; }

@test "golden: a recording by inline" { as_written inline.heaptap; }

@test "golden: a recording of the host's side of a connection" { as_written connect.heaptap; }

@test "golden: a recording of children" { as_written children.heaptap; }

@test "golden: a recording of a 32-bit program" { as_written bits32.heaptap; }

@test "golden: a recording with markers, pools, a wrong release" {
	as_written markers.heaptap
	as_expected between.json json "$DATA/markers.heaptap" --between before,after
}

@test "golden: a recording of samples" { as_written sampled.heaptap; }

@test "golden: a list of events" { as_written markers.events; }

@test "golden: diff reads a report, and a recording" {
	local old
	for old in "$DATA/report-2.json" "$DATA/bpf.heaptap"; do
		"$HEAPTAP" diff --json --sysroot "$DATA/root" "$DATA/markers.heaptap" "$old" >diff.json 2>err
		[ ! -s err ]
		jq -e '.a.totals.live_bytes == 1320 and .a.totals.leaked_blocks == 5 and .a.totals.allocs == 16 and
			.b.totals.live_bytes == 9064 and .b.totals.leaked_blocks == 12 and .b.totals.allocs == 64' diff.json
		jq -e '.callers[] | select(.frames[0] == "lose_blocks") | .a.live_bytes == 600 or .b.live_bytes == 7000' diff.json
	done
}

@test "golden: what a later heaptap adds to a recording is skipped, and counted" {
	local name
	for name in bpf inline markers; do
		"$DATA/insert.py" "$DATA/$name.heaptap" later.heaptap
		run -0 --separate-stderr "$DATA/read.sh" "$HEAPTAP" json later.heaptap --sysroot "$DATA/root"
		diff <(sed '1i mark later' "$DATA/expected/$name.heaptap.json") <(printf '%s\n' "$output")
		[ "$stderr" = "heaptap: warning: report: later.heaptap: 2 records skipped: a later heaptap wrote them, whose kinds are not known here" ]
	done
}

@test "golden: an old recording that is cut off is read up to there" {
	local size
	size=$(stat -c %s "$DATA/children.heaptap")
	head -c $((size - 1)) "$DATA/children.heaptap" >cut.heaptap
	run --separate-stderr "$DATA/read.sh" "$HEAPTAP" json cut.heaptap --sysroot "$DATA/root"
	[ "$status" -ne 0 ]
	[[ $stderr == *"the report covers only the events before it"* ]]
	# The first process, which has ended before.
	diff <(grep -E -m 3 '^  (totals|calls|stack) ' "$DATA/expected/children.heaptap.json") \
		<(grep -E -m 3 '^  (totals|calls|stack) ' <<<"$output" | sed 's/ \[]$/ [definite 2 128]/')
}

@test "golden: another major version is refused" {
	"$DATA/insert.py" "$DATA/bpf.heaptap" major.heaptap 3
	run ! "$HEAPTAP" report major.heaptap
	[[ $output == *'is in format 3, this heaptap reads format 2'* ]]
}
