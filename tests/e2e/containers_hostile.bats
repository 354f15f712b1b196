#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Containers whose files lie: links that lead out, paths of the host, symbols inside instructions. heaptap reads the files
# that are mapped or none, and the program goes on as without heaptap.
#
# bats file_tags=full

load ../lib/common

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	cd "$BATS_TEST_TMPDIR" || return 1
	[ "$(id -u)" = 0 ] || skip "needs root"
	unshare -m true 2>/dev/null || skip "no mount namespaces here"
	inner_root=$BATS_TEST_TMPDIR/root
	libc=$(ldd "$T/spin" | awk '/libc\.so/ { print $3 }')
	with_files_of "$T/spin"
}

teardown() {
	exec 7>&- || true
	end_started
}

# with_files_of PROGRAM: the container has copies of it and of its libraries, in the same places
with_files_of() {
	local file
	mkdir -p "$inner_root"
	cp "$1" "$inner_root/"
	for file in $(ldd "$1" | grep -o '/[^ ]*'); do
		mkdir -p "$inner_root${file%/*}"
		cp "$file" "$inner_root$file"
	done
}

# contained PROGRAM [ARG...]: runs in the container; its PID is in $TARGET
contained() {
	rm -f mounts
	mkfifo mounts
	# Both ends, so that no side waits for the other one.
	exec 7<>mounts
	start bash -c 'exec python3 "$@" <&7 7<&-' _ "$ROOT/tests/lib/container.py" "$inner_root" "$@"
	wait_for says bash '^pid'
	TARGET=$(awk '/^pid / { print $2 }' "$BATS_TEST_TMPDIR/bash.out")
	STARTED+=("$TARGET")
	wait_for says bash ready
}

# shifted FILE OFFSET SYMBOL...: these functions of its dynamic symbols lie in its malloc, OFFSET bytes behind its begin, the
# next one a byte further, and so on
shifted() {
	python3 - "$@" <<-'END'
		import struct, sys
		path, offset, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
		data = bytearray(open(path, "rb").read())
		at, = struct.unpack_from("<Q", data, 40)
		size, nr = struct.unpack_from("<HH", data, 58)
		sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(nr)]
		table = next(s for s in sections if s[1] == 11)
		strings = sections[table[6]][4]
		symbols = {}
		for sym in range(table[4], table[4] + table[5], 24):
		    name = strings + struct.unpack_from("<I", data, sym)[0]
		    symbols.setdefault(data[name:data.index(0, name)].decode(), sym)
		malloc, = struct.unpack_from("<Q", data, symbols["malloc"] + 8)
		for i, name in enumerate(names):
		    struct.pack_into("<Q", data, symbols[name] + 8, malloc + offset + i)
		open(path, "wb").write(data)
	END
}

# mount_over FROM TO: both directories of the container
mount_over() {
	local nr
	nr=$(grep -c mounted "$BATS_TEST_TMPDIR/bash.out" || true)
	echo "$1 $2" >&7
	wait_for has_mounted $((nr + 1))
}

has_mounted() { [ "$(grep -c mounted "$BATS_TEST_TMPDIR/bash.out")" -ge "$1" ]; }

# is_as_before LIBRARY: the target goes on, nobody traces it, and its code of the library is that of this file
is_as_before() {
	local range offset start size
	works "$TARGET"
	is_untraced "$TARGET"
	read -r range _ offset _ < <(awk -v i="$(stat -c %i "$1")" '$2 ~ /x/ && $5 == i' "/proc/$TARGET/maps")
	start=$((16#${range%-*})) size=$((16#${range#*-} - 16#${range%-*}))
	cmp <(dd if="/proc/$TARGET/mem" bs=64K iflag=skip_bytes,count_bytes skip="$start" count="$size" status=none) \
		<(dd if="$1" bs=64K iflag=skip_bytes,count_bytes skip=$((16#$offset)) count="$size" status=none)
}

# judged: attaches for a while; the report has what the program does, all of it from files of the container
judged() {
	attached "$@" "$TARGET"
	works "$TARGET"
	detach
	[ "$(of_function spin_allocates allocs)" -gt 0 ]
	nothing_lost
}

# A file of the host that a link or a path of the container may lead to. Its malloc is no function.
decoy() {
	mkdir -p "${1%/*}"
	objcopy --add-symbol "malloc=.text:3,function,global" --add-symbol "free=.text:5,function,global" "$T/libearly.so" "$1"
}

@test "containers: links that lead out lie at the place of the allocator's library (D5, S6)" {
	local way
	decoy "$BATS_TEST_TMPDIR/decoy.so"
	contained /spin 1
	mkdir "$inner_root/relative" "$inner_root/absolute"
	ln -s "../../../../../../../..$BATS_TEST_TMPDIR/decoy.so" "$inner_root/relative/${libc##*/}"
	ln -s "$BATS_TEST_TMPDIR/decoy.so" "$inner_root/absolute/${libc##*/}"
	for way in relative absolute; do
		mount_over "/$way" "${libc%/*}"
		grep -q " $libc\$" "/proc/$TARGET/maps"
		judged
		[ "$(field '.allocators[0].object')" = "$libc" ]
		is_as_before "$inner_root$libc"
	done
}

@test "containers: the path of the library is that of a file of the host with other contents (D5, S6)" {
	local path=$BATS_TEST_TMPDIR/same/${libc##*/}
	decoy "$path"
	mkdir -p "$inner_root${path%/*}"
	mv "$inner_root$libc" "$inner_root$path"
	INNER_LIBRARY_PATH=${path%/*} contained /spin 1
	judged
	[ "$(field '.allocators[0].object')" = "$path" ]
	is_as_before "$inner_root$path"
}

@test "containers: symbols of the library lie inside the instructions of its malloc (D5, D8)" {
	local offset names=(valloc pvalloc posix_memalign memalign aligned_alloc)
	for ((offset = 1; offset <= 11; offset += 5)); do
		cp "$libc" "$inner_root$libc"
		shifted "$inner_root$libc" "$offset" "${names[@]}"
		contained /spin 1
		judged
		grep -q 'no probe in valloc: no function begins where its symbol says' "$err"
		fails grep 'no probe in' <<<"$("$HEAPTAP" doctor 2>&1 >/dev/null)"
		is_as_before "$inner_root$libc"
		kill "$TARGET"
	done
}
