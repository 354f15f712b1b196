/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of settling a process that heaptap has forked. */
#include "user/lib/helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* In place of libc's: as before Linux 5.9, close_range(2) is missing. */
long syscall(long nr, ...)
{
	(void)nr;
	errno = ENOSYS;
	return -1;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Is @text all that /proc/PID/cmdline has, but for zeros? */
static bool has_arguments(const char *text)
{
	char seen[1024] = "";
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, seen, sizeof(seen) - 1);

	close(fd);
	for (ssize_t i = (ssize_t)strlen(seen); i < n; i++)
		if (seen[i])
			return false;
	return !strcmp(seen, text);
}

/* The number of the first thing that is wrong. */
static int settled(void)
{
	enum { LOW = 40, KEPT = 41, HIGH = 42 };
	char name[16] = "";

	helper_process_settle("test-of-helper");
	if (getsid(0) != getpid())
		return 1;
	if (prctl(PR_GET_NAME, name) || strcmp(name, "test-of-helper"))
		return 2;
	if (!has_arguments("test-of-helper"))
		return 5;
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGINT);
	for (int fd = LOW; fd <= HIGH; fd++)
		if (dup2(STDERR_FILENO, fd) != fd)
			return 3;
	helper_process_close(3, KEPT - 1);
	helper_process_close(KEPT + 1, ~0U);
	return !is_open(LOW) && is_open(KEPT) && !is_open(HIGH) && is_open(STDERR_FILENO) ? 0 : 4;
}

static void test_settled(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(settled());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Is @fd one of @pipe? */
static bool is_pipe(int fd, const struct stat *pipe)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == pipe->st_ino;
}

/* The number of the first thing that is wrong. Two have the numbers of each other, and of null and those behind. */
static int kept(void)
{
	struct stat first, second;
	int pipes[2][2], fds[] = { 4, -1, 3 };
	sigset_t blocked;

	if (sigprocmask(SIG_BLOCK, NULL, &blocked) || !sigismember(&blocked, SIGTERM))
		return 6;
	if (pipe(pipes[0]) || pipe(pipes[1]) || fstat(pipes[0][0], &first) || fstat(pipes[1][0], &second))
		return 1;
	if (dup2(pipes[1][0], 20) < 0 || dup2(pipes[0][0], 4) < 0 || dup2(20, 3) < 0)
		return 2;
	dup2(3, 6);
	helper_process_keep(fds, 3, true);
	if (fds[0] != 3 || fds[1] != -1 || fds[2] != 5)
		return 3;
	if (!is_pipe(3, &first) || is_open(4) || !is_pipe(5, &second) || is_open(6) || is_open(20))
		return 4;
	return is_open(STDIN_FILENO) && is_open(STDERR_FILENO) ? 0 : 5;
}

static void test_kept(void **state)
{
	int status;
	pid_t pid = helper_process_fork();

	(void)state;
	if (!pid)
		_exit(kept());
	assert_true(helper_process_wait(pid, &status));
	assert_int_equal(status, 0);
	assert_false(helper_process_wait(pid, &status));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_settled), cmocka_unit_test(test_kept) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
