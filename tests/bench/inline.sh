# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Part of run.sh: what the inline source costs beside heaptrack and beside the untraced program. Elapsed times; runs
# take turns, one round to warm up, the medians of five more.

inline_rounds=${ROUNDS:-5}

declare -A times # by kind of run: ns, one of each round

# in_median KIND: prints it; nothing if a run failed
in_median() {
	local all=(${times[$1]:-})
	[ "${#all[@]}" -eq "$inline_rounds" ] || return 0
	printf '%s\n' "${all[@]}" | sort -n | sed -n "$(((inline_rounds + 1) / 2))p"
}

# in_round KIND NS: remember it; round 0 is the warm-up
in_round() {
	[ "$round" -eq 0 ] || case $2 in '' | *[!0-9]*) ;; *) times[$1]="${times[$1]:-} $2" ;; esac
}

inlined_bare() { pinned "$heaptap" run -q --backend inline --no-check --no-scan -d 0 -o "$tmp/report.json" --force -- "$bench/pair" "$@"; }
inlined() { pinned "$heaptap" run -q --backend inline --no-check --no-scan "${@:2}" -d "$1" -o "$tmp/report.json" --force -- "$bench/pair" -e "${pair[@]}" 2>>"$tmp/log"; }
heaptracked() { (cd "$tmp" && pinned heaptrack -o "$tmp/heaptrack" "$bench/pair" -e "${pair[@]}" 2>>"$tmp/log" | grep -x '[0-9]*' | head -1); }

# elapsed_of COMMAND...: ns; nothing if it fails
elapsed_of() {
	local begin
	begin=$(date +%s%N)
	"$@" >/dev/null 2>>"$tmp/log" || return 0
	echo $(($(date +%s%N) - begin))
}

# in_work NAME COMMAND...: by inline the time of the program, as the report has it, and that of the whole command
in_work() {
	local name=$1 round
	shift
	if ! command -v "$1" >/dev/null; then
		missing "$name by inline / untraced" "1.3 x" "it is not there"
		return
	fi
	progress "inline: $name"
	for ((round = 0; round <= inline_rounds; round++)); do
		in_round "$name" "$(elapsed_of pinned "$@")"
		in_round "$name.whole" "$(elapsed_of pinned "$heaptap" run -q --backend inline --no-check --no-scan -o "$tmp/report.json" --force -- "$@")"
		in_round "$name.inline" "$(jq .duration_ns "$tmp/report.json" 2>>"$tmp/log")"
		[ -z "$has_heaptrack" ] || in_round "$name.heaptrack" "$(elapsed_of pinned heaptrack -o "$tmp/heaptrack" "$@")"
	done
	ratio "$name by inline / untraced" "$(in_median "$name.inline")" "$(in_median "$name")" "1.3 x"
	ratio "the same, heaptap's start and report included" "$(in_median "$name.whole")" "$(in_median "$name")" "-"
	ratio "the same by heaptrack" "$(in_median "$name.heaptrack")" "$(in_median "$name")" "-"
}

# The time for which a program is stopped, which heaptap says itself. Its threads allocate all the time.
in_stops() {
	local round tap
	progress "inline: stops"
	timeout 120 "$bench/pair" -t 8 -n 1000000000 >/dev/null &
	target=$!
	sleep 0.5
	for ((round = 0; round <= inline_rounds; round++)); do
		"$heaptap" attach --backend inline --no-check --no-scan -t 300ms -o "$tmp/report.json" --force "$(pgrep -P "$target" -o pair)" 2>"$tmp/stops" || true
		read -r in_us out_us < <(sed -n 's/.*stopped for \([0-9]*\)\.\([0-9]\) ms to put the code in, and for \([0-9]*\)\.\([0-9]\) ms.*/\1\200000 \3\400000/p' "$tmp/stops") || true
		in_round stop.in "${in_us:-}"
		in_round stop.out "${out_us:-}"
	done
	kill "$target"
	wait "$target" 2>/dev/null || true
	target=
	in_ms_row "8 busy threads are stopped to attach by inline" "$(in_median stop.in)"
	in_ms_row "the same to detach" "$(in_median stop.out)"
}

