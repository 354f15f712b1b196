/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice of --snapshot auto: by how long the process would stand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/scan/snapshot_plan.h"

#define MIB	 (1ULL << 20)
#define A_MOMENT 1000000ULL
#define A_MINUTE 60000000000ULL

/* One thread reads a MiB in 0.9 ms, and a pause of 10 ms is short. */
static void a_long_stop_wants_a_copy(void **state)
{
	(void)state;
	assert_false(snapshot_plan_wants_copy(0, 1, false));
	assert_false(snapshot_plan_wants_copy(8 * MIB, 1, false));
	assert_true(snapshot_plan_wants_copy(16 * MIB, 1, false));
	assert_false(snapshot_plan_wants_copy(16 * MIB, 2, false));
	assert_true(snapshot_plan_wants_copy(32 * MIB, 2, false));
	assert_false(snapshot_plan_wants_copy(32 * MIB, 4, false));
	assert_true(snapshot_plan_wants_copy(64 * MIB, 4, false));
	/* A census takes longer, as it also walks the allocator's books. */
	assert_true(snapshot_plan_wants_copy(8 * MIB, 1, true));
	/* More threads do not read so much faster. */
	assert_true(snapshot_plan_wants_copy(64 * MIB, 16, false));
	assert_true(snapshot_plan_wants_copy(UINT64_MAX, 16, false));
}

#ifndef SYS_userfaultfd
#define SYS_userfaultfd 323 /* only used on x86_64 */
#endif

/* More memory, books, load, threads and shared memory make a stop longer, and precopy has the shortest. */
static void stops_are_estimated(void **state)
{
	struct snapshot_pause p = snapshot_pause_usual(1024 * MIB, 2, false), q = p;
	u64 stop = snapshot_pause_ns(&p, SNAPSHOT_STOP, 0), fork_ns = snapshot_pause_ns(&p, SNAPSHOT_FORK, 0),
	    precopy = snapshot_pause_ns(&p, SNAPSHOT_PRECOPY, 0);

	(void)state;
	assert_true(stop > fork_ns && fork_ns > precopy && precopy > 1000000);
	q.walks_books = true;
	assert_true(snapshot_pause_ns(&q, SNAPSHOT_STOP, 0) > 2 * stop);
	assert_int_equal(snapshot_pause_ns(&q, SNAPSHOT_PRECOPY, 0), precopy);
	/* A load is in the way of the process, which forks, and not of heaptap where it comes first. */
	q = p;
	q.busy = 7;
	assert_true(snapshot_pause_ns(&q, SNAPSHOT_FORK, 0) > 5 * fork_ns);
	assert_true(snapshot_pause_ns(&q, SNAPSHOT_PRECOPY, 0) < 2 * precopy);
	q.slow = 7;
	assert_true(snapshot_pause_ns(&q, SNAPSHOT_PRECOPY, 0) > 6 * precopy);
	/* Memory that is not copied ahead. */
	assert_true(snapshot_pause_ns(&p, SNAPSHOT_PRECOPY, 1024 * MIB) > 10 * precopy);
	q = p;
	q.shared_bytes = 1024 * MIB;
	assert_true(snapshot_pause_ns(&q, SNAPSHOT_FORK, 0) > 5 * fork_ns);
	assert_true(snapshot_pause_ns(&q, SNAPSHOT_STOP, 0) > stop * 3 / 2);
	q.nr_threads = 10000;
	assert_true(snapshot_pause_ns(&q, SNAPSHOT_PRECOPY, 0) > 100000000);
}

/* A stop that would be too long is not begun, and one that is short enough is. */
static void too_long_is_refused(void **state)
{
	struct snapshot_plan_options o = { .pid = getpid(), .way = SNAPSHOT_STOP, .max_pause_ns = 1000 };
	struct snapshot_plan plan;

	(void)state;
	snapshot_plan_make(&plan, &o);
	assert_int_equal(plan.way, SNAPSHOT_STOP);
	assert_int_equal(snapshot_plan_check(&plan, &o, plan.way), -ETIME);
	/* No copy was asked for; or it failed, and the process would stand instead. */
	assert_int_equal(snapshot_plan_check_uncopied(&plan, &o, -ECANCELED), 0);
	assert_int_equal(snapshot_plan_check_uncopied(&plan, &o, -EBUSY), -ETIME);
	o.max_pause_ns = 600000000000ULL;
	assert_int_equal(snapshot_plan_check(&plan, &o, plan.way), 0);
	assert_int_equal(snapshot_plan_check_uncopied(&plan, &o, -EBUSY), 0);
	snapshot_plan_free(&plan);
}

/* A process with @bytes of memory of its own; the way that is chosen for one reader. */
static enum snapshot_way choose_for(size_t bytes, u64 max_pause_ns, bool has_userfaultfd)
{
	struct snapshot_plan_options o = { .way = SNAPSHOT_AUTO, .max_pause_ns = max_pause_ns, .nr_jobs = 1 };
	struct snapshot_plan plan;
	char byte = 0;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	o.pid = fork();
	if (o.pid == 0) {
		char *p = malloc(bytes);

		memset(p, 1, bytes);
		if (has_userfaultfd && syscall(SYS_userfaultfd, 1 /* USER_MODE_ONLY */) < 0)
			_exit(1);
		if (write(fds[1], p, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	snapshot_plan_open(&plan, &o);
	snapshot_plan_free(&plan);
	kill(o.pid, SIGKILL);
	assert_int_equal(waitpid(o.pid, NULL, 0), o.pid);
	close(fds[0]);
	close(fds[1]);
	return plan.way;
}

static void small_processes_are_stopped(void **state)
{
	(void)state;
	assert_int_equal(choose_for(4 * MIB, A_MINUTE, false), SNAPSHOT_STOP);
}

/* By a fork, unless its stop is too long. Then the kernel may be too old for the copy that has the shortest stop. */
static void large_processes_are_copied(void **state)
{
	enum snapshot_way way = choose_for(48 * MIB, A_MOMENT, false);

	(void)state;
	assert_int_equal(choose_for(48 * MIB, A_MINUTE, false), SNAPSHOT_FORK);
	assert_true(way == SNAPSHOT_PRECOPY || way == SNAPSHOT_FORK);
	if (way == SNAPSHOT_PRECOPY)
		assert_int_equal(choose_for(48 * MIB, A_MOMENT, true), SNAPSHOT_FORK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_stop_wants_a_copy),   cmocka_unit_test(stops_are_estimated),
		cmocka_unit_test(too_long_is_refused),	      cmocka_unit_test(small_processes_are_stopped),
		cmocka_unit_test(large_processes_are_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
