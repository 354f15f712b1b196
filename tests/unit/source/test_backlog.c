/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records put aside come back in order and whole; work aside returns its result while the caller goes on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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

static void take_turn(void *ctx)
{
	assert_ptr_equal(ctx, &turns);
	atomic_fetch_add(&turns, 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_and_whole),
		cmocka_unit_test(an_error_ends_it),
		cmocka_unit_test(work_goes_on_aside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
