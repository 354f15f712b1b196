/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States of traced threads and processes: what may follow, and what is owed. */
#include "fallback/tracer_state.h"

#include "fallback/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/ptrace.h>

#include <cmocka.h>

static void threads_are_resumed_from_stops_only(void **state)
{
	(void)state;
	for (int s = 0; s < NR_THREAD_STATES; s++) {
		bool is_resumed = s != THREAD_RUNNING && thread_state_may_follow(s, THREAD_RUNNING);

		assert_int_equal(is_resumed, s == THREAD_STOPPED);
		if (thread_state_is_stopped(s))
			assert_true(thread_state_is_at_rest(s));
	}
	assert_true(thread_state_may_follow(THREAD_GROUP_STOPPED, THREAD_LISTENING));
	assert_true(thread_state_may_follow(THREAD_AT_VFORK, THREAD_IN_VFORK));
	assert_true(thread_state_may_follow(THREAD_AT_EXIT, THREAD_EXITING));
}

/* The TID of the first thread, which reported its exit, may come back with an exec by another thread. */
static void exec_leads_to_a_stop_from_everywhere(void **state)
{
	(void)state;
	for (int s = 0; s < NR_THREAD_STATES; s++)
		assert_true(thread_state_may_follow(s, THREAD_STOPPED));
	for (int s = 0; s < PROGRAM_LEFT; s++) {
		assert_true(program_state_may_follow(s, PROGRAM_STARTING));
		assert_true(program_state_may_follow(s, PROGRAM_RUNNING));
	}
}

static void ends_are_reported_once(void **state)
{
	(void)state;
	assert_true(program_state_may_follow(PROGRAM_RUNNING, PROGRAM_AT_END));
	assert_true(program_state_may_follow(PROGRAM_STARTING, PROGRAM_AT_END));
	assert_true(program_state_may_follow(PROGRAM_AT_END, PROGRAM_ENDING));
	assert_false(program_state_may_follow(PROGRAM_ENDING, PROGRAM_AT_END));
	assert_false(program_state_may_follow(PROGRAM_WAITING, PROGRAM_AT_END));
	assert_false(program_state_may_follow(PROGRAM_RUNNING, PROGRAM_ENDING));
	assert_false(thread_state_may_follow(THREAD_EXITING, THREAD_RUNNING));
	assert_false(thread_state_may_follow(THREAD_EXITING, THREAD_AT_EXIT));
}

/* A probe tells when the libraries are there: then a program starts without a stop for each of its system calls. */
static void a_start_is_told_by_calls_or_by_a_probe(void **state)
{
	struct program p = { .state = PROGRAM_STARTING };

	(void)state;
	assert_int_equal(program_resume_request(&p, 7, 7), PTRACE_SYSCALL);
	assert_int_equal(program_resume_request(&p, 7, 8), PTRACE_CONT);
	p.is_told = true;
	assert_int_equal(program_resume_request(&p, 7, 7), PTRACE_CONT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_resumed_from_stops_only),
		cmocka_unit_test(exec_leads_to_a_stop_from_everywhere),
		cmocka_unit_test(ends_are_reported_once),
		cmocka_unit_test(a_start_is_told_by_calls_or_by_a_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
