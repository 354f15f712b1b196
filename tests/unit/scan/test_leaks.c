/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Suppressions and sums: every block is counted once, and blocks lost through a suppressed block are suppressed too.
 * And: who has the CPU first while a process is stopped.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/target/allocator.h"
#include "user/heap/heap.h"
#include "user/scan/leaks.h"
#include "user/scan/leaks_suppress.h"
#include "user/target/module.h"
#include "user/heap/stacks.h"
#include "user/scan/suppress.h"
#include "tests/unit/skip.h"

enum { ROW_MALLOC, ROW_CALLOC, NR_ROWS };

static struct heap *heap;
static struct stack_table *stacks;
static struct module_table *modules;
static struct leaks leaks;
static struct leak_row rows[NR_ROWS];
static struct leak_link links[2];

static int alloc(const char *fn, taddr_t addr)
{
	const struct heap_event ev = {
		.h = { .kind = EVENT_ALLOC, .fn = alloc_fn_find(NULL, fn), .pid = 1, .tid = 1 },
		.time_ns = 1000000,
		.addr = addr,
		.size = 10
	};

	return heap_event(heap, &ev);
}

/*
 * malloc lost 3 blocks of 30 bytes, and through them 2 blocks of its own and 4 of calloc. calloc lost 1 block possibly,
 * and 5 are reachable.
 */
static int begin(void **state)
{
	(void)state;
	if (heap_new(&heap, NULL) || stack_table_new(&stacks) || module_table_new(&modules) ||
	    alloc("malloc", 0x1000) || alloc("calloc", 0x2000))
		return -1;
	memset(rows, 0, sizeof(rows));
	rows[ROW_MALLOC].sums.of[SCAN_DEFINITE] = (struct scan_sum){ 3, 30 };
	rows[ROW_MALLOC].sums.of[SCAN_INDIRECT] = (struct scan_sum){ 2, 20 };
	rows[ROW_MALLOC].through = (struct scan_sum){ 6, 60 };
	rows[ROW_CALLOC].sums.of[SCAN_INDIRECT] = (struct scan_sum){ 4, 40 };
	rows[ROW_CALLOC].sums.of[SCAN_POSSIBLE] = (struct scan_sum){ 1, 10 };
	rows[ROW_CALLOC].sums.of[SCAN_REACHABLE] = (struct scan_sum){ 5, 50 };
	links[0] = (struct leak_link){ ROW_MALLOC, ROW_MALLOC, { 2, 20 } };
	links[1] = (struct leak_link){ ROW_CALLOC, ROW_MALLOC, { 4, 40 } };
	leaks = (struct leaks){
		.has_verdict = true, .rows = rows, .nr_rows = NR_ROWS, .links = links, .nr_links = 2
	};
	for (int v = 0; v < NR_SCAN_VERDICTS; v++)
		for (int r = 0; r < NR_ROWS; r++) {
			leaks.result.sums.of[v].blocks += rows[r].sums.of[v].blocks;
			leaks.result.sums.of[v].bytes += rows[r].sums.of[v].bytes;
		}
	return 0;
}

static int end(void **state)
{
	(void)state;
	heap_free(heap);
	stack_table_free(stacks);
	module_table_free(modules);
	return 0;
}

static void suppress(const char *rules)
{
	const struct leaks_names names = { heap, stacks, modules, NULL };
	struct suppress_list *list;

	assert_int_equal(suppress_new(&list), 0);
	assert_int_equal(suppress_add_text(list, "rules", rules, strlen(rules)), 0);
	assert_int_equal(leaks_suppress(&leaks, list, &names), 0);
	suppress_free(list);
}

static u64 blocks(enum scan_verdict verdict)
{
	return leaks.result.sums.of[verdict].blocks;
}

/* Suppressed and other blocks together are 15 blocks of 150 bytes. */
static void assert_all_there(void)
{
	struct scan_sum all = leaks.suppressed, of_rows = { 0, 0 };

	for (int v = 0; v < NR_SCAN_VERDICTS; v++) {
		all.blocks += leaks.result.sums.of[v].blocks;
		all.bytes += leaks.result.sums.of[v].bytes;
		for (int r = 0; r < NR_ROWS; r++)
			of_rows.blocks += rows[r].sums.of[v].blocks;
	}
	for (int r = 0; r < NR_ROWS; r++)
		of_rows.blocks += rows[r].suppressed.blocks;
	assert_int_equal(all.blocks, 15);
	assert_int_equal(all.bytes, 150);
	assert_int_equal(of_rows.blocks, 15);
}

