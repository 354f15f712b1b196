/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The nice value of a thread in a hurry, and after it. */
#include "user/lib/courtesy.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int nice_now(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

static void *look(void *arg)
{
	*(int *)arg = nice_now();
	return NULL;
}

static int nice_of_new_thread(void)
{
	pthread_t thread;
	int seen = 99;

	assert_int_equal(pthread_create(&thread, NULL, look, &seen), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return seen;
}

/* This thread and those that it starts go first, and the usual value comes back, whatever it was. Needs root. */
static void first_and_back(void **state)
{
	struct courtesy_hurry h = { 0 };

	(void)state;
	if (geteuid())
		skip_because("only root may do that");
	for (int usual = 3; usual >= 0; usual -= 3) {
		assert_int_equal(setpriority(PRIO_PROCESS, 0, usual), 0);
		courtesy_hurry(&h, COURTESY_HURRY);
		assert_true(h.is_on);
		assert_true(nice_now() < -5);
		assert_true(nice_of_new_thread() < -5);
		courtesy_hurry_end(&h);
		assert_int_equal(nice_now(), usual);
		assert_int_equal(setpriority(PRIO_PROCESS, 0, 5), 0);
		courtesy_hurry_end(&h);
		assert_int_equal(nice_now(), 5);
	}
	/* A thread with a still higher priority keeps it. */
	assert_int_equal(setpriority(PRIO_PROCESS, 0, -15), 0);
	courtesy_hurry(&h, COURTESY_HURRY);
	assert_int_equal(nice_now(), -15);
	courtesy_hurry_end(&h);
	assert_int_equal(nice_now(), -15);
	assert_int_equal(setpriority(PRIO_PROCESS, 0, 0), 0);
}

static void *look_at_policy(void *arg)
{
	*(int *)arg = sched_getscheduler(0);
	return NULL;
}

/* During a stop this thread and those that it starts come before all usual ones, and what was before comes back. */
static void at_once_and_back(void **state)
{
	static const int policies[] = { SCHED_OTHER, SCHED_BATCH };
	const struct sched_param param = { 0 };
	struct rlimit limit = { 0 }, before;

	(void)state;
	if (geteuid())
		skip_because("only root may do that");
	for (int i = 0; i < 2; i++) {
		struct courtesy_hurry h;
		pthread_t thread;
		int seen = -1;

		assert_int_equal(sched_setscheduler(0, policies[i], &param), 0);
		courtesy_at_once(&h);
		assert_int_equal(sched_getscheduler(0), SCHED_RR);
		assert_int_equal(pthread_create(&thread, NULL, look_at_policy, &seen), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(seen, SCHED_RR);
		courtesy_hurry_end(&h);
		assert_int_equal(sched_getscheduler(0), policies[i]);
		courtesy_hurry_end(&h);
		assert_int_equal(nice_now(), 0);
	}
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &param), 0);
	/* A limit that kills is none to come near to. */
	assert_int_equal(getrlimit(RLIMIT_RTTIME, &before), 0);
	limit = before;
	limit.rlim_cur = 200000;
	assert_int_equal(setrlimit(RLIMIT_RTTIME, &limit), 0);
	{
		struct courtesy_hurry h;

		courtesy_at_once(&h);
		assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
		assert_int_equal(nice_now(), COURTESY_HURRY);
		courtesy_hurry_end(&h);
		assert_int_equal(nice_now(), 0);
	}
	assert_int_equal(setrlimit(RLIMIT_RTTIME, &before), 0);
}

static void *push(void *arg)
{
	assert_true(courtesy_push(*(pid_t *)arg));
	/* Once is enough. */
	assert_false(courtesy_push(*(pid_t *)arg));
	return NULL;
}

/* Another thread can bring this one forward. Those that it starts meanwhile stay behind. */
static void pushed_and_back(void **state)
{
	pid_t tid = getpid();
	pthread_t thread;
	int seen = -1;

	(void)state;
	if (geteuid())
		skip_because("only root may do that");
	assert_int_equal(pthread_create(&thread, NULL, push, &tid), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_RR);
	assert_int_equal(pthread_create(&thread, NULL, look_at_policy, &seen), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(seen, SCHED_OTHER);
	courtesy_push_end(tid);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

/* Without the right nothing changes. */
static void refused(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		const struct rlimit none = { 0 };
		struct courtesy_hurry h = { 0 };
		int usual = nice_now();

		if (setrlimit(RLIMIT_NICE, &none) || (!geteuid() && setuid(65534)))
			_exit(2);
		courtesy_hurry(&h, COURTESY_HURRY);
		if (h.is_on || nice_now() != usual)
			_exit(1);
		courtesy_hurry_end(&h);
		_exit(nice_now() != usual);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_and_back),
		cmocka_unit_test(at_once_and_back),
		cmocka_unit_test(pushed_and_back),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
