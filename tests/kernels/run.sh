#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run.sh BUILD_DIR [CELL|NAME=IMAGE...]: boots other kernels in a machine of their own and runs tests/kernels/guest.sh
# there; for another CPU heaptap is built first, with the distribution's cross compiler, which must be there. A kernel
# image of your own, for x86_64, is traced by ptrace.
# TAP; a cell that cannot get its kernel is skipped. What a guest said is in BUILD_DIR/kernels/CELL.log.
# HEAPTAP_TESTS=REGEX chooses tests (guest.sh), RECORD=1 writes results into doc/tested.md, HEAPTAP_SILENCE=SECONDS is how
# long a guest may say nothing (machine.sh).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

O=$(realpath "$1") || exit 1
shift
WORK=$O/kernels
CACHE=${XDG_CACHE_HOME:+$XDG_CACHE_HOME/heaptap}
CACHE=${CACHE:-$WORK}

# shellcheck source=tests/kernels/kernel.sh
. tests/kernels/kernel.sh
# shellcheck source=tests/kernels/machine.sh
. tests/kernels/machine.sh
# shellcheck source=tests/kernels/cells.sh
. tests/kernels/cells.sh
CHECK=kernels

# name, suite, distribution's name of the CPU, package that stands for the newest kernel of the suite, source if not BPF
CELLS=(
	"5.10 bullseye amd64 linux-image-cloud-amd64"
	"6.1 bookworm amd64 linux-image-cloud-amd64"
	"6.12 trixie amd64 linux-image-cloud-amd64"
	"7.2 sid amd64 linux-image-cloud-amd64"
	"6.1-arm64 bookworm arm64 linux-image-cloud-arm64"
	"6.12-arm64 trixie arm64 linux-image-cloud-arm64"
	"6.1-arm64-inline bookworm arm64 linux-image-cloud-arm64 inline"
	"6.12-arm64-inline trixie arm64 linux-image-cloud-arm64 inline"
)

TOOLS=(bash jq awk sed grep cat cp ln rm mkdir mkfifo head tail dirname basename sleep stat cmp dd env timeout pgrep)
TARGETS=(nothing leak leak-32 leak-static nothing-static order threads operators own_operators exceptions early libearly.so dlopen
	plug_alloc.so plug_own.so mmap deep exitcodes step spin fork sharers reloads sampled)
# The tools and their libraries, for another CPU.
TOOL_PACKAGES=(bash jq mawk sed grep coreutils diffutils procps libjq1 libonig5 libproc2-0 libsystemd0 libtinfo6 libacl1
	libattr1 libgmp10 libselinux1 libpcre2-8-0 libstdc++6 libcap2 libgcrypt20 libgpg-error0 liblz4-1 libcmocka0
	libcmocka-dev)

# ---- the guest's files: of this machine, or of $SYSROOT with what was built against it ----

