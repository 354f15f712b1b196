#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Wrong input of every kind: one line that says what, which and why, and the documented status.

load ../lib/common

# refuses STATUS PATTERN ARGS...: one line on stderr, beginning with heaptap:, that matches
refuses() {
	local want=$1 pattern=$2
	shift 2
	# The status is for run to compare: of 127 it thinks that the command is missing.
	run "-$want" --separate-stderr timeout 60 "$HEAPTAP" "$@" || { echo "$*: $stderr"; return 1; }
	[[ $stderr =~ $pattern ]] || { echo "$*: does not say $pattern: $stderr"; return 1; }
	[ "${#stderr_lines[@]}" -eq 1 ] || { echo "$*: not one line: $stderr"; return 1; }
	[[ ${stderr_lines[0]} == heaptap:* ]] || { echo "$*: $stderr"; return 1; }
	[ -z "$output" ] || { echo "$*: stdout: $output"; return 1; }
}

@test "bad input: no such process" {
	refuses 4 'no such process|not found|ended' attach 999999999
	refuses 4 'no-such-program' attach no-such-program
}

@test "bad input: kernel thread (A13)" {
	refuses 4 'kernel thread' attach 2
	refuses 4 'kernel thread' scan 2
}

@test "bad input: zombie (A13)" {
	"$T/exitcodes" >/dev/null &
	wait_for gone $!
	refuses 4 'zombie|ended|no such process' attach $!
	refuses 4 'zombie|ended|no such process' scan $!
}

@test "bad input: program missing, not executable" {
	refuses 127 'no-such-program: no such program in PATH' run -- no-such-program
	refuses 127 'No such file' run -- "$BATS_TEST_TMPDIR/missing"
	echo data >"$BATS_TEST_TMPDIR/data"
	refuses 126 'Permission denied: is it executable' run -- "$BATS_TEST_TMPDIR/data"
	refuses 126 '' run -- "$BATS_TEST_TMPDIR"
}

@test "bad input: no program, no target, unknown command" {
	refuses 2 '' run
	refuses 2 '' run --
	refuses 2 '' attach
	refuses 2 'frobnicate' frobnicate
	refuses 2 '' report
	refuses 2 '' help frobnicate
}

@test "bad input: no command at all shows the help, status 2" {
	run "$HEAPTAP"
	[ "$status" -eq 2 ]
}

# bats test_tags=core
@test "bad input: unknown options" {
	refuses 2 'frobnicate' run --frobnicate -- true
	refuses 2 '' attach -Z 1
	refuses 2 '' run -d
}

# bats test_tags=core
@test "bad input: values out of range" {
	refuses 2 'depth' run -d -1 -- true
	refuses 2 'depth' run -d 128 -- true
	refuses 2 'depth' run -d 12x -- true
	refuses 2 'depth' run -d 99999999999999999999 -- true
	refuses 2 'interval' run -i 0 -- true
	refuses 2 'interval' run -i 5parsecs -- true
	refuses 2 'duration' attach -t -3s 1
	refuses 2 'duration' attach -t 999999999999h 1
	refuses 2 'sort' run -s beauty -- true
	refuses 2 'top' run -n -1 -- true
	refuses 2 'backend' run -b magic -- true
	refuses 2 'ring' run --ring-size 0 -- true
	refuses 2 'ring' run --ring-size 99999999999999999999 -- true
	refuses 2 'ring' run --ring-size lots -- true
}

# bats test_tags=core
@test "bad input: output file exists: refused without --force, before anything starts" {
	echo precious >"$BATS_TEST_TMPDIR/r.json"
	run --separate-stderr "$HEAPTAP" run -o "$BATS_TEST_TMPDIR/r.json" -- touch "$BATS_TEST_TMPDIR/started"
	[ "$status" -eq 2 ]
	[[ $stderr == *r.json*--force* ]]
	[ "$(cat "$BATS_TEST_TMPDIR/r.json")" = precious ]
	[ ! -e "$BATS_TEST_TMPDIR/started" ]
	"$HEAPTAP" run -q --force -o "$BATS_TEST_TMPDIR/r.json" -- true 2>/dev/null
	jq -e .schema "$BATS_TEST_TMPDIR/r.json"
}

@test "bad input: output file is a symbolic link: not followed" {
	echo precious >"$BATS_TEST_TMPDIR/victim"
	ln -s victim "$BATS_TEST_TMPDIR/link.json"
	run "$HEAPTAP" run -q --force -o "$BATS_TEST_TMPDIR/link.json" -- true
	[ "$(cat "$BATS_TEST_TMPDIR/victim")" = precious ]
}

@test "bad input: output cannot be written, ending unknown" {
	refuses 2 'no/such' run -o "$BATS_TEST_TMPDIR/no/such/r.json" -- true
	refuses 2 '' run -o "$BATS_TEST_TMPDIR" -- true
	refuses 2 'docx' run -o "$BATS_TEST_TMPDIR/r.docx" -- true
	refuses 2 '' run -o "" -- true
}

