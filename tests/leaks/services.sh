#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Scans real programs under light load again and again: services.sh [MINUTES [INTERVAL [DIR]]] (root). Lists blocks that
# are called definitely lost, which should be none. Reports stay in DIR.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
minutes=${1:-60}
interval=${2:-60s}
: "${HEAPTAP:=$root/build/heaptap}"
dir=${3:-$(mktemp -d "${TMPDIR:-/tmp}/heaptap-services.XXXXXX")}
mkdir -p "$dir"
end=$((SECONDS + minutes * 60))
pids=()
traced=()

cleanup() {
	local pid
	exec 8>&- 9>&-
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
}
trap cleanup EXIT
trap 'exit 1' INT TERM

has() { command -v "$1" >/dev/null || { echo "services: $1 is not installed: left out"; return 1; }; }

# begin NAME COMMAND...: starts a service; its PID is in $pid
begin() {
	local name=$1
	shift
	"$@" >/dev/null 2>"$dir/$name.err" &
	pid=$!
	pids+=("$pid")
}

# load COMMAND...: runs COMMAND again and again until the end, with pauses
load() {
	while ((SECONDS < end)); do
		"$@" || true
		sleep 0.3
	done >/dev/null 2>&1 &
	pids+=("$!")
}

# watch NAME: scans the service that was started last
watch() {
	sleep 1
	"$HEAPTAP" attach --scan --max-pause 5s -i "$interval" -t "$((end - SECONDS))s" -o "$dir/$1.%n.json" "$pid" 2>"$dir/$1.heaptap" &
	pids+=("$!")
	traced+=("$1")
}

# web_requests PORT
web_requests() {
	local i
	for i in 1 2 3 4 5 6 7 8; do
		exec 7<>"/dev/tcp/127.0.0.1/$1" || return
		printf 'GET /%s HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n' "$((RANDOM % 200))" >&7
		cat <&7 >/dev/null
		exec 7>&-
	done
}

start_nginx() {
	local i port
	has nginx || return 0
	port=$((20000 + RANDOM % 20000))
	mkdir -p "$dir/www"
	for ((i = 0; i < 200; i++)); do head -c 30000 "$root/README.md" >"$dir/www/$i"; done
	cat >"$dir/nginx.conf" <<-END
		daemon off; master_process off; pid $dir/nginx.pid; error_log $dir/nginx.log;
		events { }
		http {
			access_log off; gzip on; gzip_types *; open_file_cache max=120;
			client_body_temp_path $dir/t1; proxy_temp_path $dir/t2; fastcgi_temp_path $dir/t3;
			uwsgi_temp_path $dir/t4; scgi_temp_path $dir/t5;
			server { listen 127.0.0.1:$port; root $dir/www; }
		}
	END
	begin nginx nginx -c "$dir/nginx.conf" -e "$dir/nginx.log"
	watch nginx
	load web_requests "$port"
}

start_redis() {
	has redis-server && has redis-benchmark || return 0
	redis_port=$((20000 + RANDOM % 20000))
	begin redis redis-server --port "$redis_port" --save "" --dir "$dir"
	watch redis
	load redis-benchmark -p "$redis_port" -q -n 300 -c 5 -r 3000 -t set,get,lpush,lpop,hset,sadd,zadd
}

start_python() {
	has python3 || return 0
	cat >"$dir/load.py" <<-'END'
		import json, re, time, collections
		class Node:
		    def __init__(self, n): self.n = n; self.next = None; self.name = "node %d" % n
		kept = collections.deque(maxlen=3000)
		table = {}
		n = 0
		while True:
		    for i in range(300):
		        n += 1
		        a, b = Node(n), Node(n)
		        a.next, b.next = b, a
		        kept.append(a)
		        table[n % 5000] = json.loads(json.dumps({"n": n, "list": list(range(n % 20)), "text": "x" * (n % 700)}))
		        re.sub("o", "0", "hello world %d" % n)
		    time.sleep(0.2)
	END
	begin python env PYTHONMALLOC=malloc python3 "$dir/load.py"
	watch python
}

# A thread for each request.
start_http() {
	local port=$((20000 + RANDOM % 20000))
	has python3 && [ -d "$dir/www" ] || return 0
	begin http python3 -m http.server --bind 127.0.0.1 --directory "$dir/www" "$port"
	watch http
	load web_requests "$port"
}

start_perl() {
	has perl || return 0
	cat >"$dir/load.pl" <<-'END'
		use strict; my (%h, @q, $n);
		while (1) {
			for (1 .. 300) {
				$n++;
				$h{$n % 4000} = { name => "x" x ($n % 300), list => [1 .. $n % 10], code => sub { $n } };
				push @q, join ",", map { s/a/b/r } ("abc$n") x 5;
				shift @q if @q > 2000;
				eval { die { code => $n } };
			}
			select undef, undef, undef, 0.2;
		}
	END
	begin perl perl "$dir/load.pl"
	watch perl
}

statements() {
	echo "insert into t select value, hex(randomblob(50)) from generate_series(1, 200);
		select count(*), max(b) from t where b like '%7%' group by a % 7;
		drop index if exists i; create index i on t(b); delete from t where a % 3 = 1; $(for ((i = 0; i < 3; i++)); do
		echo "with recursive c(x) as (values(1) union all select x + 1 from c where x < 300) select sum(x * $i) from c;"; done)
		delete from t where (select count(*) from t) > 20000;" >&8
}

start_sqlite() {
	has sqlite3 || return 0
	mkfifo "$dir/sql"
	begin sqlite bash -c "exec sqlite3 :memory: <'$dir/sql'"
	exec 8>"$dir/sql"
	echo "create table t(a, b);" >&8
	watch sqlite
	load statements
}

objects() { sed -n "$((1 + RANDOM % 200)),+100p" "$dir/objects" >&9; }

start_git() {
	has git || return 0
	git -C "$root" rev-list --objects --all -n 200 | cut -d' ' -f1 >"$dir/objects"
	mkfifo "$dir/names"
	begin git bash -c "exec git -C '$root' cat-file --batch <'$dir/names'"
	exec 9>"$dir/names"
	watch git
	load objects
}

start_nginx
start_redis
start_python
start_http
start_perl
start_sqlite
start_git
while ((SECONDS < end + 5)); do sleep 1; done
cleanup
trap - EXIT

found=0
printf '%-8s %8s %9s %12s %12s %10s\n' program reports verdicts 'live blocks' 'definite' 'pause ms'
for name in "${traced[@]}"; do
	jq -rs --arg name "$name" '[.[].processes[0]] as $p | [$name, ($p | length), ([$p[] | select(.scan)] | length),
		($p | map(.totals.live_blocks) | max), ($p | map(.scan.definite.blocks // 0) | max),
		($p | map((.scan.pause_ns // 0) / 1e6) | max | round)] | @tsv' "$dir/$name".*.json |
		while IFS=$'\t' read -r a b c d e f; do printf '%-8s %8s %9s %12s %12s %10s\n' "$a" "$b" "$c" "$d" "$e" "$f"; done
	jq -r -L "$root/tests/lib" 'include "report"; expanded | .processes[0].stacks[] | select(.definite.blocks > 0)
		| "  \(.definite.blocks) blocks, \(.definite.bytes) bytes: \([.frames[0:12][] | .function // "?"] | join(" < "))"' \
		"$dir/$name".*.json | sort | uniq -c >"$dir/$name.definite"
	[ ! -s "$dir/$name.definite" ] || { cat "$dir/$name.definite"; found=1; }
done
echo "services: reports in $dir"
exit "$found"
