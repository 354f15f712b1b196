#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The answer while programs run: reports, the page, metrics, top and system name one function of the program's own code.

load ../lib/common
load ../lib/screen

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	cd "$BATS_TEST_TMPDIR" || return 1
	STARTED=()
	declare -gA places=()
}

teardown() {
	end_screen
	end_started
}

# loses PLACE COMMAND...: start a program that loses memory in PLACE again and again
loses() {
	local place=$1
	shift
	start "$@"
	places[$PID]=$place
}

# built_from COMPILER NAME [FLAG...]: of the program on standard input; forever() calls f all the time
built_from() {
	local name=$2 end=c
	[ "$1" = gcc ] || end=cc
	{
		printf '%s\n' '#include <stdlib.h>' '#include <unistd.h>' 'static void *volatile p;' '#define own __attribute__((noipa))'
		echo '#define forever(f) int main(void) { for (;;) { f(900); usleep(20000); } }'
		cat
	} >"$name.$end"
	"$1" -g -O1 -fno-builtin -fno-optimize-sibling-calls -w -o "$name" "$name.$end" "${@:3}"
}

# ten_losers: programs in C, C++, Rust, Python, and of two languages, which leak; their places are in $places, by PID
ten_losers() {
	local python
	built_from gcc plain <<<'own void lose_plain(int n) { p = malloc(n); p = 0; } forever(lose_plain)'
	loses lose_plain ./plain
	built_from gcc wrapped <<<'own void *xmalloc(int n) { void *q = malloc(n); __asm__("" : "+r"(q)); return q; }
		own void lose_wrapped(int n) { p = xmalloc(n); p = 0; } forever(lose_wrapped)'
	loses lose_wrapped ./wrapped
	built_from gcc copied <<<'#include <string.h>
		own void lose_copy(int n) { char s[100]; memset(s, 65, 99); s[99] = 0; p = strdup(s); p = 0; } forever(lose_copy)'
	loses lose_copy ./copied
	built_from gcc libplug.so -shared -fPIC <<<'own void lose_in_library(int n) { p = calloc(1, n); p = 0; }'
	built_from gcc plugged -L. -l:libplug.so "-Wl,-rpath,$PWD" <<<'void lose_in_library(int n); forever(lose_in_library)'
	loses lose_in_library ./plugged
	built_from gcc named <<<'own void lose_unnamed(int n) { p = malloc(n); p = 0; } forever(lose_unnamed)'
	strip -o bare named
	loses bare+0x ./bare
	built_from g++ vectors <<<'#include <vector>
		own void lose_vector(int n) { auto *v = new std::vector<int>(n); p = v; p = 0; } forever(lose_vector)'
	loses lose_vector ./vectors
	built_from g++ strings <<<'#include <map>
		#include <string>
		struct Session { std::map<int, std::string> names; };
		own void lose_session(int n) { auto *s = new Session; s->names[1] = std::string(n, 1); p = s; p = 0; } forever(lose_session)'
	loses lose_session ./strings
	built_from g++ mixed -L. -l:libplug.so "-Wl,-rpath,$PWD" <<<'extern "C" void lose_in_library(int n);
		own void run_job(int n) { std::size_t size = n; auto *q = new char[size * 9]; p = q; p = 0; lose_in_library(1); } forever(run_job)'
	loses run_job ./mixed
	if command -v rustc >/dev/null; then
		printf '%s\n' 'fn lose_buffer(n: usize) { std::mem::forget(std::hint::black_box(vec![1u8; n])); }' \
			'fn main() { loop { lose_buffer(900); std::thread::sleep(std::time::Duration::from_millis(20)); } }' >rusty.rs
		rustc -g -O rusty.rs
	else
		built_from gcc rusty <<<'own void *alloc(size_t n) __asm__("_ZN5alloc5alloc15exchange_malloc17h0123456789abcdefE");
			own void *alloc(size_t n) { void *q = malloc(n); __asm__("" : "+r"(q)); return q; }
			own void lose_buffer(int n) __asm__("_ZN5rusty11lose_buffer17h0123456789abcdefE");
			own void lose_buffer(int n) { p = alloc(n); p = 0; } forever(lose_buffer)'
	fi
	loses rusty::lose_buffer ./rusty
	python=$(python3 -c 'import sys; print(sys.executable)')
	loses lose_in_library "$python" -c 'import ctypes, time
lose = ctypes.CDLL("./libplug.so").lose_in_library
while True: lose(900); time.sleep(0.02)'
	[ "${#places[@]}" = 10 ]
}

