#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# make bench: one table of what heaptap costs, next to what it should cost. Ratios are of runs that took turns.
# Usage: run.sh BUILD-FOLDER [GROUP...]; a group is the name of a function bench_GROUP, and all are run if none is named.
# It judges nothing: other load on the machine shows in every row.
set -euo pipefail

out=$(realpath "$1") # some programs run in another directory
shift
heaptap=$out/heaptap
bench=$out/tests/bench
table=$out/bench.txt
tmp=$(mktemp -d)
target=
trap 'rm -rf "$tmp"; [ -z "$target" ] || kill "$target" 2>/dev/null || true' EXIT
# As the issues have it, whatever the machine has; and the cache of tables must be ours.
cpus=0,1
[ "$(nproc)" -ge 2 ] || cpus=0
export XDG_CACHE_HOME=$tmp/cache
mkdir -m 700 "$XDG_CACHE_HOME"
# By BPF, where a row does not say otherwise.
export HEAPTAP_NO_CODE=1

[ "$(id -u)" -eq 0 ] || { echo "bench: not root: tracing: type: sudo make bench" >&2; exit 1; }

pinned() { timeout 120 taskset -c "$cpus" "$@"; }
progress() { [ ! -t 2 ] || printf '\r\033[K%s' "$*" >&2; }
reading() { awk "BEGIN { printf \"$1\", $2 }"; }

# row WHAT MEASURED LIMIT NOTE
row() { printf '%-66s %12s  %10s  %s\n' "$@" >>"$table"; }
missing() { row "$1" "-" "$2" "not measured: $3"; }

# ratio WHAT A B LIMIT: row of a / b, which are ns
ratio() {
	if [ -z "${2:-}" ] || [ -z "${3:-}" ]; then
		missing "$1" "$4" "${5:-a run failed}"
	else
		row "$1" "$(reading '%.2f x' "$2 / $3")" "$4" "$2 / $3 ns"
	fi
}

declare -A ns # by kind of run: CPU time of one pair, the least of the rounds

# keep KIND NS: remember the least
keep() {
	case $2 in '' | *[!0-9]*) return ;; esac
	[ -n "${ns[$1]:-}" ] && [ "${ns[$1]}" -le "$2" ] || ns[$1]=$2
}

# The others take no stacks of releases.
traced() { pinned "$heaptap" run -q "${@:2}" "${check:---no-check}" -d "$1" -o "$tmp/report.json" --force -- "$bench/pair" "${pair[@]}" 2>>"$tmp/log"; }
empty() { pinned "$bench/bench_empty" "$bench/pair" "${pair[@]}" 2>>"$tmp/log"; }
scripted() { pinned bpftrace -c "$bench/pair ${pair[*]}" -e "$1" 2>>"$tmp/log" | grep -x '[0-9]*' | head -1; }

libc=$(ldd "$bench/pair" | awk '/libc\.so/ { print $3 }')
sizes="uprobe:$libc:malloc { @size[tid] = arg0; }
uretprobe:$libc:malloc /@size[tid]/ { @live[retval] = @size[tid]; delete(@size[tid]); }
uprobe:$libc:free { delete(@live[arg0]); } END { clear(@size); clear(@live); }"
stacks="uprobe:$libc:malloc { @size[tid] = arg0; }
uretprobe:$libc:malloc /@size[tid]/ { @live[retval] = @size[tid]; @who[retval] = ustack; delete(@size[tid]); }
uprobe:$libc:free { delete(@live[arg0]); delete(@who[arg0]); } END { clear(@size); clear(@live); clear(@who); }"

