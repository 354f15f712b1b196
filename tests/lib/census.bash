# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# For tests of censuses: programs that print their blocks, and the census of one.

# counted PROGRAM [ARGS]: start it with a pipe, and wait until it has printed its truth; its PID is in $TARGET
counted() {
	mkfifo "$BATS_TEST_TMPDIR/lines"
	truth=$BATS_TEST_TMPDIR/truth
	rm -f "$truth"
	"$@" <"$BATS_TEST_TMPDIR/lines" >"$truth" 2>/dev/null &
	TARGET=$!
	STARTED+=("$TARGET")
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for grep -qsE '</malloc>|^end$' "$truth"
}

# census [OPTIONS]: of $TARGET, as text in $text and as a list in $list
census() {
	text=$BATS_TEST_TMPDIR/census.txt
	list=$BATS_TEST_TMPDIR/census.csv
	"$HEAPTAP" scan -q --force --max-pause 60s -o "$text" -o "$list" "$@" "$TARGET"
}

# equals_truth MOST: the live blocks are those that the program has, with their sizes, and at most MOST of the C library
equals_truth() {
	awk '$1 == "block" { printf "%s,%s\n", $2, $3 }' "$truth" | sort >"$BATS_TEST_TMPDIR/wanted"
	awk -F, '$3 == "live" { printf "%s,%s\n", $1, $2 }' "$list" | sort >"$BATS_TEST_TMPDIR/have"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/wanted")" -gt 1000 ]
	[ -z "$(comm -23 "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/have" | head -3 | tee /dev/stderr)" ]
	[ "$(comm -13 "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/have" | tee /dev/stderr | wc -l)" -le "$1" ]
}

# adds_up: the census found no fault in the allocator's books
adds_up() { ! grep 'Does not add up' "$text"; }

# none_is_lost: all blocks of the program are held
none_is_lost() { ! grep ',definite' "$list"; }

# ends_well: the program that waits at the pipe goes on, and ends with status 0
ends_well() {
	untouched "$TARGET"
	exec 7>&-
	ended "$TARGET" 0
}

# told JQ VALUE: of the census in JSON
told() {
	local have
	have=$(jq -r "$1" "$json")
	[ "$have" = "$2" ] || { echo "census: $1 is $have, not $2"; return 1; }
}

# with_json [OPTIONS]: a census of $TARGET as JSON in $json
with_json() {
	json=$BATS_TEST_TMPDIR/census.json
	"$HEAPTAP" scan -q --force --max-pause 60s -o "$json" "$@" "$TARGET"
}
