#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# serve and connect: the same report as without them; peers, links and files that mean harm; ssh; name spaces.

load ../lib/common
load ../lib/remote

# bats test_tags=core
@test "remote: the report equals the local one, verdicts included" {
	same_as_local "$T/leak"
	is .scan.definite.blocks 32
}

@test "remote: a server on this machine: names without --sysroot" {
	serving --wait -- "$T/leak"
	"$HEAPTAP" connect -q -o "$BATS_TEST_TMPDIR/r.json" "unix:$SOCKET"
	report=$BATS_TEST_TMPDIR/r.json
	[ "$(of_function main live_blocks)" -gt 0 ] || jq -e 'any(.functions[]; .name == "main")' "$report"
}

# bats test_tags=full
@test "remote: the report of a C++ program equals the local one" {
	same_as_local "$T/leak_cpp"
}

# bats test_tags=full
@test "remote: every function is counted as the program tells it" {
	serving --wait -- "$T/early"
	watched "unix:$SOCKET"
	[ "$status" -eq 0 ]
	ended "$SERVE" 0
	out=$BATS_TEST_TMPDIR/serve.out as_told
	nothing_lost
}

# bats test_tags=full
@test "remote: a program becomes another one" {
	same_as_local "$T/exec" "$T/leak"
	[ "$(jq '.processes | length' "$report")" -eq 2 ]
}

@test "remote: attach, detach, and again: exactly what happens in between" {
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	serving "$TARGET"
	for round in 1 2; do
		cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
		watching "unix:$SOCKET"
		step "alloc 1000 48"
		step "free 700"
		step "burst 5000"
		kill -INT "$TAP"
		ended "$TAP" 0
		as_counted "$BATS_TEST_TMPDIR/before"
		nothing_lost
		is '.scan.reachable.blocks' 300
	done
	untouched "$TARGET"
	kill -TERM "$SERVE"
	ended "$SERVE" 0
	[ ! -e "$SOCKET" ]
}

@test "remote: an attached process that ends is held until its verdict has come" {
	local how
	for how in "bpf" "bpf -f" "ptrace"; do
		kinds
		# shellcheck disable=SC2086
		serving --backend $how "$TARGET"
		watching "unix:$SOCKET"
		built
		tell
		ended "$TARGET" 3
		ended "$TAP" 0
		ended "$SERVE" 0
		[ "$(field '.scan.definite.blocks')" -eq 10 ] || { echo "by $how"; return 1; }
		is .exit.code 3
	done
}

@test "remote: a verdict on older blocks is asked for on the machine where they are, and no command for it is named" {
	start sleep 1000
	TARGET=$PID
	serving "$TARGET"
	watching "unix:$SOCKET"
	kill -INT "$TAP"
	ended "$TAP" 0
	[[ $(field .verdict) == "no leaks among blocks since the attach; "* ]]
}

@test "remote: nothing is traced without a client" {
	spinning
	serving "$TARGET"
	has_own_code "$TARGET"
	# The server sleeps for a second each time, in poll() or ppoll(), unless somebody connects.
	[ "$(uname -m)" != x86_64 ] || wait_for grep -q '^7 .* 0x3e8 ' "/proc/$SERVE/syscall"
	watching "unix:$SOCKET"
	has_probes "$TARGET"
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}

# bats test_tags=full
@test "remote: interval reports and verdicts while it goes on" {
	spinning
	serving "$TARGET"
	watching -i 300ms --scan -o "$BATS_TEST_TMPDIR/%n.json" "unix:$SOCKET"
	wait_for test -f "$BATS_TEST_TMPDIR/3.json"
	kill -INT "$TAP"
	ended "$TAP" 0
	jq -e '.processes[0].scan.reachable.blocks > 0' "$BATS_TEST_TMPDIR/2.json"
	untouched "$TARGET"
}

# bats test_tags=full
@test "remote: serve --snapshot: verdicts from a copy, by each way and each tracer" {
	[ "$(uname -m)" = x86_64 ] || skip "processes are copied on x86_64 only"
	local backend way sums stopped serve_err=$BATS_TEST_TMPDIR/serve.err
	for backend in bpf ptrace; do
		for way in stop fork precopy; do
			rm -f "$BATS_TEST_TMPDIR/lines" "$BATS_TEST_TMPDIR/leak_kinds.out"
			kinds
			serving -v --backend "$backend" --snapshot "$way" "$TARGET"
			watching -o "$BATS_TEST_TMPDIR/$backend$way.json" "unix:$SOCKET"
			built
			kill -INT "$TAP"
			ended "$TAP" 0
			report=$BATS_TEST_TMPDIR/$backend$way.json
			sums=$(field '.scan | [.definite, .indirect, .possible, .reachable, .unsure] | tostring')
			[ "$way" != stop ] || stopped=$sums
			[ "$sums" = "$stopped" ] || { echo "$way: $sums, stop: $stopped"; return 1; }
			is .scan.indirect.blocks 13
			[ "$way" != fork ] || grep -q ': copied by a fork: ' "$serve_err"
			[ "$way" != precopy ] || grep -q ': copied while it runs: ' "$serve_err"
			no_line 'cannot be copied|no (fork|precopy)' "$serve_err"
			untouched "$TARGET"
			[ -z "$(cat "/proc/$TARGET/task/$TARGET/children")" ]
			tell
			ended "$TARGET" 3
			kill "$SERVE" 2>/dev/null || true
			wait_for gone "$SERVE"
		done
	done
}

