/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records put aside come back in order and whole; work aside returns its result while the caller goes on. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/source/backlog.h"

enum { NR = 5000 };

static u32 nr_seen, stop_at;

/* Record n has n % 300 bytes behind its head, each n's low byte. */
static size_t make(u8 *bytes, u32 n)
{
	struct event_header h = { .kind = EVENT_FREE, .pid = n };

	memcpy(bytes, &h, sizeof(h));
	memset(bytes + sizeof(h), (u8)n, n % 300);
	return sizeof(h) + n % 300;
}

static int see(void *ctx, const struct event_header *rec, size_t len)
{
	static u8 expected[512];

	assert_ptr_equal(ctx, &nr_seen);
	assert_int_equal((uintptr_t)rec % 8, 0);
	assert_int_equal(len, make(expected, nr_seen));
	assert_memory_equal(rec, expected, len);
	return ++nr_seen == stop_at ? -EIO : 0;
}

static const struct sink sink = { &nr_seen, see };

static void fill(struct backlog *b)
{
	static u64 words[64];

	nr_seen = 0;
	for (u32 n = 0; n < NR; n++)
		backlog_add(b, (const void *)words, make((u8 *)words, n));
	assert_int_equal(b->nr_dropped, 0);
}

static void in_order_and_whole(void **state)
{
	struct backlog b = { 0 };

	(void)state;
	assert_int_equal(backlog_replay(&b, &sink), 0);
	for (int round = 0; round < 2; round++) {
		fill(&b);
		assert_int_equal(backlog_replay(&b, &sink), 0);
		assert_int_equal(nr_seen, NR);
		assert_int_equal(backlog_replay(&b, &sink), 0);
		assert_int_equal(nr_seen, NR);
	}
	backlog_fini(&b);
}

static void an_error_ends_it(void **state)
{
	struct backlog b = { 0 };

	(void)state;
	fill(&b);
	stop_at = 7;
	assert_int_equal(backlog_replay(&b, &sink), -EIO);
	stop_at = 0;
	assert_int_equal(nr_seen, 7);
	assert_int_equal(backlog_replay(&b, &sink), 0);
	assert_int_equal(nr_seen, 7);
	backlog_fini(&b);
}

/* By the clock of the wall that heaptap sees it is next year (F6). */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	long err = syscall(SYS_clock_gettime, clock, now);

	if (!err && clock == CLOCK_REALTIME)
		now->tv_sec += 365 * 86400;
	return (int)err;
}

static atomic_int turns;

static int wait_for_turns(void *arg)
{
	while (atomic_load(&turns) < 3)
		;
	return *(int *)arg;
}

static bool take_turn(void *ctx)
{
	assert_ptr_equal(ctx, &turns);
	atomic_fetch_add(&turns, 1);
	return false;
}

/* Whatever the clock of the wall says. A test that hangs is ended by SIGALRM. (F6) */
static void work_goes_on_aside(void **state)
{
	int result = -42;

	(void)state;
	alarm(60);
	assert_int_equal(backlog_work(wait_for_turns, &result, take_turn, &turns), -42);
	assert_true(atomic_load(&turns) >= 3);
	alarm(0);
}

/* Tried by a child: may a process take its lowest priority back? */
static bool may_go_back(int usual)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(setpriority(PRIO_PROCESS, 0, 19) || setpriority(PRIO_PROCESS, 0, usual));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

/* The nice values of the work: at its begin, of a thread that it starts, and at last. */
struct manners {
	int usual, first, of_child, last;
	atomic_bool has_begun;
};

static void *look_at_self(void *arg)
{
	*(int *)arg = getpriority(PRIO_PROCESS, 0);
	return NULL;
}

static int work_until_it_is_urgent(void *arg)
{
	struct manners *m = arg;
	pthread_t thread;

	m->first = getpriority(PRIO_PROCESS, 0);
	if (pthread_create(&thread, NULL, look_at_self, &m->of_child) || pthread_join(thread, NULL))
		return -1;
	atomic_store(&m->has_begun, true);
	while ((m->last = getpriority(PRIO_PROCESS, 0)) != m->usual)
		usleep(1000);
	return 0;
}

static bool hurry(void *ctx)
{
	return atomic_load(&((struct manners *)ctx)->has_begun);
}

static bool wait_on(void *ctx)
{
	(void)ctx;
	return false;
}

/* Only the work leaves the CPUs to others, until it is urgent, or gets no time, as work that sleeps. */
static void work_leaves_the_cpus_to_others(void **state)
{
	bool (*const ends[])(void *ctx) = { hurry, wait_on };

	(void)state;
	alarm(60);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct manners m = { .usual = getpriority(PRIO_PROCESS, 0) };
		int lowest = may_go_back(m.usual) ? 19 : m.usual;

		assert_int_equal(backlog_work(work_until_it_is_urgent, &m, ends[i], &m), 0);
		assert_int_equal(m.first, lowest);
		assert_int_equal(m.of_child, lowest);
		assert_int_equal(m.last, m.usual);
		assert_int_equal(getpriority(PRIO_PROCESS, 0), m.usual);
	}
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_and_whole),
		cmocka_unit_test(an_error_ends_it),
		cmocka_unit_test(work_goes_on_aside),
		cmocka_unit_test(work_leaves_the_cpus_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
