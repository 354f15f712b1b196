/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts that say why a scan gives no verdict. */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "user/lib/proc.h"
#include "user/scan/scan_reason.h"

static void test_texts(void **state)
{
	(void)state;
	assert_string_equal(scan_reason(-ESRCH, 1, 0).text, "it ended or became another program");
	assert_string_equal(scan_reason(-ENOMEM, 1, 0).text, "not enough memory");
	assert_string_equal(scan_reason(-ETIME, 1, 2000000).text,
			    "the process would have been stopped for longer than 2 ms");
	assert_string_equal(scan_reason(-EPIPE, 1, 0).text,
			    "tracing ended meanwhile, because of a signal or because the probes were lost");
	/* An error without a row has the C library's text. */
	assert_string_equal(scan_reason(-EIO, 1, 0).text, strerror(EIO));
}

static void test_denied(void **state)
{
	struct proc_status own;
	struct scan_reason r;
	char expected[sizeof(r.text)], name[] = "test_scan_reaso"; /* the kernel keeps 15 bytes */
	pid_t child = fork();

	(void)state;
	if (child == 0)
		for (;;)
			pause();
	assert_true(child > 0);
	assert_false(proc_read_status(&own, getpid()));
	r = scan_reason(-EACCES, child, 0);
	if (own.caps_effective & 1ULL << CAP_SYS_PTRACE)
		assert_string_equal(r.text,
				    "no permission to stop the process: the kernel protects it, although "
				    "heaptap has CAP_SYS_PTRACE");
	else
		assert_string_equal(r.text, "no permission to stop the process, which needs CAP_SYS_PTRACE");
	assert_int_equal(ptrace(PTRACE_SEIZE, child, NULL, NULL), 0);
	r = scan_reason(-EPERM, child, 0);
	snprintf(expected, sizeof(expected), "the process is traced by %s (PID %d) already", name, getpid());
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_string_equal(r.text, expected);
}

static void test_note(void **state)
{
	char text[24];

	(void)state;
	scan_reason_note(text, sizeof(text), "not enough memory");
	assert_string_equal(text, "scan given up: not enou");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_note),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