# in_ms_row WHAT NS
in_ms_row() {
	if [ -n "$2" ]; then row "$1" "$(reading '%.1f ms' "$2 / 1e6")" "20 ms" ""; else missing "$1" "20 ms" "a run failed"; fi
}

# in_pairs KIND: pairs of one kind, whose options are in $pair
in_pairs() {
	in_round "$1.untraced" "$(pinned "$bench/pair" -e "${pair[@]}")"
	in_round "$1.sizes" "$(inlined 0)"
	in_round "$1.inline" "$(inlined 64)"
	[ -z "$has_heaptrack" ] || in_round "$1.heaptrack" "$(heaptracked)"
}

# in_speed KIND COMMAND...: remember what `pair -r` says: thousandths of the fixed work, and the least time of this work
in_speed() {
	local kind=$1 thousandths work
	shift
	read -r thousandths work < <("$@" -r "${pair[@]}" 2>>"$tmp/log") || true
	in_round "$kind" "${thousandths:-}"
	[ -z "${work:-}" ] || { [ -n "$least_work" ] && [ "$least_work" -le "$work" ]; } || least_work=$work
}

in_lost() { jq '[.processes[].lost | .allocs + .frees] | add' "$tmp/report.json" 2>>"$tmp/log" || true; }

# typed COMMAND...: the whole command with all that run does without options, its report as text
typed() { pinned env -u HEAPTAP_NO_CODE "$heaptap" run "$@"; }

# by_others COMMAND...: the same by heaptrack. And: with its report as text.
by_others() { pinned heaptrack -o "$tmp/heaptrack" "$@"; }
printed_by_others() {
	rm -f "$tmp"/heaptrack*
	by_others "$@"
	pinned heaptrack_print -f "$tmp"/heaptrack*
}

