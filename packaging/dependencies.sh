#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints the libraries of a built heaptap: name, version of the package, licence, what for. Fails if the program is
# linked with a library that packaging/dependencies.tsv does not have, or no longer with one that it has.
#   dependencies.sh PROGRAM
set -euo pipefail

list=$(dirname "$0")/dependencies.tsv
program=$1

# version LIBRARY: of the package of this machine that has it, or "-"
version() {
	local path package
	path=$(ldd "$program" | awk -v l="$1" 'index($1, l) == 1 { print $3 }')
	[ -n "$path" ] || path=$("${CC:-gcc}" -print-file-name="$1")
	path=$(readlink -f "$path" 2>/dev/null || true)
	if command -v dpkg-query >/dev/null; then
		package=$(dpkg-query -S "$path" 2>/dev/null || dpkg-query -S "${path#/usr}" 2>/dev/null || true)
		[ -z "$package" ] || { dpkg-query -W -f '${Version}\n' "${package%%: /*}" | head -1; return; }
	elif command -v rpm >/dev/null; then
		! rpm -qf --qf '%{VERSION}-%{RELEASE}\n' "$path" 2>/dev/null || return 0
	fi
	echo -
}

mapfile -t linked < <(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
bad=0
for library in "${linked[@]}"; do
	# libbpf.so.1 is libbpf.so in the list.
	grep -q "^${library%%.so*}\.so	" "$list" ||
		{ echo "dependencies: $library: not in packaging/dependencies.tsv" >&2; bad=1; }
done
printf 'library\tversion\tlicence\twhat for\n'
while IFS=$'\t' read -r library licence purpose; do
	[[ $library != \#* ]] || continue
	case $library in
	libiberty.a | libdebuginfod.so) ;;
	# Builds without these, and for other CPUs.
	libreadline.so | libncursesw.so | libtinfo.so | libcapstone.so | libm.so)
		[[ " ${linked[*]} " == *" ${library%.so}.so"* ]] || continue ;;
	*)
		[[ " ${linked[*]} " == *" ${library%.so}.so"* ]] ||
			{ echo "dependencies: $library: in packaging/dependencies.tsv, but not linked" >&2; bad=1; } ;;
	esac
	printf '%s\t%s\t%s\t%s\n' "$library" "$(version "$library")" "$licence" "$purpose"
done <"$list"
exit "$bad"
