# SPDX-License-Identifier: GPL-2.0-or-later
# Fresh roots of Debian releases, for the scripts of this directory: sourced by them. $roots is the directory for them.

mounted=()

# unmount: what attach() has bound
unmount() {
	local i
	for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount -l "${mounted[i]}"; done
	mounted=()
}

# remove_roots: unless they are to be kept
remove_roots() {
	unmount
	[ -n "${HEAPTAP_ROOTS:-}" ] || rm -rf --one-file-system "$roots"
}

# mirror: where apt of this machine has Debian's packages from
mirror() {
	apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 'Created-By: Packages' |
		awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }'
}

# attach ROOT PLACE: bind PLACE of this machine
attach() {
	mkdir -p "$1$2"
	mount --rbind "$2" "$1$2"
	mount --make-rslave "$1$2"
	mounted+=("$1$2")
}

# make_root RELEASE ROOT PACKAGES: the smallest system, PACKAGES (a,b), and the settings of apt that reach the mirror
make_root() {
	local setting
	[ -e "$2/etc/debian_version" ] || debootstrap --variant=minbase --include="$3" "$1" "$2" "$(mirror)" >"$2.log" 2>&1 ||
		{ tail -5 "$2.log"; die "$1: debootstrap failed"; }
	apt-config dump | grep -E '^Acquire::(https?)::' >"$2/etc/apt/apt.conf.d/90this-machine" || true
	for setting in /etc/resolv.conf /etc/hosts; do cp -L "$setting" "$2$setting"; done
	mkdir -p "$2/usr/local/share/ca-certificates"
	find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$2/usr/local/share/ca-certificates" {} +
	chroot "$2" update-ca-certificates >>"$2.log" 2>&1
}

# begin_roots: what both scripts need
begin_roots() {
	[ "$(id -u)" -eq 0 ] || die "not root: a root file system is made: use sudo"
	command -v debootstrap >/dev/null || die "no debootstrap: apt install debootstrap"
	[ -n "$(mirror)" ] || die "apt of this machine knows no mirror of Debian"
	top=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
	roots=${HEAPTAP_ROOTS:-$(mktemp -d /tmp/heaptap-roots-XXXXXX)}
}
