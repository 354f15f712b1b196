#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The answer: every output begins with the same sentence, and names the same function of the program's own code.

load ../lib/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	STARTED=()
}

teardown() { end_started; }

# same_answer PROGRAM [ARG...]: runs it; all outputs have the sentence of JSON, which is then in $verdict, and its places
same_answer() {
	local name comm
	comm=$(basename "$1" | cut -c 1-15)
	"$HEAPTAP" run -q --force -o r.txt -o r.json -o r.compact.json -o r.html -o r.junit.xml -o r.sarif -o r.github \
		-w r.heaptap -- "$@" >out
	verdict=$(jq -r '.processes[0].verdict' r.json)
	# A recording has the same answer, and so has the console.
	"$HEAPTAP" console -q -x report r.heaptap >console.txt
	for name in r.txt console.txt; do
		[[ "$(unbroken <"$name")" == "$verdict $comm (pid "* ]] || { echo "$name: $(head -3 "$name"), not $verdict"; return 1; }
	done
	[ "$("$HEAPTAP" report -q r.json | head -1)" = "$verdict" ]
	[ "$(jq -r '.processes[0].verdict' r.compact.json)" = "$verdict" ]
	[ "$(jq -r '.runs[0].properties.verdicts[0].text' r.sarif)" = "$verdict" ]
	[ "$(xmllint --xpath 'string(//property[@name="verdict"]/@value)' r.junit.xml)" = "$verdict" ]
	# A clean program has no annotation.
	if [[ $verdict != no* ]]; then
		grep -F "$verdict" r.github | grep -q '^::notice title=heaptap::'
	else
		[ ! -s r.github ]
	fi
	grep -qF "\"verdict\":\"$verdict\"" <(tr -d '\n' <r.html | sed 's/"verdict": "/"verdict":"/')
	same_sums
}

