/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the parser of /proc/PID/maps. */
#include "user/lib/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "user/lib/cleanup.h"

static int parse(char *buf, size_t size, const char *text, struct map_line *line)
{
	snprintf(buf, size, "%s", text);
	return maps_parse_line(buf, strlen(buf), line);
}

static void all_fields(void **state)
{
	struct map_line line;
	char buf[256];

	(void)state;
	assert_int_equal(parse(buf, sizeof(buf),
			       "7f0000001000-7f0000003000 r-xs 0000a000 103:1f 18446744073709551615    "
			       "/usr/lib/libx.so",
			       &line),
			 0);
	assert_true(line.start == 0x7f0000001000 && line.end == 0x7f0000003000);
	assert_true(line.offset == 0xa000 && line.inode == UINT64_MAX);
	assert_true(line.dev_major == 0x103 && line.dev_minor == 0x1f);
	assert_true(line.is_readable && !line.is_writable && line.is_executable && line.is_shared);
	assert_string_equal(line.path, "/usr/lib/libx.so");
	assert_false(line.is_ambiguous);
}

/* Names with blanks, escapes and the word (deleted) are read as they are (D4). */
static void odd_names(void **state)
{
	static const struct {
		const char *text, *path;
	} cases[] = {
		{ "1000-2000 rw-p 00000000 00:00 0 ", "" },
		{ "1000-2000 rw-p 00000000 00:00 0", "" },
		{ "1000-2000 rw-p 00000000 00:00 0          [heap]", "[heap]" },
		{ "1000-2000 rw-p 00000000 00:00 0          [anon:a b  c]", "[anon:a b  c]" },
		{ "1000-2000 rw-s 00000000 00:0e 12   anon_inode:[perf_event]", "anon_inode:[perf_event]" },
		{ "1000-2000 r-xp 00000000 08:01 12   /a b/c  d ", "/a b/c  d " },
		{ "1000-2000 r-xp 00000000 08:01 12   /x (deleted)", "/x (deleted)" },
		{ "1000-2000 r-xp 00000000 08:01 12   /\xff\xfe\x1b", "/\xff\xfe\x1b" },
		{ "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]", "[vsyscall]" },
	};
	struct map_line line;
	char buf[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse(buf, sizeof(buf), cases[i].text, &line), 0);
		assert_string_equal(line.path, cases[i].path);
	}
}

/* A newline in a name is an escape in the list of mappings (D4). */
static void newline_in_name(void **state)
{
	struct map_line line;
	char buf[256];

	(void)state;
	assert_int_equal(parse(buf, sizeof(buf), "1-2 r-xp 0 08:01 12 /a\\012b\\0123\\012", &line), 0);
	assert_string_equal(line.path, "/a\nb\n3\n");
	assert_true(line.is_ambiguous);
}

