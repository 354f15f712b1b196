#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run.sh BUILD_DIR [CELL...]: the agent on other CPUs. Boots a kernel of each in a machine of its own; there targets run under
# the agent, and the emulation of instructions is compared with the CPU. Reports come over the console and are
# compared here with what the targets say; names come from the cross compiler's addr2line, which knows nothing of heaptap.
# TAP; a cell that cannot get its kernel, compiler or emulator is skipped. What a guest said is in BUILD_DIR/arch/CELL.log.
# RECORD=1 and HEAPTAP_SILENCE=SECONDS as in tests/kernels/run.sh.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

O=$(realpath "$1") || exit 1
shift
WORK=$O/arch
CACHE=${XDG_CACHE_HOME:+$XDG_CACHE_HOME/heaptap}
CACHE=${CACHE:-$WORK}

# shellcheck source=tests/kernels/kernel.sh
. tests/kernels/kernel.sh
# shellcheck source=tests/kernels/machine.sh
. tests/kernels/machine.sh
# shellcheck source=tests/kernels/cells.sh
. tests/kernels/cells.sh
# shellcheck source=tests/arch/built.sh
. tests/arch/built.sh
# shellcheck source=tests/arch/files.sh
. tests/arch/files.sh
CHECK=arch

# name, suite, distribution's name of the CPU, package that stands for its kernel, or "built"
CELLS=(
	"arm64 bookworm arm64 linux-image-cloud-arm64"
	"arm64-16k trixie arm64 linux-image-arm64-16k"
	"armhf bookworm armhf linux-image-armmp"
	"i386 bookworm i386 linux-image-686-pae"
	"mipsel bookworm mipsel linux-image-4kc-malta"
	"riscv64 trixie riscv64 linux-image-riscv64"
	"powerpc bookworm powerpc built"
	"amd64 bookworm amd64 built"
)

# make_root ARCH CELL: the archive, and the list of tests
make_root() {
	local root=$WORK/root-$1 cross name
	cross=$(cross_prefix "$1")
	begin_root "$root" "${cross}gcc" || return 1
	build_agent "$1" "$root" || return 1
	: >"$root/tests"
	case $2 in
	amd64 | i386) ;; # tests/unit/arch/test_cpu.c does it
	arm64-16k) ;;    # as arm64; it takes pages to have 4 KiB
	*)
		"${cross}gcc" -O2 -static -I. -D_GNU_SOURCE -o "$root/native" tests/arch/native.c arch/cpu*.c || return 1
		echo "/native 2000" >>"$root/tests"
		;;
	esac
	if [ "$1" = armhf ]; then
		# The C library of armhf is Thumb code, so this program is compiled as ARM code.
		"${cross}gcc" -marm -O2 -static -I. -D_GNU_SOURCE -o "$root/native-arm" tests/arch/native.c arch/cpu*.c ||
			return 1
		{ echo "/native 2000 thumb"; echo "/native-arm 2000"; } >"$root/tests"
	fi
	rm -rf "$WORK/targets-$1"
	mkdir -p "$WORK/targets-$1"
	for name in $(build_targets "$1" "$WORK/targets-$1" leak threads marked); do
		copy_libraries "$cross" "$WORK/targets-$1/$name" "$root"
	done
	# A kernel with pages of 4 KiB runs 32-bit programs, too.
	cross=$(cross_prefix armhf)
	if [ "$2" = arm64 ] && command -v "${cross}gcc" >/dev/null; then
		mkdir -p "$WORK/targets-$1-32"
		for name in $(build_targets armhf "$WORK/targets-$1-32" leak threads marked); do
			copy_libraries "$cross" "$WORK/targets-$1-32/$name" "$root" /lib/arm-linux-gnueabihf
			cp "$WORK/targets-$1-32/$name" "$WORK/targets-$1/$name-32"
		done
	fi
	for name in $(cd "$WORK/targets-$1" && ls); do
		cp "$WORK/targets-$1/$name" "$root/$name"
		{ echo "/agent run -o /tmp/$name.json /$name $(arguments "$name")"; echo "cat /tmp/$name.json"; } >>"$root/tests"
	done
	end_root "$root" "$WORK/root-$1.cpio.gz"
}

arguments() {
	case $1 in
	leak*) echo "--expect" ;;
	threads*) echo "4 50" ;;
	marked*) echo "expect" ;;
	esac
}

# ---- cells ----

# run_cell NAME SUITE ARCH PACKAGE: its TAP lines are in NAME.tap, or in NAME.skip why there are none
run_cell() {
	local name=$1 arch=$3 image why log=$WORK/$1.log
	rm -f "$log" "$WORK/$name".{tap,skip}
	if why=$(missing_for "$arch" "$name"); then
		echo "$why" >"$WORK/$name.skip"
	elif ! image=$(if [ "$4" = built ]; then built_kernel "$arch"; else kernel_image "$2" "$arch" "$4" "${name#"$arch"}"; fi \
		2>"$WORK/$name.get"); then
		echo "no kernel: $(tail -n1 "$WORK/$name.get")" >"$WORK/$name.skip"
	elif ! make_root "$arch" "$name" >"$WORK/$name.build" 2>&1; then
		echo "not ok cannot build, see $WORK/$name.build" >"$WORK/$name.tap"
	else
		boot "$name" "$image" "$WORK/root-$arch.cpio.gz" "" "$log"
		{
			! grep -aq '^GUEST-KERNEL' "$log" || tests/arch/compare.sh "$log" "$WORK/targets-$arch" \
				"$(cross_prefix "$arch")" "$WORK/$name"
			tell_end "$log"
		} >"$WORK/$name.tap"
	fi
}

mkdir -p "$WORK"
for cell in "${CELLS[@]}"; do
	wanted "${cell%% *}" "$@" || continue
	# shellcheck disable=SC2086 # four words
	run_cell $cell
	name=${cell%% *}
	if [ -s "$WORK/$name.skip" ]; then
		skip_cell "$name" "$(cat "$WORK/$name.skip")"
	else
		tell_cell "$name" "$name" "$WORK/$name.log" <"$WORK/$name.tap"
	fi
done
end_cells