bench_pairs() {
	local round
	for round in 1 2 3; do
		progress "pairs: round $round of 3"
		pair=(-n 2000000)
		keep untraced "$(pinned "$bench/pair" "${pair[@]}")"
		pair=(-n 300000)
		keep empty "$(empty)"
		keep counts "$(traced 0)"
		keep full "$(traced 64)"
		keep checked "$(check=--check traced 64)"
		pair=(-n 300000 -2)
		keep empty2 "$(empty)"
		keep full2 "$(traced 64)"
		command -v bpftrace >/dev/null || continue
		[ "$round" -lt 3 ] || continue
		pair=(-n 40000)
		keep sizes "$(scripted "$sizes")"
		keep stacks "$(scripted "$stacks")"
	done
	local why="no bpftrace"
	if command -v bpftrace >/dev/null; then why="bpftrace failed"; fi
	row "malloc/free pair, untraced" "${ns[untraced]:--} ns" "" ""
	row "malloc/free pair, empty BPF programs where heaptap has its own" "${ns[empty]:--} ns" "" ""
	ratio "the same traced with --depth 0 / empty programs" "${ns[counts]:-}" "${ns[empty]:-}" "1.5 x"
	ratio "the same with --depth 0 / bpftrace, sizes and live addresses" "${ns[counts]:-}" "${ns[sizes]:-}" "0.20 x" "$why"
	ratio "call depth 20, full stacks / empty programs" "${ns[full]:-}" "${ns[empty]:-}" "1.6 x"
	ratio "the same with --check / empty programs" "${ns[checked]:-}" "${ns[empty]:-}" "-"
	ratio "the same, two paths that take turns / empty programs" "${ns[full2]:-}" "${ns[empty2]:-}" "2.5 x"
	ratio "call depth 20, full stacks / bpftrace with ustack" "${ns[full]:-}" "${ns[stacks]:-}" "0.20 x" "$why"
}

# cpu_of COMMAND...: CPU time in ns, with that of all children
cpu_of() {
	local TIMEFORMAT='%U %S'
	{ time "$@" >/dev/null 2>>"$tmp/log"; } 2>&1 | awk '{ printf "%.0f\n", ($1 + $2) * 1e9 }'
}

# pairs_by_ptrace PAIRS [THREADS]
pairs_by_ptrace() {
	pair=(-n "$1" -t "${2:-1}")
	cpu_of traced 64 --backend ptrace --no-scan
}

# All CPU time, that of the tracer too, and what starting costs taken off.
bench_ptrace() {
	local round few many
	for round in 1 2 3; do
		progress "ptrace: round $round of 3"
		keep stop "$(pinned "$bench/bench_ptrace")"
		few=$(pairs_by_ptrace 2000) many=$(pairs_by_ptrace 22000)
		keep ptrace $(((many - few) / 20000))
		few=$(pairs_by_ptrace 500 4) many=$(pairs_by_ptrace 5500 4)
		keep ptrace4 $(((many - few) / 20000))
		pair=(-e -n 20000)
		keep ptrace_elapsed "$(traced 64 --backend ptrace --no-scan)"
	done
	row "bare ptrace stop, registers read and written" "${ns[stop]:--} ns" "" "CPU time"
	ratio "malloc/free pair by ptrace, call depth 20, full stacks / 3 bare stops" "${ns[ptrace]:-}" \
		"$((3 * ${ns[stop]:-0}))" "4 x"
	ratio "the same, elapsed time of the first pairs of run" "${ns[ptrace_elapsed]:-}" "$((3 * ${ns[stop]:-0}))" "1.7 x"
	ratio "CPU time of a pair by ptrace, 4 threads / 3 bare stops" "${ns[ptrace4]:-}" "$((3 * ${ns[stop]:-0}))" "4 x"
}

# lost_row WHAT OPTION...: 8 threads on two CPUs
lost_row() {
	local what=$1
	shift
	pair=(-t 8 -n 100000)
	traced "$@" >/dev/null || true
	jq -r '[.processes[] | .totals.allocs, .lost.allocs + .lost.frees] | @tsv' "$tmp/report.json" >"$tmp/lost" || true
	read -r allocs lost <"$tmp/lost" || true
	row "$what" "${lost:--}" "0" "of ${allocs:-?} pairs"
}

bench_losses() {
	progress "losses"
	lost_row "events lost, 8 threads at full speed on 2 CPUs, --depth 0" 0
	lost_row "the same with full stacks" 64
}

# An interpreter with many modules, allocating now and then.
start_python() {
	python3 -c '
import decimal, hashlib, json, socket, sqlite3, ssl, time, zlib
print("ready", flush=True)
while True:
    time.sleep(0.01); x = [bytearray(2000) for i in range(20)]' >"$tmp/python" &
	target=$!
	for _ in $(seq 100); do
		grep -q ready "$tmp/python" && return
		sleep 0.05
	done
}

