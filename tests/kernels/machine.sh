# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Machines for other kernels and other CPUs: which emulator and compiler a CPU needs, the archive a guest starts from.

SILENCE_S=${HEAPTAP_SILENCE:-1200} # a guest that says nothing new for so long is dead

# wanted NAME CELL...: is this machine one of CELLS, or are there none?
wanted() {
	local name=$1
	shift
	[ $# -gt 0 ] || return 0
	case " $* " in *" $name "*) return 0 ;; esac
	return 1
}

# cross_prefix ARCH: of the distribution's tools for that CPU
cross_prefix() {
	case $1 in
	amd64) echo x86_64-linux-gnu- ;;
	arm64) echo aarch64-linux-gnu- ;;
	armhf) echo arm-linux-gnueabihf- ;;
	i386) echo i686-linux-gnu- ;;
	mipsel) echo mipsel-linux-gnu- ;;
	powerpc) echo powerpc-linux-gnu- ;;
	riscv64) echo riscv64-linux-gnu- ;;
	*) return 1 ;;
	esac
}

# compiler_for ARCH
compiler_for() {
	if [ "$1" = amd64 ]; then
		echo "${CC:-gcc}"
	else
		echo "$(cross_prefix "$1")gcc"
	fi
}

# emulator_for ARCH or CELL: its command, and after a / the guest's console
emulator_for() {
	case $1 in
	# qemu 7.2 forgets the flags when it emulates cmpxchg16b, so that guests crash: without it kernels take other ways.
	amd64) echo "qemu-system-x86_64 -M q35 -cpu max,-cx16 -smp 2 / ttyS0" ;;
	# A CPU that signs return addresses.
	arm64 | arm64-16k) echo "qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -smp 2 / ttyAMA0" ;;
	# Without LPAE a kernel finds no PCI bus above 4 GiB.
	armhf) echo "qemu-system-arm -M virt,highmem=off -cpu cortex-a15 -smp 2 / ttyAMA0" ;;
	i386) echo "qemu-system-i386 -M q35 -cpu max -smp 2 / ttyS0" ;;
	mipsel) echo "qemu-system-mipsel -M malta -cpu 24Kf / ttyS0" ;;
	powerpc) echo "qemu-system-ppc -M mac99 / ttyS0" ;;
	riscv64) echo "qemu-system-riscv64 -M virt -smp 2 / ttyS0" ;;
	*) return 1 ;;
	esac
}

# missing_for ARCH EMULATED: prints which program for such a machine is not installed here; 1 if all are
missing_for() {
	local name
	for name in cpio "$(compiler_for "$1")" "$(emulator_for "$2")"; do
		command -v "${name%% *}" >/dev/null || { echo "${name%% *} is not installed"; return 0; }
	done
	return 1
}

# begin_root DIR GCC: what every guest has
begin_root() {
	rm -rf "$1"
	mkdir -p "$1"/{dev,proc,sys,tmp} || return 1
	mknod "$1/dev/console" c 5 1 || return 1
	# shellcheck disable=SC2086 # a compiler may have a word in front
	$2 -O2 -Wall -Wextra -static -o "$1/init" -D_GNU_SOURCE tests/kernels/init.c
}

# end_root DIR ARCHIVE
end_root() { (cd "$1" && find . | cpio --quiet -o -H newc | gzip -1) >"$2"; }

# set_machine ARCH KERNEL ARCHIVE WORDS: into $MACHINE the emulator's command; WORDS are added to the kernel's command line
set_machine() {
	local emulator console
	emulator=$(emulator_for "$1") || return 1
	console=${emulator##*/ } emulator=${emulator%/ *}
	# Hardware virtualization may be there and still not boot another kernel.
	# shellcheck disable=SC2206 # a command with its options
	MACHINE=($emulator -accel tcg -m 1024 -nographic -no-reboot -kernel "$2" -initrd "$3"
		-append "console=$console quiet panic=-1${4:+ $4}")
}

# is_off PID: the emulator has ended
is_off() { ! grep -qs '^State:	[^Z]' "/proc/$1/status"; }

# seconds_for PID: a clock that stands still while all of the CPUs do something else than the emulator's work, for its
# thread that has waited most
seconds_for() {
	local waited
	waited=$(cat /proc/"$1"/task/*/schedstat 2>/dev/null | awk '$2 > most { most = $2 } END { printf "%d", most / 1e9 }')
	echo $((SECONDS - waited))
}

# guest_until LOG PID COMMAND...: waits until COMMAND succeeds. Else 1, and prints why: the emulator has ended, or its guest
# has said nothing new in LOG for $SILENCE_S. Lines of the kernel do not count: it tells again and again that it hangs.
guest_until() {
	local log=$1 pid=$2 lines="" have now since=0
	shift 2
	until "$@"; do
		if is_off "$pid"; then
			"$@" && return 0
			echo "the machine is off"
			return 1
		fi
		have=$(LC_ALL=C grep -avc '^\[' "$log" || true)
		now=$(seconds_for "$pid")
		[ "$have" = "$lines" ] || { lines=$have; since=$now; }
		[ $((now - since)) -lt "$SILENCE_S" ] || { echo "no new line for $SILENCE_S s"; return 1; }
		sleep 0.3
	done
	return 0
}

# boot EMULATED KERNEL ARCHIVE WORDS LOG: until the guest ends, or is dead; what it says is in LOG
boot() {
	local pid why
	set_machine "$1" "$2" "$3" "$4" || return 1
	"${MACHINE[@]}" -nic none </dev/null >"$5" 2>&1 &
	pid=$!
	why=$(guest_until "$5" "$pid" is_off "$pid") || { kill -KILL "$pid"; echo "GUEST-DEAD $why" >>"$5"; }
	wait "$pid" 2>/dev/null || true # what it ends with says nothing: 0 after a panic too
	sed -i 's/\r//g' "$5"
}

# tell_end LOG: a TAP line if the guest did not boot, or did not come to its end, with its last words
tell_end() {
	local what="did not boot"
	! grep -aq '^GUEST-END' "$1" || return 0
	! grep -aq '^GUEST-KERNEL' "$1" || what="did not come to its end"
	echo "not ok $what$(sed -n 's/^GUEST-DEAD /: /p' "$1")"
	tail -n 15 "$1" | sed 's/^/# /'
}
