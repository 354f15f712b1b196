# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Part of run.sh: what --sample 512K by inline costs beside the untraced program. Runs take turns; medians, as in inline.sh.

sampled() { pinned "$heaptap" run -q --backend inline --no-scan --sample 512K -o "$tmp/report.json" --force -- "$@" "$bench/pair" -p "${pair[@]}" 2>>"$tmp/log"; }

# sample_pair_row WHAT KIND LIMIT [SAMPLED]: the difference of medians that are in ps
sample_pair_row() {
	local traced bare
	traced=$(in_median "$2.${4:-sampled}") bare=$(in_median "$2.untraced")
	if [ -z "$traced" ] || [ -z "$bare" ]; then
		missing "$1" "$3" "a run failed"
	else
		row "$1" "$(reading '%.1f ns' "($traced - $bare) / 1000")" "$3" "$(reading '%.1f - %.1f ns' "$traced / 1000, $bare / 1000")"
	fi
}

# own_sampler NAME LIBRARY VARIABLE=VALUE: an allocator's own sampler at 512 KiB, beside heaptap on this allocator
own_sampler() {
	local round library what="malloc/free pair by $1"
	library=$(echo /usr/lib/*/"$2")
	if [ ! -f "$library" ]; then
		missing "$what, its own sampler at 512 KiB - without" - "it is not there"
		return
	fi
	pair=(-n 4000000)
	for ((round = 0; round <= inline_rounds; round++)); do
		progress "sample: $1: round $round of $inline_rounds"
		in_round "$1.untraced" "$(pinned env LD_PRELOAD="$library" "$bench/pair" -p "${pair[@]}")"
		in_round "$1.own" "$(pinned env LD_PRELOAD="$library" "$3" "$bench/pair" -p "${pair[@]}" 2>>"$tmp/log")"
		in_round "$1.sampled" "$(sampled env LD_PRELOAD="$library")"
	done
	sample_pair_row "$what, its own sampler at 512 KiB - without" "$1" - own
	sample_pair_row "the same, heaptap's --sample 512K inline" "$1" -
}

# sample_load KIND: 100,000 SETs and GETs each by 10 clients; remember requests a second, the 99th percentile in us, and
# the server's CPU time for a request in ns, which other load changes least
sample_load() {
	local name rate p99 before
	before=$(cpu_ticks "$target")
	while read -r name rate p99; do
		in_round "$1.$name.rate" "$rate"
		in_round "$1.$name.p99" "$p99"
	done < <(pinned redis-benchmark -s "$tmp/redis.sock" -c 10 -n 100000 -r 100000 -d 200 -t set,get --csv 2>>"$tmp/log" |
		awk -F'"' 'NR > 1 { printf "%s %.0f %.0f\n", $2, $4, $14 * 1000 }')
	in_round "$1.cpu" $((($(cpu_ticks "$target") - before) * 1000000000 / $(getconf CLK_TCK) / 200000))
}

# redis_turns KIND [OPTION...]: the server lives through all rounds: heaptap comes and goes. Measured once code is in it.
redis_turns() {
	local kind=$1 round tap i
	shift
	redis-server --port 0 --unixsocket "$tmp/redis.sock" --save "" --appendonly no --dir "$tmp" >/dev/null &
	target=$!
	for ((round = 0; round < 100; round++)); do [ ! -S "$tmp/redis.sock" ] || break; sleep 0.1; done
	for ((round = 0; round <= inline_rounds; round++)); do
		progress "redis, $kind: round $round of $inline_rounds"
		sample_load "$kind.bare"
		env -u HEAPTAP_NO_CODE "$heaptap" attach -q --no-scan "$@" -o "$tmp/report.json" --force "$target" 2>>"$tmp/log" &
		tap=$!
		for ((i = 0; i < 100; i++)); do
			! grep -q heaptap-code "/proc/$target/maps" || break
			redis-benchmark -s "$tmp/redis.sock" -q -n 10000 -r 100000 -d 200 -t set >/dev/null 2>>"$tmp/log"
		done
		sample_load "$kind.traced"
		kill -INT "$tap" 2>/dev/null || true
		wait "$tap" || true
	done
	kill "$target"
	wait "$target" 2>/dev/null || true
	target=
}

# redis_rows KIND WHAT CPU-LIMIT RATE-LIMIT P99-LIMIT [OPTION...]
redis_rows() {
	local name kind=$1 what=$2
	if ! command -v redis-server redis-benchmark >/dev/null; then
		missing "$what / untraced" "$3" "it is not there"
		return
	fi
	redis_turns "$kind" "${@:6}"
	ratio "$what: CPU per request / untraced" "$(in_median "$kind.traced.cpu")" "$(in_median "$kind.bare.cpu")" "$3"
	for name in SET GET; do
		ratio "$what, $name: requests a second / untraced" "$(in_median "$kind.traced.$name.rate")" "$(in_median "$kind.bare.$name.rate")" "$4"
		ratio "the same: p99 / untraced" "$(in_median "$kind.traced.$name.p99")" "$(in_median "$kind.bare.$name.p99")" "$5"
	done
}

bench_sample() {
	local round pair
	for ((round = 0; round <= inline_rounds; round++)); do
		progress "sample: pairs: round $round of $inline_rounds"
		pair=(-n 4000000)
		in_round once.untraced "$(pinned "$bench/pair" -p "${pair[@]}")"
		in_round once.sampled "$(sampled)"
		pair=(-n 1000000 -t 8)
		in_round threads.untraced "$(pinned "$bench/pair" -p "${pair[@]}")"
		in_round threads.sampled "$(sampled)"
	done
	sample_pair_row "malloc/free pair, --sample 512K inline - untraced" once "6 ns"
	sample_pair_row "the same, 8 threads on 2 CPUs" threads "6 ns"
	own_sampler tcmalloc libtcmalloc.so.4 TCMALLOC_SAMPLE_PARAMETER=524288
	own_sampler jemalloc libjemalloc.so.2 MALLOC_CONF=prof:true,lg_prof_sample:19,prof_final:false
	redis_rows sampled "redis with attach --sample 512K" - ">= 0.99 x" "1.02 x" --sample 512K
	for round in 1 2 3; do
		progress "sample: server: round $round of 3"
		server_run untraced
		server_run sampled --sample 512K
	done
	ratio "server with attach --sample 512K: CPU per request / untraced" "${ns[cpu-sampled]:-}" "${ns[cpu-untraced]:-}" "-"
	ratio "the same: p99 / untraced" "${ns[p99-sampled]:-}" "${ns[p99-untraced]:-}" "1.02 x"
}

# ns_of PROC-DIRECTORY...: CPU time of all their threads. Ticks mislead about programs that a timer wakes: it ticks then.
ns_of() {
	local process
	for process; do cat "$process"/task/*/schedstat; done 2>/dev/null | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

# 200 processes that make 10,000 pairs a second each, of which every second one is traced: beside the others, in the same
# seconds, other load tells nothing. Each is in a group of its own, or heaptap would spare it.
bench_crowd() {
	local nr=100 seconds=15 pids=() twins=() tap i before traced bare own what="system --sample 512K --everything on 200 busy processes"
	progress "$what"
	cp "$bench/callers" "$tmp/crowd"
	cp "$bench/callers" "$tmp/twin"
	for ((i = 0; i < nr; i++)); do
		apart "$tmp/crowd" 100 100
		pids+=("/proc/$target")
		apart "$tmp/twin" 100 100
		twins+=("/proc/$target")
	done
	target=
	: >"$tmp/crowd.err"
	env -u HEAPTAP_NO_CODE "$heaptap" system --sample 512K --everything --comm crowd --no-scan --json -n 0 >/dev/null 2>"$tmp/crowd.err" &
	tap=$!
	for ((i = 0; i < 1200; i++)); do ! grep -q "$nr processes are traced" "$tmp/crowd.err" || break; sleep 0.1; done
	if grep -q "$nr processes are traced" "$tmp/crowd.err"; then
		sleep 3
		before=$(ns_of "${twins[@]}") traced=$(ns_of "${pids[@]}") own=$(ns_of "/proc/$tap")
		sleep $seconds
		bare=$(($(ns_of "${twins[@]}") - before)) traced=$(($(ns_of "${pids[@]}") - traced)) own=$(($(ns_of "/proc/$tap") - own))
		row "$what" "$(reading '%.2f %%' "2 * ($traced - $bare + $own) / 1e7 / $seconds / $(nproc)")" "1 %" \
			"of the machine: twice that of $nr; these take $(reading '%.3f' "$traced / $bare") of the CPU time of $nr untraced ones, heaptap $(reading '%.2f %%' "$own / 1e7 / $seconds / $(nproc)")"
	else
		missing "$what" "1 %" "they were not all traced"
	fi
	kill -INT "$tap"
	wait "$tap" || true
	kill "${pids[@]#/proc/}" "${twins[@]#/proc/}"
	wait "${pids[@]#/proc/}" "${twins[@]#/proc/}" 2>/dev/null || true
}