static void no_rule_matches(void **state)
{
	(void)state;
	suppress("leak:realloc\n");
	assert_int_equal(leaks.suppressed.blocks, 0);
	assert_all_there();
}

static void what_is_lost_through_it_goes_too(void **state)
{
	(void)state;
	suppress("leak:^malloc$\n");
	assert_int_equal(blocks(SCAN_DEFINITE), 0);
	assert_int_equal(blocks(SCAN_INDIRECT), 0);
	assert_int_equal(blocks(SCAN_POSSIBLE), 1);
	assert_int_equal(rows[ROW_CALLOC].suppressed.blocks, 4);
	assert_int_equal(rows[ROW_MALLOC].through.blocks, 0);
	assert_all_there();
}

static void indirect_alone(void **state)
{
	(void)state;
	suppress("{\n name\n Memcheck:Leak\n match-leak-kinds: indirect\n fun:calloc\n}\n");
	assert_int_equal(blocks(SCAN_DEFINITE), 3);
	assert_int_equal(blocks(SCAN_INDIRECT), 2);
	assert_int_equal(rows[ROW_MALLOC].through.blocks, 2);
	assert_int_equal(leaks_lost(&rows[ROW_MALLOC]).bytes, 50);
	assert_all_there();
}

static void all_of_it(void **state)
{
	(void)state;
	suppress("leak:alloc\n");
	assert_int_equal(blocks(SCAN_DEFINITE) + blocks(SCAN_INDIRECT) + blocks(SCAN_POSSIBLE), 0);
	assert_int_equal(blocks(SCAN_REACHABLE), 5);
	assert_int_equal(leaks.suppressed.blocks, 10);
	assert_all_there();
	/* A second call changes nothing. */
	suppress("leak:alloc\n");
	assert_int_equal(leaks.suppressed.blocks, 10);
	assert_all_there();
}

static void rows_beyond_are_empty(void **state)
{
	(void)state;
	assert_int_equal(leaks_row(&leaks, ROW_MALLOC).through.blocks, 6);
	assert_int_equal(leaks_row(&leaks, NR_ROWS).through.blocks, 0);
	assert_int_equal(leaks_row(NULL, 0).through.blocks, 0);
}

/* The callbacks of a scan, and what they saw. */
struct course {
	int drained; /* nice value while the process was stopped */
	int aside;   /* the highest priority of work that may wait */
	int result;  /* of drain while it was stopped */
};

/* The nice value; less than any of them where this thread comes before all usual ones. */
static int nice_now(void)
{
	return sched_getscheduler(0) == SCHED_RR ? -100 : getpriority(PRIO_PROCESS, 0);
}

static int drain(void *ctx, struct scan *scan, bool is_stopped)
{
	struct course *c = ctx;

	(void)scan;
	if (!is_stopped)
		return 0;
	c->drained = nice_now();
	return c->result;
}

static int aside(void *ctx, int (*work)(void *arg), void *arg)
{
	struct course *c = ctx;

	if (nice_now() < c->aside)
		c->aside = nice_now();
	return work(arg);
}

/* While the process is stopped, and no longer, heaptap comes before others: also if there is no verdict. */
static void stopped_process_waits_for_no_other(void **state)
{
	static const enum snapshot_way ways[] = { SNAPSHOT_STOP, SNAPSHOT_FORK };
	pid_t pid;

	(void)state;
	if (geteuid())
		skip_because("only root may have such a priority");
	pid = fork();
	assert_true(pid >= 0);
	while (!pid)
		pause();
	for (size_t i = 0; i < 4; i++) {
		struct course c = { .result = i % 2 ? -ENODATA : 0, .aside = 19 };
		const struct leaks_options lo = { .pid = pid,
						  .heap = heap,
						  .max_pause_ns = 60000000000,
						  .way = ways[i / 2],
						  .ctx = &c,
						  .drain = drain,
						  .aside = aside };
		struct leaks *l;
		int usual = nice_now();

		assert_int_equal(leaks_find(&l, &lo), 0);
		assert_int_equal(l->has_verdict, !c.result);
		leaks_free(l);
		assert_true(c.drained < usual);
		assert_int_equal(c.aside, usual);
		assert_int_equal(nice_now(), usual);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_rule_matches, begin, end),
		cmocka_unit_test_setup_teardown(what_is_lost_through_it_goes_too, begin, end),
		cmocka_unit_test_setup_teardown(indirect_alone, begin, end),
		cmocka_unit_test_setup_teardown(all_of_it, begin, end),
		cmocka_unit_test_setup_teardown(rows_beyond_are_empty, begin, end),
		cmocka_unit_test_setup_teardown(stopped_process_waits_for_no_other, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