bench_attach() {
	local round a=() d=() e=()
	progress "attach"
	start_python
	for round in 1 2 3 4; do
		pinned "$bench/bench_attach" "$heaptap" "$target" >"$tmp/attach" || continue
		read -r in out_ms end <"$tmp/attach"
		if [ "$round" = 1 ]; then
			row "attach to python3, tables not in the cache" "$in ms" "" ""
			continue
		fi
		a+=("$in") d+=("$out_ms") e+=("$end")
	done
	if [ "${#a[@]}" -eq 0 ]; then
		missing "attach to python3, until probes are in" "300 ms" "a run failed"
		return
	fi
	middle() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }
	row "attach to python3, until probes are in" "$(middle "${a[@]}") ms" "300 ms" "of ${#a[@]} times the median"
	row "detach, until probes are out" "$(middle "${d[@]}") ms" "500 ms" "with the report $(middle "${e[@]}") ms"
	"$heaptap" attach -v -t 200ms "$target" 2>&1 | awk '/unwind: .* KiB/ { for (i = 2; i <= NF; i++) if ($i == "KiB") n = $(i - 1) }
		END { print n }' >"$tmp/tables"
	read -r kib <"$tmp/tables" || kib=
	if [ -n "$kib" ]; then
		row "kernel memory for the tables of python3 with its modules" "$(reading '%.1f MiB' "$kib / 1024")" "16 MiB" ""
	else
		missing "kernel memory for the tables of python3 with its modules" "16 MiB" "heaptap -v does not say"
	fi
	kill "$target"
	wait "$target" 2>/dev/null || true
	target=
}

# All of them sleep, and have the C library in memory.
bench_attach_many() {
	local nr=500 pids=() in out end
	progress "attach to $nr processes"
	for _ in $(seq "$nr"); do
		sleep 1000 &
		pids+=($!)
	done
	if "$bench/bench_attach" "$heaptap" "${pids[@]}" >"$tmp/attach"; then
		read -r in out end <"$tmp/attach"
		row "attach to $nr processes, until probes are in" "$in ms" "2000 ms" ""
		row "detach from $nr processes, until probes are out" "$out ms" "2000 ms" "verdicts before; with the reports $end ms"
	else
		missing "attach to $nr processes, until probes are in" "2000 ms" "the run failed"
	fi
	kill "${pids[@]}"
	wait "${pids[@]}" 2>/dev/null || true
}

# beside HOW OPTION...: keeps the pair of a process that is not traced, while another one with its C library is
beside() {
	local how=$1 tracer
	shift
	"$heaptap" attach --no-scan -o "$tmp/report.json" --force "$@" "$target" 2>"$tmp/attached" &
	tracer=$!
	for ((i = 0; i < 600; i++)); do ! grep -q 'attached to' "$tmp/attached" || break; sleep 0.1; done
	if grep -q 'attached to' "$tmp/attached"; then keep "$how" "$(pinned "$bench/pair" "${pair[@]}")"; fi
	kill -INT "$tracer" 2>/dev/null || true
	wait "$tracer" || true
}

# server_run KIND [OPTION...]: ten seconds of a server; keeps its CPU time per request as cpu-KIND, its p99 as p99-KIND
server_run() {
	local kind=$1 cpu p99
	shift
	timeout 120 taskset -c "$cpus" "$bench/server" 10 500 >"$tmp/server" &
	target=$!
	sleep 1
	if [ "$kind" != untraced ]; then
		env -u HEAPTAP_NO_CODE timeout 60 "$heaptap" attach -q --no-scan -t 8s -o "$tmp/report.json" --force "$@" \
			"$(pgrep -P "$target")" 2>>"$tmp/log" || true
	fi
	wait "$target" || true
	target=
	read -r cpu p99 <"$tmp/server" || return 0
	keep "cpu-$kind" "$cpu"
	keep "p99-$kind" "$p99"
}

# From the attach on: the first moments by breakpoints count, too.
bench_server() {
	local round
	for round in 1 2 3; do
		progress "server: round $round of 3"
		server_run untraced
		server_run typed
		[ "$round" -gt 1 ] || server_run bpf --backend bpf
	done
	ratio "attach as typed to a server: CPU per request / untraced" "${ns[cpu-typed]:-}" "${ns[cpu-untraced]:-}" "1.2 x"
	ratio "the same: p99 / untraced" "${ns[p99-typed]:-}" "${ns[p99-untraced]:-}" "2 x"
	ratio "the same by --backend bpf: CPU per request / untraced" "${ns[cpu-bpf]:-}" "${ns[cpu-untraced]:-}" "-"
	redis_rows typed "attach as typed to redis" "1.1 x" ">= 0.9 x" "1.2 x"
}