@test "remote: the other side connects (feature 40)" {
	spinning
	mkdir -p -m 700 "$BATS_TEST_TMPDIR/net"
	report=$BATS_TEST_TMPDIR/report.json
	err=$BATS_TEST_TMPDIR/connect.err
	start_as connect "$HEAPTAP" connect --listen "unix:$BATS_TEST_TMPDIR/net/s" -o "$report"
	TAP=$PID
	start_as serve "$HEAPTAP" serve --to "unix:$BATS_TEST_TMPDIR/net/s" "$TARGET"
	SERVE=$PID
	wait_for is_watching
	works "$TARGET"
	detach
	[ "$(field .totals.allocs)" -gt 0 ]
	untouched "$TARGET"
}

# ---- who may ----

# bats test_tags=core
@test "remote: TCP needs the token, both ways (S4)" {
	spinning
	run "$HEAPTAP" serve --listen tcp://127.0.0.1:1 "$TARGET"
	[ "$status" -eq 2 ]
	[[ $output == *--token-file* ]]
	serving_tcp "$TARGET"
	run "$HEAPTAP" connect "tcp://127.0.0.1:$PORT"
	[ "$status" -eq 2 ]
	(umask 077 && tr 0-9a-f 1-9a-f0 <"$TOKEN" >"$BATS_TEST_TMPDIR/wrong")
	watched --token-file "$BATS_TEST_TMPDIR/wrong" "tcp://127.0.0.1:$PORT"
	[ "$status" -eq 4 ] || { echo "status $status"; cat "$err"; false; }
	grep -q 'wrong token' "$err"
	has_own_code "$TARGET"
	watched_at_work --token-file "$TOKEN" "tcp://127.0.0.1:$PORT"
	[ "$(field .totals.allocs)" -gt 0 ]
	untouched "$TARGET"
}

@test "remote: a token that others can read is refused; in the open is said (S4)" {
	spinning
	serving_tcp "$TARGET"
	chmod 644 "$TOKEN"
	run "$HEAPTAP" connect --token-file "$TOKEN" "tcp://127.0.0.1:$PORT"
	[ "$status" -eq 2 ]
	[[ $output == *"nobody else can read"* ]]
	chmod 600 "$TOKEN"
	start_as open "$HEAPTAP" serve --insecure-tcp --token-file "$TOKEN" --listen "tcp://0.0.0.0:$((PORT + 1))" "$TARGET"
	wait_for grep -q "can be read and changed on the way" "$BATS_TEST_TMPDIR/open.err"
}

