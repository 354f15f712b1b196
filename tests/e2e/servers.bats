#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --debuginfod: names from servers, and what happens when these refuse, are not there or never answer.
#
# bats file_tags=full

load ../lib/common

setup() {
	cd "$BATS_TEST_TMPDIR"
	ldconfig -p | grep -qF libdebuginfod.so.1 || skip "no libdebuginfod here"
	objcopy --strip-all "$T/leak" stripped
	id=$(readelf -n "$T/leak" | sed -n 's/.*Build ID: //p')
	mkdir -p server
	export DEBUGINFOD_CACHE_PATH=$BATS_TEST_TMPDIR/cache no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
	report=r.json
}

teardown() { end_started; }

# serving [HOW]: a server as files.py says, its address in DEBUGINFOD_URLS
serving() {
	start python3 "$ROOT/tests/net/files.py" server "$@"
	wait_for says python3 '^port'
	DEBUGINFOD_URLS=http://127.0.0.1:$(sed -n 's/^port //p' python3.out)
	export DEBUGINFOD_URLS
}

recorded() { "$HEAPTAP" run -q --no-scan -w r.heaptap -- ./stripped >out 2>err; }

# complained TEXT: the only message is one line that has it, and the report is there without names
complained() {
	[ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$1" err || { cat err; return 1; }
	[ "$(field .totals.allocs)" -gt 0 ]
	[ "$(of_function load_settings live_blocks)" -eq 0 ]
}

@test "servers: names from a server, and nobody is asked without it" {
	mkdir -p "server/buildid/$id" debug
	objcopy --only-keep-debug "$T/leak" "server/buildid/$id/debuginfo"
	serving
	"$HEAPTAP" run -q --no-scan -w r.heaptap -o "$report" -- ./stripped 2>err >out
	[ "$(of_function load_settings live_blocks)" -eq 0 ]
	fails grep -q buildid python3.out
	"$HEAPTAP" report -q --force --debuginfod -o "$report" r.heaptap 2>err
	[ "$(of_function load_settings live_blocks)" -eq 12 ]
	[ "$(jq -r '[.processes[0].stacks[].frames[] | select(.function == "load_settings")][0].line' "$report")" -gt 0 ]
	grep -q "/buildid/$id/debuginfo" python3.out
	# Another file than was asked for is none.
	objcopy --only-keep-debug "$T/spin" "server/buildid/$id/debuginfo"
	DEBUGINFOD_CACHE_PATH=$BATS_TEST_TMPDIR/cache2 "$HEAPTAP" report -q --force --debuginfod -o "$report" r.heaptap 2>err
	[ "$(of_function load_settings live_blocks)" -eq 0 ]
	# No server: said once, and the report is there.
	DEBUGINFOD_URLS='' "$HEAPTAP" report --force --debuginfod -o "$report" r.heaptap 2>err
	[ "$(grep -c 'names no server' err)" -eq 1 ]
	[ "$(field .totals.allocs)" -gt 0 ]
}

@test "servers: one that cannot be reached or refuses is said in one line, and the report comes" {
	local host
	recorded
	# A port that nobody has: a server had it, and is gone.
	serving
	end_started
	"$HEAPTAP" report -q --debuginfod -o "$report" r.heaptap 2>err
	complained "--debuginfod: $DEBUGINFOD_URLS: cannot connect"
	for host in http://no-such-host.invalid http://no-such-host.invalid/x; do
		DEBUGINFOD_URLS=$host "$HEAPTAP" report -q --force --debuginfod -o "$report" r.heaptap 2>err
		complained "--debuginfod: $host: no such host"
	done
	serving 403
	"$HEAPTAP" report -q --force --debuginfod -o "$report" r.heaptap 2>err
	complained "--debuginfod: $DEBUGINFOD_URLS: refused with HTTP status 403"
	end_started
	# A server that has no such file is no trouble. The library keeps in its cache that a file is not there.
	rm -r cache
	serving 404
	"$HEAPTAP" report -q --force --debuginfod -o "$report" r.heaptap 2>err
	[ ! -s err ]
	grep -q "/buildid/$id/" python3.out
	DEBUGINFOD_CACHE_PATH=$PWD/cache2 "$HEAPTAP" report --color never --debuginfod r.heaptap >text 2>err
	grep -q 'missing for stripped (no server gave them)' text
	fails grep -q -- '--debuginfod may help' text
}

@test "servers: Ctrl-C ends the waiting only, and no other file is waited for" {
	recorded
	serving silent
	"$ROOT/tests/lib/talk.py" "$HEAPTAP" report --debuginfod -o "$report" r.heaptap <<-'SCRIPT'
		expect waiting for a server: stripped
		type \x03
		expect no more waiting for servers
		end 0
	SCRIPT
	[ "$(field .totals.allocs)" -gt 0 ]
	# The library may ask twice for the same file, or not yet.
	[ "$(grep -o 'buildid/[0-9a-f]*' python3.out | sort -u | wc -l)" -le 1 ] || { cat python3.out; return 1; }
	# A trace goes on after it, though its signals are blocked.
	cp stripped spinning
	objcopy --strip-all "$T/spin" spinning
	start ./spinning
	TARGET=$PID
	wait_for says spinning ready
	"$ROOT/tests/lib/talk.py" "$HEAPTAP" attach --debuginfod --no-scan -i 1s -o r-%n.json "$TARGET" <<-SCRIPT
		expect waiting for a server
		type \\x03
		expect no more waiting for servers
		run for i in \$(seq 600); do [ -s r-3.json ] && exit; sleep 0.1; done; exit 1
		type \\x03
		end 0
	SCRIPT
	is_running "$TARGET"
}

@test "servers: the progress has bytes, and the size when it is known" {
	recorded
	serving slow
	"$ROOT/tests/lib/talk.py" "$HEAPTAP" report --debuginfod -o "$report" r.heaptap <<-'SCRIPT'
		expect 64.0 KiB of 10.0 MiB  stripped
		type \x03
		expect no more waiting for servers
		end 0
	SCRIPT
	[ "$(field .totals.allocs)" -gt 0 ]
}
