/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of privileges that are given up (S10). Each in a process of its own, because there is no way back. */
#include "user/lib/privileges.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/types.h"
#include "tests/unit/skip.h"

/* Arguments that do nothing, or fail with another error than EPERM where the call is allowed. */
static const struct {
	long nr;
	long args[4];
} calls[] = {
	{ SYS_unshare, { 0 } },
	{ SYS_open_by_handle_at, { -1, 0, 0 } },
	{ SYS_setns, { -1, 0 } },
#ifdef __x86_64__
	{ 0x40000000 | SYS_getpid, { 0 } },
#endif
};

static sem_t is_dropped;

/* How many of the calls are not refused. */
static int count_allowed(void)
{
	int nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const long *a = calls[i].args;

		errno = 0;
		if (syscall(calls[i].nr, a[0], a[1], a[2], a[3]) == -1 && errno == EPERM)
			continue;
		fprintf(stderr, "call %#lx is allowed: errno %d\n", calls[i].nr, errno);
		nr++;
	}
	return nr;
}

static void *count_later(void *nr)
{
	while (sem_wait(&is_dropped))
		;
	*(int *)nr = count_allowed() + (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1);
	return NULL;
}

/* The exit status: how many calls are not refused. */
static int drop(void)
{
	pthread_t thread;
	int nr = 0;

	if (sem_init(&is_dropped, 0, 0) || pthread_create(&thread, NULL, count_later, &nr))
		return 100;
	privileges_drop(PRIVILEGES_TRACING, 0);
	sem_post(&is_dropped);
	pthread_join(thread, NULL);
	return nr + count_allowed();
}

/* The filter holds for threads that were there before, too. */
static void test_calls_of_all_threads(void **state)
{
	int status;
	pid_t pid;

	(void)state;
#if !defined(__x86_64__) && !defined(__aarch64__) && !(defined(__riscv) && __riscv_xlen == 64)
	skip_because("no filter of system calls on this CPU");
#endif
	pid = fork();
	if (!pid)
		_exit(drop());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_of_all_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