# With --follow the probes are in all processes of the file, and a filter in the programs chooses.
bench_excluded() {
	local pair=(-n 300000) round
	progress "a process that is not traced"
	sleep 1000 &
	target=$!
	for round in 1 2 3; do
		keep alone "$(pinned "$bench/pair" "${pair[@]}")"
		keep empty "$(empty)"
		beside filtered --follow
		beside private
	done
	ratio "pair of a process that the filter excludes / empty programs" "${ns[filtered]:-}" "${ns[empty]:-}" "1.3 x"
	ratio "pair beside a traced process with links of its own / alone" "${ns[private]:-}" "${ns[alone]:-}" "1.1 x"
	kill "$target"
	wait "$target" 2>/dev/null || true
	target=
}

# memory_row BLOCKS [--no-scan]: the most that heaptap itself had, read until it ends. A leak scan has 24 bytes a block
memory_row() {
	local kib=0 line pid limit
	progress "memory with $1 live blocks"
	timeout 120 "$heaptap" run -q ${2:+"$2"} -o "$tmp/keep.json" --force -- "$bench/keep" "$1" 2>>"$tmp/log" &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		# timeout's child is heaptap
		line=$(awk "/VmHWM/ { print \$2 }" "/proc/$(pgrep -P "$pid" -o heaptap || echo 0)/status" 2>/dev/null) || true
		[ -z "$line" ] || kib=$line
		sleep 0.02
	done
	wait "$pid" || true
	limit=$(reading '%.0f' "40 + $1 * $([ -n "$2" ] && echo 40 || echo 64) / 1048576")
	row "heaptap's memory with $1 live blocks$([ -n "$2" ] || echo ', leak scan too')" "$(reading '%.0f MiB' "$kib / 1024")" "$limit MiB" \
		"$(reading '%.1f' "$kib * 1024 / $1") bytes a block"
}

bench_memory() {
	memory_row 1000000 --no-scan
	memory_row 5000000 --no-scan
	memory_row 5000000 ''
}

bench_books() {
	progress "books"
	pinned "$bench/bench_books" >"$tmp/books" || true
	# Live blocks, events a second while they change.
	awk '$2 == "yes" && ($1 == 100000 || $1 == 1000000 || $1 == 5000000) { print $1, $4, $5 }' "$tmp/books" |
		while read -r live churn bytes; do
			row "replayed events through the books, $live live blocks" "$churn M/s" "$([ "$live" = 100000 ] && echo '>= 8 M/s' || true)" "$bytes bytes a block"
		done
}

# tables_row WHAT LIMIT-MS FILE KIND; KIND: compile or load
tables_row() {
	local ms
	ms=$(awk -v kind="$4" '$0 ~ "ms to " kind && !n++ { print $1 }' "$tmp/cfi")
	if [ -n "$ms" ]; then
		row "$1" "$ms ms" "$2 ms" "$3"
	else
		missing "$1" "$2 ms" "failed on $3"
	fi
}

bench_tables() {
	local big
	progress "tables"
	pinned "$bench/bench_cfi" "$libc" >"$tmp/cfi" || true
	tables_row "unwind tables of libc" 20 "$libc" compile
	big=$(find /usr/lib /usr/local/lib -name '*.so*' -type f -size +80M -printf '%s %p\n' 2>/dev/null | sort -n | awk '{ print $2 }' | head -1)
	if [ -z "$big" ]; then
		missing "unwind tables of a 100 MiB C++ library" "1000 ms" "no library of that size here (libLLVM would do)"
		return
	fi
	pinned "$bench/bench_cfi" "$big" >"$tmp/cfi" || true
	tables_row "unwind tables of a library of $(($(stat -c %s "$big") >> 20)) MiB" 1000 "$(basename "$big")" compile
	tables_row "the same from the cache" 50 "$(basename "$big")" load
}

