#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes the recordings, the list of events, the JSON reports and what is expected of them, as they are in this directory,
# by the heaptap of today in DIR: for a new set beside the old one (root). README.md says which commit made this one.
#   make.sh BUILD-DIRECTORY DIR
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
heaptap=$(realpath "$1")/heaptap
mkdir -p "$2/root"
out=$(realpath "$2")
# The path of the program is in recordings.
dir=/tmp/kept
mkdir -m 700 "$dir"
server=
trap 'rm -rf "$dir"; [ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT
cd "$dir"

# build NAME OPTION...: and its symbols alone
build() {
	gcc "${@:2}" -I"$here/../.." -O1 -fno-builtin -fno-optimize-sibling-calls -Wall -Wextra -Wl,-z,noseparate-code \
		-Wl,-z,norelro -Wl,--build-id -pthread -o "$1" "$here/kept.c"
	objcopy --only-keep-debug "$1" "$out/root/$1"
	chmod 644 "$out/root/$1"
}
build kept
build kept-32 -m32 -idirafter /usr/include/x86_64-linux-gnu
# The kernel's release is in recordings, too: that of this machine says nothing to anybody.
cat >release.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/utsname.h>
int uname(struct utsname *u)
{
	int ret = ((int (*)(struct utsname *))dlsym(RTLD_NEXT, "uname"))(u);
	u->release[strspn(u->release, "0123456789.")] = '\0';
	return ret;
}
END
gcc -shared -fPIC -o release.so release.c

# record NAME OPTION... -- PROGRAM...
record() { LD_PRELOAD=$dir/release.so "$heaptap" run -q --no-check -o /dev/null --force -w "$out/$1.heaptap" "${@:2}"; }

record bpf --backend bpf -- ./kept heap
record inline --backend inline -- ./kept heap
record ptrace --backend ptrace -- ./kept heap
record sampled --backend inline --sample 512 -- ./kept heap
record children --backend bpf --follow -- ./kept children || [ $? -eq 3 ]
record markers --backend bpf --check -- ./kept markers
record bits32 --backend bpf -- ./kept-32 heap
# The host's side of a connection.
LD_PRELOAD=$dir/release.so "$heaptap" serve --wait --listen "unix:$dir/socket" -- ./kept heap 2>serve.err &
server=$!
until grep -q "heaptap connect" serve.err; do kill -0 "$server" 2>/dev/null || { cat serve.err; exit 1; }; done
LD_PRELOAD=$dir/release.so "$heaptap" connect -q --sysroot / -o /dev/null --force -w "$out/connect.heaptap" "unix:$dir/socket" || { cat serve.err; exit 1; }

"$heaptap" report --events "$out/markers.heaptap" >"$out/markers.events"
"$heaptap" report -q --sysroot "$out/root" --format json "$out/bpf.heaptap" >"$out/report-2.json"
mkdir -p "$out/expected"
for file in "$out"/*.heaptap "$out"/*.events; do
	for format in json folded; do
		"$here/read.sh" "$heaptap" "$format" "$file" --sysroot "$out/root" >"$out/expected/${file##*/}.$format"
	done
done
"$here/read.sh" "$heaptap" json "$out/markers.heaptap" --sysroot "$out/root" --between before,after >"$out/expected/between.json"
chmod 644 "$out"/*.*
