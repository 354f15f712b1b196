#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run.sh BUILD_DIR [CELL...]: boots other kernels in a machine of their own and runs tests/kernels/guest.sh there.
# TAP; a cell that cannot get its kernel is skipped. What a guest said is in BUILD_DIR/kernels/CELL.log.
# HEAPTAP_TESTS=REGEX chooses tests (guest.sh), HEAPTAP_KERNEL_LIMIT=SECONDS ends a cell.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

O=$1
shift
WORK=$O/kernels
CACHE=${XDG_CACHE_HOME:+$XDG_CACHE_HOME/heaptap}
CACHE=${CACHE:-$WORK}
LIMIT_S=${HEAPTAP_KERNEL_LIMIT:-240} # for one cell, boot and tests

# shellcheck source=tests/kernels/kernel.sh
. tests/kernels/kernel.sh

# name, suite, package that stands for the newest kernel of the suite
CELLS=(
	"5.10 bullseye linux-image-cloud-amd64"
	"6.1 bookworm linux-image-cloud-amd64"
	"6.12 trixie linux-image-cloud-amd64"
	"7.2 sid linux-image-cloud-amd64"
)

TOOLS=(bash jq awk sed grep cat cp rm mkdir head tail dirname basename sleep stat cmp dd env timeout pgrep)
TARGETS=(nothing leak leak-32 leak-static nothing-static order threads operators exceptions early libearly.so dlopen
	plug_alloc.so plug_own.so mmap deep exitcodes step spin)

# ---- the guest's files ----

# needed_by FILE...: what the dynamic linker would load
needed_by() { ldd "$@" 2>/dev/null | grep -o '/[^ :]*' | sort -u; }

# put FILE PATH: into the root, with the libraries it needs at their own paths
put() {
	local lib
	mkdir -p "$ROOT/$(dirname "$2")"
	cp -L "$1" "$ROOT/$2" || return 1
	for lib in $(needed_by "$1"); do
		case $lib in "$O"/*) continue ;; esac
		[ -e "$ROOT$lib" ] && continue
		mkdir -p "$ROOT$(dirname "$lib")"
		cp -L "$lib" "$ROOT$lib" || return 1
	done
}

make_root() {
	local name
	ROOT=$WORK/root
	rm -rf "$ROOT"
	mkdir -p "$ROOT"/{dev,proc,sys,tmp,bin,tests/lib} || return 1
	mknod "$ROOT/dev/console" c 5 1 || return 1
	${CC:-gcc} -O2 -Wall -Wextra -static -o "$ROOT/init" -D_GNU_SOURCE tests/kernels/init.c || return 1
	cp tests/kernels/guest.sh "$ROOT/guest.sh"
	cp tests/lib/common.bash "$ROOT/tests/lib/"
	put "$O/heaptap" build/heaptap || return 1
	for name in "${TOOLS[@]}"; do
		put "$(command -v "$name")" "bin/$name" || return 1
	done
	for name in "${TARGETS[@]}"; do
		put "$O/tests/targets/$name" "build/tests/targets/$name" || echo "# no target $name"
	done
	for name in count.so count-read; do
		put "$O/tests/oracle/$name" "build/tests/oracle/$name" || return 1
	done
	(cd "$ROOT" && find . | cpio --quiet -o -H newc | gzip -1) >"$WORK/root.cpio.gz"
}

# ---- cells ----

# One cell; leaves its verdict in CELL.verdict: ok, failed, or why it is skipped.
run_cell() {
	local name=$1 suite=$2 package=$3 image log=$WORK/$1.log verdict
	rm -f "$log"
	if ! image=$(kernel_image "$suite" amd64 "$package" 2>"$WORK/$name.get"); then
		echo "no kernel: $(tail -n1 "$WORK/$name.get")" >"$WORK/$name.verdict"
		return
	fi
	# Hardware virtualization may be there and still not boot another kernel. qemu 7.2 forgets the flags
	# when it emulates cmpxchg16b, so that guests crash: without it kernels take other ways.
	timeout -k 5 "$LIMIT_S" qemu-system-x86_64 -M q35 -cpu max,-cx16 -accel tcg -smp 2 -m 1024 -nographic -no-reboot \
		-nic none -kernel "$image" -initrd "$WORK/root.cpio.gz" \
		-append "console=ttyS0 quiet panic=-1${HEAPTAP_TESTS:+ HEAPTAP_TESTS=$HEAPTAP_TESTS}" </dev/null 2>&1 | tr -d '\r' >"$log"
	# Only what the guest says counts: qemu ends with 0 after a panic too.
	verdict=failed
	grep -aq '^GUEST-END ok' "$log" && verdict=ok
	echo "$verdict" >"$WORK/$name.verdict"
}

# wanted NAME CELL...
wanted() {
	local name=$1
	shift
	[ $# -gt 0 ] || return 0
	case " $* " in *" $name "*) return 0 ;; esac
	return 1
}

# tell NUMBER NAME SUITE: the verdict as TAP; fails if it is one
tell() {
	local verdict release
	verdict=$(cat "$WORK/$2.verdict")
	release=$(sed -n 's/^GUEST-KERNEL //p' "$WORK/$2.log" 2>/dev/null)
	case $verdict in
	ok) echo "ok $1 - $2 ($3) ${release}: $(grep -c '^ok ' "$WORK/$2.log") tests" ;;
	failed)
		echo "not ok $1 - $2 ($3) ${release:-did not boot}"
		grep -a -A12 '^not ok' "$WORK/$2.log" | sed 's/^/# /'
		grep -aq '^GUEST-END' "$WORK/$2.log" || tail -n 15 "$WORK/$2.log" | sed 's/^/# /'
		return 1
		;;
	*) echo "ok $1 - $2 ($3) # SKIP $verdict" ;;
	esac
}

command -v qemu-system-x86_64 >/dev/null || { echo "1..0 # SKIP qemu-system-x86_64 is not installed"; exit 0; }
command -v cpio >/dev/null || { echo "1..0 # SKIP cpio is not installed"; exit 0; }
mkdir -p "$WORK"
make_root || { echo "Bail out! no root for the guests"; exit 1; }

nr=0 failed=0 skipped=0
chosen=()
for cell in "${CELLS[@]}"; do
	wanted "${cell%% *}" "$@" && chosen+=("$cell")
done
echo "1..${#chosen[@]}"
for cell in "${chosen[@]}"; do
	# shellcheck disable=SC2086 # three words
	run_cell $cell &
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
done
wait
for cell in "${chosen[@]}"; do
	read -r name suite _ <<<"$cell"
	nr=$((nr + 1))
	tell "$nr" "$name" "$suite" || failed=$((failed + 1))
	case $(cat "$WORK/$name.verdict") in ok | failed) ;; *) skipped=$((skipped + 1)) ;; esac
done
echo "# kernels: $((nr - failed - skipped)) ok, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
