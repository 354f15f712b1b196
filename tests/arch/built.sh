# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Kernels that no distribution has: built from its source package, without BPF, kept by the hash of their configuration.

BUILT_OPTIONS="TTY PRINTK BINFMT_ELF BINFMT_SCRIPT BLK_DEV_INITRD RD_GZIP DEVTMPFS PROC_FS SYSFS FUTEX SHMEM TMPFS
	HIGH_RES_TIMERS CROSS_MEMORY_ATTACH POSIX_TIMERS EPOLL EVENTFD SIGNALFD MULTIUSER NET UNIX"
# A network card and a plain line of bytes to the machine around it, for tests/arch/board.sh.
BUILT_OPTIONS_board="INET NETDEVICES NET_CORE VIRTIO_MENU VIRTIO VIRTIO_PCI VIRTIO_NET VIRTIO_CONSOLE"
BUILT_OPTIONS_amd64="64BIT IA32_EMULATION SERIAL_8250 SERIAL_8250_CONSOLE PCI ACPI"
BUILT_OPTIONS_powerpc="COMPAT_32BIT_TIME PPC_BOOK3S_32 PPC_BOOK3S_603 PPC_PMAC PCI MACINTOSH_DRIVERS ADB ADB_CUDA ADB_PMU
	SERIAL_PMACZILOG SERIAL_PMACZILOG_TTYS SERIAL_PMACZILOG_CONSOLE ALTIVEC PPC_OF_BOOT_TRAMPOLINE $BUILT_OPTIONS_board"

# The unpacked source of the suite's kernel.
kernel_source() {
	local config dir=$CACHE/linux-source
	[ ! -e "$dir/Makefile" ] || { echo "$dir"; return; }
	config=$(apt_root bookworm amd64) || return 1
	mkdir -p "$dir.deb" "$dir.new"
	(cd "$dir.deb" && APT_CONFIG=$config apt-get -qq download linux-source-6.1 >&2) || return 1
	dpkg-deb --fsys-tarfile "$dir".deb/*.deb | tar -x -O --wildcards './usr/src/linux-source-*.tar.xz' |
		tar -xJ --strip-components=1 -C "$dir.new" || return 1
	rm -rf "$dir.deb"
	mv "$dir.new" "$dir"
	echo "$dir"
}

# built_kernel ARCH: prints the path of its image, built when there is none; some minutes
built_kernel() {
	local options name hash image source option arch
	name=BUILT_OPTIONS_$1
	options="$BUILT_OPTIONS ${!name}"
	hash=$(echo "6.1 $options" | sha256sum | cut -c1-16)
	image=$CACHE/kernel-built-$1-$hash
	[ ! -s "$image" ] || { echo "$image"; return; }
	for name in flex bison bc; do
		command -v "$name" >/dev/null || { echo "$name is not installed" >&2; return 1; }
	done
	mkdir -p "$CACHE" && source=$(kernel_source) || return 1
	arch=$([ "$1" = powerpc ] && echo powerpc || echo x86)
	local make=(make -C "$source" -s -j"$(nproc)" ARCH="$arch" CROSS_COMPILE="$(cross_prefix "$1")" O="$CACHE/build-$1")
	mkdir -p "$CACHE/build-$1"
	"${make[@]}" tinyconfig >&2 || return 1
	for option in $options; do
		"$source/scripts/config" --file "$CACHE/build-$1/.config" -e "$option"
	done
	"${make[@]}" olddefconfig >&2 || return 1
	if [ "$1" = powerpc ]; then
		"${make[@]}" vmlinux >&2 && cp "$CACHE/build-$1/vmlinux" "$image" || return 1
	else
		"${make[@]}" bzImage >&2 && cp "$CACHE/build-$1/arch/x86/boot/bzImage" "$image" || return 1
	fi
	rm -rf "$CACHE/build-$1"
	echo "$image"
}