# all_name COMMAND: with PID and the place of each program
all_name() {
	local pid
	for pid in "${!places[@]}"; do "$1" "$pid" "${places[$pid]}" || return 1; done
}

# of_process PID FILTER FILE
of_process() { command jq -r ".processes[] | select(.pid == $1) | $2" "$3"; }

metric_names() { grep -E "^heaptap_caller_live_bytes\{.*pid=\"$1\"" page | grep -qF "caller=\"$2"; }

page_names() {
	command jq -e ".processes[] | select(.pid == $1) | .verdict | startswith(\"leaks \")" data >/dev/null &&
		[[ $(of_process "$1" .verdict data) == *"from $2"* ]]
}

live_page_names() {
	curl -s "$url/metrics" >page
	curl -s "$url/data?pid=$1" >data
	metric_names "$1" "$2" && page_names "$1" "$2"
}

report_names() {
	local verdict
	verdict=$(of_process "$1" .verdict r.json)
	[[ $verdict == "leaks "*" from $2"* ]] || { echo "$1: $verdict, not from $2"; return 1; }
	# The text has the same sentence, the page and the files for CI the same place.
	unbroken <r.txt | grep -qF "$verdict "
	grep -qF "\"$verdict\"" r.html
	command jq -e --arg v "$verdict" 'any(.runs[0].properties.verdicts[]; .text == $v)' r.sarif >/dev/null
	xmllint --xpath '//property[@name="verdict"]/@value' r.junit.xml | grep -qF "$(sed 's/</\&lt;/g; s/>/\&gt;/g' <<<"$verdict")"
	grep -F "$verdict" r.github | grep -q '^::notice title=heaptap::'
}

system_names() {
	[[ $(tail -n 1 rows | of_process "$1" '.zoom | .finding + " " + .function' - 2>/dev/null) == "leaks $2"* ]]
}

# On 24 lines of 80 columns the function is what is seen of its row.
top_names() {
	on_screen 80x24 "$HEAPTAP" top --max-pause 60s "$1"
	shows "  $2" || return 1
	screen_now | grep -A 1 CALLER | tail -n 1 | grep -qF "  $2"
	keys q
	left 0
	end_screen
}

# bats test_tags=full
@test "answer: of ten running programs all outputs name one place: reports, the live page, metrics, top, system" {
	local url
	with_tmux
	strings "$HEAPTAP" | grep -q 'libmicrohttpd.so.12 is not there' || skip "built without libmicrohttpd"
	ten_losers
	attached --scan --metrics 0 -o r.txt -o r.json -o r.html -o r.junit.xml -o r.sarif -o r.github "${!places[@]}"
	url=$(sed -n 's,.*metrics: \(http.*\)/metrics$,\1,p' "$err")
	wait_for all_name live_page_names
	detach
	all_name report_names
	start bash -c "exec '$HEAPTAP' system --json -i 1s -n 0 --zoom 10 --max-cost 0% $(printf -- '--pid %s ' "${!places[@]}") >rows"
	TAP=$PID
	wait_for all_name system_names
	detach
	all_name top_names
	on_screen 80x24 "$HEAPTAP" system --max-cost 0% $(printf -- '--pid %s ' "${!places[@]}")
	shows 'lose_'
}
