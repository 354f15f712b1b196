#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A process that could not be watched has no verdict, and a report that was not written is no success.

load ../lib/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	needs_target leak-static
	strip -o hidden "$T/leak-static"
	head -c 32 /dev/zero >note
	objcopy --add-section .note.go.buildid=note hidden gopher
	strip -o spinner "$T/spin-static" 2>/dev/null || gcc -O1 -static -s -o spinner "$ROOT/tests/targets/spin.c" -I"$ROOT"
}

# no_verdict: status 6, and one line that says why
no_verdict() {
	[ "$status" -eq 6 ] || { echo "status $status"; cat "$err"; return 1; }
	[ "$(grep -c -- '--fail-on: no verdict: not everything could be watched in 1 process$' "$err")" -eq 1 ]
}

# claims_nothing FILE: a text report without any line about the heap
claims_nothing() {
	! grep -Eq '^  (live|peak|allocated|freed|leaks|scan|lost|checked|calls) |Nothing is live' "$1" || { cat "$1"; return 1; }
}

# bats test_tags=full
@test "unwatched: no rule of --fail-on passes where no allocator was found (B12)" {
	for rule in definite errors growth:5%; do
		traced --fail-on "$rule" -- ./hidden
		no_verdict
	done
	traced --error-exitcode 7 -- ./hidden
	no_verdict
	traced -- bash -c 'exec ./hidden; exit 3'
	[ "$status" -eq 0 ]
	traced -- "$T/nothing"
	is .watched true
	is .unwatched_reason null
}

@test "unwatched: the report begins with the reason, and claims nothing (B12)" {
	traced -o report.txt -- ./hidden
	[ "$status" -eq 0 ]
	is .watched false
	is '.unwatched_reason | test("^a static, stripped program: no allocator function")' true
	is '.unwatched_help | test("dynamically")' true
	is .scan null
	is .checked false
	head -1 report.txt | grep -q '^no verdict: nothing could be watched: a static, stripped program'
	sed -n 4p report.txt | grep -q '^  what helps  link it dynamically'
	claims_nothing report.txt
}

@test "unwatched: a Go program is named (B12)" {
	traced -o report.txt --fail-on definite -- ./gopher
	no_verdict
	is '.unwatched_reason | test("^a static Go program")' true
	head -1 report.txt | grep -q '^no verdict: nothing could be watched: a static Go program'
	claims_nothing report.txt
}

@test "unwatched: a program without one of its libraries: the loader is believed, and no --alloc proposed" {
	cd "$BATS_TEST_TMPDIR" || return
	gcc -shared -fPIC -o libgone.so -xc - <<<'int gone(void) { return 1; }'
	gcc -o lacks -xc - -L. -lgone <<<'int gone(void); int main(void) { return gone(); }'
	rm libgone.so
	run --separate-stderr -127 "$HEAPTAP" run -o report.txt ./lacks
	[[ $stderr == *'nothing could be watched: its libraries could not be loaded, as its loader says'* ]]
	fails grep alloc report.txt
}

@test "unwatched: one of two processes, and a library that --omit leaves out (B12)" {
	traced -f -o report.txt --fail-on definite -- bash -c './hidden; :'
	grep -Eq '^ +[0-9]+  hidden +nothing could be watched$' report.txt
	no_verdict
	traced --omit libc.so.6 --fail-on definite -- "$T/nothing"
	no_verdict
	is '.unwatched_help | test("--omit")' true
}

@test "unwatched: attach refuses with a status of its own (B12)" {
	start ./spinner
	wait_for says spinner ready
	run -6 --separate-stderr "$HEAPTAP" attach -t 100ms "$PID"
	[[ $stderr == *'nothing could be watched: a static, stripped program'* ]]
	is_running "$PID"
}

@test "unwatched: a recording of it has no verdict either (B12)" {
	traced -w r.heaptap -o live.txt -- ./hidden
	"$HEAPTAP" report r.heaptap >replayed.txt
	head -1 replayed.txt | grep -q '^no verdict: nothing could be watched: '
	claims_nothing replayed.txt
	run -6 "$HEAPTAP" console --fail-on definite -x top r.heaptap
}

# bats test_tags=full
@test "unwatched: --fail-on definite without a scan" {
	traced --no-scan --fail-on definite -- "$T/nothing"
	[ "$status" -eq 6 ]
	grep -q -- '--fail-on: no leak verdict on 1 process' "$err"
	spinning
	attached --no-scan --fail-on definite "$TARGET"
	kill -INT "$TAP"
	ended "$TAP" 6
}