# bats test_tags=full
@test "remote: TCP beyond this machine is refused unless --insecure-tcp, on both sides (S4)" {
	local why="TCP does not encrypt: use ssh://, or add --insecure-tcp on both sides"
	(umask 077 && printf '%064d' 7 >"$BATS_TEST_TMPDIR/token")
	for side in "serve --listen" "serve --to" connect "connect --listen" "console -x status"; do
		for address in tcp://192.0.2.9:1 tcp://0.0.0.0:1 "tcp://[2001:db8::1]:1" tcp://board.example:1; do
			[ "$side" != "serve --to" ] || [ "$address" != tcp://0.0.0.0:1 ] || continue
			# shellcheck disable=SC2086 # an option of its own
			run timeout 60 "$HEAPTAP" ${side%% *} --token-file "$BATS_TEST_TMPDIR/token" \
				$([[ $side == *" "* ]] && echo "${side#* }") "$address" $([[ $side != serve* ]] || echo $$)
			[ "$status" -eq 2 ]
			[ "$output" = "heaptap: ${side%% *}: $address: $why" ] || { echo "$side: $output"; false; }
		done
	done
	run "$HEAPTAP" connect --token-file "$BATS_TEST_TMPDIR/token" --discover
	[ "$status" -eq 2 ]
	[[ $output == *"--discover: finds servers of TCP"*--insecure-tcp ]]
}

@test "remote: serve of a name that no process has ends at once and says so" {
	run timeout 60 "$HEAPTAP" serve no-such-player
	[ "$status" -eq 4 ]
	[ "$output" = "heaptap: target: no-such-player: no such process" ]
	# One of two is enough.
	spinning
	serving "$TARGET" no-such-player
	is_running "$SERVE"
	grep -q "waiting; on the host: heaptap connect unix:$SOCKET" "$BATS_TEST_TMPDIR/serve.err"
}

@test "remote: another user is turned away (S3, G6)" {
	local DIR
	DIR=$(mktemp -d) # the test's own folder is not for others
	spinning
	serving "$TARGET"
	chmod 755 "$DIR"
	chmod 777 "$SOCKET"
	setpriv --reuid 65534 --clear-groups test -w "$SOCKET" || skip "$DIR is out of reach for other users"
	# it is closed at once: nothing to read
	run setpriv --reuid 65534 --clear-groups perl -MIO::Socket::UNIX -e '
		$s = IO::Socket::UNIX->new($ARGV[0]) or die "cannot connect: $!"; exit defined <$s>' "$SOCKET"
	[ "$status" -eq 0 ] || { echo "$output"; false; }
	wait_for grep -q "another user" "$BATS_TEST_TMPDIR/serve.err"
	# and a host does not talk to another user's server
	run setpriv --reuid 65534 --clear-groups "$HEAPTAP" connect "unix:$SOCKET"
	[ "$status" -ne 0 ]
	kill -TERM "$SERVE"
	ended "$SERVE" 0
	rmdir "$DIR"
}

@test "remote: a folder that is not ours alone is refused (G6)" {
	spinning
	mkdir -m 755 "$BATS_TEST_TMPDIR/open"
	run "$HEAPTAP" serve --listen "unix:$BATS_TEST_TMPDIR/open/s" "$TARGET"
	[ "$status" -eq 3 ]
	[[ $output == *0700* ]]
	[ ! -e "$BATS_TEST_TMPDIR/open/s" ]
}

# bats test_tags=full
@test "remote: the program is killed only with leave" {
	spinning
	serving "$TARGET"
	run python3 "$NET/peers.py" kill "$SOCKET"
	[[ $output == *allow-kill* ]]
	watching --kill "unix:$SOCKET"
	works "$TARGET"
	kill -INT "$TAP"
	ended "$TAP" 3
	grep -q '^heaptap: connect: --kill: the other side does not allow' "$err"
	run "$HEAPTAP" console -x 'kill yes' "unix:$SOCKET"
	[ "$status" -ne 0 ]
	[[ $output == *"kill: the other side does not allow it (serve --allow-kill)"* ]]
	is_running "$TARGET"
	kill -TERM "$SERVE"
	ended "$SERVE" 0
	serving --allow-kill "$TARGET"
	watched_at_work --kill "unix:$SOCKET"
	wait_for gone "$TARGET"
	[ "$(field .totals.allocs)" -gt 0 ]
}

# bats test_tags=full
@test "remote: a server ends with its target, also when nobody is connected" {
	spinning
	serving "$TARGET"
	kill -TERM "$TARGET"
	ended "$SERVE" 0
	spinning
	serving --allow-kill "$TARGET"
	run "$HEAPTAP" console -x 'kill yes' "unix:$SOCKET"
	[ "$status" -eq 0 ]
	ended "$SERVE" 0
}

# ---- peers ----

# harmless KIND...: after these peers the server still serves, in little memory, and its target is as before
harmless() {
	local kind
	spinning
	serving "$TARGET"
	for kind in "$@"; do
		run timeout 300 python3 "$NET/peers.py" "$kind" "$SOCKET"
		[ "$status" -eq 0 ] || { echo "$kind: $output"; return 1; }
	done
	wait_for has_own_code "$TARGET"
	watched_at_work "unix:$SOCKET"
	[ "$(field .totals.allocs)" -gt 0 ]
	[ "$(awk '/VmHWM/ { print $2 }' "/proc/$SERVE/status")" -lt 262144 ]
	[ "$(wc -l <"$BATS_TEST_TMPDIR/serve.err")" -lt 2000 ]
	untouched "$TARGET"
	is_running "$SERVE"
}

# bats test_tags=core
@test "remote: random bytes, HTTP, TLS, resets, commands too early, another version (G1, G3)" {
	harmless random_bytes http tls reset early version
	[ "$(wc -l <"$BATS_TEST_TMPDIR/serve.err")" -lt 30 ]
}

# bats test_tags=full
@test "remote: slow peers and half-open connections (G1)" {
	harmless slow half_open
}

# bats test_tags=full
@test "remote: 10,000 connections (G1)" {
	harmless many
	[ "$(wc -l <"$BATS_TEST_TMPDIR/serve.err")" -lt 30 ]
	[ "$(ls "/proc/$SERVE/fd" | wc -l)" -lt 60 ]
}

# bats test_tags=full
@test "remote: nonsense from a client that was let in (G3)" {
	harmless commands
}

@test "remote: one client at a time" {
	spinning
	serving "$TARGET"
	watching "unix:$SOCKET"
	run python3 "$NET/peers.py" second "$SOCKET"
	[ "$status" -eq 0 ] || { echo "$output"; false; }
	kill -INT "$TAP"
	ended "$TAP" 0
	nothing_lost
}

# bats test_tags=full
@test "remote: a client that does not read: the target goes on, memory is bounded (G2)" {
	spinning 2000
	serving "$TARGET"
	coproc STUCK { exec python3 "$NET/peers.py" stuck "$SOCKET" 3>&-; }
	STARTED+=("$STUCK_PID")
	read -r -t 120 _ <&"${STUCK[0]}"
	wait_for has_used "$TARGET" $(($(ticks "$TARGET") + 100))
	[ "$(awk '/VmHWM/ { print $2 }' "/proc/$SERVE/status")" -lt 131072 ]
	kill "$STUCK_PID"
	watched_at_work "unix:$SOCKET"
	untouched "$TARGET"
}

# ---- ends ----

# bats test_tags=core
@test "remote: the server is killed: the target is untouched, what is known is reported (G7)" {
	spinning
	serving "$TARGET"
	watching --no-scan "unix:$SOCKET"
	wait_for reports_allocs 101
	kill -KILL "$SERVE"
	wait_for grep -q "connection lost" "$err"
	kill -INT "$TAP"
	ended "$TAP" 5
	[ "$(field .totals.allocs)" -gt 100 ]
	jq -e .broken_off "$report"
	untouched "$TARGET"
}

# bats test_tags=full
@test "remote: the client is killed: the target is untouched, another one may come (G7)" {
	spinning
	serving "$TARGET"
	watching "unix:$SOCKET"
	kill -KILL "$TAP"
	wait_for grep -q "client is gone" "$BATS_TEST_TMPDIR/serve.err"
	is_running "$TARGET"
	watched_at_work "unix:$SOCKET"
	[ "$(field .totals.allocs)" -gt 0 ]
	untouched "$TARGET"
}

# bats test_tags=full
@test "remote: a stopped server does not stop the target; all is there or counted" {
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	serving --ring-size 64K "$TARGET"
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	watching "unix:$SOCKET"
	kill -STOP "$SERVE"
	step "burst 20000"
	kill -CONT "$SERVE"
	step "alloc 10 100"
	kill -INT "$TAP"
	wait_for gone "$TAP"
	seen_and_lost
	[ "$(field .lost.allocs)" -gt 0 ]
	untouched "$TARGET"
}

# bats test_tags=full
@test "remote: the server is stopped: one signal ends connect, with its report (A5, G7)" {
	spinning
	serving "$TARGET"
	watching -o "$BATS_TEST_TMPDIR/text.txt" "unix:$SOCKET"
	wait_for reports_allocs 101
	kill -STOP "$SERVE"
	kill -INT "$TAP"
	ended "$TAP" 5
	grep -q 'the other side does not answer; what is known until now is reported' "$err" || { cat "$err"; false; }
	[ "$(field .totals.allocs)" -gt 100 ]
	# The calls after that are missing, and the report says so.
	jq -e .broken_off "$report"
	grep -q '^  traced .* what came later is not known$' "$BATS_TEST_TMPDIR/text.txt"
	grep -q '^  lost  *all later calls, which nobody has counted$' "$BATS_TEST_TMPDIR/text.txt"
	# The server was asked to take them out, though it could not hear that.
	kill -CONT "$SERVE"
	untouched "$TARGET"
	wait_for grep -q 'the client has enough: the probes are out' "$BATS_TEST_TMPDIR/serve.err"
	is_running "$SERVE"
}

# bats test_tags=full
@test "remote: an ssh that does not end by itself is asked to" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	cat >"$BATS_TEST_TMPDIR/bin/ssh" <<-EOF
		#!/bin/bash
		trap 'touch $BATS_TEST_TMPDIR/asked; kill \$!; exit' TERM
		sleep 1000 2>/dev/null &
		touch $BATS_TEST_TMPDIR/begun
		wait
	EOF
	chmod +x "$BATS_TEST_TMPDIR/bin/ssh"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH start_as connect "$HEAPTAP" connect ssh://host/1
	wait_for test -e "$BATS_TEST_TMPDIR/begun"
	# Until it blocks SIGINT, the signal ends it at once.
	wait_for grep -q '^SigBlk:.*[2367abef]$' "/proc/$PID/status"
	kill -INT "$PID"
	ended "$PID" 0
	[ -e "$BATS_TEST_TMPDIR/asked" ]
}