bench_scan() {
	progress "scan"
	if [ ! -x "$bench/bench_scan" ]; then
		missing "leak scan of 1 GiB in 4 million blocks" ">= 2.5 GiB/s" "not built"
		return
	fi
	pinned "$bench/bench_scan" >"$tmp/scan" || true
	sed -n 's|^pause \([0-9]*\) ms, \([0-9.]*\) GiB scanned.* \([0-9.]*\) GiB/s with the verdicts|\1 \2 \3|p' "$tmp/scan" >"$tmp/scan1"
	if ! read -r pause gib speed <"$tmp/scan1"; then
		missing "leak scan of 1 GiB in 4 million blocks" ">= 2.5 GiB/s" "it failed"
		return
	fi
	row "leak scan of 1 GiB in 4 million blocks" "$speed GiB/s" ">= 2.5" "with the verdicts"
	row "pause of the target in that scan, per GiB" "$(reading '%.0f ms' "$pause / $gib")" "600 ms" ""
	row "memory of that scan per block" "$(awk '/^memory/ { print $2 }' "$tmp/scan") B" "24 B" ""
	pinned "$bench/bench_scan" 4194304 240 random >"$tmp/scan" || true
	row "the same where pointers lead anywhere" "$(awk '/^memory/ { print $2 }' "$tmp/scan") B" "24 B" \
		"$(sed -n 's|.* \([0-9.]*\) GiB/s with the verdicts|\1|p' "$tmp/scan") GiB/s"
	rules_row "CPU time of a scan with the rules of callers and neighbours / without"
	rules_row "the same where blocks touch" touching
	rules_row "the same where pointers lead behind headers" headed
	copy_row "the same pause with --snapshot fork" fork "40 ms"
	copy_row "the same, the target writes 100 MiB/s" "fork write" "80 ms"
	copy_row "the same pause with --snapshot precopy" precopy "40 ms"
	copy_row "the same, the target writes 100 MiB/s" "precopy write" "80 ms"
}

# census_run: a census of $target; prints its milliseconds, and those of the stop
census_run() {
	local start=$EPOCHREALTIME
	pinned "$heaptap" scan -q --max-pause 60s -o "$tmp/census.json" --force "$target" 2>>"$tmp/log" || return 1
	awk -v from="$start" -v to="$EPOCHREALTIME" '/"pause_ns"/ { gsub(/[^0-9]/, "", $2); printf "%d %d\n", (to - from) * 1000, $2 / 1e6 }' \
		"$tmp/census.json"
}

# The least of three. A scan alone takes the time that bench_scan has found.
bench_census() {
	local what="census of 1 GiB in 4 million blocks of glibc"
	progress "census"
	mkfifo "$tmp/lines"
	"$bench/keep" 4194304 240 <"$tmp/lines" >"$tmp/kept" &
	target=$!
	exec 7>"$tmp/lines"
	for _ in $(seq 300); do ! grep -qs ready "$tmp/kept" || break; sleep 0.1; done
	for _ in 1 2 3; do census_run || true; done | sort -n | head -1 >"$tmp/census"
	exec 7>&-
	wait "$target" || true
	target=
	if ! read -r ms pause <"$tmp/census"; then
		missing "$what" "2 s" "it failed"
		return
	fi
	row "$what" "$(reading '%.2f s' "$ms / 1000")" "2 s" "a scan takes $(reading '%.2f s' "${gib:-0} / ${speed:-1}")"
	row "pause of the target in that census" "$pause ms" "2000 ms" ""
}

# rules_row WHAT [HOW]: the price of rules that are no heuristics of other tools
rules_row() {
	local with without
	pinned "$bench/bench_scan" rules ${2:-} >"$tmp/scan" 2>>"$tmp/log" || true
	read -r with without < <(sed -n 's|^rules \([0-9]*\) ns, without \([0-9]*\) ns|\1 \2|p' "$tmp/scan") || true
	ratio "$1" "${with:-}" "${without:-}" "1.10 x"
}

# copy_row WHAT HOW LIMIT: the least pause of three
copy_row() {
	local pauses
	pauses=$(for _ in 1 2 3; do pinned "$bench/bench_scan" $2 2>>"$tmp/log" || true; done |
		sed -n 's|^pause \([0-9]*\) ms, \([0-9.]*\) GiB.*|\1 \2|p' | sort -n | head -1)
	if [ -n "$pauses" ]; then row "$1" "$(reading '%.0f ms' "${pauses/ / / }")" "$3" ""; else missing "$1" "$3" "it failed"; fi
}

