# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Functions of tests that start serve and connect, and wait for them.

NET=$ROOT/tests/net

# own_libc: programs started from now on use a copy of the C library. Uprobes of other processes cannot be in the copy,
# where they would hide breakpoints of ptrace
own_libc() {
	local libc
	libc=$(ldd "$T/step" | awk '$1 == "libc.so.6" { print $3 }')
	mkdir -p "$BATS_TEST_TMPDIR/libc"
	cp "$libc" "$BATS_TEST_TMPDIR/libc/libc.so.6"
	export LD_LIBRARY_PATH=$BATS_TEST_TMPDIR/libc
}

# is_listening: serve listens at the socket, or has ended
is_listening() { gone "$SERVE" || grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/serve.err"; }

# serving [OPTIONS] TARGET...: start serve at the UNIX socket $SOCKET; its PID is in $SERVE
serving() {
	SOCKET=${DIR:=$BATS_TEST_TMPDIR/net}/s
	mkdir -p -m 700 "$DIR"
	start_as serve "$HEAPTAP" serve --max-pause 60s --listen "unix:$SOCKET" "$@"
	SERVE=$PID
	wait_for is_listening
}

# serving_tcp [OPTIONS] TARGET...: start serve with a token at 127.0.0.1:$PORT
serving_tcp() {
	TOKEN=$BATS_TEST_TMPDIR/token
	[ -f "$TOKEN" ] || (umask 077 && od -An -vN32 -tx1 /dev/urandom | tr -dc 0-9a-f >"$TOKEN")
	# The first free port.
	for ((PORT = 20000 + $$ % 10000; ; PORT++)); do
		start_as serve "$HEAPTAP" serve --max-pause 60s --listen "tcp://127.0.0.1:$PORT" --token-file "$TOKEN" "$@"
		SERVE=$PID
		wait_for is_listening
		gone "$SERVE" && grep -q 'in use' "$BATS_TEST_TMPDIR/serve.err" || break
	done
}

# watching [OPTIONS] ADDRESS: start connect in the background, and wait until it traces; its PID is in $TAP
watching() {
	report=$BATS_TEST_TMPDIR/report.json
	err=$BATS_TEST_TMPDIR/connect.err
	rm -f "$report"
	start_as connect "$HEAPTAP" connect --sysroot / -o "$report" "$@"
	TAP=$PID
	wait_for is_watching
	is_running "$TAP" || { cat "$err"; return 1; }
}

# watched_at_work [OPTIONS] ADDRESS: run connect until $TARGET, a program such as spin, has gone on for a while; $report
watched_at_work() {
	watching "$@"
	works "$TARGET"
	detach
}

is_watching() { gone "$TAP" || grep -qs 'connected;' "$BATS_TEST_TMPDIR/connect.err"; }

# reports_allocs NR: so many have come to the client by now
reports_allocs() {
	kill -USR1 "$TAP"
	wait_for test -s "$report"
	jq -e --argjson n "$1" '.processes[0].totals.allocs >= $n' "$report"
}

# watched [OPTIONS] ADDRESS: run connect to its end; sets $status and $report
watched() {
	report=$BATS_TEST_TMPDIR/report.json
	err=$BATS_TEST_TMPDIR/connect.err
	rm -f "$report"
	status=0
	timeout -k 5 300 "$HEAPTAP" connect --sysroot / -o "$report" "$@" >"$BATS_TEST_TMPDIR/connect.out" 2>"$err" 3>&- ||
		status=$?
}

# remove fields that differ from run to run (times, ids), and chains, which a connection does not send
normal() {
	jq -S 'del('"$OF_THE_RUN"', .marks[]?.time_ns) | .processes[] |= (del(.pid, .timeline, .threads) | .scan |= del(.pause_ns, .scanned_bytes)
		| .totals |= del(.peak_time_ns)
		| .stacks |= (map(del(.id, .why)) | sort_by([.function, [.frames[].offset]])))' "$1"
}

# same_as_local PROGRAM...: the report over a connection equals that of run
same_as_local() {
	serving --wait -- "$@"
	watched "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	ended "$SERVE" 0
	normal "$report" >"$BATS_TEST_TMPDIR/remote.json"
	traced -- "$@"
	normal "$report" >"$BATS_TEST_TMPDIR/local.json"
	diff "$BATS_TEST_TMPDIR/remote.json" "$BATS_TEST_TMPDIR/local.json"
}

# seen_and_lost: events of the report and its lost events are together those of the oracle since $BATS_TEST_TMPDIR/before
seen_and_lost() {
	"$ORACLE/count-read" "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before" >"$BATS_TEST_TMPDIR/count.json"
	jq -e -n --slurpfile r "$report" --slurpfile c "$BATS_TEST_TMPDIR/count.json" '
		$r[0].processes[0] as $p | $c[0].totals as $o
		| [$p.totals.allocs + $p.lost.allocs, $p.totals.frees + $p.totals.unknown_frees + $p.lost.frees] as $have
		| [$o.allocs, $o.frees + $o.unknown_frees] as $want
		| if $have == $want then true else error("report \($have), oracle \($want), lost \($p.lost)") end'
}

# two_hosts: name spaces $BOARD and $HOST with a cable between them: 192.0.2.1 and 192.0.2.2
two_hosts() {
	BOARD=heaptap-b$$ HOST=heaptap-h$$
	ip netns add "$BOARD" 2>/dev/null || skip "no network name spaces"
	ip netns add "$HOST"
	ip link add "b$$" netns "$BOARD" type veth peer name "h$$" netns "$HOST" || skip "no veth"
	ip -n "$BOARD" link set lo up
	ip -n "$HOST" link set lo up
	ip -n "$BOARD" addr add 192.0.2.1/24 dev "b$$"
	ip -n "$HOST" addr add 192.0.2.2/24 dev "h$$"
	ip -n "$BOARD" link set "b$$" up
	ip -n "$HOST" link set "h$$" up
	TOKEN=$BATS_TEST_TMPDIR/token
	(umask 077 && od -An -vN32 -tx1 /dev/urandom | tr -dc 0-9a-f >"$TOKEN")
}

teardown() {
	end_started
	[ -z "${BOARD:-}" ] || ip netns del "$BOARD" 2>/dev/null || true
	[ -z "${HOST:-}" ] || ip netns del "$HOST" 2>/dev/null || true
}

on_board() { ip netns exec "$BOARD" "$@"; }

# The PID is that of the program itself, because ip netns exec executes it.
serving_board() {
	start_as serve ip netns exec "$BOARD" "$HEAPTAP" serve --max-pause 60s --insecure-tcp --token-file "$TOKEN" "$@"
	SERVE=$PID
}

watching_host() {
	report=$BATS_TEST_TMPDIR/report.json
	err=$BATS_TEST_TMPDIR/connect.err
	start_as connect ip netns exec "$HOST" "$HEAPTAP" connect --insecure-tcp --token-file "$TOKEN" -o "$report" "$@"
	TAP=$PID
}
