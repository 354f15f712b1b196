/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session that runs for long forgets processes that have ended, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/proc.h"
#include "user/session/session_live.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"

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

	assert_int_equal(session_drop_ended(s, 4, false), 0);
	assert_int_equal(session_drop_ended(s, 1, false), 3);
	assert_int_equal(s->nr_processes, NR - 3);
	for (u32 pid = 100; pid < 100 + NR; pid += 2)
		assert_non_null(session_find(s, pid));
	assert_int_equal(parent_of(s, 101), NR + 1);
	assert_int_equal(parent_of(s, 105), NR + 1);
	/* 100, 102, 104, 106, 107 and 108 are left. */
	assert_int_equal(parent_of(s, 102), 1);
	assert_int_equal(parent_of(s, 107), 4);
	assert_int_equal(parent_of(s, 108), 5);
	assert_int_equal(session_drop_ended(s, 0, false), 1);
	assert_int_equal(parent_of(s, 108), 4);
	assert_int_equal(session_drop_ended(s, 0, false), 0);
	assert_int_equal(s->nr_processes, 5);
}

/* Sums of those that are forgotten go to the nearest parent that stays, and so do their findings. */
static void sums_stay(void **state)
{
	struct session *s = *state;

	for (size_t i = 0; i < NR; i++) {
		s->processes[i]->lost.now = (struct losses){ .stacks = 1, .unfollowed = 2 };
		s->processes[i]->nr_unlisted = i == 3;
	}
	s->processes[2]->life = PROCESS_ENDED;
	s->processes[3]->lost.now.frees = 1;
	/* 101, 102, 103, 105 and 107 have ended; all but the last are forgotten. */
	assert_false(s->has_dropped_losses);
	assert_int_equal(session_drop_ended(s, 1, true), 4);
	assert_int_equal(session_find(s, 100)->dropped.nr, 3);
	assert_int_equal(session_find(s, 100)->dropped.lost, 4);
	assert_int_equal(session_find(s, 100)->dropped.unfollowed, 6);
	assert_int_equal(session_find(s, 100)->nr_unlisted, 1);
	assert_int_equal(session_find(s, 104)->dropped.nr, 1);
	assert_int_equal(s->dropped.nr, 0);
	assert_true(s->has_dropped_losses);
	assert_int_equal(s->dropped_found.nr_unjudged + s->dropped_found.nr_unwatched, 4);
}

/* Targets that the user has named are kept on demand. */
static void targets_stay(void **state)
{
	struct session *s = *state;

	s->processes[0]->life = PROCESS_ENDED;
	assert_int_equal(session_drop_ended(s, 0, true), 4);
	assert_int_equal(s->processes[0]->target->pid, 100);
	assert_int_equal(session_drop_ended(s, 0, false), 1);
	assert_int_equal(s->dropped.nr, 2);
}

/* Children that a debugger took over come and go for months: the list has those that are still there. */
static void left_processes_are_forgotten(void **state)
{
	struct session *s = *state;
	struct target here = { .pid = getpid() }, last;
	struct proc_stat stat;

	assert_int_equal(proc_read_stat(&stat, here.pid), 0);
	here.start_time = stat.start_time;
	session_left(s, here.pid, THREAD_STOP_UNTRACED);
	for (int i = 0; i < 1000; i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(0);
		assert_int_equal(waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT), 0);
		assert_int_equal(proc_read_stat(&stat, child), 0);
		last = (struct target){ .pid = child, .start_time = stat.start_time };
		session_left(s, child, THREAD_STOP_TRACER);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
	assert_true(s->nr_left <= LEFT_FEW + 1);
	assert_int_equal(session_why_left(s, &here), THREAD_STOP_UNTRACED);
	assert_int_equal(session_why_left(s, &last), THREAD_STOP_TRACER);
	/* Another process has its number. */
	last.start_time++;
	assert_int_equal(session_why_left(s, &last), THREAD_STOP_LOOK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(oldest_are_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(sums_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(targets_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(left_processes_are_forgotten, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
