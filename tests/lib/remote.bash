# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# serve and connect as tests start them, and wait for.

NET=$ROOT/tests/net

# own_libc: programs started from now on have a C library of their own, in which nobody else's uprobes can be: by ptrace they
# would hide breakpoints
own_libc() {
	local libc
	libc=$(ldd "$T/step" | awk '$1 == "libc.so.6" { print $3 }')
	mkdir -p "$BATS_TEST_TMPDIR/libc"
	cp "$libc" "$BATS_TEST_TMPDIR/libc/libc.so.6"
	export LD_LIBRARY_PATH=$BATS_TEST_TMPDIR/libc
}

# start_as NAME COMMAND...: as start, output to NAME.out and NAME.err
start_as() {
	local name=$1
	shift
	set -m
	"$@" >"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.err" 3>&- &
	PID=$!
	set +m
	STARTED+=("$PID")
}

# is_listening: at the socket, or it has ended
is_listening() { gone "$SERVE" || grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/serve.err"; }

# serving [OPTIONS] TARGET...: at the UNIX socket $SOCKET; its pid is in $SERVE
serving() {
	SOCKET=${DIR:=$BATS_TEST_TMPDIR/net}/s
	mkdir -p -m 700 "$DIR"
	start_as serve "$HEAPTAP" serve --max-pause 20s --listen "unix:$SOCKET" "$@"
	SERVE=$PID
	wait_for is_listening
}

# serving_tcp [OPTIONS] TARGET...: with a token, at 127.0.0.1:$PORT
serving_tcp() {
	TOKEN=$BATS_TEST_TMPDIR/token
	[ -f "$TOKEN" ] || (umask 077 && od -An -vN32 -tx1 /dev/urandom | tr -dc 0-9a-f >"$TOKEN")
	PORT=$((20000 + RANDOM % 10000))
	start_as serve "$HEAPTAP" serve --max-pause 20s --listen "tcp://127.0.0.1:$PORT" --token-file "$TOKEN" "$@"
	SERVE=$PID
	wait_for is_listening
}

# watching [OPTIONS] ADDRESS: connect in the background until it traces; its pid is in $TAP
watching() {
	report=$BATS_TEST_TMPDIR/report.json
	err=$BATS_TEST_TMPDIR/connect.err
	rm -f "$report"
	start_as connect "$HEAPTAP" connect --sysroot / -o "$report" "$@"
	TAP=$PID
	wait_for is_watching
	is_running "$TAP" || { cat "$err"; return 1; }
}

is_watching() { gone "$TAP" || grep -qs 'connected;' "$BATS_TEST_TMPDIR/connect.err"; }

# watched [OPTIONS] ADDRESS: to its end; $status, $report
watched() {
	report=$BATS_TEST_TMPDIR/report.json
	err=$BATS_TEST_TMPDIR/connect.err
	rm -f "$report"
	status=0
	timeout -k 5 120 "$HEAPTAP" connect --sysroot / -o "$report" "$@" >"$BATS_TEST_TMPDIR/connect.out" 2>"$err" 3>&- ||
		status=$?
}