# bytes_row PROGRAM...: bytes for an allocation and its free in a recording, stacks and all else included
bytes_row() {
	local name
	name=$(basename "$1")
	if ! command -v "$1" >/dev/null; then
		missing "bytes per pair in a recording of $name" "12 / 5" "it is not there"
		return
	fi
	rm -f "$tmp/r.heaptap"
	(cd "$tmp" && pinned "$heaptap" run -q --no-scan --no-check --ring-size 256M -w r.heaptap -o report.json --force -- "$@" >/dev/null 2>>log) || true
	bytes_read "$name"
}

# bytes_read NAME: the row of $tmp/r.heaptap
bytes_read() {
	local name=$1
	"$bench/bench_recording" "$tmp/r.heaptap" >"$tmp/look" 2>>"$tmp/log" || true
	if ! read -r events allocs stored raw _ <"$tmp/look"; then
		missing "bytes per pair in a recording of $name" "12 / 5" "it failed"
		return
	fi
	row "bytes per pair in a recording of $name, plain / with zstd" \
		"$(awk "BEGIN { printf \"%.1f / %.1f\", $raw * 2 / $events, $stored * 2 / $events }")" "12 / 5" "$allocs allocations"
}

# A server under its own benchmark, attached to.
bytes_of_redis() {
	local server tap i
	if ! command -v redis-server redis-benchmark >/dev/null; then
		missing "bytes per pair in a recording of redis-server" "12 / 5" "it is not there"
		return
	fi
	redis-server --port 0 --unixsocket "$tmp/redis" --save '' --appendonly no >/dev/null 2>&1 &
	server=$!
	for ((i = 0; i < 100; i++)); do [ ! -S "$tmp/redis" ] || break; sleep 0.1; done
	rm -f "$tmp/r.heaptap"
	"$heaptap" attach --no-scan --no-check --ring-size 256M -w "$tmp/r.heaptap" -o "$tmp/report.json" --force "$server" 2>"$tmp/attached" &
	tap=$!
	for ((i = 0; i < 600; i++)); do ! grep -q 'attached to' "$tmp/attached" || break; sleep 0.1; done
	redis-benchmark -s "$tmp/redis" -q -n 50000 -t set,get,lpush,hset,sadd >/dev/null 2>>"$tmp/log" || true
	kill -TERM "$tap"
	wait "$tap" || true
	kill "$server"
	wait "$server" || true
	bytes_read redis-server
}

