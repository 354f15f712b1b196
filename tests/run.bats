#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The runner of tests itself: failures, unstable tests and skips are counted and named. No root needed.

setup() {
	DIR=$(mktemp -d)
	cd "$DIR"
	mkdir tests
	cp "$BATS_TEST_DIRNAME/run.py" tests/
	: >tests/skips.tsv
	export O=$PWD/build
	unset CI
	# bats puts its own parts into the path of its tests; a bats within it needs the usual one.
	PATH=$(tr : '\n' <<<"$PATH" | grep -v libexec/bats | paste -sd:)
}

teardown() { rm -rf "$DIR"; }

# tests_of LINE...: a file of tests, each LINE the name and the body of one
tests_of() {
	local line
	echo '#!/usr/bin/env bats'
	for line in "$@"; do
		printf '@test "%s" {\n\t%s\n}\n' "${line%%=*}" "${line#*=}"
	done
}

# runs STATUS JOB...: the runner ends with STATUS
runs() {
	local wanted=$1
	shift
	# bats that runs this has settings for its own tests.
	run env -i PATH="$PATH" O="$O" ${CI:+CI="$CI"} tests/run.py "$@"
	echo "$output"
	[ "$status" -eq "$wanted" ]
}

last_line() { [ "$(tail -n 1 <<<"$output")" = "$1" ] || { echo "the last line is not: $1"; return 1; }; }

@test "run.py: what passes and what fails is counted, and named at the end" {
	tests_of 'good=true' 'bad (A1) [x]=echo reason; false' >a.bats
	runs 1 plain:a.bats
	last_line '1 passed, 1 failed, 0 skipped'
	[[ $output == *'again, alone: plain:a: bad (A1) [x]: failed in run 1'* ]]
	[[ $output == *$'failed:\n  plain:a: bad (A1) [x]'* ]]
	[[ $output == *'# reason'* ]]
	[ ! -e build/unstable.tsv ]
}

@test "run.py: a test that fails once and then passes five times is unstable, and no failure" {
	tests_of 'good=true' "now and then=echo run >>'$PWD/runs'; echo why; [ \$(wc -l <'$PWD/runs') -gt 1 ]" >a.bats
	runs 0 plain:a.bats
	[ "$(wc -l <runs)" -eq 6 ]
	[[ $output == *$'unstable: plain:a: now and then (1 of 6)\n2 passed, 0 failed, 0 skipped' ]]
	grep -P '^20\S+ \S+\tplain:a: now and then\t1 of 6\t.*why' build/unstable.tsv
}

# bats test_tags=full
@test "run.py: a test that fails again in the fourth run alone has failed" {
	tests_of "twice=echo run >>'$PWD/runs'; n=\$(wc -l <'$PWD/runs'); [ \$n -ne 1 ] && [ \$n -ne 5 ]" >a.bats
	runs 1 plain:a.bats
	last_line '0 passed, 1 failed, 0 skipped'
	[ "$(wc -l <runs)" -eq 5 ]
}

@test "run.py: a file that ends before its last test has failed" {
	tests_of 'good=true' 'kills=kill -9 $PPID' 'never=true' >a.bats
	runs 1 plain:a.bats
	[[ $output == *'plain:a: (the whole file)'* ]]
}

@test "run.py: skips are printed with their reasons; with CI=true one that no row names is a failure" {
	tests_of 'good=true' 'one=skip "no such program"' 'two=skip "no other program"' >a.bats
	printf 'plain:a: one\talways\tno such *\n' >tests/skips.tsv
	runs 0 plain:a.bats
	last_line '1 passed, 0 failed, 2 skipped'
	[[ $output == *$'as tests/skips.tsv expects: 1\n  1: no such program\n      plain:a: one'* ]]
	[[ $output == *$'NOT expected (tests/skips.tsv): 1\n  1: no other program\n      plain:a: two'* ]]
	CI=true runs 1 plain:a.bats
	last_line '1 passed, 1 failed, 1 skipped'
	# A condition that does not hold expects nothing.
	printf 'plain:a: *\tno-bpf\t*\n' >tests/skips.tsv
	CI=true runs 1 plain:a.bats
	last_line '1 passed, 2 failed, 0 skipped'
	printf 'plain:a: *\tsometimes\t*\n' >tests/skips.tsv
	runs 1 plain:a.bats
	[[ $output == *'tests/skips.tsv:1: not test, condition'* ]]
}