static void no_lines(void **state)
{
	static const char *const cases[] = {
		"",
		"x",
		"1000",
		"1000-",
		"1000-1000 r-xp 0 08:01 12 /a",
		"2000-1000 r-xp 0 08:01 12 /a",
		"1000-2000 r-xq 0 08:01 12 /a",
		"1000-2000 r-x",
		"1000-2000 r-xp 0 0801 12 /a",
		"1000-2000 r-xp 0 08:01 1x /a",
		"1000-2000 r-xp 0 08:01 ",
		"10000000000000000-20000000000000000 r-xp 0 08:01 12 /a",
		"1000-2000 r-xp 0 100000000:01 12 /a",
	};
	struct map_line line;
	char buf[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(parse(buf, sizeof(buf), cases[i], &line), -EBADMSG);
}

/* A file with @text repeated @times and then @last. */
static int text_fd(const char *text, size_t times, const char *last)
{
	int fd = memfd_create("maps", MFD_CLOEXEC);
	FILE *f = fdopen(dup(fd), "w");

	assert_true(fd >= 0 && f);
	for (size_t i = 0; i < times; i++)
		fputs(text, f);
	fputs(last, f);
	fclose(f);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* Thousands of lines with the longest paths are read whole (D4). */
static void many_long_lines(void **state)
{
	enum { LINES = 4000 };
	char path[4096], text[4200];
	int fd;
	struct maps_reader *r;
	struct map_line line;

	(void)state;
	memset(path, 'p', sizeof(path));
	path[0] = '/';
	path[4095] = '\0';
	snprintf(text, sizeof(text), "1000-2000 r-xp 0 08:01 12   %s\n", path);
	fd = text_fd(text, LINES, "3000-4000 rw-p 0 00:00 0 \n");
	assert_int_equal(maps_open_fd(&r, fd), 0);
	for (int i = 0; i < LINES; i++) {
		assert_int_equal(maps_next(r, &line), 1);
		assert_string_equal(line.path, path);
		assert_false(line.is_cut);
	}
	assert_int_equal(maps_next(r, &line), 1);
	assert_string_equal(line.path, "");
	assert_true(line.start == 0x3000);
	assert_int_equal(maps_next(r, &line), 0);
	assert_int_equal(maps_next(r, &line), 0);
	assert_true(maps_is_complete(r));
	maps_close(r);
}

/* A line of 300,000 bytes is cut, and the next one is read (D4). */
static void endless_line(void **state)
{
	enum { HUGE_PATH = 300000 };
	auto_free char *text = malloc(HUGE_PATH + 64);
	int fd;
	struct maps_reader *r;
	struct map_line line;
	int n;

	(void)state;
	n = sprintf(text, "1000-2000 r-xp 0 08:01 12   /");
	memset(text + n, 'q', HUGE_PATH);
	text[n + HUGE_PATH] = '\0';
	fd = text_fd(text, 1, "\n3000-4000 rw-p 0 00:00 0 [heap]\n");
	assert_int_equal(maps_open_fd(&r, fd), 0);
	assert_int_equal(maps_next(r, &line), 1);
	assert_true(line.is_cut);
	assert_true(strlen(line.path) > 100000 && line.path[100000] == 'q');
	assert_int_equal(maps_next(r, &line), 1);
	assert_string_equal(line.path, "[heap]");
	assert_false(line.is_cut);
	assert_int_equal(maps_next(r, &line), 0);
	maps_close(r);
}

static void broken_file(void **state)
{
	int fd = text_fd("1000-2000 r-xp 0 08:01 12 /a\n", 1, "3000-4000 r-");
	struct maps_reader *r;
	struct map_line line;

	(void)state;
	assert_int_equal(maps_open_fd(&r, fd), 0);
	assert_int_equal(maps_next(r, &line), 1);
	assert_int_equal(maps_next(r, &line), -EBADMSG);
	maps_close(r);
}

/* Our own maps: the line that holds a function and the one that holds a local. */
static void own_process(void **state)
{
	bool has_code = false, has_stack = false;
	struct maps_reader *r;
	struct map_line line;
	taddr_t end = 0;
	int more;

	(void)state;
	assert_int_equal(maps_open(&r, getpid()), 0);
	while ((more = maps_next(r, &line)) == 1) {
		taddr_t code = (uintptr_t)own_process, local = (uintptr_t)&line;

		assert_true(line.start >= end);
		end = line.end;
		has_code |= line.start <= code && code < line.end && line.is_executable && line.inode != 0;
		has_stack |= line.start <= local && local < line.end && line.is_writable && line.inode == 0;
	}
	assert_int_equal(more, 0);
	assert_true(has_code && has_stack);
	maps_close(r);
}

/* At the first calls of a probe the kernel adds pages. A trace of which the mappings change then loses a stack. */
static void code_of_the_program(void **state)
{
	int fd = text_fd("1000-2000 r-xp 0 08:01 12 /a\n"
			 "2000-3000 r--p 0 08:01 12 /a\n"
			 "7000-8000 r-xp 0 00:00 0 \n"
			 "8000-9000 r-xp 0 00:00 0 [uprobes-trampoline]\n"
			 "7fffffffe000-7ffffffff000 --xp 0 00:00 0 [uprobes]\n",
			 1, "");
	const bool is_code[] = { true, false, true, false, false };
	struct maps_reader *r;
	struct map_line line;

	(void)state;
	assert_int_equal(maps_open_fd(&r, fd), 0);
	for (size_t i = 0; i < ARRAY_SIZE(is_code); i++) {
		assert_int_equal(maps_next(r, &line), 1);
		assert_true(maps_is_code(&line) == is_code[i]);
	}
	maps_close(r);
}

static void no_process(void **state)
{
	struct maps_reader *r;

	(void)state;
	assert_int_equal(maps_open(&r, -1), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fields),	   cmocka_unit_test(odd_names),
		cmocka_unit_test(newline_in_name), cmocka_unit_test(no_lines),
		cmocka_unit_test(many_long_lines), cmocka_unit_test(endless_line),
		cmocka_unit_test(broken_file),	   cmocka_unit_test(own_process),
		cmocka_unit_test(no_process),	   cmocka_unit_test(code_of_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
