/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of one run by replay: exec, ends, losses, events of nobody. What the JSON report says is looked at. */
#include "user/session/session.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/cli/options.h"
#include "user/lib/log.h"
#include "user/lib/status.h"

static u64 parent_addr; /* begin of the parent's first mapping */

struct world {
	char events[64], json[64];
	char *text; /* of the report */
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	int fd;

	*state = w;
	strcpy(w->events, "/tmp/heaptap-session-XXXXXX");
	fd = mkstemp(w->events);
	snprintf(w->json, sizeof(w->json), "%s.json", w->events);
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	struct world *w = *state;

	unlink(w->events);
	unlink(w->json);
	free(w->text);
	free(w);
	return 0;
}

/* The report on these events, without spaces and line ends. */
static const char *report_on(struct world *w, const char *events, int status)
{
	char *argv[] = { "heaptap", "report", "-q", "--force", "-o", w->json, w->events, NULL };
	struct options o;
	FILE *f = fopen(w->events, "w");
	int c;
	size_t n = 0;

	assert_true(f && fputs(events, f) >= 0 && !fclose(f));
	log_set_level(LOG_ERROR);
	assert_int_equal(options_parse(&o, ARRAY_SIZE(argv) - 1, argv), 0);
	assert_int_equal(o.command->run(&o), status);
	options_fini(&o);
	free(w->text);
	w->text = calloc(1, 1 << 16);
	f = fopen(w->json, "r");
	assert_non_null(f);
	while ((c = getc(f)) != EOF && n < (1 << 16) - 1)
		if (c != ' ' && c != '\n')
			w->text[n++] = c;
	fclose(f);
	return w->text;
}

static size_t times(const char *text, const char *word)
{
	size_t nr = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		nr++;
	}
	return nr;
}

static void has(const char *text, const char *word, size_t nr)
{
	if (times(text, word) != nr)
		fail_msg("%zu times, not %zu: %s in %s", times(text, word), nr, word, text);
}

static void test_end(void **state)
{
	const char *text = report_on(*state,
				     "process 77 prog /p started\n"
				     "alloc 77 1 malloc 0x1000 100 0\nalloc 77 1 malloc 0x2000 50 0\n"
				     "free 77 1 free 0x1000 0\nexit 77 9\n",
				     STATUS_DONE);

	has(text, "\"pid\":77", 1);
	has(text, "\"exit\":{\"signal\":9}", 1);
	has(text, "\"started\":true", 1);
	has(text, "\"allocs\":2,\"frees\":1", 2); /* in the totals, and in the one row */
	has(text, "\"live_bytes\":50", 2);
}

/* A child begins with its parent's blocks; what is not there any more is no unknown free (A16). */
static void test_fork(void **state)
{
	const char *text = report_on(*state,
				     "process 77 prog /p started\nprocess 78 prog /p\n"
				     "alloc 77 1 malloc 0x1000 100 0\nalloc 77 1 malloc 0x2000 50 0\n"
				     "fork 77 78\nfree 78 2 free 0x1000 0\nalloc 78 2 malloc 0x3000 7 0\n"
				     "free 77 1 free 0x2000 0\nfree 77 1 free 0x1000 0\n",
				     STATUS_DONE);

	has(text, "\"allocs\":2,\"frees\":2,\"alloc_bytes\":150,\"live_blocks\":0,", 1);
	has(text, "\"allocs\":3,\"frees\":1,\"alloc_bytes\":157,\"live_blocks\":2,\"live_bytes\":57", 2);
	has(text, "\"unknown_frees\":0", 2);
}

/* A child that did nothing but execute a program is no row of the report (A14, A16). */
static void test_fork_and_exec(void **state)
{
	const char *text = report_on(*state,
				     "process 77 prog /p started\nprocess 78 prog /p\n"
				     "alloc 77 1 malloc 0x1000 100 0\nfork 77 78\nexec 78\n"
				     "alloc 78 2 malloc 0x3000 7 0\n",
				     STATUS_DONE);

	has(text, "\"pid\":77", 1);
	has(text, "\"pid\":78", 1);
	has(text, "\"live_bytes\":7,", 2);
}

/* Two stacks of one id: what came before the second is the first's, what comes after is nobody's, and counted (C7). */
static void test_stack_collision(void **state)
{
	const char *text = report_on(*state,
				     "process 77 prog /p\nmap 77 0x1000 0x9000 0 /p\n"
				     "stack 2 77 complete 0x1100 0x1200\nalloc 77 1 malloc 0x100000 10 2\n"
				     "stack 2 77 complete 0x1100 0x1300\nalloc 77 2 malloc 0x200000 20 2\n",
				     STATUS_DONE);

	has(text, "\"stacks\":1,", 1);
	has(text, "\"live_bytes\":30", 1);
	has(text, "\"live_bytes\":10", 1);
	has(text, "\"truncated\":\"lost\"", 1);
}

