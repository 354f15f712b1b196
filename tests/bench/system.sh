# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154
# make bench: rows of heaptap system. A part of tests/bench/run.sh.

# system_of COMM OPTION...: heaptap system on the processes of this name, in the background; its PID is in $tracer
system_of() {
	"$heaptap" system --comm "$1" "${@:2}" >"$tmp/system.rows" 2>"$tmp/system.err" &
	tracer=$!
}

# apart COMMAND...: in the background, in a process group of its own: heaptap spares all processes of its own group
apart() {
	set -m
	"$@" &
	target=$!
	set +m
}

# one_is_traced: the shell that will start the others
one_is_traced() {
	local i
	for ((i = 0; i < 600; i++)); do
		! grep -q '1 processes are traced' "$tmp/system.err" || return 0
		sleep 0.1
	done
	return 1
}

# rows_say FILTER: heaptap system has said in a row of JSON that FILTER is true; waits for a minute
rows_say() {
	local i
	for ((i = 0; i < 600; i++)); do
		tail -n 1 "$tmp/system.rows" | jq -e "$1" >/dev/null 2>&1 && return
		sleep 0.1
	done
	return 1
}

# high_kib PID: the most memory that it had
high_kib() { awk '/VmHWM/ { print $2 }' "/proc/$1/status"; }

# sleepers N: so many processes of the name "sleeper", which wait; their PIDs are in $sleeping
sleepers() {
	cp "$(command -v sleep)" "$tmp/sleeper"
	sleeping=()
	for _ in $(seq "$1"); do
		"$tmp/sleeper" 1000 &
		sleeping+=($!)
	done
}

end_sleepers() {
	kill "${sleeping[@]}"
	wait "${sleeping[@]}" 2>/dev/null || true
}

bench_watch() {
	local nr=500 before seconds=20 what="watching 500 processes"
	progress "$what"
	sleepers "$nr"
	system_of sleeper --zoom 0 --json -i 1s
	if rows_say ".watched == $nr"; then
		before=$(cpu_ticks "$tracer")
		sleep "$seconds"
		row "$what" "$(reading '%.2f %%' "($(cpu_ticks "$tracer") - $before) * 100 / $(getconf CLK_TCK) / $seconds")" "0.5 %" "of a CPU"
		row "$what: memory of heaptap" "$(reading '%.1f MiB' "$(high_kib "$tracer") / 1024")" "64 MiB" ""
	else
		missing "$what" "0.5 %" "they were not all watched"
	fi
	kill -INT "$tracer"
	wait "$tracer" || true
	end_sleepers
}

# sum_of PREFIX FILTER: over the reports PREFIX-*.json. There may be more than one jq can be called with.
sum_of() { find "$tmp" -name "$1-*.json" -print0 | xargs -0 jq "[.processes[] | $2] | add" | awk '{ sum += $1 } END { print sum + 0 }'; }

# Each process holds many blocks, all of them made while it is traced.
bench_everything() {
	local nr=50 each=20000 limit blocks kib known lost i what="memory with --everything"
	progress "$what"
	cp "$bench/keep" "$tmp/keeper"
	mkfifo "$tmp/go" "$tmp/never"
	# One shell starts them when heaptap traces it. All at once they would fill the buffer, and this is about memory.
	cp "$(readlink -f "$(command -v dash)")" "$tmp/keepers"
	apart "$tmp/keepers" -c "read line <$tmp/go; exec 3<>$tmp/never; i=0; while [ \$i -lt $nr ]; do $tmp/keeper $each 24 <&3 >>$tmp/kept & sleep 0.1; i=\$((i + 1)); done; wait"
	system_of keepers --everything --no-scan -o "$tmp/keepers-%p-%n.json"
	one_is_traced || true
	echo go >"$tmp/go"
	for ((i = 0; i < 600; i++)); do
		[ "$(grep -cs ready "$tmp/kept" || true)" = "$nr" ] && break
		sleep 0.1
	done
	# Until their last events are in the books, which the reports show.
	sleep 2
	kib=$(high_kib "$tracer")
	kill -INT "$tracer"
	wait "$tracer" || true
	pkill -P "$target" || true
	wait "$target" 2>/dev/null || true
	target=
	blocks=$((nr * each))
	known=$(sum_of keepers .totals.live_blocks)
	lost=$(sum_of keepers '.lost | .allocs + .frees + .stacks + .other')
	limit=$(reading '%.0f' "64 + $blocks * 40 / 1048576 + $nr / 16")
	if [ "$known" -ge "$blocks" ]; then
		row "$what: $nr processes with $blocks live blocks" "$(reading '%.0f MiB' "$kib / 1024")" "$limit MiB" "$known blocks known, $lost events lost"
	else
		missing "$what: $nr processes with $blocks live blocks" "$limit MiB" "$known blocks known, $lost events lost"
	fi
	find "$tmp" -name 'keepers-*.json' -delete
}

# The shells take turns to start programs that live 10 ms.
brief() {
	local shells=8
	apart "$tmp/brief" -c "read line <$tmp/go2; j=0; while [ \$j -lt $shells ]; do
		(i=0; while [ \$i -lt $(($1 / shells)) ]; do $(command -v sleep) 0.01; i=\$((i + 1)); done) & j=\$((j + 1)); done; wait"
}

bench_brief() {
	local nr=4000 begin plain_ns traced_ns lost reports what="4,000 processes that live 10 ms"
	progress "$what"
	cp "$(readlink -f "$(command -v dash)")" "$tmp/brief"
	mkfifo "$tmp/go2"
	brief "$nr"
	begin=$(date +%s%N)
	echo go >"$tmp/go2"
	wait "$target" || true
	plain_ns=$(($(date +%s%N) - begin))
	brief "$nr"
	system_of brief --everything --no-scan -o "$tmp/brief-%p-%n.json"
	one_is_traced || true
	begin=$(date +%s%N)
	echo go >"$tmp/go2"
	wait "$target" || true
	traced_ns=$(($(date +%s%N) - begin))
	target=
	kill -INT "$tracer"
	wait "$tracer" || true
	reports=$(find "$tmp" -name 'brief-*.json' | wc -l)
	lost=$(sum_of brief '.lost | .allocs + .frees + .stacks + .other')
	ratio "$what, --everything / alone" "$traced_ns" "$plain_ns" "3 x"
	row "$what: events lost" "${lost:--}" "0" "$reports reports; $(sed -n 's/.*system: \([0-9]* traced processes\).*/\1 not kept/p' "$tmp/system.err")"
	find "$tmp" -name 'brief-*.json' -delete
}