# as_nobody COMMAND...: nobody can read the folder of the others
as_nobody() { pinned env -u HEAPTAP_NO_CODE HOME="$tmp/nobody" setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

# typed_rows NAME LIMIT COMMAND...: in turns untraced, as typed, and by heaptrack
typed_rows() {
	local name=$1 limit=$2 round
	shift 2
	if ! command -v "$1" >/dev/null; then
		missing "run as typed, $name: whole command / heaptrack's" "$limit" "it is not there"
		return
	fi
	for ((round = 0; round <= inline_rounds; round++)); do
		progress "typed: $name: round $round of $inline_rounds"
		in_round "$name.alone" "$(elapsed_of pinned "$@")"
		in_round "$name.typed" "$(elapsed_of typed -- "$@")"
		in_round "$name.others" "$(elapsed_of by_others "$@")"
		in_round "$name.printed" "$(elapsed_of printed_by_others "$@")"
	done
	ratio "run as typed, $name: whole command / heaptrack's" "$(in_median "$name.typed")" "$(in_median "$name.others")" "$limit"
	ratio "the same / heaptrack's with heaptrack_print" "$(in_median "$name.typed")" "$(in_median "$name.printed")" "-"
	ratio "the same / untraced" "$(in_median "$name.typed")" "$(in_median "$name.alone")" "-"
}

# typed_by_anyone: 2 million events, without root
typed_by_anyone() {
	local round
	mkdir -p "$tmp/nobody"
	cp "$heaptap" "$bench/pair" "$tmp/nobody"
	chown -R 65534:65534 "$tmp/nobody"
	chmod 711 "$tmp"
	for ((round = 0; round <= inline_rounds; round++)); do
		progress "typed without root: round $round of $inline_rounds"
		in_round anyone.typed "$(elapsed_of as_nobody "$tmp/nobody/heaptap" run -- "$tmp/nobody/pair" -n 1000000)"
		in_round anyone.others "$(elapsed_of as_nobody heaptrack -o "$tmp/nobody/heaptrack" "$tmp/nobody/pair" -n 1000000)"
	done
	ratio "run as typed without root, 2 million events: whole command / heaptrack's" "$(in_median anyone.typed)" \
		"$(in_median anyone.others)" "1.5 x"
}

bench_typed() {
	typed_rows "2 million events" "0.8 x" "$bench/pair" -n 1000000
	typed_rows perl "0.8 x" perl -e 'my %h; $h{$_ % 5000} = "x" x ($_ % 97) for 1..2000000'
	typed_rows python3 "0.8 x" /usr/bin/python3 -c 'import json, decimal
for i in range(1000): json.loads(json.dumps({str(k): [k, str(k), str(decimal.Decimal(k) / 7)] for k in range(50)}))'
	typed_rows sqlite3 "0.8 x" sqlite3 :memory: "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<200000)
		insert into t select x, hex(randomblob(20)) from c; create index i on t(b); select sum(a) from t where b > 'A' group by substr(b,1,2);"
	typed_rows "clang on one file" "1.0 x" clang -O2 -I "$PWD" -D_GNU_SOURCE -c -o "$tmp/unit.o" user/stream/stream_read.c
	typed_by_anyone
}

bench_inline() {
	local round pair has_heaptrack lost=0 more sizes least_work= traced bare
	has_heaptrack=$(command -v heaptrack || true)
	for ((round = 0; round <= inline_rounds; round++)); do
		progress "inline: round $round of $inline_rounds"
		pair=(-n 1000000) && in_pairs one && in_speed speed.untraced pinned "$bench/pair" && in_speed speed.sizes inlined_bare
		pair=(-n 1000000 -2) && in_pairs two
		pair=(-n 200000 -t 8) && in_pairs eight
		more=$(in_lost)
		[ "$more" != 0 ] && lost=$more
	done
	ratio "call depth 20, full stacks, inline / heaptrack" "$(in_median one.inline)" "$(in_median one.heaptrack)" "0.3 x"
	sizes=$(in_median one.sizes)
	bare=$(in_median speed.untraced)
	traced=$(in_median speed.sizes)
	row "sizes only, inline - untraced, at the CPU's full speed" "$(reading '%.0f ns' "(${traced:-0} - ${bare:-0}) * ${least_work:-0} / 1000")" "40 ns" "${traced} - ${bare} thousandths of ${least_work} ns"
	row "the same as it took, whatever the CPU's speed was" "$(reading '%.0f ns' "${sizes:-0} - $(in_median one.untraced)")" "-" "$sizes - $(in_median one.untraced) ns"
	ratio "two paths that take turns, inline / heaptrack" "$(in_median two.inline)" "$(in_median two.heaptrack)" "0.6 x"
	ratio "8 threads at full speed on 2 CPUs, inline / heaptrack" "$(in_median eight.inline)" "$(in_median eight.heaptrack)" "0.3 x"
	row "events lost by inline in these runs" "${lost:--}" "0" ""
	in_stops
}

bench_inline_work() {
	local has_heaptrack
	has_heaptrack=$(command -v heaptrack || true)
	in_work python3 /usr/bin/python3 -c 'import json, decimal
for i in range(4000): json.loads(json.dumps({str(k): [k, str(k), str(decimal.Decimal(k) / 7)] for k in range(50)}))'
	in_work perl perl -e 'my %h; $h{$_ % 5000} = "x" x ($_ % 97) for 1..4000000'
	in_work sqlite3 sqlite3 :memory: "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<400000)
		insert into t select x, hex(randomblob(20)) from c; create index i on t(b); select sum(a) from t where b > 'A' group by substr(b,1,2);"
	in_work clang clang -O2 -I "$PWD" -D_GNU_SOURCE -c -o "$tmp/unit.o" user/stream/stream_read.c
}