/* Two stacks in one process: a row each. */
static void test_stacks(void **state)
{
	const char *text = report_on(*state,
				     "process 77 prog /p\nmap 77 0x1000 0x9000 0 /p\n"
				     "stack 2 77 complete 0x1100 0x1200\nstack 3 77 depth 0x1300\n"
				     "alloc 77 1 malloc 0x100000 10 2\nalloc 77 2 malloc 0x200000 20 3\n"
				     "alloc 77 2 malloc 0x300000 20 3\n",
				     STATUS_DONE);

	has(text, "\"exit\":null", 1);
	has(text, "\"truncated\":", 1);
	has(text, "\"truncated\":\"depth\"", 1);
	has(text, "\"allocs\":2,\"alloc_bytes\":", 1);
}

static void test_losses(void **state)
{
	const char *text = report_on(*state, "process 77 prog /p\nlost 77 1 2 3 4\nlost 77 10 20 30 40\n",
				     STATUS_UNTRUSTED);

	has(text, "\"lost\":{\"allocs\":11,\"frees\":22,\"stacks\":33,\"other\":44}", 1);
	/* Calls that were not seen, for other reasons than these. Lost stacks leave all numbers right. */
	report_on(*state, "process 77 prog /p\nlost 77 0 0 0 1\n", STATUS_UNTRUSTED);
	report_on(*state, "process 77 prog /p\nlost 77 0 0 1 0\n", STATUS_DONE);
}

/*
 * The old image's books are closed as they are, the new one's begin empty; what was lost belongs to the
 * image that lost it. The number may by now be another process here, or nobody's: that must not matter.
 */
static void exec_twice(struct world *w, int pid)
{
	char events[1024];
	const char *text;

	snprintf(events, sizeof(events),
		 "process %1$d prog /p started\nalloc %1$d 1 malloc 0x1000 100 0\nlost %1$d 1 0 0 0\n"
		 "exec %1$d\nalloc %1$d 1 malloc 0x1000 30 0\nlost %1$d 2 0 0 0\n"
		 "exec %1$d\nalloc %1$d 1 malloc 0x1000 7 0\nlost %1$d 4 0 0 0\nfree %1$d 1 free 0x1000 0\n"
		 "exit %1$d 256\n",
		 pid);
	text = report_on(w, events, STATUS_UNTRUSTED);
	has(text, "\"pid\":", 3);
	has(text, "\"exe\":\"/p\"", 3);
	has(text, "\"exit\":null", 2);
	has(text, "\"exit\":{\"code\":1}", 1);
	has(text, "\"allocs\":1,\"frees\":0,\"alloc_bytes\":100", 1);
	has(text, "\"allocs\":1,\"frees\":0,\"alloc_bytes\":30", 1);
	has(text, "\"allocs\":1,\"frees\":1,\"alloc_bytes\":7", 2);
	has(text, "\"lost\":{\"allocs\":1,", 1);
	has(text, "\"lost\":{\"allocs\":2,", 1);
	has(text, "\"lost\":{\"allocs\":4,", 1);
}

static void test_exec(void **state)
{
	exec_twice(*state, 4194303);
}

static void test_exec_of_a_number_in_use(void **state)
{
	exec_twice(*state, getppid());
}

/* An address that no mapping of the file explains is not looked up in a process that has the number here. */
static void test_other_process(void **state)
{
	u64 addr = parent_addr;
	char events[512];
	const char *text;

	assert_int_not_equal(addr, 0);
	snprintf(events, sizeof(events),
		 "process %1$d prog /p\nmap %1$d 0x1000 0x9000 0 /p\nstack 2 %1$d complete 0x%2$" PRIx64
		 " 0x1100\nalloc %1$d 1 malloc 0x100000 10 2\n",
		 getppid(), addr + 16);
	text = report_on(*state, events, STATUS_DONE);
	has(text, "\"path\":\"/p\"", 1);
}

/* After the end nothing belongs to it any more. */
static void test_strays(void **state)
{
	const char *text = report_on(*state,
				     "process 77 prog /p\nalloc 77 1 malloc 0x1000 100 0\nexit 77 0\n"
				     "free 77 1 free 0x1000 0\nalloc 77 1 malloc 0x2000 100 0\nexit 77 0\n",
				     STATUS_DONE);

	has(text, "\"pid\":", 1);
	has(text, "\"exit\":{\"code\":0}", 1);
	has(text, "\"allocs\":1,\"frees\":0", 1);
	has(text, "\"stray_events\":3", 1);
}

static void read_parent(void)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", getppid());
	f = fopen(path, "r");
	if (!f || fscanf(f, "%" SCNx64, &parent_addr) != 1)
		print_error("%s cannot be read\n", path);
	if (f)
		fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stack_collision, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork_and_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_losses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_of_a_number_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strays, setup, teardown),
	};

	/* Now: the first report gives up the right to read files of other processes. */
	read_parent();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
