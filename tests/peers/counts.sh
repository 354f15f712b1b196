#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Allocations, releases and bytes of programs of the distribution, by heaptap and by memcheck (root): a table of those
# that differ, and the names of the others. counts.sh [NAME...]. Both get the environment that memcheck makes, because programs copy it. Where numbers differ,
# the oracle of tests/oracle counts in one run with heaptap. Fails if it counts otherwise than heaptap.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
: "${O:=$root/build}"
: "${HEAPTAP:=$O/heaptap}"
dir=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-peers.XXXXXX")
trap 'rm -rf "$dir"' EXIT
wrong=0
compared=0
equal=

# NAME|PROGRAM ARGUMENT...: words are split, and nothing is expanded but $dir and $root.
programs='
ls|ls -lR $root/user
cat|cat $root/Makefile
sort|sort -u $root/HACKING.md
tac|tac $root/HACKING.md
wc|wc $root/HACKING.md
od|od -c $root/Makefile
sha256sum|sha256sum $root/Makefile
du|du -a $root/user
date|date -u -d 2020-01-01
expr|expr length abcdef
grep|grep -rn struct $root/user/heap
sed|sed -n s/heap/HEAP/gp $root/HACKING.md
mawk|mawk {n+=NF}END{print(n)} $root/HACKING.md
find|find $root/user -name *.h
diff|diff $root/HACKING.md $root/README.md
tar|tar cf $dir/out.tar -C $root user
bzip2|bzip2 -kc $root/HACKING.md
gzip|gzip -kc $root/HACKING.md
xz|xz -T1 -kc $root/HACKING.md
file|file $root/HACKING.md
bash|bash -c for((i=0;i<300;i++));do(:)x=$i;y[i]=$x$x;done
dash|dash -c x=1
perl|perl -e %h=map{$_=>$_}1..2000;print(scalar(keys(%h)))
python3|python3 -S -E -c d={i:str(i)for(i)in(range(2000))}
sqlite3|sqlite3 -batch -init $dir/query.sql :memory: .quit
git|git -C $dir/repository log --stat
jq|jq -n [range(300)]|map(tostring)|add
readelf|readelf -aW /bin/true
objdump|objdump -d /bin/true
strings|strings /bin/true
as|as -o $dir/out.o $dir/empty.s
ld|ld -r -o $dir/out2.o $dir/empty.o
xmllint|xmllint --noout $dir/page.xml
dot|dot -Tsvg $dir/graph.dot
make|make -n -C $dir
strace|strace -V
ssh-keygen|ssh-keygen -l -f $dir/key.pub
ip|ip address
redis-cli|redis-cli --version
ps|ps --version
gdb|gdb -nx -batch -ex quit
'

prepare() {
	echo 'create table t(a, b); insert into t values(1, 2), (3, 4); create index i on t(b); select a, count(*) from t group by b;' >"$dir/query.sql"
	: >"$dir/empty.s"
	as -o "$dir/empty.o" "$dir/empty.s"
	echo '<a><b c="d">text</b><b/></a>' >"$dir/page.xml"
	echo 'digraph { a -> b -> c; a -> c }' >"$dir/graph.dot"
	printf 'all: a b\na b:\n\techo $@\n' >"$dir/Makefile"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/key" </dev/null
	git init -q "$dir/repository"
	cp "$root/Makefile" "$dir/repository"
	git -C "$dir/repository" add Makefile
	git -C "$dir/repository" -c user.name=a -c user.email=a@b commit -q -m first
}

# by_memcheck COMMAND...: "ALLOCATIONS RELEASES BYTES". A probe of another heaptap in the dynamic linker kills valgrind,
# so it is tried again.
by_memcheck() {
	local i
	for i in 1 2 3 4 5 6; do
		env -i "${environment[@]}" timeout -k 5 120 valgrind --run-libc-freeres=no --run-cxx-freeres=no \
			--log-file="$dir/memcheck" "$@" >/dev/null 2>&1 </dev/null || true
		sed -nE 's/,//g; s/.*total heap usage: ([0-9]+) allocs ([0-9]+) frees ([0-9]+) bytes.*/\1 \2 \3/p' \
			"$dir/memcheck" >"$dir/line"
		! grep -q SIGTRAP "$dir/memcheck" || { sleep 1; continue; }
		break
	done
	cat "$dir/line"
}

by_heaptap() {
	env -i "${of_valgrind[@]}" timeout -k 5 120 "$HEAPTAP" run -q --no-scan --force -o "$dir/report.json" \
		-- "$@" >/dev/null 2>"$dir/err" </dev/null || true
	jq -r '.processes[0] | [.totals.allocs, .totals.frees, .totals.alloc_bytes, ([.lost[]] | add)] | join(" ")' \
		"$dir/report.json"
}

# by_oracle COMMAND...: does the oracle, preloaded, count as heaptap does in the same run?
by_oracle() {
	local ours theirs page
	rm -f "$dir"/count.*
	env -i "${environment[@]}" HEAPTAP_COUNT="$dir/count" LD_PRELOAD="$O/tests/oracle/count.so" timeout -k 5 120 \
		"$HEAPTAP" run -q --no-scan --force -o "$dir/report.json" -- "$@" >/dev/null 2>"$dir/err" </dev/null || true
	ours=$(jq -c '.processes[0].totals | [.allocs, .frees, .alloc_bytes]' "$dir/report.json")
	# The last page is that of the last image.
	page=$(ls -v "$dir/count.$(jq '.processes[0].pid' "$dir/report.json")"* | tail -1)
	theirs=$("$O/tests/oracle/count-read" "$page" | jq -c '.totals | [.allocs, .frees, .alloc_bytes]')
	[ "$ours" = "$theirs" ] || { echo "counts.sh: $1: heaptap counts $ours, the oracle $theirs" >&2; return 1; }
}

# one NAME COMMAND...
one() {
	local name=$1 ours theirs lost why
	shift
	command -v "$1" >/dev/null || { echo "counts.sh: skipped: $1 is not installed" >&2; return; }
	read -r ours lost < <(by_heaptap "$@" | sed -E 's/ ([0-9]+)$/|\1/; s/ /,/g; s/\|/ /')
	theirs=$(by_memcheck "$@" | tr ' ' ,)
	compared=$((compared + 1))
	if [ "$ours" = "$theirs" ] && [ "$lost" = 0 ]; then
		equal+="${equal:+, }$name"
		return
	elif by_oracle "$@"; then
		why="${theirs//,/, }; the oracle counts as heaptap does"
	else
		why="**${theirs//,/, }**"
		wrong=$((wrong + 1))
	fi
	echo "| $name | ${ours//,/ | } | $why |"
}

# A run that wrote compiled Python would save the next one the work: gdb then allocates half as often.
environment=(PATH=/usr/local/bin:/usr/bin:/bin HOME="$dir" LC_ALL=C
	PYTHONHASHSEED=0 PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1 PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0 GIT_PAGER=cat)
prepare
mapfile -t of_valgrind < <(env -i "${environment[@]}" valgrind env 2>/dev/null)
echo '| program | allocations | releases | bytes | memcheck |'
echo '|---|---|---|---|---|'
while IFS='|' read -r name command; do
	[ -n "$name" ] || continue
	[ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
	command=${command//\$root/$root}
	set -f
	read -ra words <<<"${command//\$dir/$dir}"
	set +f
	one "$name" "${words[@]}"
done <<<"$programs"
echo
echo "Equal: $equal"
echo "$compared programs, $wrong with differences that nothing explains"
exit $((wrong > 0))
