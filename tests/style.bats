#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The style check itself: each kind of bad input is reported with its file, its line and the reason. No root needed.

setup() {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p tests user/lib user/heap
	cp "$BATS_TEST_DIRNAME"/{style.sh,comments.py} tests/
	cp "$BATS_TEST_DIRNAME/../.clang-format" .
	# There are no documents here.
	printf '#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-or-later\n' >tests/documents.sh
	chmod +x tests/documents.sh
	good user/lib/good.h
	good user/heap/good.c
	# Spelling and layout take most of the time, and one test looks at them.
	mkdir "$BATS_TEST_TMPDIR.bin"
	printf '#!/bin/sh\necho version 14.0\n' >"$BATS_TEST_TMPDIR.bin/clang-format-14"
	printf '#!/bin/sh\n' >"$BATS_TEST_TMPDIR.bin/codespell"
	chmod +x "$BATS_TEST_TMPDIR.bin"/*
	REAL_PATH=$PATH
	PATH=$BATS_TEST_TMPDIR.bin:$PATH
}

# good FILE: a file without findings
good() { printf '%s\n' '/* SPDX-License-Identifier: GPL-2.0-or-later */' '/* One sentence. */' >"$1"; }

# finds LINE...: the style check fails, and prints each LINE
finds() {
	local line
	run tests/style.sh
	echo "$output"
	[ "$status" -eq 1 ]
	for line in "$@"; do
		grep -qF -- "$line" <<<"$output" || { echo "not reported: $line"; return 1; }
	done
}

# bats test_tags=full
@test "style: files without findings, and wrong spelling and layout" {
	PATH=$REAL_PATH
	run tests/style.sh
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *'2 files, no findings'* ]]
	if command -v codespell && command -v clang-format-14; then
		printf 'int  wrong_%s;\n' name >>user/lib/good.h
		printf '/* This is t%s end. */\n' eh >>user/heap/good.c
		finds 'user/lib/good.h:3: layout differs in 1 places: clang-format -i' 'user/heap/good.c:3: t''eh ==> the'
	fi
}

@test "style: a static function of one word, in a header as in a file" {
	printf 'static inline int found(void)\n' >>user/lib/good.h
	printf 'static int seen(void)\n' >>user/heap/good.c
	finds 'user/lib/good.h:3: static function of one word: found' 'user/heap/good.c:3: static function of one word: seen'
}

@test "style: a room without a row" {
	mkdir user/attic
	good user/attic/old.c
	finds 'user/attic/old.c:1: room user/attic has no row in tests/style.sh'
}

@test "style: a negated command in a test, which cannot fail" {
	mkdir tests/e2e
	printf '# SPDX-License-Identifier: GPL-2.0-or-later\n\t! true\n\t! true || return 1\n' >tests/e2e/a.bats
	finds 'tests/e2e/a.bats:2: does not fail in the middle of a test: use fails'
	[[ $output != *a.bats:3* ]]
}

@test "style: an atomic change of a bool" {
	printf '\twas = __atomic_exchange_n(&is_on, %s, __ATOMIC_ACQUIRE);\n' true 1 >>user/heap/good.c
	finds 'user/heap/good.c:3: atomic change of a bool: take a u32'
	[[ $output != *good.c:4:* ]]
}

# bats test_tags=full
@test "style: an include against the layers, and one without its directory" {
	printf '#include "user/heap/good.h"\n#include "good.h"\n' >>user/lib/good.h
	finds 'user/lib/good.h:3: includes user/heap/good.h: user/lib may include only no other room, not user/heap' \
		'user/lib/good.h:4: includes good.h: paths begin at the root of the project'
	good user/lib/good.h
	echo '#include "user/remote/serve.h"' >>user/heap/good.c
	finds 'user/heap/good.c:3: includes user/remote/serve.h: user/heap may include only user/lib' 'not user/remote'
}

@test "style: a row that names a room above it: a circle" {
	sed -i 's|^user/lib:$|user/lib: user/heap|' tests/style.sh
	finds 'tests/style.sh: row of user/lib names user/heap, which has no row above it'
}

# bats test_tags=full
@test "style: a file over 800 lines, a header over 150, a function over 80" {
	yes '/* A line. */' | head -799 >>user/heap/good.c
	yes '/* A line. */' | head -149 >>user/lib/good.h
	finds 'user/heap/good.c:801: file of 801 lines, more than 800: split it' \
		'user/lib/good.h:151: file of 151 lines, more than 150: split it'
	good user/heap/good.c
	{ printf 'void long_one(void)\n{\n'; yes '	long_one();' | head -81; echo '}'; } >>user/heap/good.c
	finds 'user/heap/good.c:4: function of 81 lines, more than 80: void long_one(void)'
}

