#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# sysroot.sh ARCH DIR [PACKAGE...]: unpacks the distribution's libraries for another CPU (arm64), to build heaptap
# against, in DIR/root, by an apt of its own in DIR; the machine's packages stay as they are. Debian only.
set -euo pipefail

die() { echo "sysroot: $*" >&2; exit 1; }

[ $# -ge 2 ] || die "usage: sysroot.sh ARCH DIR [PACKAGE...]"
arch=$1 dir=$(realpath -m "$2")
shift 2
packages=(
	libc6 libc6-dev linux-libc-dev libgcc-s1 libcrypt1
	libbpf1 libbpf-dev libdw1 libdw-dev libelf1 libelf-dev libiberty-dev zlib1g zlib1g-dev libzstd1 libzstd-dev
	libbz2-1.0 liblzma5
	"$@"
)
command -v apt-get >/dev/null || die "no apt-get here"
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/*$') ||
	die "apt knows no Debian archive"

mkdir -p "$dir"/{lists,archives}/partial "$dir"/{sources,debs,root}
: >"$dir/status"
cat >"$dir/sources/sysroot.sources" <<END
Types: deb
URIs: $uri
Suites: $suite
Components: main
Architectures: $arch
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
cat >"$dir/apt.conf" <<END
Dir::State "$dir"; Dir::State::Lists "$dir/lists"; Dir::State::status "$dir/status";
Dir::Cache "$dir"; Dir::Cache::archives "$dir/archives"; Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";
Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "$dir/sources"; Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "$arch"; APT::Architectures { "$arch"; }; APT::Sandbox::User "root";
Acquire::Languages "none"; Acquire::Retries "3";
END
export APT_CONFIG=$dir/apt.conf
apt-get -qq update
(cd "$dir/debs" && apt-get -qq download "${packages[@]}")
for deb in "$dir"/debs/*.deb; do
	dpkg-deb -x "$deb" "$dir/root"
done
echo "$dir/root"