# needed_by FILE: what the dynamic linker would load, by the paths it has in the guest
needed_by() {
	if [ -z "$SYSROOT" ]; then
		ldd "$1" 2>/dev/null | grep -o '/[^ :]*' | sort -u
		return
	fi
	local name found
	readelf -ld "$1" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p; s/.*interpreter: \(.*\)\]/\1/p' |
		while read -r name; do
			case $name in /*) echo "$name"; continue ;; esac
			found=$(cd "$SYSROOT" && find lib usr/lib -name "$name" -print -quit)
			[ -z "$found" ] || echo "/$found"
		done
}

# put FILE PATH: into the root, with the libraries it needs at their own paths
put() {
	local lib
	mkdir -p "$ROOT/$(dirname "$2")"
	cp -L "$1" "$ROOT/$2" || return 1
	for lib in $(needed_by "$1"); do
		case $lib in "$O"/*) continue ;; esac
		[ -e "$ROOT$lib" ] || put "$SYSROOT$lib" "$lib" || return 1
	done
}

# tool NAME: its path here
tool() {
	local name=$1 path
	[ -n "$SYSROOT" ] || { command -v "$name"; return; }
	[ "$name" != awk ] || name=mawk
	for path in "$SYSROOT"/{bin,usr/bin}/"$name"; do
		[ ! -e "$path" ] || { echo "$path"; return; }
	done
	return 1
}

# make_root ARCH BUILD: an archive of what a guest has
make_root() {
	local name gcc
	ROOT=$WORK/root-$1
	gcc=$(compiler_for "$1")
	begin_root "$ROOT" "$gcc" || return 1
	mkdir -p "$ROOT"/{bin,tests/lib}
	cp tests/kernels/guest.sh "$ROOT/guest.sh"
	cp tests/lib/common.bash tests/lib/report.jq "$ROOT/tests/lib/"
	put "$2/heaptap" build/heaptap || return 1
	for name in "${TOOLS[@]}"; do
		put "$(tool "$name")" "bin/$name" || return 1
	done
	for name in "${TARGETS[@]}"; do
		[ ! -e "$2/tests/targets/$name" ] || put "$2/tests/targets/$name" "build/tests/targets/$name" ||
			return 1
	done
	put "$2/tests/unit/arch/test_thread_call" bin/test_thread_call || return 1
	for name in count.so count-read text-differs; do
		put "$2/tests/oracle/$name" "build/tests/oracle/$name" || return 1
	done
	end_root "$ROOT" "$WORK/root-$1.cpio.gz"
}

# get_sysroot ARCH: its libraries, in $SYSROOT
get_sysroot() {
	[ -z "$(find "$SYSROOT.ready" -mmin "-$FRESH_MINUTES" 2>/dev/null)" ] || return 0
	tests/sysroot.sh "$1" "$(dirname "$SYSROOT")" "${TOOL_PACKAGES[@]}" && touch "$SYSROOT.ready"
}

# build_for ARCH BUILD: heaptap and the targets for another CPU, against libraries in $SYSROOT
build_for() {
	# make knows what it builds by paths from here.
	local names=() name cross machine build=${2#"$PWD"/}
	cross=$(cross_prefix "$1")
	machine=${cross%%-*}
	for name in "${TARGETS[@]}"; do
		case $name in *-32) ;; *) names+=("$build/tests/targets/$name") ;; esac
	done
	make -j"$(nproc)" ARCH="$machine" CC="${cross}gcc" CXX="${cross}g++" SYSROOT="$SYSROOT" O="$build" all \
		"${names[@]}" "$build"/tests/{oracle/count.so,oracle/count-read,oracle/text-differs,unit/arch/test_thread_call} >&2
}

# prepare ARCH: the archive for its guests; or in ARCH.missing what is not here, in ARCH.tap what went wrong
prepare() {
	local build=$O log=$WORK/build-$1.log
	SYSROOT=
	rm -f "$WORK/$1".{missing,tap}
	! missing_for "$1" "$1" >"$log" || { mv "$log" "$WORK/$1.missing"; return; }
	if [ "$1" != amd64 ]; then
		build=$WORK/build-$1
		SYSROOT=$CACHE/sysroot-$1/root
		if ! get_sysroot "$1" >"$log" 2>&1; then
			echo "no libraries: $(tail -n1 "$log")" >"$WORK/$1.missing"
		elif ! build_for "$1" "$build" >"$log" 2>&1; then
			echo "not ok cannot build, see $log" >"$WORK/$1.tap"
		fi
	fi
	[ -e "$WORK/$1.missing" ] || [ -e "$WORK/$1.tap" ] || make_root "$1" "$build" >"$log" 2>&1 ||
		echo "not ok no root for the guests, see $log" >"$WORK/$1.tap"
}

# ---- cells ----

# One cell: its TAP lines are in CELL.tap, or in CELL.skip why there are none; what its guest said is in CELL.log.
run_cell() {
	local name=$1 suite=$2 arch=$3 package=$4 image=
	local words="${HEAPTAP_TESTS:+HEAPTAP_TESTS=$HEAPTAP_TESTS} ${5:+HEAPTAP_BACKEND=$5}"
	rm -f "$WORK/$name".{log,skip,tap}
	if [ -e "$WORK/$arch.missing" ]; then
		cp "$WORK/$arch.missing" "$WORK/$name.skip"
	elif [ -e "$WORK/$arch.tap" ]; then
		cp "$WORK/$arch.tap" "$WORK/$name.tap"
	elif [ "$suite" != own ] && ! image=$(kernel_image "$suite" "$arch" "$package" 2>"$WORK/$name.get"); then
		echo "no kernel: $(tail -n1 "$WORK/$name.get")" >"$WORK/$name.skip"
	else
		boot "$arch" "${image:-$package}" "$WORK/root-$arch.cpio.gz" "$words" "$WORK/$name.log"
		guest_lines "$WORK/$name.log" >"$WORK/$name.tap"
	fi
}

# guest_lines LOG: its TAP lines
guest_lines() {
	grep -aE '^(not ok|ok|#) ' "$1"
	tell_end "$1"
	# guest.sh did not come to its plan.
	grep -aqE '^1\.\.[0-9]' "$1" || ! grep -a '^GUEST-END' "$1" | sed 's/^/not ok /'
}

mkdir -p "$WORK"
chosen=()
for cell in "${CELLS[@]}"; do
	wanted "${cell%% *}" "$@" && chosen+=("$cell")
done
for cell in "$@"; do
	case $cell in *=*) chosen+=("${cell%%=*} own amd64 ${cell#*=} ptrace") ;; esac
done
for arch in $(printf '%s\n' "${chosen[@]}" | awk '{ print $3 }' | sort -u); do
	prepare "$arch"
done
for cell in "${chosen[@]}"; do
	# shellcheck disable=SC2086 # four words or five
	run_cell $cell &
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
done
wait
for cell in "${chosen[@]}"; do
	read -r name _ arch _ <<<"$cell"
	if [ -s "$WORK/$name.skip" ]; then
		skip_cell "$name" "$(cat "$WORK/$name.skip")"
	else
		tell_cell "$name" "$arch" "$WORK/$name.log" <"$WORK/$name.tap"
	fi
done
end_cells