# same_sums: verdict, and the difference to a report of nothing, have the sums of JSON
same_sums() {
	local sums lost
	sums=$(jq -r '.processes[0].scan | "\(.definite.blocks) \(.indirect.blocks)"' r.json)
	[ "$(jq -r '.processes[0].stacks | "\([.[].definite.blocks] | add // 0) \([.[].indirect.blocks] | add // 0)"' r.json)" = "$sums" ]
	jq '.processes[0].stacks = []' r.json >none.json
	"$HEAPTAP" diff none.json r.json >diff.txt
	lost=$(grep -oE '^leaks [0-9.,]+ [A-Za-z]+ in [0-9,]+ blocks?(, and with (it|them) [0-9.,]+ [A-Za-z]+ in [0-9,]+)?, [^;]*' <<<"$verdict" || true)
	[[ -n $lost ]] || { grep -q '^no leaks; ' diff.txt; return; }
	# "leaks 99 B in 1 block" is "leaks 99 B more in 1 more block" there.
	lost=$(sed -E 's/ in ([0-9,]+) block/ more in \1 more block/; s/with it/with them/; s/, [a-z ]* from/, from/' <<<"$lost")
	[ "$lost" = "$(head -1 diff.txt | sed -E 's/; holds.*//; s/, [a-z ]* from/, from/')" ] ||
		{ echo "$lost"; cat diff.txt; return 1; }
}

# same_places: the outputs that same_answer has made name the same functions, which are in the file places then
same_places() {
	local name
	# The places of leaks: function, and file and line where they are known.
	jq -r '.processes[0].stacks[] | select(.definite.blocks > 0) | .place | sub(" [(].*"; "")' r.json | sort >places
	jq -r '.runs[0].results[] | select(.ruleId == "definite-leak")
		| .locations[0].logicalLocations[0].fullyQualifiedName | sub("[(].*"; "")' r.sarif | sort | diff places -
	jq -r '.processes[0].stacks[] | select(.definite.blocks > 0) | .place | sub(" [(].*"; "")' r.compact.json | sort | diff places -
	while read -r name; do
		grep -qF "title=definite leak in ${name//:/%3A}" r.github
		xmllint --xpath '//testcase/@name' r.junit.xml | grep -qF "definite leak in $name"
	done <places
}

# bats test_tags=core
@test "answer: all outputs have one sentence and one place: C, C++, wrappers, leaks in libraries, none at all" {
	same_answer "$T/leak"
	[[ $verdict == 'leaks 10.8 KiB in 32 blocks, and with them 480 B in 20, most of it from open_session (leak.c:'*')' ]]
	same_places
	same_answer "$T/leak_kinds"
	same_places
	[[ $verdict == 'leaks 1,442 B in 10 blocks, and with them 848 B in 13, the largest part from '*' (leak_kinds.c:'*')' ]] || { echo "$verdict"; return 1; }
	same_answer "$T/lost_in_std"
	same_places
	[[ $verdict == 'leaks 39.4 KiB in 8 blocks, most of it from lose_vectors (lost_in_std.cc:'*')' ]]
	diff <(printf '%s\n' lose_by_wrapper lose_vectors) <(sort -u places)
	same_answer "$T/leak_cpp"
	same_places
	same_answer "$T/leak_vector"
	same_places
	same_answer "$T/step"
	[[ $verdict == 'no leaks; '* ]]
}

# bats test_tags=full
@test "answer: the same of cycles, streams, aligned blocks, a plugin, Rust" {
	local name
	for name in cycles leak_stream leak_aligned leak_cached plug_leak; do
		[ -x "$T/$name" ] || continue
		same_answer "$T/$name"
		same_places
		echo "$name: $verdict"
	done
	if command -v rustc >/dev/null; then
		printf '%s\n' 'fn lose_buffer(n: usize) { std::mem::forget(std::hint::black_box(vec![1u8; n])); }' \
			'fn main() { for i in 0..9 { lose_buffer(1000 + i); } }' >rusty.rs
		rustc -g -O rusty.rs
		same_answer ./rusty
		same_places
		[[ $verdict == "leaks 9,036 B in 9 blocks, from rusty::lose_buffer (rusty.rs:1)" ]] || { echo "$verdict"; return 1; }
	fi
}

# python_says SCRIPT: the outputs of a Python program with the extension ext; its verdict is in $verdict
python_says() {
	PYTHONPATH=. same_answer "$python" -c "$1"
	same_places
}

# bats test_tags=full
@test "answer: the same of Python: an extension that loses memory, one that loses objects, ctypes" {
	python=$(python3 -c 'import sys; print(sys.executable)')
	include=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
	[ -f "$include/Python.h" ] || skip "no Python.h: make check-deps"
	printf '%s\n' '#include <Python.h>' \
		'static PyObject *leaky(PyObject *s, PyObject *a) { char *p = calloc(1, 1000); __asm__("" :: "r"(p) : "memory"); Py_RETURN_NONE; }' \
		'static PyObject *forgets(PyObject *s, PyObject *a) { PyObject *o = PyBytes_FromStringAndSize(0, 3000); __asm__("" :: "r"(o) : "memory"); Py_RETURN_NONE; }' \
		'PyObject *kept[1000]; static int nr;' \
		'static PyObject *keeps(PyObject *s, PyObject *a) { kept[nr++] = PyBytes_FromStringAndSize(0, 5000); Py_RETURN_NONE; }' \
		'static PyMethodDef m[] = {{"leaky", leaky, METH_NOARGS, ""}, {"forgets", forgets, METH_NOARGS, ""}, {"keeps", keeps, METH_NOARGS, ""}, {0}};' \
		'static struct PyModuleDef d = {PyModuleDef_HEAD_INIT, "ext", 0, -1, m};' \
		'PyMODINIT_FUNC PyInit_ext(void) { return PyModule_Create(&d); }' >ext.c
	gcc -g -O1 -w -shared -fPIC -fno-builtin -I"$include" -o ext.so ext.c
	python_says 'for i in range(50): import ext; ext.leaky()'
	[[ $verdict == "leaks "*"KiB in "*" blocks, "*"from leaky (ext.c:2)"* ]] || { echo "$verdict"; return 1; }
	python_says 'for i in range(100): import ext; ext.forgets()'
	[[ $verdict == "leaks "*"KiB in "*" blocks, "*"from forgets (ext.c:3)"* ]] || { echo "$verdict"; return 1; }
	# An object that the extension holds is no leak.
	PYTHONPATH=. "$HEAPTAP" run -q --force -o r.json -- "$python" -c 'for i in range(100): import ext; ext.keeps()'
	jq -e '.processes[0].stacks[] | select(.place == "keeps (ext.c:5)") | .live_blocks == 100 and .definite.blocks == 0' r.json
	echo 'void lose(int n) { char *p = calloc(1, n); __asm__("" :: "r"(p) : "memory"); }' >plain.c
	gcc -g -O1 -w -shared -fPIC -fno-builtin -o plain.so plain.c
	python_says 'for i in range(50): import ctypes; ctypes.CDLL("./plain.so").lose(7000)'
	[[ $verdict == "leaks "*"KiB in "*" blocks, "*"from lose (plain.c:1)"* ]] || { echo "$verdict"; return 1; }
}

@test "answer: the same of C++ that calls a library in C, and of symbols as Rust has them" {
	gcc -g -O1 -shared -fPIC -fno-builtin -o libplain.so -xc - <<<'#include <stdlib.h>
		void *take(int n) { void *p = malloc(n); __asm__("" : "+r"(p)); return p; }
		void lose(int n) { void *p = malloc(n); __asm__("" :: "r"(p) : "memory"); }'
	printf '%s\n' '#include <string>' 'extern "C" { void *take(int); void lose(int); }' \
		'struct Job { std::string name; void *buffer; };' \
		'__attribute__((noinline)) static void run_job(int i) { Job *j = new Job{std::string(100, 120), take(1000 + i)}; __asm__("" :: "r"(j) : "memory"); }' \
		'int main() { for (int i = 0; i < 9; i++) { run_job(i); lose(99); } }' >mixed.cc
	g++ -g -O1 -o mixed mixed.cc -L. -lplain -Wl,-rpath,"$PWD"
	same_answer ./mixed
	same_places
	[[ $verdict == "leaks 1,251 B in 18 blocks, and with them 9,945 B in 18, most of it from run_job (mixed.cc:4)" ]] || { echo "$verdict"; return 1; }
	# rustc is not on each machine: functions of alloc:: and core:: by their symbols.
	printf '%s\n' '#include <stdlib.h>' 'void *volatile p;' \
		'__attribute__((noipa)) void *alloc(size_t n) __asm__("_ZN5alloc5alloc15exchange_malloc17h0123456789abcdefE");' \
		'__attribute__((noipa)) void *alloc(size_t n) { void *q = malloc(n); __asm__("" : "+r"(q)); return q; }' \
		'__attribute__((noipa)) void grow(size_t n) __asm__("_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$8grow_one17h0123456789abcdefE");' \
		'__attribute__((noipa)) void grow(size_t n) { p = alloc(n); p = 0; }' \
		'__attribute__((noipa)) void lose(size_t n) __asm__("_ZN5rusty11lose_buffer17h0123456789abcdefE");' \
		'__attribute__((noipa)) void lose(size_t n) { grow(n); }' \
		'int main(void) { for (int i = 0; i < 9; i++) lose(1000 + i); }' >rusty.c
	gcc -g -O1 -fno-builtin -fno-optimize-sibling-calls -o rusty rusty.c
	same_answer ./rusty
	same_places
	[[ $verdict == "leaks 9,036 B in 9 blocks, from rusty::lose_buffer (rusty.c:8)" ]] || { echo "$verdict"; return 1; }
}

# bats test_tags=full
@test "answer: the live page and scan have the sums of the report" {
	local url
	strings "$HEAPTAP" | grep -q 'libmicrohttpd.so.12 is not there' || skip "built without libmicrohttpd"
	kinds
	attached --scan --metrics 0 "$TARGET"
	url=$(sed -n 's,.*metrics: \(http.*\)/metrics$,\1,p' "$err")
	built
	"$HEAPTAP" scan -q -o scan.json "$TARGET"
	verdict=$(jq -r '.processes[0].verdict' scan.json)
	[[ $verdict == 'leaks 1,442 B in 10 blocks, and with them 848 B in 13, '* ]] || { echo "$verdict"; return 1; }
	# A report dropped the verdict: the page has a new one, some seconds later.
	page_says() { [ "$(curl -s "$url/data?pid=$TARGET" | jq -r '.processes[0].verdict | sub(";.*"; "")')" = "${verdict%%;*}" ]; }
	wait_for page_says
	detach
	[ "$(jq -r '.processes[0].verdict' "$report" | sed 's/;.*//')" = "${verdict%%;*}" ]
}

@test "answer: without symbols the place is an offset in the program's own file" {
	strip -o bare "$T/lost_in_std"
	same_answer ./bare
	[[ $verdict == 'leaks 39.4 KiB in 8 blocks, most of it from bare+0x'* ]]
}

# bats test_tags=full
@test "answer: names of 10,000 characters are cut" {
	local long
	long=$(printf 'f%.0s' {1..10000})
	printf '#include <stdlib.h>\nvoid *volatile p;\n__attribute__((noinline)) void %s(void) { p = malloc(99); p = 0; }\nint main(void) { %s(); }\n' \
		"$long" "$long" >long.c
	cc -g -O1 -o long long.c
	same_answer ./long
	[[ $verdict == 'leaks 99 B in 1 block, from fff'*'... (long.c:3)' ]]
	[ "${#verdict}" -lt 300 ]
}

# bats test_tags=full
@test "answer: who attaches reads that older blocks were not seen, and who grows" {
	start "$T/grow" 1000000 1
	"$HEAPTAP" attach -q -t 4s -o r.txt -o r.json "$PID"
	verdict=$(jq -r '.processes[0].verdict' r.json)
	[[ $verdict == "no leaks among blocks since the attach (older ones: heaptap scan $PID); grows by "*"iB/min,"*" from keep_one (grow.c:"*"); "*" live in "* ]] ||
		{ echo "$verdict"; return 1; }
	[[ "$(unbroken <r.txt)" == "$verdict grow (pid "* ]]
}

@test "answer: a short program that only grows has no rate of growth in its first line" {
	printf '%s\n' '#include <stdlib.h>' '#include <unistd.h>' 'void *volatile kept[20000];' \
		'int main(void) { for (int i = 0; i < 20000; i++) { kept[i] = malloc(1000); if (i % 200 == 0) usleep(15000); } }' >rises.c
	cc -g -O1 -o rises rises.c
	"$HEAPTAP" run -q -o r.txt -o r.json -- ./rises
	jq -e '.processes[0].verdict | startswith("no leaks; 19.1 MiB live in 20,000 blocks")' r.json || { head -5 r.txt; return 1; }
	# The report says it further down.
	grep -q 'the low-water mark rose from ' r.txt
}

# resident_after LINE [OPTIONS]: a program grows where LINE says; the text of its resident memory is then in $text
resident_after() {
	local line=$1 rss
	shift
	STEPPED=${GROWS:-$T/elsewhere} stepping
	attached "$@" -o r.txt --force "$TARGET"
	step "$line"
	detach
	text=$(json '.processes[0].resident.text')
	rss=$(awk '/^Rss:/ { print $2 * 1024 }' "/proc/$TARGET/smaps_rollup")
	# The parts add up to the change, and the memory is that of smaps within 2 %.
	json -e '.processes[0].resident | .rss - .rss_before == ([.change[]] | add)' >/dev/null
	json -e --argjson rss "$rss" '.processes[0].resident.rss - $rss | fabs < $rss / 50' >/dev/null
	unbroken <r.txt | grep -qF "$text"
	kill "$TARGET"
	wait "$TARGET" || true
}

# json [OPTIONS] FILTER
json() { jq -r "$@" "$report"; }

# bats test_tags=full
@test "answer: growth of an attached process is where it is: blocks, free memory, mappings, threads, shared memory" {
	resident_after "held 40000000"
	[[ $text == 'resident: '*' MiB, '*' MiB more than at the attach: 38.1 MiB in blocks (from elsewhere_holds (elsewhere.c:'*'))' ]] || { echo "$text"; return 1; }
	[[ $(json '.processes[0].verdict') != *'in no block'* ]]
	resident_after "freed 40000000"
	[[ $text == *' more than at the attach: 38.'*' MiB free in the allocator; malloc_trim(0) gives free pages back'* ]] || { echo "$text"; return 1; }
	resident_after "mapped 40000000"
	[[ $text == *' more than at the attach: 38.'*' MiB mapped by the program itself; --mmap names who maps memory' ]] || { echo "$text"; return 1; }
	[[ $(json '.processes[0].verdict') == "no leaks among blocks "*"; grew by 38."*" MiB in no block, most of it mapped by the program itself; nothing "* ]]
	resident_after "mapped 40000000" --mmap
	[[ $text == *' more than at the attach: 38.'*' MiB in blocks (from elsewhere_maps (elsewhere.c:'*'))' ]] || { echo "$text"; return 1; }
	resident_after "raw 40000000"
	[[ $text == *' more than at the attach: 38.'*' MiB mapped by the program itself'* ]] || { echo "$text"; return 1; }
	resident_after "raw 40000000" --mmap
	[[ $text == *' more than at the attach: 38.'*' MiB in blocks (from elsewhere_maps_raw (elsewhere.c:'*'))' ]] || { echo "$text"; return 1; }
	resident_after "brk 40000000"
	[[ $text == *' more than at the attach: 38.'*' MiB mapped by the program itself; --mmap names who maps memory' ]] || { echo "$text"; return 1; }
	resident_after "brk 40000000" --mmap
	[[ $text == *' more than at the attach: 38.'*' MiB in blocks (from elsewhere_sbrks (elsewhere.c:'*'))' ]] || { echo "$text"; return 1; }
	resident_after "shared 40000000"
	[[ $text == *' more than at the attach: 38.'*' MiB in shared memory' ]] || { echo "$text"; return 1; }
	resident_after "threads 90"
	[[ $text == *' in stacks of ended threads (90 of them, not joined, from elsewhere_starts (elsewhere.c:'*')), '* ]] || { echo "$text"; return 1; }
}

@test "answer: memory that heaptap adds to a program by inline is not resident in shared memory" {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source knows x86_64 only"
	spinning
	attached --no-scan --backend inline "$TARGET"
	wait_for has_many
	detach
	json -e '.processes[0].resident.change.shared == 0' || { json .processes[0].resident; return 1; }
}

# bats test_tags=full
@test "answer: mappings without a page are not resident in blocks, and free memory is" {
	resident_after "reserved 40000000" --mmap
	[[ $text == *' more than at the attach: 38.'*' MiB free in the allocator; malloc_trim'* ]] || { echo "$text"; return 1; }
}

# bats test_tags=full
@test "answer: mappings of which few pages exist count by these pages, also where they join older ones" {
	gcc -O1 -g -fno-builtin -o sparse -xc - <<<'#include <stdio.h>
		#include <sys/mman.h>
		static void maps(int n) {
			while (n-- > 0) *(char *)mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1; }
		int main(void) {
			char line[64];
			maps(1000);
			for (puts("ready"), fflush(stdout); fgets(line, 64, stdin); puts("ok"), fflush(stdout)) maps(2000); }'
	GROWS=./sparse resident_after "go" --mmap
	json -e '.processes[0].resident.change | (.mapped | fabs) < 300000 and (.blocks - 2000 * 4096 | fabs) < 300000' >/dev/null || { echo "$text"; return 1; }
}

# bats test_tags=full
@test "answer: what a program allocates before its probes are in place is not mapped by itself" {
	start "$T/swell" 20000 1
	"$HEAPTAP" attach -q -t 1s --no-scan -o r.json "$PID"
	jq -e '.processes[0].resident.change | .blocks > 1000000 and (.mapped | fabs) < 1000000' r.json
}

# bats test_tags=full
@test "answer: a variable that holds 100,000 blocks owns all of them" {
	printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' '#include <unistd.h>' 'void *volatile table[100000];' \
		'int main(void) { for (int i = 0; i < 100000; i++) table[i] = malloc(9); puts("ready"); fflush(stdout); pause(); }' >many.c
	gcc -g -O1 -fno-builtin -o many many.c
	start bash -c 'exec ./many >out'
	wait_for grep -qs ready out
	"$HEAPTAP" scan -q -o r.json "$PID"
	jq -e '.owners[0] | .kind == "data" and .held.blocks == 100000' r.json
}

@test "answer: a function that calls itself, from one place or two on a line, takes two lines, with -v all" {
	printf '%s\n' '#include <stdlib.h>' 'void *volatile keep;' \
		'__attribute__((noinline)) int rec(int n) { return n ? n & 1 ? rec(n - 1) + 1 : rec(n - 1) + 2 : !(keep = malloc(100)); }' \
		'int main(void) { return rec(50) & 128; }' >rec.c
	gcc -g -O1 -fno-optimize-sibling-calls -fno-builtin -o rec rec.c
	"$HEAPTAP" run -q --no-scan -o r.txt -- ./rec
	[ "$(grep -c ' rec at ' r.txt)" = 1 ]
	grep -qx '        ... and 50 times more' r.txt
	"$HEAPTAP" run -q --no-scan -v --force -o r.txt -- ./rec
	[ "$(grep -c ' rec at ' r.txt)" = 51 ]
	# The other outputs fold it, too, and its name stands once among callers.
	sed -i 's/!(keep = malloc(100))/((keep = malloc(100)), (keep = 0), 0)/' rec.c
	gcc -g -O1 -fno-optimize-sibling-calls -fno-builtin -o rec rec.c
	"$HEAPTAP" run -q --force -w r.heaptap -o r.junit.xml -o r.github -o r.sarif -- ./rec
	"$HEAPTAP" console -q -x report r.heaptap >console.txt
	[ "$(grep -c '    rec at ' r.junit.xml) $(grep -o '    rec at ' r.github | wc -l) $(grep -c ' rec at ' console.txt)" = '1 1 1' ]
	grep -q '    \.\.\. and 50 times more' r.junit.xml
	grep -q 'title=definite leak in rec < main,' r.github
	[[ $(jq -r '.runs[0].results[0].message.text' r.sarif) == *' by malloc in rec < main' ]]
}

@test "answer: the growth of an attached process that ends is that of its end" {
	with_bpf_only "a process that calls _exit() is waited for by BPF"
	STEPPED=$T/elsewhere stepping
	attached -o r.txt "$TARGET"
	step "mapped 40000000"
	exec {STEP[1]}>&-
	ended "$TAP" 0
	[[ $(json '.processes[0].verdict') == "no leaks among blocks since the attach; grew by 38."*" MiB in no block, most of it mapped by the program itself; "* ]]
	[[ $(json '.processes[0].resident.text') == *' more than at the attach: 38.'*' MiB mapped by the program itself; --mmap names who maps memory' ]]
}

@test "answer: a program that heaptap starts has a resident line, too" {
	start "$HEAPTAP" run -q --stop-after 50 --no-scan -o r.json -- "$T/swell" 1000000 1
	wait_for jq -e . r.json
	kill "$(jq -r '.processes[0].pid' r.json)"
	jq -e '.processes[0].resident | .rss_before == 0 and .change.blocks > 1000000' r.json
	[[ $(jq -r '.processes[0].resident.text' r.json) == 'resident: '*' MiB: '*' MiB in blocks (from swell_forgets (swell.c:'*'))'* ]]
}

# bats test_tags=full
@test "answer: --fail-on definite of attach judges blocks from before it, unless --older-blocks no" {
	kinds
	built
	run -1 --separate-stderr "$HEAPTAP" attach -q --max-pause 60s -t 1s -o r.txt --fail-on definite "$TARGET"
	[[ $stderr == "heaptap: attach: FAILED: PID $TARGET: leaks "*" blocks, and with them "*", older blocks included (--fail-on definite; heaptap scan $TARGET shows them)" ]]
	untouched "$TARGET"
	run -9 "$HEAPTAP" attach -q --force --max-pause 60s -t 1s -o r.txt --fail-on definite:100 --error-exitcode 9 "$TARGET"
	run -0 "$HEAPTAP" attach -q --force --max-pause 60s -t 1s -o r.txt --fail-on definite:1G "$TARGET"
	run -0 "$HEAPTAP" attach -q --force --max-pause 60s -t 1s -o r.txt --fail-on definite --older-blocks no "$TARGET"
	start "$T/idle"
	run -0 "$HEAPTAP" attach -q --force --max-pause 60s -t 1s -o r.txt --fail-on definite "$PID"
}

# bats test_tags=full
@test "answer: --wrappers lists what was taken for a wrapper, and takes more names" {
	printf '%s\n' '#include <stdlib.h>' 'void *volatile p;' \
		'__attribute__((noipa)) void *obtain(int n) { void *q = malloc(n); __asm__("" : "+r"(q)); return q; }' \
		'__attribute__((noipa)) void *my_malloc(int n) { void *q = malloc(n); __asm__("" : "+r"(q)); return q; }' \
		'__attribute__((noipa)) void one(void) { p = obtain(100); p = 0; }' \
		'__attribute__((noipa)) void two(void) { p = my_malloc(10); p = 0; }' \
		'__attribute__((noipa)) void three(void) { p = my_malloc(10); p = 0; }' \
		'int main(void) { one(); two(); three(); }' >wrap.c
	gcc -g -O1 -fno-optimize-sibling-calls -o wrap wrap.c
	"$HEAPTAP" run -q --wrappers list -o r.txt -o r.json -- ./wrap
	[ "$(jq -c '.processes[0].wrappers' r.json)" = '["my_malloc"]' ]
	grep -q '^  wrappers    my_malloc$' r.txt
	jq -e '.processes[0].verdict | endswith("from obtain (wrap.c:3)")' r.json
	"$HEAPTAP" run -q --force --wrappers pool_get,obtain -o r.txt -o r.json -- ./wrap
	[ "$(jq -c '.processes[0].wrappers | sort' r.json)" = '["my_malloc","obtain"]' ]
	jq -e '.processes[0].verdict | endswith("from one (wrap.c:5)")' r.json
	"$HEAPTAP" run -q --force -o r.txt -- ./wrap
	fails grep -q '^  wrappers' r.txt
}

@test "answer: diff begins with what changed and the place, --fail-on sets the status, and unmatched builds are said" {
	printf '%s\n' '#include <stdlib.h>' 'void *volatile p;' \
		'__attribute__((noinline)) void lose(int n) { while (n--) { p = malloc(100); p = 0; } }' \
		'__attribute__((noinline)) void hold(int n) { while (n--) { void **q = malloc(1000); *q = (void *)p; p = q; } }' \
		'int main(int c, char **v) { lose(atoi(v[1])); hold(atoi(v[2])); }' >work.c
	gcc -g -O1 -o work work.c
	"$HEAPTAP" run -q -o a.json -- ./work 1 5
	"$HEAPTAP" run -q -o b.json -- ./work 4 5
	"$HEAPTAP" run -q -o c.json -- ./work 1 500
	[ "$("$HEAPTAP" diff a.json b.json | head -1)" = "leaks 300 B more in 3 more blocks, from lose (work.c:3); holds 300 B more, from lose (work.c:3)" ]
	[ "$("$HEAPTAP" diff a.json c.json | head -1)" = "leaks as much as before; holds 483.4 KiB more, from hold (work.c:4)" ]
	"$HEAPTAP" diff a.json c.json | grep -q '^#1 .* by malloc from hold (work.c:4)$'
	"$HEAPTAP" diff --json a.json c.json | jq -e '.callers[0].place == "hold (work.c:4)"'
	run -1 --separate-stderr "$HEAPTAP" diff --fail-on leaks a.json b.json
	[ "$stderr" = "heaptap: warning: diff: failed: more is lost (--fail-on leaks)" ]
	run -9 "$HEAPTAP" diff --fail-on leaks --error-exitcode 9 a.json b.json
	run -0 "$HEAPTAP" diff --fail-on leaks a.json c.json
	run -0 "$HEAPTAP" diff --fail-on leaks b.json a.json
	run -0 "$HEAPTAP" diff --fail-on definite:1K a.json b.json
	run -1 "$HEAPTAP" diff --fail-on growth:64K a.json c.json
	run -1 "$HEAPTAP" diff --fail-on growth:50% a.json c.json
	run -0 "$HEAPTAP" diff --fail-on growth:64K a.json b.json
	run -2 "$HEAPTAP" diff --fail-on errors a.json b.json
	"$HEAPTAP" run -q --no-scan -o n.json -- ./work 1 5
	run -6 "$HEAPTAP" diff --fail-on leaks a.json n.json
	gcc -s -O0 -o bare0 work.c
	gcc -s -O1 -o bare1 work.c
	"$HEAPTAP" run -q -o bare0.json -- ./bare0 1 5
	"$HEAPTAP" run -q -o bare1.json -- ./bare1 1 5
	"$HEAPTAP" diff bare0.json bare1.json | grep -q '^callers cannot be matched: 2 of the first report and 2 of the second are code without symbols'
	"$HEAPTAP" diff bare0.json a.json | grep -q '^callers cannot be matched: 2 of the first report and 0 of the second are code without symbols'
	run -0 "$HEAPTAP" diff a.json b.json
	[[ $output != *'cannot be matched'* ]]
}

# bats test_tags=full
@test "answer: compiled code of node is named by its perf map, in all outputs" {
	command -v node >/dev/null || skip "no node here: code that it compiles is not tried"
	printf '%s\n' 'const held = [];' \
		'function rememberBuffers(n) { for (let i = 0; i < n; i++) held.push(Buffer.allocUnsafeSlow(5000 + i)); }' \
		'for (let i = 0; i < 300; i++) rememberBuffers(20);' >a.js
	"$HEAPTAP" run -q --no-scan -o r.json -o r.folded -- node --perf-basic-prof --interpreted-frames-native-stack a.js
	rm -f "/tmp/perf-$(jq '.processes[0].pid' r.json).map"
	jq -e '[.processes[0].stacks[] | select(.place == "rememberBuffers (a.js:2)")] | length > 0' r.json
	jq -e --arg f "$PWD/a.js" '[.processes[0].stacks[].frames[] | select(.function == "rememberBuffers" and .file == $f and .line == 2)] | length > 0' r.json
	jq -e '.functions | any(.name == "rememberBuffers" and .language == "javascript") and any(.language == "native")' r.json
	grep -q ';rememberBuffers;' r.folded
}

@test "answer: a wrong release comes first, in all outputs, and has its place" {
	printf '%s\n' '#include <stdlib.h>' '__attribute__((noinline)) static void release(int *p) { delete p; }' \
		'int main() { release(new int[9]); ::operator delete(malloc(9)); }' >wrong.cc
	g++ -g -O1 -w -o wrong wrong.cc
	same_answer ./wrong
	[[ $verdict == "2 mismatched releases, first in release (wrong.cc:2); no leaks; "* ]] || { echo "$verdict"; return 1; }
	run -1 --separate-stderr "$HEAPTAP" run -q -o r2.txt --error-exitcode 1 --fail-on errors -- ./wrong
	[ "$stderr" = "heaptap: run: FAILED: 2 wrong releases (--fail-on errors)" ]
}

@test "answer: --fail-on leaks is definite; stacks that --depth cuts name it" {
	run -99 --separate-stderr "$HEAPTAP" run -q --depth 1 -o r.txt --fail-on leaks -- "$T/leak"
	[[ $stderr == 'heaptap: run: FAILED: '*' (--fail-on definite)'* ]]
	unbroken <r.txt | grep -q ' cut for [0-9,]* ([0-9.]* %) at the depth that was asked for: --depth 127 has more'
	run -0 "$HEAPTAP" run -q --force -o r.txt --fail-on leaks -- "$T/step"
}

@test "answer: --sort peak and temporary have their answer in front, and their callers first" {
	printf '%s\n' '#include <stdlib.h>' 'void *volatile p;' \
		'__attribute__((noinline)) void peaks(void) { p = malloc(1 << 20); free(p); }' \
		'__attribute__((noinline)) void churns(int n) { while (n--) { p = malloc(9); free(p); } }' \
		'int main(void) { peaks(); churns(98); p = malloc(40); p = 0; }' >work.c
	gcc -g -O1 -o work work.c
	"$HEAPTAP" run -q --force -s peak -o r.txt -o r.json -- ./work
	[ "$(jq -r '.processes[0].verdict' r.json)" = "peak 1.00 MiB, from peaks (work.c:3); leaks 40 B in 1 block, from main (work.c:5)" ]
	[ "$(grep -m 1 -A 1 '^#1' r.txt | tr -s ' \n' ' ' | cut -c 1-29)" = "#1 1.00 MiB at the peak, 1.00" ]
	"$HEAPTAP" run -q --force -s temporary -o r.txt -o r.json -- ./work
	[ "$(jq -r '.processes[0].verdict' r.json)" = "99.0 % of 100 blocks are temporary, most of them from churns (work.c:4); leaks 40 B in 1 block, from main (work.c:5)" ]
	grep -m 1 '^#' r.txt | grep -q '^#1   98 temporary'
}

@test "answer: on a screen callers of one line are one, and its stack ends at main" {
	printf '%s\n' '#include <stdlib.h>' 'void *volatile p;' \
		'__attribute__((noinline)) void lose(void) { p = malloc(7); p = 0; p = malloc(7); p = 0; p = malloc(7); p = 0; }' \
		'int main(void) { lose(); }' >work.c
	gcc -g -O0 -o work work.c
	script -qec "stty cols 80; '$HEAPTAP' run --color never ./work" /dev/null </dev/null 2>&1 | as_seen >shown
	grep -qx '1 caller with leaks' shown
	grep -qx '#1   21 B leaked in 3 blocks, by malloc' shown
	grep -qx ' *lose (work.c:3) < main' shown
}

# bats test_tags=full
@test "answer: a census and a diff fit a screen, and lost blocks of one kind are one line" {
	kinds
	built
	script -qec "stty cols 60; '$HEAPTAP' scan --color never $TARGET" /dev/null </dev/null 2>&1 | as_seen >shown
	[ "$(grep -c -E '^(Sizes|Arenas|Verdicts)' shown)" -eq 0 ]
	grep -q 'More rows and tables' shown
	"$HEAPTAP" scan "$TARGET" >piped
	grep -q '^Sizes of live blocks' piped
	[ "$(wc -l <shown)" -lt "$(wc -l <piped)" ]
	# A long one has the answer at its end again.
	script -qec "stty cols 80; '$HEAPTAP' scan -v --color never $TARGET" /dev/null </dev/null 2>&1 | as_seen >long
	[ "$(wc -l <long)" -gt 24 ]
	[ "$(sed -n '/^$/h;/^$/!H;${x;p}' long | unbroken)" = " $(sed -n '/^leaks/,/^$/p' long | sed '/^$/q' | unbroken)" ] || { cat long; return 1; }
	[ "$(grep -c '^leaks ' piped)" = 1 ]
	"$HEAPTAP" run -q -o a.json -- "$T/step"
	"$HEAPTAP" run -q -o b.json -- "$T/leak_kinds"
	script -qec "stty cols 80; '$HEAPTAP' diff a.json b.json" /dev/null </dev/null 2>&1 | as_seen >shown
	[ "$(awk '{ n = length($0); if (n > most) most = n } END { print most }' shown)" -le 80 ]
	[ "$(grep -c '^#' shown)" -eq 3 ]
	grep -q 'All callers with their stacks: -n 0' shown
	"$HEAPTAP" diff a.json b.json | grep -q '^        main$'
}

# The calls that were seen do not say what it holds: the books of its allocator do, or nobody does.
@test "answer: a program that gets rid of the code of heaptap is judged by its books, or not at all, and says why (E5)" {
	local rounds why="its memory is limited (RLIMIT_AS or RLIMIT_DATA), so that heaptap took its code out of it, and later calls were not seen: --backend bpf sees them"
	"$HEAPTAP" run -q --backend inline -o r.txt -o r.json -o r.html -w r.heaptap -- "$T/cramped" 2>err
	grep -q 'the code is taken out of it' err
	jq -e '.processes[0] | .scan.books.definite.blocks == 3 and
		(.verdict | test("^leaks [0-9]+ B in 3 blocks by the allocator.s books$"))' r.json
	[[ "$(unbroken <r.txt)" == "leaks "*" by the allocator's books not exact: later calls were not seen cramped (pid "* ]]
	fails grep -q 'Nothing is live' r.txt
	[ "$("$HEAPTAP" report -q r.heaptap | unbroken | cut -d ';' -f 1 | sed 's/ not exact.*//')" = "no leak verdict: $why" ]
	"$HEAPTAP" run -q --backend inline --no-scan --force -o r.json -- "$T/cramped" 2>err
	[ "$(jq -r '.processes[0].verdict' r.json)" = "no leak verdict: $why" ]
	# With few calls it ends before the code is out of it.
	for rounds in 100 5000000; do
		"$HEAPTAP" run -q --backend inline --force -o r.json -- "$T/twins" "$rounds" 2>err
		jq -e '.processes[0].verdict | test("^no leak verdict: a thread of it has the thread pointer of another, so that heaptap")' r.json
	done
}
