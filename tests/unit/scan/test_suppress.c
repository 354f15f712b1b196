/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Suppressions: files that are read or refused, and stacks that match. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/log.h"
#include "user/scan/suppress.h"

static struct suppress_list *list;

static const struct suppress_frame stack[] = {
	{ .function = "new", .linkage = "_Znwm" },
	{ .function = "make_node(int)",
	  .linkage = "_Z9make_nodei",
	  .file = "/src/list.cc",
	  .object = "/usr/bin/x" },
	{ .function = "fill", .file = "/src/list.cc", .object = "/usr/lib/libfill.so.1" },
	{ .object = "/usr/lib/libold.so" },
	{ .function = "main", .file = "/src/main.c", .object = "/usr/bin/x" },
};

static int setup(void **state)
{
	(void)state;
	return suppress_new(&list);
}

static int teardown(void **state)
{
	(void)state;
	suppress_free(list);
	return 0;
}

static int add(const char *text)
{
	return suppress_add_text(list, "rules", text, strlen(text));
}

static int match(enum scan_verdict verdict)
{
	return suppress_match(list, verdict, stack, ARRAY_SIZE(stack));
}

/* True if the rules of @text alone match the stack. */
static bool matches(const char *text)
{
	bool does;

	suppress_free(list);
	list = NULL;
	assert_int_equal(suppress_new(&list), 0);
	assert_int_equal(add(text), 0);
	does = match(SCAN_DEFINITE) >= 0;
	return does;
}

static void leak_patterns(void **state)
{
	(void)state;
	assert_true(matches("leak:make_node"));
	assert_true(matches("leak:^fill$"));
	assert_true(matches("leak:libold"));
	assert_true(matches("leak:/src/*.cc"));
	assert_true(matches("# why\n\n  leak:ma*e(int  \n"));
	assert_false(matches("leak:^ill"));
	assert_false(matches("leak:fil$"));
	assert_false(matches("leak:nothing"));
	assert_true(matches("leak:^"));
}

static void ignored_expressions(void **state)
{
	(void)state;
	assert_true(matches("ignore ^make_(node|tree)"));
	assert_true(matches("ignore\tlib(old|new)\\.so"));
	assert_true(matches("ignore ^n\\{|^fil+$"));
	assert_false(matches("ignore ^node"));
}

#define BLOCK(body) "{\n  name\n  Memcheck:Leak\n" body "}\n"

static void blocks(void **state)
{
	(void)state;
	assert_true(matches(BLOCK("fun:_Znwm\nfun:make_node*\n")));
	assert_true(matches(BLOCK("fun:_Znw?\nfun:_Z9make_nodei\nfun:fill\nobj:*libold.so\nfun:main\n")));
	assert_true(matches(BLOCK("...\nfun:main\n")));
	assert_true(matches(BLOCK("fun:new\n...\nobj:/usr/lib/libold.so\n")));
	assert_true(matches(BLOCK("...\nfun:fill\n...\nfun:main\n...\n")));
	assert_true(matches(BLOCK("fun:*\nsrc:/src/list.cc\n")));
	assert_true(matches(BLOCK("obj:*\n")));
	assert_false(matches(BLOCK("fun:fill\n"))); /* not at the top */
	assert_false(matches(BLOCK("fun:new\nfun:fill\n")));
	assert_false(matches(BLOCK("...\nfun:main\nfun:other\n")));
	assert_false(
		matches(BLOCK("fun:*\nfun:*\nfun:*\nfun:*\nfun:*\nfun:*\n"))); /* longer than the stack */
	assert_false(matches("{\nname\nMemcheck:Cond\nfun:*\n}\n{\nname\nHelgrind:Race\nfun:*\n}\n"));
	assert_true(matches("{\nname\nHelgrind,Memcheck:Leak\nfun:*\n}\n"));
	assert_false(matches("{\nname\nMemcheck:Param\nwrite(buf)\nfun:*\n}\n"));
}

static void kinds(void **state)
{
	(void)state;
	assert_int_equal(add(BLOCK("match-leak-kinds: possible,reachable\nfun:*\n")), 0);
	assert_int_equal(match(SCAN_DEFINITE), -1);
	assert_int_equal(match(SCAN_POSSIBLE), 0);
	assert_int_equal(match(SCAN_REACHABLE), 0);
	assert_int_equal(add("leak:main"), 0);
	assert_int_equal(match(SCAN_DEFINITE), 1);
	assert_int_equal(suppress_count(list), 2);
}

/* The message of an error. */
static void assert_refused(const char *text, const char *expected)
{
	char line[512] = "";
	int fds[2], saved = dup(2);
	ssize_t len;

	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], 2);
	assert_int_equal(add(text), -EINVAL);
	dup2(saved, 2);
	close(fds[1]);
	close(saved);
	len = read(fds[0], line, sizeof(line) - 1);
	close(fds[0]);
	assert_true(len > 0);
	line[len] = '\0';
	assert_string_equal(line, expected);
}