# cut_and_mended BACKEND
cut_and_mended() {
	own_libc
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	serving -b "$1" "$TARGET"
	start_as proxy python3 "$NET/proxy.py" "$BATS_TEST_TMPDIR/net/p" "$SOCKET"
	PROXY=$PID
	wait_for test -S "$BATS_TEST_TMPDIR/net/p"
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	watching "unix:$BATS_TEST_TMPDIR/net/p"
	step "alloc 1000 48"
	wait_for reports_allocs 1000
	kill -USR1 "$PROXY"
	wait_for grep -q "connection lost" "$err"
	step "free 400"
	step "burst 1000"
	step "alloc 50 10"
	kill -USR2 "$PROXY"
	wait_for grep -q "connection is back" "$err"
	step "alloc 100 24"
	kill -INT "$TAP"
	wait_for gone "$TAP"
	seen_and_lost
	[ "$(field .lost.allocs)" -ge 1050 ]
	[ "$(field .lost.frees)" -ge 1400 ]
	is .scan.definite.blocks 0
	# stacks seen before the cut and after it are one caller
	[ "$(of_function step_allocates allocs)" -ge 1100 ]
	untouched "$TARGET"
}

@test "remote: the link is cut and mended: seen and lost add up, nothing is called leaked for it (G7, feature 44)" {
	cut_and_mended bpf
}