@test "bad input: a target without an allocator is told, not shown as zero (B12)" {
	printf '.globl _start\n_start:\n mov $60, %%eax\n xor %%edi, %%edi\n syscall\n' >"$BATS_TEST_TMPDIR/bare.s"
	[ "$(uname -m)" = x86_64 ] || skip "assembler of x86_64"
	gcc -nostdlib -static -o "$BATS_TEST_TMPDIR/bare" "$BATS_TEST_TMPDIR/bare.s"
	run --separate-stderr "$HEAPTAP" run -- "$BATS_TEST_TMPDIR/bare"
	[ "$status" -eq 0 ]
	[[ $stderr == *"no allocator"* ]]
}

@test "bad input: a corrupt library in the target: that file only" {
	cp "$T/plug_alloc.so" "$BATS_TEST_TMPDIR/bad.so"
	# Section headers and symbol tables of nonsense; what the loader needs stays.
	python3 - "$BATS_TEST_TMPDIR/bad.so" <<-'PY'
		import struct, sys
		f = open(sys.argv[1], "r+b")
		data = f.read()
		shoff = struct.unpack_from("<Q", data, 40)[0]
		f.seek(shoff)
		f.write(b"\xff" * (len(data) - shoff))
	PY
	LD_PRELOAD=$BATS_TEST_TMPDIR/bad.so traced -- "$T/leak" --expect
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	grep -q 'expect calls malloc' "$out"
	as_told
}

@test "bad input: what is no recording is refused" {
	head -c 4096 /dev/urandom >"$BATS_TEST_TMPDIR/noise"
	refuses 4 'noise' report "$BATS_TEST_TMPDIR/noise"
	refuses 4 'No such file' report "$BATS_TEST_TMPDIR/missing"
	refuses 4 'directory' report "$BATS_TEST_TMPDIR"
}

# bats test_tags=core
@test "bad input: names with control characters do not reach the terminal (S9)" {
	name=$(printf 'evil\033[31m\nname')
	cp "$T/leak" "$BATS_TEST_TMPDIR/$name"
	run --separate-stderr "$HEAPTAP" run -- "$BATS_TEST_TMPDIR/$name"
	[[ $stderr != *$'\033[31m'* ]]
	traced -- "$BATS_TEST_TMPDIR/$name"
	jq -e . "$report"
}

@test "bad input: no config, library or program from the working directory (S8)" {
	cd "$BATS_TEST_TMPDIR"
	printf 'depth 1\nignore .*\n' >config
	cp config .heaptap
	cp config heaptap.conf
	traced -- "$T/leak" --expect
	as_told
}

@test "without rights: status 3 and what is missing (E1)" {
	not_by_inline "another user cannot read the file that chooses the source"
	chmod 755 "$BATS_TEST_TMPDIR"
	run --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$HEAPTAP" run -b bpf -- true
	[ "$status" -eq 3 ] || { echo "$status: $stderr"; return 1; }
	[[ $stderr =~ CAP_|root|sudo ]] || { echo "$stderr"; return 1; }
	spinning
	run --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$HEAPTAP" attach -t 100ms "$TARGET"
	[ "$status" -eq 3 ]
	[[ $stderr =~ CAP_|root|sudo ]]
	untouched "$TARGET"
}

@test "without rights: run goes by ptrace, and says why (E1)" {
	not_by_inline "another user cannot read the file that chooses the source"
	local shared
	shared=$(mktemp -d)
	chmod 777 "$shared"
	setpriv --reuid=65534 --regid=65534 --clear-groups test -w "$shared" -a -x "$HEAPTAP" ||
		skip "$shared or $HEAPTAP is out of reach for other users"
	run --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$HEAPTAP" run \
		-o "$shared/r.json" -- "$T/leak"
	report=$BATS_TEST_TMPDIR/report.json
	mv "$shared/r.json" "$report"
	rmdir "$shared"
	[ "$status" -eq 0 ]
	[[ $stderr == *'by ptrace'*CAP_BPF* ]]
	jq -e '.backend == "ptrace"' "$report"
	nothing_lost
	is .scan.definite.blocks 32
}

@test "without rights: one capability missing is named (E1)" {
	run --separate-stderr setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin bash -c "exec '$HEAPTAP' run -b bpf -- true"
	[ "$status" -eq 3 ] || [ "$status" -eq 0 ]
	[ "$status" -eq 0 ] || [[ $stderr == *CAP_SYS_ADMIN* ]]
}

@test "without rights: file descriptors are few (E5)" {
	run --separate-stderr bash -c "ulimit -n 16; exec '$HEAPTAP' run -q -- '$T/leak'"
	[ "$status" -lt 128 ] || { echo "status $status"; return 1; }
	if [ "$status" -eq 0 ]; then
		[ "$output" = "served 200 requests" ]
	else
		[[ $stderr == heaptap:* ]]
	fi
}
