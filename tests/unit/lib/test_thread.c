/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of starting threads. */
#include "user/lib/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

#include <cmocka.h>

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_over;
	char name[16];
	sigset_t blocked;
	size_t stack_bytes;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void *look(void *arg)
{
	pthread_attr_t attr;

	prctl(PR_GET_NAME, seen.name);
	pthread_sigmask(SIG_SETMASK, NULL, &seen.blocked);
	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	pthread_attr_getstacksize(&attr, &seen.stack_bytes);
	pthread_attr_destroy(&attr);
	pthread_mutex_lock(&seen.lock);
	seen.is_over = true;
	pthread_cond_signal(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
	return arg;
}

static void name_and_signals(void **state)
{
	sigset_t before, after;
	pthread_t thread;
	void *result;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(thread_start(&thread, "heaptap-looks", look, &seen), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &seen);
	assert_string_equal(seen.name, "heaptap-looks");
	assert_true(sigismember(&seen.blocked, SIGINT) && sigismember(&seen.blocked, SIGSEGV));
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < NSIG; i++)
		assert_int_equal(sigismember(&before, i), sigismember(&after, i));
}

static void detached_with_a_small_stack(void **state)
{
	(void)state;
	seen.is_over = false;
	assert_int_equal(thread_start_sized(NULL, "heaptap-small", look, NULL, 256 << 10), 0);
	pthread_mutex_lock(&seen.lock);
	while (!seen.is_over)
		pthread_cond_wait(&seen.changed, &seen.lock);
	pthread_mutex_unlock(&seen.lock);
	assert_string_equal(seen.name, "heaptap-small");
	assert_int_equal(seen.stack_bytes, 256 << 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_and_signals),
		cmocka_unit_test(detached_with_a_small_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
