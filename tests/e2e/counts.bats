#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Numbers of a whole run equal those of the oracle, which is preloaded in the same run.

load ../lib/common

equals_oracle() {
	counted -q -- "$@"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	nothing_lost
	as_counted
}

# bats test_tags=core,ptrace,inline
@test "counts: leaking program" { equals_oracle "$T/leak"; }
# bats test_tags=core,ptrace,inline
@test "counts: realloc in all forms (B1, B3, B4)" { equals_oracle "$T/order"; }
# bats test_tags=core,full
@test "counts: 8 threads (B11)" { equals_oracle "$T/threads" 8 20000; }
# bats test_tags=full
@test "counts: 2000 threads" { equals_oracle "$T/threads" 2000 20; }
# bats test_tags=ptrace,inline
@test "counts: all operators (B8)" { equals_oracle "$T/operators"; }
# bats test_tags=core,ptrace,inline
@test "counts: exceptions (B8)" { equals_oracle "$T/exceptions"; }
# bats test_tags=ptrace,inline
@test "counts: handlers that allocate (B7)" { equals_oracle "$T/signals"; }
# bats test_tags=ptrace,inline,full
@test "counts: cancelled threads (B9)" { equals_oracle "$T/cancel" 50; }
# bats test_tags=ptrace,inline
@test "counts: failing calls (B2, B6)" { equals_oracle "$T/failed"; }
# bats test_tags=ptrace,inline
@test "counts: before and after main (B17)" { equals_oracle "$T/early"; }

# bats test_tags=full
@test "counts: python3" {
	# Not a script in front of it, which would be the program that heaptap sees.
	equals_oracle "$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')" -c 'import json, re
d = {str(i): [i] * 100 for i in range(3000)}
json.loads(json.dumps(d))
re.compile("(a|b)*c").match("ab" * 100 + "c")'
}

# bats test_tags=full
@test "counts: perl" {
	equals_oracle perl -e 'my %h; $h{$_ % 777} .= "x" x $_ for 1..5000; print scalar(keys %h), "\n"'
	[ "$(cat "$out")" = 777 ]
}

# bats test_tags=full
@test "counts: git log" {
	cd "$BATS_TEST_TMPDIR"
	git init -q repo && cd repo
	for i in 1 2 3 4 5; do
		seq $((i * 1000)) >f
		git add f
		git -c user.name=t -c user.email=t@example.org -c gc.auto=0 commit -qm "$i"
	done
	equals_oracle git --no-pager log -p --stat
}

# bats test_tags=full
@test "counts: sqlite3 on a script" {
	cat >"$BATS_TEST_TMPDIR/script" <<-'SQL'
		create table t (a integer primary key, b text);
		with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
		insert into t select i, printf('row %d', i) from n;
		create index t_b on t (b);
		select count(*), max(b) from t where b like '%9%';
		select a from t order by b desc limit 3;
	SQL
	counted -q -- sqlite3 :memory: ".read $BATS_TEST_TMPDIR/script"
	[ "$status" -eq 0 ]
	grep -q '^813|' "$out"
	nothing_lost
	as_counted
}

# bats test_tags=full
@test "counts: gdb, whose operators are its own" {
	# The oracle does not see those: they count as the malloc and free inside them.
	counted -q --nocpp -- gdb -nx -batch -ex "info functions leak" "$T/leak"
	[ "$status" -eq 0 ]
	nothing_lost
	as_counted
}

# bats test_tags=full
@test "counts: llvm-nm, a large C++ program" { equals_oracle llvm-nm "$T/leak"; }
