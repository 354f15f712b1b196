/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of compiled code: lines of node, Python and others; broken lines; the newest name wins; whose file is read. */
#include "user/names/perf_map.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct perf_map *map;

static void read_text(const char *text)
{
	perf_map_free(map);
	assert_int_equal(perf_map_new(&map, strdup(text), strlen(text)), 0);
}

static void is_named(u64 addr, const char *expected)
{
	struct perf_name n;
	char text[256];

	assert_true(perf_map_find(map, addr, &n));
	snprintf(text, sizeof(text), "%.*s|%.*s|%u", (int)n.function_len, n.function, (int)n.file_len,
		 n.file ? n.file : "", n.line);
	assert_string_equal(text, expected);
}

static void is_unnamed(u64 addr)
{
	struct perf_name n;

	assert_false(perf_map_find(map, addr, &n));
}

static void is_of(u64 addr, const char *language)
{
	struct perf_name n;

	assert_true(perf_map_find(map, addr, &n));
	assert_string_equal(n.language, language);
}

static void lines_of_runtimes(void **state)
{
	(void)state;
	read_text("1000 100 JS:~load /app/a b.js:12:25\n"
		  "2000 10 LazyCompile:*run file:///app/x.mjs:7\n"
		  "3000 10 py::work:/app/w.py\n"
		  "4000 10 Lcom/example/Main;::main\n"
		  "5000 10 Builtin:ArrayPush\n"
		  "6000 10 JS:~\n"
		  "7000 10 JS:* /app/a.js:2:13\n");
	is_named(0x1000, "load|/app/a b.js|12");
	is_named(0x10ff, "load|/app/a b.js|12");
	is_unnamed(0x1100);
	is_unnamed(0xfff);
	is_named(0x2008, "run|file:///app/x.mjs|7");
	is_named(0x3008, "work|/app/w.py|0");
	is_named(0x4008, "Lcom/example/Main;::main||0");
	is_named(0x5008, "Builtin:ArrayPush||0");
	is_named(0x6008, "~||0");
	is_named(0x7008, "(anonymous)|/app/a.js|2");
	is_of(0x1000, "javascript");
	is_of(0x3008, "python");
	is_of(0x4008, "compiled");
}

/* Code is moved and thrown away: of several that have an address, the last line is right. */
static void newest_name_wins(void **state)
{
	(void)state;
	read_text("1000 1000 old\n1800 10 new\n1000 100 newer\n");
	is_named(0x1000, "newer||0");
	is_named(0x1200, "old||0");
	is_named(0x1808, "new||0");
}

static void broken_lines_are_left_out(void **state)
{
	(void)state;
	read_text(
		"\n \nxyz 1 a\n1000 b\n1000 10\n1000 10 \n-1 10 c\n11112222333344445 10 d\n2000 10 good\n3000 10 half");
	is_named(0x2000, "good||0");
	is_unnamed(0x1000);
	is_unnamed(0x3000);
	read_text("");
	is_unnamed(0);
}

/* Only a regular file of the process's user is read, and no link to one. */
static void files(void **state)
{
	char path[64], other[64];
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	snprintf(other, sizeof(other), "/tmp/perf-%d.map.other", (int)getpid());
	perf_map_free(map);
	map = NULL;
	assert_int_equal(perf_map_read(&map, getpid()), -ENOENT);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("1000 10 mine\n", file);
	fclose(file);
	assert_int_equal(perf_map_read(&map, getpid()), 0);
	is_named(0x1001, "mine||0");
	if (!getuid()) {
		struct perf_map *none;

		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(perf_map_read(&none, getpid()), -EPERM);
		assert_int_equal(chown(path, 0, 0), 0);
	}
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	{
		struct perf_map *none;

		assert_int_equal(perf_map_read(&none, getpid()), -ELOOP);
	}
	unlink(path);
	unlink(other);
	perf_map_free(map);
	map = NULL;
}

static void too_many_names_are_counted(void **state)
{
	enum { READ = 1 << 20, MORE = 5, LEN = 16 /* of a line */ };
	size_t len = (size_t)(READ + MORE) * LEN;
	char *text = malloc(len + 1);

	(void)state;
	assert_non_null(text);
	for (u32 i = 0; i < READ + MORE; i++) {
		char line[32];

		snprintf(line, sizeof(line), "%08x 1 name\n", i * 16);
		memcpy(text + (size_t)i * LEN, line, LEN);
	}
	perf_map_free(map);
	assert_int_equal(perf_map_new(&map, text, len), 0);
	assert_int_equal(perf_map_left_out(map), MORE * LEN);
	is_named((READ - 1) * 16, "name||0");
	is_unnamed(READ * 16);
	read_text("1000 10 few\n");
	assert_int_equal(perf_map_left_out(map), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(lines_of_runtimes),
					    cmocka_unit_test(newest_name_wins),
					    cmocka_unit_test(broken_lines_are_left_out),
					    cmocka_unit_test(too_many_names_are_counted),
					    cmocka_unit_test(files) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