# bats test_tags=full
@test "style: a file that the table of its room does not name" {
	printf '%s\n' '# user/heap' '' '| file | what it does |' '|---|---|' '| `heap.h`, `row_*` | the heap |' >user/heap/README.md
	for f in good.c good.h goods.c heap.c row_table.c grow_table.h; do good "user/heap/$f"; done
	finds 'user/heap/README.md: the table has no row for good' \
		'user/heap/README.md: the table has no row for goods' \
		'user/heap/README.md: the table has no row for grow_table'
	[ "$(grep -c 'has no row for' <<<"$output")" -eq 3 ]
	echo '| `good`, `goods.c`, `grow_table.h` | more |' >>user/heap/README.md
	run tests/style.sh
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "style: comments that name a file, a function or a fault which does not exist" {
	printf '# id\tfault\nA1\tends\n' >tests/faults.tsv
	cat >>user/heap/good.c <<-'END'

		/*
		 * Reads user/heap/good.c and user/lib/*.h with strlen(), as user/heap/gone.h says.
		 * Calls gone(). (A1)
		 */
		int good(const char *s)
		{
			return strlen(s) + good("gone()"); /* For (A2). */
		}
	END
	finds 'user/heap/good.c:5: comment names user/heap/gone.h, which does not exist' \
		'user/heap/good.c:6: comment names gone(), which exists nowhere' \
		'user/heap/good.c:10: comment names fault A2, which tests/faults.tsv does not define'
	[ "$(grep -c 'comment names' <<<"$output")" -eq 3 ]
}

@test "style: comments that open with a pronoun whose noun is elsewhere" {
	printf '%s\n' '' '/* It is gone. */' '/* Items follow. It is fine here. */' '/* Whatever comes. */' >>tests/good.c
	printf '# SPDX-License-Identifier: GPL-2.0-or-later\n# The same for scripts.\n' >tests/good.sh
	sed -i '1i /* SPDX-License-Identifier: GPL-2.0-or-later */' tests/good.c
	finds 'tests/good.c:3: comment opens with "It", whose noun is elsewhere: It is gone.' \
		'tests/good.sh:2: comment opens with "The same", whose noun is elsewhere'
	[ "$(grep -c 'comment opens' <<<"$output")" -eq 2 ]
}

@test "style: a tag that is defined twice" {
	printf '\nstruct piece;\n\nstruct piece {\n\tint start;\n};\n' >>user/lib/good.h
	printf '\nenum piece { PIECE };\n\nstruct piece {\n\tint end;\n};\n' >>user/heap/good.c
	finds 'struct piece is defined in user/'
	[ "$(grep -c 'is defined in' <<<"$output")" -eq 1 ]
}

@test "style: variables that can change and outlive a call" {
	cat >>user/heap/good.c <<'END'

static int counter;
int other = 2;
static const char *names[2] = { "a", "b" };
static int (*hook)(void);
static struct {
	int field;
} state;

static const char *const fixed[] = { "a" };
static int (*const hooks[])(int) = { 0 };
static const int limit = 3;
static int good(int n);

static int good(int n)
{
	static int calls;

	return n + calls++ + counter;
}
END
	finds 'user/heap/good.c:4: counter can change and is static' 'user/heap/good.c:5: other can' \
		'user/heap/good.c:6: names can' 'user/heap/good.c:7: hook can' 'user/heap/good.c:8: state can' \
		'user/heap/good.c:19: calls can'
	[ "$(grep -c 'can change' <<<"$output")" -eq 6 ]
}

# bats test_tags=full
@test "style: subjects of commits after the check came" {
	command -v git >/dev/null || skip "git is not installed"
	git init -q
	git config user.email tests@example.org
	git config user.name tests
	git add -A
	git commit -q -m 'Anything was allowed before'
	sed -i "s/^subjects_from=.*/subjects_from=$(git rev-parse HEAD)/" tests/style.sh
	git commit -q -a -m 'tests: name the first commit'
	run tests/style.sh
	[ "$status" -eq 0 ]
	git commit -q --allow-empty -m 'Change a thing'
	git commit -q --allow-empty -m "heap: $(printf 'x%.0s' {1..60})"
	finds 'subject does not begin with "room: ": Change a thing' 'subject of 66 columns, more than 60: heap: xxx'
}
