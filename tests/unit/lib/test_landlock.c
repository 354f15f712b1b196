/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the bounds of files: a child enters them and tries to leave (S10). */
#include "user/lib/landlock.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOT_STARTED = 100, CREATE_RULESET = 444, CREATE_VERSION = 1 };

static char top[] = "/tmp/heaptap-landlock-XXXXXX";

/* The version of the kernel's interface; 0 = none. */
static long version(void)
{
	long v = syscall(CREATE_RULESET, NULL, 0, CREATE_VERSION);

	return v > 0 ? v : 0;
}

static int make(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT, 0600);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -errno : 0;
}

/* A file without a name gets one, as reports do, and takes the place of another. */
static int publish(int dir)
{
	int fd = openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	char path[32];

	if (fd < 0 || write(fd, "x", 1) != 1)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, dir, ".temporary", AT_SYMLINK_FOLLOW) ||
	    renameat(dir, ".temporary", dir, "inside"))
		return -errno;
	return 0;
}

static int bind_port(void)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof(any)) ? -errno : 0;
}

/* The number of the first thing that is wrong. */
static int try_writes(void)
{
	int dir = open("allowed", O_PATH | O_DIRECTORY), old = open("old", O_WRONLY);
	const int dirs[] = { dir, -1 };

	if (dir < 0 || old < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return NOT_STARTED;
	landlock_forbid_writes(dirs, 2);
	if (make("outside") != -EACCES)
		return 1;
	if (open("old", O_WRONLY) >= 0 || open("old", O_RDWR) >= 0)
		return 2;
	if (!unlink("old") || !rename("old", "new") || !mkdir("d", 0700))
		return 3;
	if (link("old", "allowed/old") == 0)
		return 4;
	if (open("old", O_RDONLY) < 0 || open("/proc/self/status", O_RDONLY) < 0)
		return 5;
	if (write(old, "x", 1) != 1 || open("/dev/null", O_RDWR) < 0)
		return 6;
	if (make("allowed/inside") || publish(dir) || unlink("allowed/inside"))
		return 7;
	return version() >= 4 && bind_port() != -EACCES ? 8 : 0;
}

static int try_reads(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || open("old", O_RDONLY) < 0)
		return NOT_STARTED;
	landlock_forbid_all();
	return open("old", O_RDONLY) >= 0 || make("outside") != -EACCES;
}

static int in_child(int (*work)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(work());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void need_landlock(void)
{
	if (version())
		return;
	skip_because("no Landlock in this kernel");
}

static void writes(void **state)
{
	(void)state;
	need_landlock();
	assert_int_equal(in_child(try_writes), 0);
}

static void reads(void **state)
{
	(void)state;
	need_landlock();
	assert_int_equal(in_child(try_reads), 0);
}

static int enter_top(void **state)
{
	(void)state;
	return !mkdtemp(top) || chdir(top) || make("old") || mkdir("allowed", 0700);
}

static int leave_top(void **state)
{
	(void)state;
	return unlink("old") || rmdir("allowed") || chdir("/") || rmdir(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes),
		cmocka_unit_test(reads),
	};

	return cmocka_run_group_tests(tests, enter_top, leave_top);
}