# bats test_tags=full
@test "remote: the same by ptrace: stacks come again (G7, feature 44)" {
	cut_and_mended ptrace
}

# bats test_tags=full
@test "remote: the client does not come back: the probes go" {
	spinning
	serving "$TARGET"
	watching "unix:$SOCKET"
	kill -KILL "$TAP"
	untouched "$TARGET"
	is_running "$SERVE"
}

# ---- ssh ----

# free_port: one where nobody listens; of those that the kernel gives to nobody who asks for any
free_port() {
	python3 - $((30000 + $$ % 2000)) <<-'PY'
		import socket, sys
		for port in range(int(sys.argv[1]), 32768):
		    with socket.socket() as s:
		        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		        if s.connect_ex(("127.0.0.1", port)):
		            print(port)
		            break
	PY
}

# with_sshd: a server of the test's own at 127.0.0.1:$SSH_PORT, and an ssh in PATH that knows its keys
with_sshd() {
	local dir=$BATS_TEST_TMPDIR/ssh
	command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || skip "no sshd: package openssh-server"
	SSH_PORT=$(free_port)
	mkdir -p "$dir/bin"
	[ -d /run/sshd ] || mkdir -m 755 /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/user"
	cp "$dir/user.pub" "$dir/authorized"
	echo "[127.0.0.1]:$SSH_PORT $(cut -d' ' -f1,2 "$dir/host.pub")" >"$dir/known"
	ln -s "$HEAPTAP" "$dir/bin/heaptap"
	cat >"$dir/sshd_config" <<-EOF
		Port $SSH_PORT
		ListenAddress 127.0.0.1
		HostKey $dir/host
		AuthorizedKeysFile $dir/authorized
		PidFile none
		StrictModes no
		UsePAM no
		PasswordAuthentication no
		PermitRootLogin prohibit-password
		SetEnv PATH=$dir/bin:/usr/sbin:/usr/bin:/sbin:/bin
	EOF
	cat >"$dir/ssh_config" <<-EOF
		IdentityFile $dir/user
		IdentitiesOnly yes
		UserKnownHostsFile $dir/known
		GlobalKnownHostsFile /dev/null
		BatchMode yes
	EOF
	printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$dir/ssh_config" >"$dir/bin/ssh"
	chmod +x "$dir/bin/ssh"
	start_as sshd "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f "$dir/sshd_config"
	wait_for grep -q 'listening' "$BATS_TEST_TMPDIR/sshd.err"
	PATH=$dir/bin:$PATH
}

# bats test_tags=full
@test "remote: ssh to a process" {
	with_sshd
	spinning
	watched_at_work "ssh://127.0.0.1:$SSH_PORT/$TARGET"
	[ "$(field .totals.allocs)" -gt 0 ]
	nothing_lost
	untouched "$TARGET"
}

# bats test_tags=full
@test "remote: ssh starts a program, its arguments as they are" {
	with_sshd
	watched "ssh://root@127.0.0.1:$SSH_PORT" -- /bin/sh -c 'echo "$1"; exec "$2"' "it's" '$HOME "x" `y` ; \\' "$T/leak"
	[ "$status" -eq 0 ] || { cat "$err"; false; }
	grep -qF '$HOME "x" `y` ; \\' "$err" || { cat "$err"; false; }
	[ "$(jq '.processes[-1].scan.definite.blocks' "$report")" -eq 32 ]
}

