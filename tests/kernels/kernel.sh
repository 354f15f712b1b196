# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Gets kernel images out of a distribution's packages, by apt, into $CACHE; the machine's own apt stays as it is.

FRESH_MINUTES=720 # lists of packages are asked for again after this

# Where this machine gets its packages from.
archive_uri() {
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m1 '/debian/*$'
}

# apt_root SUITE ARCH: makes a root for apt, its lists up to date; prints the path of its configuration
apt_root() {
	local root=$CACHE/apt-$1-$2 uri
	local config=$root/apt.conf
	if [ -n "$(find "$root/fresh" -mmin "-$FRESH_MINUTES" 2>/dev/null)" ]; then
		echo "$config"
		return
	fi
	uri=$(archive_uri) || { echo "apt knows no Debian archive" >&2; return 1; }
	mkdir -p "$root"/lists/partial "$root"/archives/partial "$root"/sources
	: >"$root/status"
	cat >"$root/sources/kernels.sources" <<-END
		Types: deb
		URIs: $uri
		Suites: $1
		Components: main
		Architectures: $2
		Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	END
	cat >"$config" <<-END
		Dir::State "$root"; Dir::State::Lists "$root/lists"; Dir::State::status "$root/status";
		Dir::Cache "$root"; Dir::Cache::archives "$root/archives";
		Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";
		Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "$root/sources";
		Dir::Etc::preferencesparts "/dev/null";
		APT::Architecture "$2"; APT::Architectures { "$2"; }; APT::Sandbox::User "root";
		Acquire::Languages "none"; Acquire::Retries "3";
	END
	# By itself apt calls it no error when nothing can be had.
	APT_CONFIG=$config apt-get -qq -o APT::Update::Error-Mode=any update >&2 ||
		{ echo "no lists of packages from $uri" >&2; return 1; }
	touch "$root/fresh"
	echo "$config"
}

# depends_on PACKAGE PATTERN: the first package it depends on whose name has PATTERN
depends_on() {
	apt-cache depends --important "$1" | awk -v p="$2" '$1 == "Depends:" && $2 ~ p && !n++ { print $2 }'
}

# unpack_image PACKAGE FILE: download it and keep nothing but its kernel image, and in FILE.modules what drives virtual devices
unpack_image() {
	local dir image
	dir=$(mktemp -d "$CACHE/unpack.XXXXXX") || return 1
	(
		cd "$dir" || exit 1
		apt-get -qq download "$1" >&2 || exit 1
		# One of the two patterns matches nothing, which tar calls a failure.
		dpkg-deb --fsys-tarfile ./*.deb |
			tar -x --wildcards './boot/vmlinu*' './usr/lib/modules/*/vmlinuz' '*/virtio*.ko*' '*failover.ko*' 2>/dev/null
		image=$(find . -name 'vmlinu*' -type f -print -quit)
		mkdir -p "$2.modules" && find . -name '*.ko*' -exec mv -t "$2.modules" {} +
		[ -n "$image" ] && mv "$image" "$2"
	)
	image=$?
	rm -rf "$dir"
	return "$image"
}

# kernel_image SUITE ARCH METAPACKAGE [SUFFIX]: prints the path of the suite's present kernel, downloaded if it is new
kernel_image() (
	image=$CACHE/kernel-$1-$2${4:-}
	mkdir -p "$CACHE" || exit 1
	# Without a network a kernel from before is better than none.
	config=$(apt_root "$1" "$2") || { [ -s "$image" ] && echo "$image"; exit; }
	export APT_CONFIG=$config
	package=$(depends_on "$3" '^linux-image-[0-9]')
	[ -n "$package" ] || package=$(depends_on "$3" '^linux-base-' | sed 's/^linux-base-/linux-image-/')
	[ -n "$package" ] || { echo "no kernel package behind $3" >&2; exit 1; }
	if [ "$(cat "$image.package" 2>/dev/null)" != "$package" ]; then
		# Newer packages of kernels have their image in another one.
		binary=$(depends_on "$package" '^linux-binary-')
		unpack_image "${binary:-$package}" "$image" || exit 1
		echo "$package" >"$image.package"
	fi
	echo "$image"
)

# kernel_modules SUITE ARCH METAPACKAGE: prints the folder of its modules; images from before this was asked for have none
kernel_modules() {
	local image
	image=$(kernel_image "$@") || return 1
	if [ ! -d "$image.modules" ]; then
		rm -f "$image.package"
		image=$(kernel_image "$@") || return 1
	fi
	echo "$image.modules"
}
