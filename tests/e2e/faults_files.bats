#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Files that lie, that are gone, that never were, that are elsewhere: probes never harm, names are right or say so.
#
# bats file_tags=full

load ../lib/common

# value_of SYMBOL FILE, in decimal
value_of() { echo $((16#$(nm "$2" | awk -v s="$1" '$3 == s { print $1 }'))); }

# as_untraced PROGRAM: prints and ends the same under heaptap
as_untraced() {
	traced -q -- "$1"
	[ "$status" -eq 0 ] && cmp -s "$out" "$BATS_TEST_TMPDIR/control"
}

@test "faults: symbols named malloc and free inside functions, instructions and data (D8)" {
	local base text at
	"$T/work" >"$BATS_TEST_TMPDIR/control"
	base=$(value_of work "$T/work")
	text=$((16#$(objdump -h "$T/work" | awk '$2 == ".text" { print $4 }')))
	for ((at = 0; at < 24; at++)); do
		objcopy --add-symbol "free=.text:$((base - text + at)),function,global" "$T/work" "$BATS_TEST_TMPDIR/w$at"
		as_untraced "$BATS_TEST_TMPDIR/w$at" || { echo "free at work+$at: $status"; cat "$err"; return 1; }
		[ "$at" -eq 0 ] || grep -q 'no probe in free: no function begins' "$err"
	done
	# In the middle of main and of both, of no length, of all lengths, in data.
	objcopy --add-symbol "malloc=.text:$(($(value_of main "$T/work") - text + 1)),function,global" \
		--add-symbol "free=.text:$(($(value_of main "$T/work") - text + 1)),function,global" "$T/work" "$BATS_TEST_TMPDIR/both"
	as_untraced "$BATS_TEST_TMPDIR/both"
	objcopy --add-symbol "malloc=.rodata:4,function,global" --add-symbol "calloc=.data:0,function,global" \
		--add-symbol "realloc=0xfffffffffffff000,function,global" "$T/work" "$BATS_TEST_TMPDIR/data"
	as_untraced "$BATS_TEST_TMPDIR/data"
	# One address for both: one probe.
	objcopy --add-symbol "malloc=.text:$((base - text)),function,global" \
		--add-symbol "free=.text:$((base - text)),function,global" "$T/work" "$BATS_TEST_TMPDIR/same"
	as_untraced "$BATS_TEST_TMPDIR/same"
}

@test "faults: the program's file is deleted, replaced by another one (D2, S6)" {
	cp "$T/spin" "$BATS_TEST_TMPDIR/gone"
	start "$BATS_TEST_TMPDIR/gone"
	TARGET=$PID
	wait_for says gone ready
	rm "$BATS_TEST_TMPDIR/gone"
	attached "$TARGET"
	works "$TARGET"
	detach
	[ "$(of_function spin_allocates allocs)" -gt 0 ]
	cp "$T/nothing" "$BATS_TEST_TMPDIR/gone"
	attached "$TARGET"
	works "$TARGET"
	detach
	[ "$(of_function spin_allocates allocs)" -gt 0 ]
	is_running "$TARGET"
}

@test "faults: a library is replaced while it is in use: names are the old one's (D2, S6)" {
	mkdir "$BATS_TEST_TMPDIR/lib"
	cp "$T/step" "$BATS_TEST_TMPDIR/step"
	cp "$(ldd "$T/step" | awk '/libc\.so/ { print $3 }')" "$BATS_TEST_TMPDIR/lib/libc.so.6"
	coproc STEP { LD_LIBRARY_PATH=$BATS_TEST_TMPDIR/lib exec "$BATS_TEST_TMPDIR/step" 2>/dev/null 3>&-; }
	TARGET=$STEP_PID
	STARTED+=("$TARGET")
	step_answer ready
	grep -q "$BATS_TEST_TMPDIR/lib/libc.so.6" "/proc/$TARGET/maps"
	cp "$T/libearly.so" "$BATS_TEST_TMPDIR/new"
	mv "$BATS_TEST_TMPDIR/new" "$BATS_TEST_TMPDIR/lib/libc.so.6"
	attached "$TARGET"
	step "alloc 7 50"
	detach
	is .totals.allocs 7
	[ "$(of_function step_allocates live_blocks)" -eq 7 ]
	is_running "$TARGET"
}

@test "faults: a program that exists in memory only, a library in /dev/shm (D3)" {
	traced -- "$T/in_memory" "$T/leak"
	[ "$status" -eq 0 ]
	jq -e '.processes[-1] | .exe | startswith("/memfd:in memory")' "$report"
	jq -e '.processes[-1] | .totals.live_blocks == 102 and any(.stacks[].frames[]; .function == "open_session")' "$report"
	mkdir "/dev/shm/$$" && cp "$T/early" "$T/libearly.so" "/dev/shm/$$/"
	traced -- "/dev/shm/$$/early"
	rm -r "/dev/shm/$$"
	[ "$status" -eq 0 ]
	as_told
}

@test "faults: overlay file systems, heaptap inside and outside of the mount namespace (D3)" {
	local d=$BATS_TEST_TMPDIR
	mkdir "$d/low" "$d/up" "$d/mnt"
	cp "$T/leak" "$T/leak-static" "$T/spin" "$d/low"
	mount="mount -t tmpfs none '$d/up' && mkdir '$d/up/u' '$d/up/w' &&
		mount -t overlay overlay -o 'lowerdir=$d/low,upperdir=$d/up/u,workdir=$d/up/w' '$d/mnt'"
	unshare -m bash -c "$mount" || skip "no overlay mounts here"
	for program in leak leak-static; do
		unshare -m bash -c "$mount && timeout 120 '$HEAPTAP' run -q --force -o '$d/r.json' -- '$d/mnt/$program' >/dev/null"
		jq -e '.processes[0] | any(.stacks[]; .live_blocks == 50 and any(.frames[]; .function == "serve"))' "$d/r.json"
	done
	start unshare -m bash -c "$mount && exec '$d/mnt/spin'"
	TARGET=$PID
	wait_for says unshare ready
	attached "$TARGET"
	works "$TARGET"
	detach
	[ "$(of_function spin_allocates allocs)" -gt 0 ]
	is_running "$TARGET"
}

@test "faults: spaces, newlines, bytes that are no text and (deleted) in names of files (D4)" {
	local d=$BATS_TEST_TMPDIR/$'a b\nc (deleted)' name=$'le\xffak (deleted)'
	mkdir "$d"
	cp "$T/leak" "$d/$name"
	traced -- "$d/$name"
	[ "$status" -eq 0 ]
	is .totals.live_blocks 102
	[ "$(of_function open_session allocs)" -gt 0 ]
	timeout 120 "$HEAPTAP" run -q -- "$d/$name" 2>"$BATS_TEST_TMPDIR/text" >/dev/null
	# A long line of the report is broken at a space.
	tr -s ' \n' ' ' <"$BATS_TEST_TMPDIR/text" | grep -qF 'a b\x0ac (deleted)/le\xffak (deleted)'
	LC_ALL=C grep -q $'\xff' "$BATS_TEST_TMPDIR/text" && { echo "a byte that is no text"; return 1; }
	# And deleted for real.
	cp "$T/spin" "$d/spin (deleted)"
	start "$d/spin (deleted)"
	TARGET=$PID
	wait_for says 'spin (deleted)' ready
	rm "$d/spin (deleted)"
	attached "$TARGET"
	works "$TARGET"
	detach
	[ "$(of_function spin_allocates allocs)" -gt 0 ]
}

@test "faults: a container: other user, PID, mount namespaces, another root (D5)" {
	local d=$BATS_TEST_TMPDIR/root
	mkdir "$d" "$d/bin" "$d/proc"
	for file in $(ldd "$T/spin" | grep -o '/[^ ]*'); do
		mkdir -p "$d/$(dirname "$file")"
		cp "$file" "$d/$file"
	done
	cp "$T/spin" "$d/bin/contained"
	unshare -Ur true || skip "no user namespaces here"
	start unshare -Ur -p -m -f chroot "$d" /bin/contained 1 2
	wait_for says unshare ready
	TARGET=$(pgrep -x contained)
	STARTED+=("$TARGET")
	[ "$(awk '/^NSpid/ { print NF }' "/proc/$TARGET/status")" -ge 3 ]
	attached "$TARGET"
	works "$TARGET"
	detach
	is .pid "$TARGET"
	[ "$(of_function spin_allocates allocs)" -gt 0 ]
	[[ $(field '.allocators[0].object') == "$d"/* ]]
	nothing_lost
	is_running "$TARGET"
}

@test "faults: a library shrinks while heaptap reads it (D7)" {
	local lib=$BATS_TEST_TMPDIR/libshrinks.so n
	cp "$T/plug_leak.so" "$lib"
	start env LD_PRELOAD="$lib" "$T/spin"
	TARGET=$PID
	wait_for says env ready
	grep -q libshrinks "/proc/$TARGET/maps"
	# At all moments: its length changes again and again, while heaptap comes and goes.
	start bash -c "trap 'exit 0' TERM; while :; do truncate -s 100 '$lib'; truncate -s 0 '$lib'; cat '$T/plug_leak.so' >'$lib'; done"
	local changer=$PID
	for ((n = 0; n < 5; n++)); do
		attached "$TARGET"
		works "$TARGET"
		detach
		[ "$(field .totals.allocs)" -gt 0 ]
	done
	kill -TERM "$changer"
	ended "$changer" 0
	cat "$T/plug_leak.so" >"$lib"
	untouched "$TARGET"
}

@test "faults: a perf map that is a FIFO or lies is not opened (D10)" {
	local map
	spinning
	map=/tmp/perf-$TARGET.map
	mkfifo "$map"
	attached "$TARGET"
	works "$TARGET"
	detach || { rm "$map"; return 1; }
	rm "$map"
	[ "$(of_function spin_allocates allocs)" -gt 0 ]
	printf '0 ffffffffffff false_name\n' >"$map"
	attached "$TARGET"
	works "$TARGET"
	detach || { rm "$map"; return 1; }
	rm "$map"
	[ "$(of_function false_name allocs)" -eq 0 ]
	[ "$(of_function spin_allocates allocs)" -gt 0 ]
}

@test "faults: a debug file of 4 GiB, nearly all of it holes (D9)" {
	local d=$BATS_TEST_TMPDIR
	objcopy --only-keep-debug "$T/leak" "$d/leak.debug"
	objcopy --strip-debug --remove-section=.gnu_debuglink "$T/leak" "$d/leak"
	(cd "$d" && objcopy --add-gnu-debuglink=leak.debug leak)
	truncate -s 4G "$d/leak.debug"
	rm -f "$d/report.json"
	timeout -k 5 120 bash -c "ulimit -v 4000000; exec '$HEAPTAP' run -q -o '$d/report.json' -- '$d/leak'" >/dev/null
	jq -e '.processes[0].totals.live_blocks == 102' "$d/report.json"
}

@test "faults: a file server that no longer answers: its files are left out, all others are traced (D3)" {
	[ -c /dev/fuse ] || skip "no FUSE here"
	mkdir "$BATS_TEST_TMPDIR/served"
	python3 "$BATS_TEST_DIRNAME/../net/file_server.py" "$T/plug_own.so" "$BATS_TEST_TMPDIR/served" 3 >"$BATS_TEST_TMPDIR/server" 2>&1 3>&- ||
		skip "no FUSE here: $(cat "$BATS_TEST_TMPDIR/server")"
	mkfifo "$BATS_TEST_TMPDIR/lines"
	start bash -c "exec '$T/stack_dlopen' many '$BATS_TEST_TMPDIR/served/plug_own.so' <'$BATS_TEST_TMPDIR/lines'"
	TARGET=$PID
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for says bash ready
	touch "$BATS_TEST_TMPDIR/served.hangs"
	attached --no-scan "$TARGET"
	grep -q 'plug_own.so: its file server does not answer: nothing in its files is probed or named' "$err"
	rm "$BATS_TEST_TMPDIR/served.hangs"
	detach
	untouched "$TARGET"
	# When it answers again, all is as usual.
	attached --no-scan "$TARGET"
	fails grep -q 'does not answer' "$err"
	has_probes "$TARGET"
	detach
	jq -e '[.processes[0].allocators[]?] | length > 1' "$report" >/dev/null || { jq '.processes[0].allocators' "$report"; false; }
	untouched "$TARGET"
	end_started
	exec 7>&-
	umount "$BATS_TEST_TMPDIR/served"
}