# bats test_tags=full
@test "remote: ssh that fails says why, and which" {
	with_sshd
	watched "ssh://127.0.0.1:$SSH_PORT/no-such-process"
	[ "$status" -eq 4 ] || { echo "status $status"; cat "$err"; false; }
	grep -q 'no-such-process' "$err"
	watched "ssh://127.0.0.1:1/1"
	[ "$status" -eq 4 ] || { echo "status $status"; cat "$err"; false; }
	grep -q 'refused' "$err"
	run "$HEAPTAP" connect "ssh://127.0.0.1:$SSH_PORT"
	[ "$status" -eq 2 ]
}

# bats test_tags=full
@test "remote: ssh is killed: the target is untouched, no server stays" {
	with_sshd
	spinning
	watching --no-scan "ssh://127.0.0.1:$SSH_PORT/$TARGET"
	wait_for reports_allocs 11
	pid=$(pgrep -P "$TAP" -x ssh)
	kill -KILL "$pid"
	ended "$TAP" 5
	[ "$(field .totals.allocs)" -gt 10 ]
	untouched "$TARGET"
}

# ---- servers that lie ----

# lying LIE...: between the server and the client, at $LIAR
lying() {
	LIAR=$DIR/liar
	rm -f "$LIAR"
	start_as liar python3 "$NET/liar.py" "$LIAR" "$SOCKET" "$@"
	wait_for says liar ready
}

