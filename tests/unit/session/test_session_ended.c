/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session that runs for long forgets processes that have ended, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "user/session/session_live.h"
#include "user/session/session_private.h"

enum { NR = 9 };

static int setup(void **state)
{
	static struct session_options options = { .command = "system" };
	struct session *s;

	if (session_alloc(&s, &options, NULL))
		return -1;
	*state = s;
	/* Each odd one has ended, and each but the first is a child of the one before. */
	for (u32 i = 0; i < NR; i++) {
		struct process *p;

		if (session_fill_process(s, 100 + i, &p))
			return -1;
		p->life = i % 2 ? PROCESS_ENDED : PROCESS_RUNS;
		p->parent = i;
	}
	return 0;
}

static int teardown(void **state)
{
	session_free(*state);
	return 0;
}

static size_t parent_of(const struct session *s, u32 pid)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		if ((u32)s->processes[i]->target->pid == pid)
			return s->processes[i]->parent;
	return NR + 1;
}

static void oldest_are_forgotten(void **state)
{
	struct session *s = *state;

	assert_int_equal(session_drop_ended(s, 4), 0);
	assert_int_equal(session_drop_ended(s, 1), 3);
	assert_int_equal(s->nr_processes, NR - 3);
	for (u32 pid = 100; pid < 100 + NR; pid += 2)
		assert_non_null(session_find(s, pid));
	assert_int_equal(parent_of(s, 101), NR + 1);
	assert_int_equal(parent_of(s, 105), NR + 1);
	/* 100, 102, 104, 106, 107 and 108 are left. */
	assert_int_equal(parent_of(s, 102), 0);
	assert_int_equal(parent_of(s, 107), 4);
	assert_int_equal(parent_of(s, 108), 5);
	assert_int_equal(session_drop_ended(s, 0), 1);
	assert_int_equal(parent_of(s, 108), 0);
	assert_int_equal(session_drop_ended(s, 0), 0);
	assert_int_equal(s->nr_processes, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(oldest_are_forgotten, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
