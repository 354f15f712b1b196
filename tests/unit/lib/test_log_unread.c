/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of messages to a standard error that takes none: they are left out and counted, also beside signals (A8). */
#include "user/lib/log.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int nr_signals; /* calls of poll() that a signal interrupts */
static int nr_ready;

/* In place of libc's. */
int poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	assert_int_equal(nr, 1);
	assert_int_equal(timeout, 0);
	assert_int_equal(fds->fd, STDERR_FILENO);
	if (!nr_signals)
		return nr_ready;
	nr_signals--;
	errno = EINTR;
	return -1;
}

static void test_signal(void **state)
{
	char text[256] = "";
	int fds[2], saved = dup(STDERR_FILENO);

	(void)state;
	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	log_never_wait(true);
	nr_signals = 2;
	warn("not shown");
	assert_int_equal(nr_signals, 0);
	nr_ready = 1;
	warn("shown");
	log_never_wait(false);
	dup2(saved, STDERR_FILENO);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_null(strstr(text, "not shown"));
	assert_non_null(strstr(text, "1 messages left out"));
	assert_non_null(strstr(text, "shown"));
	close(saved);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_signal) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
