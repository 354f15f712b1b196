#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints what share of real programs' allocations has a stack that is complete, and why the others are not (root).
# shares.sh [HEAPTAP]: a row for each program that is installed, as doc/stacks.md shows them.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
heaptap=${1:-$root/build/heaptap}
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$dir"' EXIT

# row NAME: of the report of all its processes
row() {
	jq -r --arg name "$1" '
		[.processes[].stacks[] | { allocs: (.allocs // 0), end: (.truncated // "complete") }] as $all
		| ($all | map(.allocs) | add) as $sum
		| def share: 100000 * . / $sum | round / 1000;
		[$name, $sum, ($all | length), ([$all[] | select(.end == "complete").allocs] | add // 0 | share),
			([.processes[].lost.stacks] | add),
			($all | map(select(.end != "complete")) | group_by(.end)
				| map("\(.[0].end) \(map(.allocs) | add | share) %") | join(", ") | if . == "" then "-" else . end)]
		| "| \(.[0]) | \(.[1]) | \(.[2]) | \(.[3]) % | \(.[5])\(if .[4] > 0 then ", lost \(.[4])" else "" end) |"' \
		"$dir/report.json"
	[ -z "${KEEP:-}" ] || cp "$dir/report.json" "$KEEP/$1.json"
}

# ran NAME COMMAND...: traced from its start
ran() {
	local name=$1
	shift
	command -v "$1" >/dev/null || { echo "shares: skipped: $1 is not installed" >&2; return; }
	timeout -k 5 120 "$heaptap" run -q -d 127 --force -o "$dir/report.json" -- "$@" >"$dir/out" 2>"$dir/err" ||
		{ echo "shares: $name: failed" >&2; tail -3 "$dir/err" >&2; return; }
	row "$name"
}

cat >"$dir/query.sql" <<'SQL'
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
	insert into t select i, printf('row %d', i % 97), i * 1.5 from n;
create index t_b on t(b);
select b, count(*), sum(c) from t group by b order by 3 desc;
select json_group_array(json_object('a', a, 'b', b)) from t where a < 500;
SQL
cat >"$dir/extensions.py" <<'PY'
import ctypes, decimal, hashlib, json, sqlite3, threading, xml.etree.ElementTree as tree, zlib
base = sqlite3.connect(":memory:")
base.execute("create table t(a, b)")
def work():
    for i in range(300):
        value = {"n": i, "list": [str(k) * 200 for k in range(50)]}
        json.loads(json.dumps(value))
        decimal.Decimal(i).sqrt(decimal.Context(prec=600))
        zlib.decompress(zlib.compress(b"x" * 10000))
        hashlib.sha256(b"y" * 5000).hexdigest()
        tree.fromstring("<a>" + "<b>text</b>" * 100 + "</a>")
        ctypes.create_string_buffer(2000)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
base.executemany("insert into t values(?, ?)", ((i, str(i)) for i in range(3000)))
base.execute("select b, count(*) from t group by b order by 2").fetchall()
callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
array = (ctypes.c_int * 500)(*range(500, 0, -1))
compare = callback(lambda a, b: len("%d" % (a[0] - b[0]) * 600) and a[0] - b[0])
ctypes.CDLL(None).qsort(array, 500, 4, compare)
PY

cat >"$dir/buffers.js" <<'JS'
const zlib = require("zlib");
function work(n) {
	const parts = [];
	for (let i = 0; i < n; i++) parts.push(Buffer.alloc(100 + i % 50).toString("hex"));
	return zlib.deflateSync(parts.join("")).length;
}
let sum = 0;
for (let i = 0; i < 300; i++) sum += work(200);
for (let i = 0; i < 20000; i++) new ArrayBuffer(10000);
JS

echo "| program | allocations | stacks | complete | the rest |"
echo "|---|---|---|---|---|"
ran "python3 with C extensions" /usr/bin/python3 "$dir/extensions.py"
ran sqlite3 sqlite3 -batch -init "$dir/query.sql" "$dir/base.db" .quit
ran "ripgrep" rg --no-config -c "stru[ck]t.*[a-z]+_free\\b" "$root" /usr/include
ran "clang compiling a file" clang -O2 -c -I"$root" -D_GNU_SOURCE -DHEAPTAP_VERSION='"0"' -o "$dir/o.o" "$root/user/heap/heap.c"
ran "gdb" gdb -nx -batch -ex "info functions main" /bin/true
ran "perl" perl -MPOSIX -MData::Dumper -e 'my %h = map { $_ => [split //, "x" x $_] } 1 .. 400; print Dumper(\%h) =~ tr/x//, "\n"'
ran "node" node "$dir/buffers.js"

if command -v redis-server >/dev/null; then
	timeout -k 5 60 "$heaptap" run -q -d 127 --force -o "$dir/report.json" -- \
		redis-server --port 0 --unixsocket "$dir/redis" --save "" --daemonize no --dir "$dir" >"$dir/out" 2>"$dir/err" &
	server=$!
	for ((i = 0; i < 100; i++)); do
		redis-cli -s "$dir/redis" ping >/dev/null 2>&1 && break
		sleep 0.1
	done
	redis-benchmark -s "$dir/redis" -n 3000 -q -t set,get,incr,lpush,rpush,sadd,hset,zadd,lrange_100,mset >/dev/null
	redis-cli -s "$dir/redis" eval 'local t = {} for i = 1, 5000 do t[i] = tostring(i) .. "x" end return #t' 0 >/dev/null
	redis-cli -s "$dir/redis" shutdown nosave >/dev/null 2>&1 || true
	wait "$server" || true
	server=
	row redis-server
else
	echo "shares: skipped: redis-server is not installed" >&2
fi