@test "run.py: tags choose tests, for all files or for one" {
	{
		tests_of 'first=true'
		echo '# bats test_tags=full, slow'
		tests_of 'second=true' | tail -n +2
	} >a.bats
	cp a.bats b.bats
	runs 0 --tags '!full' plain:a.bats plain:b.bats@slow
	last_line '2 passed, 0 failed, 0 skipped'
	[[ $(cat build/tests/log/plain/a.tap) == *' first in '* ]]
	[[ $(cat build/tests/log/plain/b.tap) == *' second in '* ]]
}

@test "run.py: unit tests: failures, skips with a reason, a program that was not built" {
	mkdir -p build/tests/unit/lib
	printf '#!/bin/sh\n%s\n' 'printf "1..3\nok 1 - good\n# skipped: no such thing\nnot ok 2 # SKIP other\n"' \
		'printf "not ok 3 - bad\n# a.c:7: error\n"; exit 1' >build/tests/unit/lib/test_a
	chmod +x build/tests/unit/lib/test_a
	runs 1 unit:build/tests/unit/lib/test_a unit:build/tests/unit/lib/test_b
	last_line '1 passed, 1 failed, 2 skipped'
	[[ $output == *$'1: no such thing\n      unit:lib/test_a: other'* ]]
	[[ $output == *$'1: was not built here\n      unit:lib/test_b: (the whole file)'* ]]
	[[ $output == *'a.c:7: error'* ]]
}

@test "run.py: a target of make is one test" {
	printf 'good:\n\t@true\nbad:\n\t@echo finding; false\nnone:\n\t@echo "none: skipped: no checker here"\n' >Makefile
	runs 1 make:good make:bad make:none
	last_line '1 passed, 1 failed, 1 skipped'
	[[ $output == *'finding'* && $output == *'1: no checker here'* ]]
}

@test "run.py: without root what traces is skipped test by test, and tests for anyone run" {
	{
		tests_of 'traces=false'
		echo '# bats test_tags=anyone'
		tests_of 'reads=true' | tail -n +2
		echo '# bats test_tags=full'
		tests_of 'takes long=false' | tail -n +2
	} >a.bats
	chmod 755 . tests tests/run.py
	mkdir -m 777 build
	# Not root also where these tests are run by root.
	run env -i PATH="$PATH" O="$O" $([ "$(id -u)" -ne 0 ] || echo setpriv --reuid=65534 --regid=65534 --clear-groups) \
		tests/run.py --tags '!full' e2e:a.bats ptrace:a.bats
	echo "$output"
	[ "$status" -eq 0 ]
	last_line '1 passed, 0 failed, 3 skipped'
	[[ $output == *'3: not root'* ]]
}

# bats test_tags=full
@test "run.py: without BPF what traces by it is skipped, and the ptrace source is tested" {
	[ "$(id -u)" -eq 0 ] || skip "not root"
	unshare -m true || skip "no mount namespaces here"
	tests_of 'traces=[ "${HEAPTAP_BACKEND:-}" = ptrace ]' >a.bats
	cp "$BATS_TEST_DIRNAME/own_libraries.sh" tests/
	mkdir -p build/tests
	printf '#!/bin/sh\nexit 3\n' >build/heaptap
	chmod +x build/heaptap
	runs 0 e2e:a.bats inline:a.bats ptrace:a.bats
	last_line '1 passed, 0 failed, 2 skipped'
	[[ $output == *$'2: no BPF here\n'* ]]
}
