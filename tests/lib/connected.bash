# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034 # report, out and err are read by tests
# HEAPTAP_BACKEND=connect: traced and attached by serve and connect, with the options of run and attach.

# take_options OPTIONS...: those of serve into SERVED, those of connect into SEEN, what is behind them into SUBJECT
take_options() {
	SERVED=() SEEN=() SUBJECT=()
	while [ $# -gt 0 ]; do
		case $1 in
		-b | --backend | --snapshot | --jobs | --max-copy | --alloc | --omit | --mark-usdt | --ring-size | -u | --user | -C | --cwd)
			SERVED+=("$1" "$2"); shift ;;
		--as-root) SERVED+=("$1") ;;
		-f | --follow | --nocpp | --mmap | --check | --no-check) SERVED+=("$1"); SEEN+=("$1") ;;
		--max-procs | --max-pause) SERVED+=("$1" "$2"); SEEN+=("$1" "$2"); shift ;;
		-d | -i | -t | -o | -w | -s | -n | --[a-z]*-size | --depth | --interval | --duration | --output | --record | --sort | \
			--top | --leaks | --why | --pointer-mask | --suppressions | --ignore | --fail-on | --error-exitcode | \
			--older | --max-memory | --format | --config | --annotate | --min-size | --sysroot) SEEN+=("$1" "$2"); shift ;;
		--) SUBJECT=("$@"); break ;;
		-*) SEEN+=("$1") ;;
		*) SUBJECT+=("$1") ;;
		esac
		shift
	done
}

# served COMMAND...: start this serve in the background, with the input of this shell; waits until it listens
served() {
	# A serve that ends takes its socket away.
	SOCKET=$BATS_TEST_TMPDIR/net/$((NR_SERVED = ${NR_SERVED:-0} + 1))
	mkdir -p -m 700 "$BATS_TEST_TMPDIR/net"
	: >"$BATS_TEST_TMPDIR/serve.err"
	set -m
	"$HEAPTAP" serve --max-pause 60s --listen "unix:$SOCKET" "$@" <&0 >"$BATS_TEST_TMPDIR/serve.out" \
		2>"$BATS_TEST_TMPDIR/serve.err" 3>&- &
	SERVE=$!
	set +m
	STARTED+=("$SERVE")
	wait_for is_served
}

is_served() { gone "$SERVE" || grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/serve.err"; }

# connected_run OPTIONS -- PROGRAM...: what traced does. The status is that of the program, if heaptap has nothing to say
connected_run() {
	take_options "$@"
	served --wait "${SERVED[@]}" "${SUBJECT[@]}"
	status=0
	timeout -k 5 "$LIMIT_S" "$HEAPTAP" connect --sysroot / -o "$report" "${SEEN[@]}" "unix:$SOCKET" \
		>"$BATS_TEST_TMPDIR/connect.out" 2>"$err" 3>&- || status=$?
	# Where connect has failed, the program of serve may not have begun.
	[ "$status" -eq 0 ] || kill -INT "$SERVE" 2>/dev/null || true
	wait "$SERVE" || true
	cp "$BATS_TEST_TMPDIR/serve.out" "$out"
	cat "$BATS_TEST_TMPDIR/serve.err" >>"$err"
	[ "$status" -ne 0 ] ||
		status=$(jq '.processes[0].exit | if . == null then 0 else .code // (128 + .signal) end' "$report")
}

# connected_attach OPTIONS PID...: what attached does. serve ends with connect
connected_attach() {
	take_options "$@"
	served "${SERVED[@]}" "${SUBJECT[@]}" </dev/null
	start "$HEAPTAP" connect --sysroot / --max-pause 60s -o "$report" "${SEEN[@]}" "unix:$SOCKET"
	TAP=$PID
	(tail --pid="$TAP" -f /dev/null; kill -INT "$SERVE") >/dev/null 2>&1 3>&- &
	wait_for is_connected || return 1
	! gone "$TAP" || cat "$err"
}

is_connected() { gone "$TAP" || grep -qs 'connected;' "$err"; }
