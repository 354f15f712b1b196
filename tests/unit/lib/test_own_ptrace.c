/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of heaptap's own ptrace(). */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Words of all ones look like the library's error. */
static const long words[] = { -1, 42 };

static void words_and_errors(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < 2; i++) {
		errno = EIO;
		assert_int_equal(ptrace(PTRACE_PEEKDATA, pid, &words[i], NULL), words[i]);
		assert_int_equal(errno, 0);
	}
	assert_int_equal(ptrace(PTRACE_PEEKDATA, pid, NULL, NULL), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(ptrace(PTRACE_KILL, pid, NULL, NULL), 0);
	waitpid(pid, &status, 0);
	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), -1);
	assert_int_equal(errno, ESRCH);
}

/* The probes of --follow are in that of the library. */
static void it_is_not_that_of_the_library(void **state)
{
	Dl_info ours, info;

	(void)state;
	assert_int_not_equal(dladdr((const void *)(uintptr_t)ptrace, &info), 0);
	assert_int_not_equal(dladdr(words, &ours), 0);
	assert_ptr_equal(info.dli_fbase, ours.dli_fbase);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_and_errors),
		cmocka_unit_test(it_is_not_that_of_the_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