bench_recording() {
	progress "recordings"
	cp user/stream/stream_read.c "$tmp/unit.c"
	bytes_row clang -O2 -I "$PWD" -D_GNU_SOURCE -c -o unit.o unit.c
	bytes_row /usr/bin/python3 -c 'import json, decimal
for i in range(2000): json.loads(json.dumps({str(k): [k, str(k), str(decimal.Decimal(k) / 7)] for k in range(50)}))'
	bytes_row perl -e 'my %h; $h{$_ % 5000} = "x" x ($_ % 97) for 1..200000'
	bytes_row sqlite3 :memory: "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<20000)
		insert into t select x, hex(randomblob(20)) from c; create index i on t(b); select sum(a) from t where b > 'A' group by substr(b,1,2);"
	bytes_of_redis
	local round with
	pair=(-n 300000)
	for round in 1 2 3; do
		keep unrecorded "$(traced 64)"
		keep recorded "$(rm -f "$tmp/r.heaptap"; traced 64 -w "$tmp/r.heaptap")"
	done
	ratio "a pair with full stacks, recorded / not recorded" "${ns[recorded]:-}" "${ns[unrecorded]:-}" "1.10 x"
	progress "a recording of 20 million events"
	row "writing an event into a recording, packed" "$("$bench/bench_recording" -m 20000000 "$tmp/r.heaptap") ns" "" ""
	with=$({ TIMEFORMAT='%U %S'; time "$heaptap" report -q -o "$tmp/report.json" --force "$tmp/r.heaptap"; } 2>&1 | tail -1)
	row "report of a recording of 20 million events, CPU time per event" \
		"$(awk "BEGIN { split(\"$with\", t, \" \"); printf \"%.0f ns\", (t[1] + t[2]) * 1e9 / 20e6 }")" "100 ns" ""
	bench_formats "$tmp/r.heaptap"
	rm -f "$tmp/r.heaptap"
}

# bench_formats RECORDING: the CPU time of each format of it beside that of the text
bench_formats() {
	local format text ns
	text=$(cpu_of "$heaptap" report -q --format text --force -o "$tmp/report.out" "$1")
	for format in $("$heaptap" report --format list | awk '$1 != "text" { print $1 }'); do
		progress "formats: $format"
		ns=$(cpu_of "$heaptap" report -q --format "$format" --force -o "$tmp/report.out" "$1")
		ratio "format $format of this recording / text" "$ns" "$text" "1.2 x"
	done
	for format in zst gz; do
		ns=$(cpu_of "$heaptap" report -q --force -o "$tmp/report.heaptrack.$format" "$1")
		ratio "format heaptrack, compressed: .heaptrack.$format / text" "$ns" "$text" "-"
	done
	rm -f "$tmp"/report.out "$tmp"/report.heaptrack.*
}

# A list of events with 100,000 stacks of 2 to 40 frames, of which many share their outer frames.
list_stacks() {
	awk 'BEGIN {
		srand(7)
		print "process 77 big /nowhere/big\nmap 77 0x400000 0x8400000 0x400000 /nowhere/big"
		for (id = 2; id < 100002; id++) {
			nr = 1 + int(rand() * (nr < 24 ? nr : 24))
			for (new = 2 + int(rand() * 12); new--; nr++)
				frame[nr] = sprintf("%#x", 4194816 + 64 * int(rand() * 20000))
			line = "stack " id " 77 complete"
			for (i = nr - 1; i >= 0; i--)
				line = line " " (i ? frame[i] : "0x400100")
			print line "\nalloc 77 1 malloc " sprintf("%#x", id * 4096) " " 2 ^ int(rand() * 12) " " id " " id * 10000
		}
	}'
}

bench_page() {
	progress "a page of 100,000 stacks"
	local with got what="HTML of 100,000 stacks"
	list_stacks >"$tmp/stacks.txt"
	with=$({ TIMEFORMAT=%R; time "$heaptap" report -q -o "$tmp/stacks.html" "$tmp/stacks.txt" >>"$tmp/log" 2>&1; } 2>&1)
	row "$what: read the list and write" "$with s" "3 s" "$(($(stat -c %s "$tmp/stacks.html") / 1048576)) MiB"
	if ! command -v chromedriver >/dev/null; then
		missing "$what: open, search" "2 s, 0.1 s" "no chromedriver"
		return
	fi
	mapfile -t got < <(tests/lib/page.py "$tmp/stacks.html" eval 'Number(document.documentElement.dataset.ready)' \
		eval '[find("0x4"), find("0x40f")] && Number(document.querySelector("#found").dataset.took)' 2>>"$tmp/log")
	row "$what: open in Chromium" "$(reading '%.2f s' "${got[0]:-0} / 1000")" "2 s" ""
	row "$what: search" "${got[1]:--} ms" "100 ms" ""
}

# Replies of redis-server under load, attached to as typed, with verdicts and without.
bench_redis() {
	local what mib untraced without with worst worst_with nr
	for mib in 200 1024 4096; do
		what="p99 of redis with $mib MiB under load, a verdict each 5 s / none"
		progress "$what"
		if ! command -v redis-benchmark >/dev/null; then
			missing "$what" "1.2 x" "no redis-benchmark"
		elif read -r untraced without with worst worst_with nr < <(env -u HEAPTAP_NO_CODE tests/bench/redis_p99.py "$heaptap" $mib 10 3 2>>"$tmp/log"); then
			row "$what" "$(reading '%.2f x' "$with / $without")" "1.2 x" "$with / $without ms; untraced $untraced ms; $nr verdicts"
			row "the same: the longest that a request took" "$worst_with ms" "" "without verdicts $worst ms"
		else
			missing "$what" "1.2 x" "it failed"
		fi
	done
}