static void refused(void **state)
{
	(void)state;
	assert_refused("\nrubbish\n",
		       "heaptap: suppressions: rules:2: neither leak:PATTERN, ignore REGEX nor {: rubbish\n");
	assert_refused("leak:", "heaptap: suppressions: rules:1: no pattern: leak:\n");
	assert_refused("{\nname\nMemcheck:Leak\n", "heaptap: suppressions: rules:1: no } for this {\n");
	assert_refused("{\n}\n", "heaptap: suppressions: rules:2: a rule needs a name and \"tool:kind\"\n");
	assert_refused(BLOCK(""),
		       "heaptap: suppressions: rules:4: a rule without frames would match everything\n");
	assert_refused("{\nname\nrubbish\n", "heaptap: suppressions: rules:3: not \"tool:kind\": rubbish\n");
	assert_refused(BLOCK("match-leak-kinds: big\n"),
		       "heaptap: suppressions: rules:4: unknown kind of leak: big\n");
	assert_refused("ignore (", "heaptap: suppressions: rules:1: (: Unmatched ( or \\\\(\n");
	assert_refused("ignore a+++++++++",
		       "heaptap: suppressions: rules:1: no {}, no \\\\1, at most 8 + in an "
		       "expression: a+++++++++\n");
	assert_int_equal(suppress_count(list), 0);
}

static void bounded(void **state)
{
	size_t len = 3 << 20;
	char *text = malloc(len);

	(void)state;
	log_set_level(LOG_ERROR);
	assert_non_null(text);
	memset(text, 'a', len);
	assert_int_equal(suppress_add_text(list, "rules", text, len), -EINVAL); /* one long line */
	memset(text, 0, len);
	assert_int_equal(suppress_add_text(list, "rules", text, 100), -EINVAL);
	for (size_t i = 0; i + 7 <= len; i += 7)
		memcpy(text + i, "leak:a\n", 7);
	assert_int_equal(suppress_add_text(list, "rules", text, len / 7 * 7), -EINVAL);
	assert_int_equal(suppress_count(list), 10000);
	free(text);
	assert_int_equal(suppress_add_file(list, "/nonexistent"), -ENOENT);
	assert_int_equal(suppress_add_file(list, "/"), -EISDIR);
	assert_int_equal(suppress_add_ignore(list, "a\nb", "config:3"), -EINVAL);
}

/* Patterns for which a careless matcher takes for ever. */
static void no_explosion(void **state)
{
	struct suppress_frame frames[120];
	char pattern[512], name[2000];

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	strcpy(pattern, "{\nn\nMemcheck:Leak\n...\nfun:");
	for (int i = 0; i < 60; i++)
		strcat(pattern, "*a");
	strcat(pattern, "b\n...\nfun:x\n}\n");
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i] = (struct suppress_frame){ .function = name };
	assert_int_equal(add(pattern), 0);
	assert_int_equal(suppress_match(list, SCAN_DEFINITE, frames, ARRAY_SIZE(frames)), -1);
}

/* A written rule can be read, and matches its stack, but no shorter one. */
static void written(void **state)
{
	struct suppress_frame frames[ARRAY_SIZE(stack)];
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	memcpy(frames, stack, sizeof(frames));
	frames[2].function = "hostile\n}\nname";
	frames[1].linkage = "caf\xc3\xa9 \xff\xc3 \\ \xc2\x85";
	assert_non_null(out);
	assert_int_equal(suppress_write(out, "a leak", SCAN_DEFINITE, frames, ARRAY_SIZE(frames)), 0);
	fclose(out);
	/* A byte that is no UTF-8 text is written as one that matches any. */
	assert_non_null(strstr(text, "   fun:caf\xc3\xa9 ?? \\ ??\n"));
	assert_int_equal(suppress_add_text(list, "written", text, len), 0);
	assert_int_equal(suppress_count(list), 1);
	assert_int_equal(suppress_match(list, SCAN_DEFINITE, frames, ARRAY_SIZE(frames)), 0);
	assert_int_equal(suppress_match(list, SCAN_POSSIBLE, frames, ARRAY_SIZE(frames)), -1);
	assert_int_equal(suppress_match(list, SCAN_DEFINITE, frames, ARRAY_SIZE(frames) - 1), -1);
	assert_int_equal(match(SCAN_DEFINITE), -1);
	free(text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(leak_patterns), TEST(ignored_expressions), TEST(blocks),  TEST(kinds), TEST(refused),
		TEST(bounded),	     TEST(no_explosion),	TEST(written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