# bats test_tags=full
@test "remote: a server that names /etc/shadow and sends escape sequences (G4, S5, S9)" {
	local sysroot=$BATS_TEST_TMPDIR/root DIR dir text esc=$'\e'
	command -v strace >/dev/null || skip "no strace"
	DIR=$(mktemp -d)
	dir=$(mktemp -d /tmp/XXXX)
	# as long as /etc/shadow
	[ ${#dir} -eq 9 ]
	cp "$T/spin" "$dir/q"
	mkdir -p "$sysroot/etc"
	ln -s /etc/shadow "$sysroot/etc/shadow"
	start "$dir/q"
	TARGET=$PID
	wait_for says q ready
	serving "$TARGET"
	lying "$dir/q=/etc/shadow" 'libc.so.6=\x1b]0;you\x07\x1b' 'malloc=\x1b[31mx'
	start bash -c 'exec "$@" 2>&1' - strace -f -y -s 200 -o "$BATS_TEST_TMPDIR/trace" -e trace=open,openat,openat2 \
		"$HEAPTAP" connect -v --sysroot "$sysroot" -o "$BATS_TEST_TMPDIR/r.json" -o - "unix:$LIAR"
	text=$BATS_TEST_TMPDIR/bash.out
	wait_for grep -q 'connected;' "$text"
	works "$TARGET"
	kill -INT "$(pgrep -P "$PID")"
	ended "$PID" 0 || { cat "$text"; false; }
	grep -q 'etc/shadow' "$text" # the lie arrived
	fails grep -q '</etc/shadow>' "$BATS_TEST_TMPDIR/trace"
	fails grep -q '"/etc/shadow' "$BATS_TEST_TMPDIR/trace"
	fails grep -q "$esc" "$text"
	fails grep -q "$esc" "$BATS_TEST_TMPDIR/r.json"
	jq -e '.processes[0].totals.allocs > 10' "$BATS_TEST_TMPDIR/r.json"
	kill -TERM "$SERVE"
	end_started
	rm -rf "$DIR" "$dir"
}

# bats test_tags=rounds,full
@test "remote: a server whose bytes are damaged: an error, a report of what was good, no crash (G4)" {
	local DIR seed status
	DIR=$(mktemp -d)
	spinning 200
	serving "$TARGET"
	for ((seed = 0; seed < HEAPTAP_ROUNDS; seed++)); do
		lying "$([ $((seed % 2)) -eq 0 ] && echo flip || echo garble)=$seed"
		status=0
		timeout -k 20 5 "$HEAPTAP" connect -t 500ms -i 100ms --scan -o "$BATS_TEST_TMPDIR/%n.json" --force \
			"unix:$LIAR" >/dev/null 2>"$BATS_TEST_TMPDIR/connect.err" || status=$?
		# 0: nothing important was hit; 124 while it waits for a connection that the damage ended
		[[ $status == [045] || $status == 124 ]] || { echo "seed $seed: $status"; cat "$BATS_TEST_TMPDIR/connect.err"; false; }
		kill "$PID"
		wait_for gone "$PID"
	done
	untouched "$TARGET"
	is_running "$SERVE"
	kill -TERM "$SERVE"
	end_started
	rm -rf "$DIR"
}

# ---- two hosts ----

# bats test_tags=full
@test "remote: two hosts; the cable is pulled for a while: nothing is lost, or it is counted (feature 44)" {
	two_hosts
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	serving_board --listen tcp://192.0.2.1 "$TARGET"
	wait_for is_listening
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	watching_host tcp://192.0.2.1
	wait_for is_watching
	step "alloc 1000 48"
	ip -n "$BOARD" link set "b$$" down
	step "free 300"
	step "burst 20000"
	sleep 3
	ip -n "$BOARD" link set "b$$" up
	step "alloc 100 24"
	kill -INT "$TAP"
	wait_for gone "$TAP"
	seen_and_lost
	is .scan.definite.blocks 0
	untouched "$TARGET"
}

# bats test_tags=full
@test "remote: two hosts; the board connects to the host, and again after the host's end (feature 40)" {
	two_hosts
	spinning
	serving_board --to tcp://192.0.2.2:4577 "$TARGET"
	for round in 1 2; do
		watching_host --listen tcp://192.0.2.2:4577 --force
		wait_for is_watching
		works "$TARGET"
		detach
		[ "$(field .totals.allocs)" -gt 0 ]
	done
	untouched "$TARGET"
}

# bats test_tags=full
@test "remote: two hosts; found without an address, and nothing is said unless asked for (feature 40)" {
	two_hosts
	spinning
	serving_board --listen tcp://192.0.2.1 "$TARGET"
	wait_for is_listening
	run ip netns exec "$HOST" "$HEAPTAP" connect --insecure-tcp --token-file "$TOKEN" --discover
	[ "$status" -eq 2 ]
	[[ $output == *"no server answered"* ]]
	kill "$SERVE"
	ended "$SERVE" 0
	serving_board --announce --listen tcp://192.0.2.1 "$TARGET"
	wait_for is_listening
	watching_host --discover
	wait_for is_watching
	works "$TARGET"
	detach
	grep -q 'tcp://192.0.2.1:4576' "$err"
	[ "$(field .totals.allocs)" -gt 0 ]
}

# bats test_tags=full
@test "remote: two hosts; the host announces itself, and heaptap or an agent on the board finds it (feature 40)" {
	local program
	[ -x "$O/musl/heaptap-agent" ] || skip "no agent here, as there is no musl-gcc: see make agent-musl"
	two_hosts
	spinning 1
	run ip netns exec "$BOARD" "$HEAPTAP" serve --token-file "$TOKEN" --discover "$TARGET"
	[ "$status" -eq 2 ]
	[[ $output == *"TCP does not encrypt"* ]]
	run ip netns exec "$BOARD" "$HEAPTAP" serve --insecure-tcp --discover "$TARGET"
	[ "$status" -eq 2 ]
	[[ $output == *"needs --token-file"* ]]
	run ip netns exec "$HOST" "$HEAPTAP" connect --insecure-tcp --token-file "$TOKEN" --announce tcp://192.0.2.1
	[ "$status" -eq 2 ]
	[[ $output == *"--announce: needs --listen tcp://"* ]]
	for program in "$HEAPTAP" "$O/musl/heaptap-agent"; do
		HEAPTAP=$program serving_board --discover "$TARGET"
		watching_host --announce --listen tcp://192.0.2.2:4577 --force
		wait_for is_watching
		works "$TARGET"
		detach
		[ "$(field .totals.allocs)" -gt 0 ]
		kill "$SERVE"
		ended "$SERVE" 0
	done
	untouched "$TARGET"
}

@test "remote: two hosts; a program on the board, its leaks on the host" {
	two_hosts
	serving_board --wait --listen tcp://192.0.2.1 -- "$T/leak"
	wait_for is_listening
	watching_host --sysroot / tcp://192.0.2.1
	ended "$TAP" 0
	is .scan.definite.blocks 32
	ended "$SERVE" 0
}

# bats test_tags=full
@test "remote: the agent serves: counts and verdicts as run has them" {
	not_by_inline "the agent has no inline source"
	[ -x "$O/musl/heaptap-agent" ] || skip "no agent here, as there is no musl-gcc: see make agent-musl"
	HEAPTAP=$O/musl/heaptap-agent serving --wait -- "$T/leak"
	watched "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; false; }
	ended "$SERVE" 0
	normal "$report" | jq 'del(.backend)' >"$BATS_TEST_TMPDIR/remote.json"
	traced -- "$T/leak"
	normal "$report" | jq 'del(.backend)' >"$BATS_TEST_TMPDIR/local.json"
	diff "$BATS_TEST_TMPDIR/remote.json" "$BATS_TEST_TMPDIR/local.json"
}

@test "remote: a recording of a connection has the same report" {
	serving --wait -- "$T/leak"
	watched -w "$BATS_TEST_TMPDIR/r.heaptap" "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; false; }
	normal "$report" | jq 'del(.backend)' >"$BATS_TEST_TMPDIR/live.json"
	"$HEAPTAP" report --sysroot / -o "$BATS_TEST_TMPDIR/r.json" "$BATS_TEST_TMPDIR/r.heaptap"
	normal "$BATS_TEST_TMPDIR/r.json" | jq 'del(.backend)' >"$BATS_TEST_TMPDIR/replayed.json"
	diff "$BATS_TEST_TMPDIR/live.json" "$BATS_TEST_TMPDIR/replayed.json"
}

@test "remote: threads have their names, also for a client that comes later and in its recording" {
	stepping
	serving "$TARGET"
	watching "unix:$SOCKET"
	step "worker 1000 reader"
	kill -INT "$TAP"
	ended "$TAP" 0
	jq -e '[.processes[0].threads[].name] == ["step", "reader"]' "$report"
	watching -w "$BATS_TEST_TMPDIR/r.heaptap" "unix:$SOCKET"
	step "worker 2000 writer"
	kill -INT "$TAP"
	ended "$TAP" 0
	jq -e '[.processes[0].threads[].name] == ["step", "writer"]' "$report"
	"$HEAPTAP" report -q -o "$BATS_TEST_TMPDIR/r.json" "$BATS_TEST_TMPDIR/r.heaptap"
	jq -e '[.processes[0].threads[].name] == ["step", "writer"]' "$BATS_TEST_TMPDIR/r.json"
}

# Names are read twice, and told once.
@test "remote: threads keep their names when the console forgets all, as they do without a connection" {
	local at
	spinning 1 2
	serving "$TARGET"
	for at in "$TARGET" "unix:$SOCKET"; do
		"$HEAPTAP" console -q "$at" -x 'wait 1200ms' -x reset -x 'wait allocs>=100 60s' -x "report $BATS_TEST_TMPDIR/r.json"
		jq -e '.processes[0].threads | length > 1 and all(.name == "spin")' "$BATS_TEST_TMPDIR/r.json"
		rm "$BATS_TEST_TMPDIR/r.json"
	done
}

# bats test_tags=full
@test "remote: a program of serve is watched, let go and watched again" {
	serving --wait -- "$T/spin"
	watching "unix:$SOCKET"
	wait_for says serve ready
	wait_for reports_allocs 100
	kill -INT "$TAP"
	ended "$TAP" 0
	is .started true
	is .scan.definite.blocks 0
	TARGET=$(field .pid)
	is_running "$TARGET"
	watched_at_work --scan "unix:$SOCKET"
	is .started false
	[ "$(field .scan.reachable.blocks)" -gt 0 ]
	kill "$TARGET"
	ended "$SERVE" 0
}

# bats test_tags=full
@test "remote: --alloc of serve: each client gets its calls" {
	serving --wait --alloc malloc=spin_allocates,free=free -- "$T/spin"
	watching "unix:$SOCKET"
	wait_for reports_allocs 100
	kill -INT "$TAP"
	ended "$TAP" 0
	[ "$(field .functions.spin_allocates)" -gt 0 ]
	TARGET=$(field .pid)
	watched_at_work "unix:$SOCKET"
	[ "$(field .functions.spin_allocates)" -gt 0 ]
	kill "$TARGET"
	ended "$SERVE" 0
}

# bats test_tags=full
@test "remote: the server is told to end: the report is whole; a second target" {
	spinning
	start_as other "$T/spin"
	other=$PID
	wait_for says other ready
	serving "$TARGET" "$other"
	watching --no-scan "unix:$SOCKET"
	works "$TARGET"
	works "$other"
	kill -INT "$SERVE"
	ended "$SERVE" 0
	ended "$TAP" 0
	[ "$(jq '[.processes[] | select(.totals.allocs > 10)] | length' "$report")" -eq 2 ]
	nothing_lost
	untouched "$TARGET"
}

# bats test_tags=full
@test "remote: without an address a socket of its own" {
	spinning
	start_as serve "$HEAPTAP" serve "$TARGET"
	SERVE=$PID
	wait_for is_listening
	[ "$(stat -c %a /run/heaptap)" = 700 ]
	watched_at_work "unix:/run/heaptap/$SERVE"
	kill "$SERVE"
	ended "$SERVE" 0
	[ ! -e "/run/heaptap/$SERVE" ]
}

# bats test_tags=full
@test "ssh: messages of ssh come without the end of line of a terminal" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/sh\nprintf "Connection closed by nobody.\\r\\n" >&2\nexit 255\n' >"$BATS_TEST_TMPDIR/bin/ssh"
	chmod 755 "$BATS_TEST_TMPDIR/bin/ssh"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH run "$HEAPTAP" connect ssh://nowhere.invalid/1
	[[ "$output" == *"ssh: Connection closed by nobody."* ]]
	[[ "$output" != *x0d* ]]
}