# The price of breakpoints: what heaptap says, beside what a request takes longer.
bench_price() {
	local what="price as told, of --backend bpf / as measured" name told true
	progress "the price of breakpoints"
	if ! tests/bench/price.py "$heaptap" "$bench/server" 8 3 >"$tmp/prices" 2>>"$tmp/log"; then
		missing "$what" "1.25 x" "it failed"
	fi
	while read -r name told true; do
		if [ "$told" = 0.0 ]; then
			missing "$what: ${name//_/ }" "1.25 x" "a price below 20 % is not told; it is $true %"
		else
			row "$what: ${name//_/ }" "$(reading '%.2f x' "$told / $true")" "1.25 x" "$told / $true % of its CPU time"
		fi
	done <"$tmp/prices"
}

# Replies of the console about a process with ten million live blocks.
bench_console() {
	progress "the console on 10 million blocks"
	local what="console on 10 million live blocks" seconds cpu command
	if ! tests/bench/replies.py "$heaptap" "$bench/keep" 10000000 status top stacks "blocks" "blocks 1" "why ADDRESS" \
		>"$tmp/replies" 2>>"$tmp/log"; then
		missing "$what: the slowest reply" "0.5 s" "it failed"
		return
	fi
	while read -r seconds cpu command; do
		if [ "${command%% *}" = why ]; then
			row "$what: why ADDRESS" "$seconds s" "5 s" "$cpu s of CPU time"
		else
			row "$what: $command" "$seconds s" "0.5 s" "$cpu s of CPU time"
		fi
	done <"$tmp/replies"
}

# cpu_ticks PID
cpu_ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

# The screen of top on a program with 1,000 callers, each of which allocates ten times a second.
bench_screen() {
	progress "the live screen"
	local what="heaptap top at 1,000 callers, 10,000 blocks a second" pid before script
	"$bench/callers" 1000 10 &
	target=$!
	# No key is ever typed.
	mkfifo "$tmp/keys"
	exec 3<>"$tmp/keys"
	TERM=xterm script -qc "stty rows 50 cols 160; exec $heaptap top $target" /dev/null <"$tmp/keys" >/dev/null 2>>"$tmp/log" &
	script=$!
	sleep 5
	pid=$(pgrep -f "^$heaptap top $target" -o || true)
	if [ -z "$pid" ]; then
		missing "$what" "1 %" "it did not start"
	else
		before=$(cpu_ticks "$pid")
		sleep 20
		row "$what" "$(reading '%.2f %%' "($(cpu_ticks "$pid") - $before) * 100 / $(getconf CLK_TCK) / 20")" "1 %" "of a CPU"
		kill -TERM "$pid"
	fi
	exec 3>&-
	wait "$script" 2>/dev/null || true
	kill "$target"
	wait "$target" 2>/dev/null || true
	target=
}

# The size of the JSON report on a program with deep stacks, and the time to write it.
bench_json() {
	local what="JSON of 100,000 stacks" begin
	progress "$what"
	[ -s "$tmp/stacks.txt" ] || { missing "$what" "" "no list of stacks"; return; }
	begin=$(date +%s%N)
	"$heaptap" report -q --force -o "$tmp/stacks.json" "$tmp/stacks.txt" 2>>"$tmp/log"
	row "$what: write, with the reading of the list" "$(reading '%.2f s' "($(date +%s%N) - $begin) / 1e9")" "" \
		"$(stat -c %s "$tmp/stacks.json") bytes"
	rm -f "$tmp/stacks.json"
}

# shellcheck source=tests/bench/system.sh
. "$(dirname "$0")/system.sh"
# shellcheck source=tests/bench/inline.sh
. "$(dirname "$0")/inline.sh"
# shellcheck source=tests/bench/sample.sh
. "$(dirname "$0")/sample.sh"
# shellcheck source=tests/bench/stops.sh
. "$(dirname "$0")/stops.sh"
# shellcheck source=tests/bench/start.sh
. "$(dirname "$0")/start.sh"

start=$SECONDS
mkdir -p "$out"
{
	echo "heaptap bench: $(uname -srm), $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg) at the start"
	printf '%-66s %12s  %10s  %s\n' "what" "measured" "at most" ""
} >"$table"
[ "$#" -gt 0 ] || set -- start pairs typed inline inline_work sample crowd ptrace losses server attach attach_many excluded watch everything brief memory books tables scan census stops recording \
	page json console screen redis price
for group; do "bench_$group"; done
progress ""
echo "took $((SECONDS - start)) s" >>"$table"
cat "$table"
