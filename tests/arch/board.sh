#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# board.sh BUILD_DIR [CELL...]: a small board with another CPU, and this machine as its host: the agent serves in an
# emulated machine, heaptap outside has the programs with their symbols. tests/arch/board.bats are the tests; this builds
# what the board has (stripped), what the host has (not stripped), and calls them for each board. TAP; a board that cannot
# get its kernel, compiler or emulator is skipped. What it said is in BUILD_DIR/board/CELL/log.
# HEAPTAP_BOARD_FILTER=REGEX runs some of the tests; RECORD=1 and HEAPTAP_SILENCE=SECONDS as in tests/kernels/run.sh.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

O=$(realpath "$1") || exit 1
shift
WORK=$O/board
CACHE=${XDG_CACHE_HOME:+$XDG_CACHE_HOME/heaptap}
CACHE=${CACHE:-$O/arch}

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
CHECK=board

# As in run.sh: little endian with Thumb code, and big endian. Both have 32 bits.
CELLS=(
	"armhf bookworm armhf linux-image-armmp"
	"powerpc bookworm powerpc built"
)
TARGETS=(leak step)
# In the order in which they need each other.
MODULES=(virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net virtio_console)

# get_kernel SUITE ARCH PACKAGE: prints its path; modules are in $WORK/ARCH/modules if it needs any
get_kernel() {
	local image modules
	rm -rf "$WORK/$2/modules"
	if [ "$3" = built ]; then
		built_kernel "$2"
		return
	fi
	modules=$(kernel_modules "$@") && image=$(kernel_image "$@") || return 1
	cp -r "$modules" "$WORK/$2/modules" && echo "$image"
}

# make_board ARCH: the archive that it starts from, stripped; the same files with symbols in $WORK/ARCH/sysroot
make_board() {
	local cross dir=$WORK/$1 root=$WORK/$1/root sysroot=$WORK/$1/sysroot name file
	cross=$(cross_prefix "$1")
	begin_root "$root" "${cross}gcc" && build_agent "$1" "$root" || return 1
	rm -rf "$sysroot"
	mkdir -p "$sysroot"
	for name in $(build_targets "$1" "$sysroot" "${TARGETS[@]}"); do
		copy_libraries "$cross" "$sysroot/$name" "$sysroot" || return 1
	done
	find "$sysroot" -type f -printf '%P\n' | while read -r file; do
		mkdir -p "$(dirname "$root/$file")" && cp "$sysroot/$file" "$root/$file" || return 1
		# Without symbols nobody knows a static program's allocator.
		case $file in *-static) ;; *) "${cross}strip" "$root/$file" || return 1 ;; esac
	done || return 1
	for name in "${MODULES[@]}"; do
		[ ! -e "$dir/modules/$name.ko" ] || cp "$dir/modules/$name.ko" "$root/"
	done
	(umask 077 && od -An -vN32 -tx1 /dev/urandom | tr -dc 0-9a-f >"$dir/token" && cp "$dir/token" "$root/token")
	end_root "$root" "$dir/root.cpio.gz"
}

# prepare NAME SUITE ARCH PACKAGE: all that board.bats needs; or prints what is not there (1) or wrong (2)
prepare() {
	local dir=$WORK/$3 image
	mkdir -p "$dir"
	! missing_for "$3" "$3" || return 1
	command -v bats >/dev/null || { echo "bats is not installed"; return 1; }
	[ "$(id -u)" -eq 0 ] || { echo "not root: a network of its own"; return 1; }
	image=$(get_kernel "$2" "$3" "$4" 2>"$dir/get") || { echo "no kernel: $(tail -n1 "$dir/get")"; return 1; }
	make_board "$3" >"$dir/build" 2>&1 || { echo "cannot build, see $dir/build"; return 2; }
	set_machine "$3" "$image" "$dir/root.cpio.gz" ""
	# A network of the emulator's own, in which the board is 10.0.2.15, and a line of bytes.
	MACHINE+=(-netdev "user,id=net,hostfwd=tcp:127.0.0.1:4576-10.0.2.15:4576" -device virtio-net-pci,netdev=net
		-chardev "socket,id=line,path=$dir/net/line,server=on,wait=off" -device virtio-serial-pci
		-device virtserialport,chardev=line,name=line)
	printf '%q ' "${MACHINE[@]}" >"$dir/machine"
}

for cell in "${CELLS[@]}"; do
	name=${cell%% *}
	wanted "$name" "$@" || continue
	# shellcheck disable=SC2086 # four words
	why=$(prepare $cell)
	case $? in
	0) ;;
	1) skip_cell "$name" "$why"; continue ;;
	*) tell_cell "$name" "$name" /dev/null <<<"not ok $why"; continue ;;
	esac
	# The board has a network of its own: the port is free there, and no other machine reaches it.
	tell_cell "$name" "$name" "$WORK/$name/log" < <(unshare -n env HEAPTAP="$O/heaptap" O="$O" BOARD="$WORK/$name" BOARD_MODULES="${MODULES[*]}" \
		bats --tap ${HEAPTAP_BOARD_FILTER:+-f "$HEAPTAP_BOARD_FILTER"} tests/arch/board.bats 2>&1)
done
end_cells