# bats test_tags=full
@test "unwatched: a function of --alloc that no file has" {
	traced --alloc malloc=nosuch,free=free -- "$T/nothing"
	[ "$status" -eq 6 ]
	traced --alloc malloc=nosuch,free=free -- "$T/exitcodes" exit 3
	[ "$status" -eq 3 ]
	traced --alloc malloc=nosuch,free=free -- "$T/nothing"
	[ "$(grep -c "run: --alloc: no function 'nosuch' in any mapped file: its calls were not seen" "$err")" -eq 1 ]
	traced --alloc malloc=nosuch,free=free --fail-on definite -- "$T/nothing"
	[ "$status" -eq 6 ]
	traced --alloc malloc=my_alloc,free=my_free,arg=2,object=other.so --fail-on errors -- "$T/custom"
	[ "$status" -eq 6 ]
	grep -q "no function 'my_alloc' in any mapped file called other.so" "$err"
	traced --alloc malloc=my_alloc,free=my_free,arg=2 --fail-on errors -- "$T/custom"
	[ "$status" -eq 0 ]
	! grep -q -- --alloc "$err" || return 1
	spinning
	attached --alloc malloc=nosuch,free=free "$TARGET"
	kill -INT "$TAP"
	ended "$TAP" 6
}

# bats test_tags=full
@test "unwatched: a report that could not be written is no success" {
	for out in /proc/x.json /proc/x.txt; do
		run -5 --separate-stderr "$HEAPTAP" run -q -o "$out" -- "$T/nothing"
		[ "$stderr" = "heaptap: report: $out: No such file or directory" ]
	done
	run -3 --separate-stderr "$HEAPTAP" run -q -o /proc/x.json -- bash -c 'exit 3'
	run -5 --separate-stderr "$HEAPTAP" run -q --fail-on errors -o /proc/x.json -- "$T/nothing"
	[ "$stderr" = "heaptap: report: /proc/x.json: No such file or directory" ]
}

@test "unwatched: too few descriptors for the files: the reason is named" {
	local limit nr_unopened=0
	for limit in 20 18 16 14; do
		status=0
		(
			ulimit -n "$limit"
			exec "$HEAPTAP" run -q -b ptrace --fail-on errors -- "$T/nothing" >out 2>err
		) || status=$?
		grep -q 'mapped files could not be opened; allow more open files (ulimit -n)' err || continue
		nr_unopened=$((nr_unopened + 1))
		[ "$status" -eq 6 ] || { cat err; return 1; }
	done
	[ "$nr_unopened" -gt 0 ]
}

# seen_as TEXT COMMAND...: the notes on it say so
seen_as() {
	local text=$1
	shift
	rm -f report.txt
	traced --no-scan -o report.txt -- "$@"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	is ".notes | map(select(contains(\"$text\"))) | length" 1
	tr -s ' \n' ' ' <report.txt | grep -qF "$text"
}

# bats test_tags=full
@test "unwatched: what is not seen of Python, PHP, Java, R, node and Go is said (B12)" {
	local name
	for name in python3 python3.11 php8.2 php-fpm8.2 node nodejs; do cp "$T/nested" "$name"; done
	seen_as "PYTHONMALLOC=malloc" ./python3.11
	seen_as "PYTHONMALLOC=malloc" ./python3
	seen_as "USE_ZEND_ALLOC=0" ./php8.2
	seen_as "USE_ZEND_ALLOC=0" ./php-fpm8.2
	seen_as "JavaScript objects are no blocks" ./node
	seen_as "JavaScript objects are no blocks" ./nodejs
	gcc -shared -o libjvm.so -x c /dev/null
	echo '#include <stdlib.h>
		int main(void) { free(malloc(9)); }' | gcc -O0 -x c -o java - -x none -Wl,--no-as-needed ./libjvm.so
	seen_as "GC.heap_info" ./java
	gcc -shared -o libR.so -x c /dev/null
	echo '#include <stdlib.h>
		int main(void) { free(malloc(9)); }' | gcc -O0 -x c -o R - -x none -Wl,--no-as-needed ./libR.so
	seen_as "Rprofmem() names R's functions" ./R
	objcopy --add-section .note.go.buildid=note "$T/nested" cgo
	seen_as "runtime/pprof" ./cgo
	# Names that only begin like these.
	for name in nodes pythonic; do
		cp "$T/nested" "$name"
		traced --no-scan -- "./$name"
		is '.notes | length' 0
	done
}
