#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Stops programs by gdb at some calls of malloc: each stack that gdb sees must be in heaptap's report, frame by frame (root).
# gdb.sh [HEAPTAP]
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
heaptap=${1:-$root/build/heaptap}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
wrong=0

# by_gdb CALLS NAME PROGRAM...: compare
by_gdb() {
	local calls=$1 name=$2 seen missing
	shift 2
	command -v "$1" >/dev/null || { echo "gdb.sh: skipped: $1 is not installed" >&2; return; }
	# Both must name the file itself, not a link to it.
	set -- "$(readlink -f "$(command -v "$1")")" "${@:2}"
	CALLS=$calls timeout -k 5 600 gdb -nx -batch -x "$root/tests/stacks/gdb_stacks.py" --args "$@" >"$dir/gdb.out" 2>"$dir/gdb.err" </dev/null || true
	sed -n 's/^STACK //p' "$dir/gdb.out" >"$dir/gdb.stacks"
	timeout -k 5 120 "$heaptap" run -q -d 127 --force -o "$dir/report.json" -- "$@" >"$dir/out" 2>"$dir/err" </dev/null ||
		{ echo "gdb.sh: $name: failed" >&2; tail -3 "$dir/err" >&2; wrong=1; return; }
	jq -r -L "$root/tests/lib" 'include "report"; expanded | .processes[].stacks[] | [.frames[] | select(.inlined | not)
		| ((.module // "?") | split("/") | last) + "+" + .offset] | join(" ")' "$dir/report.json" | sort -u >"$dir/stacks"
	[ -z "${KEEP:-}" ] || cp "$dir/stacks" "$dir/gdb.stacks" "$KEEP"
	seen=$(wc -l <"$dir/gdb.stacks")
	missing=$(sort -u "$dir/gdb.stacks" | comm -23 - "$dir/stacks")
	echo "| $name | $seen | $(sort -u "$dir/gdb.stacks" | wc -l) | $(awk '{ n += NF } END { print n + 0 }' "$dir/gdb.stacks") | $(grep -c . <<<"$missing" || true) |"
	[ "$seen" -gt 0 ] || { echo "gdb.sh: $name: gdb saw nothing" >&2; tail -3 "$dir/gdb.err" >&2; wrong=1; }
	[ -z "$missing" ] || { head -3 <<<"$missing" >&2; wrong=1; }
}

few=$(seq -s ' ' 40 37 2000)
many=$(seq -s ' ' 50 29 5000)
echo 'create table t(a, b); insert into t values(1, 2), (3, 4); create index i on t(b); select a, count(*) from t group by b;' >"$dir/query.sql"

export PYTHONHASHSEED=0 PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0
echo "| program | stops | different stacks | frames | not in heaptap's report |"
echo "|---|---|---|---|---|"
by_gdb "$many" "python3 with C extensions" /usr/bin/python3 -c 'import json, sqlite3, ctypes, decimal
sqlite3.connect(":memory:").execute("create table t(a)")
json.dumps([str(i) * 200 for i in range(300)]); decimal.Decimal(2).sqrt(decimal.Context(prec=3000))'
by_gdb "$few" sqlite3 sqlite3 -batch -init "$dir/query.sql" :memory: .quit
by_gdb "$few" perl perl -MPOSIX -e 'my %h = map { $_ => "x" x $_ } 1 .. 300; print scalar keys %h'
by_gdb "$few" ripgrep rg --no-config -j1 -c 'stru[ck]t' "$root/user/heap/heap.c"
by_gdb "$few" tar tar cf "$dir/out.tar" -C "$root" user
by_gdb "$few" find find "$root/user" -name '*.h'
by_gdb "$few" file file "$root/HACKING.md"
by_gdb "$few" ls ls -lR "$root/user"
printf 'all: ;\n' >"$dir/Makefile"
by_gdb "$few" make make -np -C "$dir"
by_gdb "$(seq -s ' ' 100 661 40000)" "clang compiling a file" clang -O1 -c -x c -o "$dir/o.o" "$root/tests/targets/deep.c" -I"$root" -D_GNU_SOURCE
exit "$wrong"
