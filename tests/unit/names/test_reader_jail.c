/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the bounds of the reader: a child enters them and tries to leave. */
#include "user/names/reader_jail.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/call_filter.h"
#include "user/lib/types.h"
#include "user/names/reader_wire.h"
#include "tests/unit/skip.h"

/* Statuses of a child. */
enum { IS_HELD = 0, NOT_STARTED = 100 };

/* Run @work in a child; its exit status, or minus the signal that ended it. */
static int in_child(int (*work)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(work());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void need_bounds(void)
{
#ifndef HAS_CALL_FILTER
	skip_because("no filter of system calls on this CPU");
#endif
	if (READER_IS_SANITIZED)
		skip_because("sanitizers need what the bounds forbid");
}

/* The number of the first thing that the child can do although it must not. */
static int try_all(void)
{
	int file = open("/proc/self/status", O_RDONLY), sockets[2];
	struct reader_jail jail;
	char byte, *const none[] = { NULL };
	pid_t parent = getppid();

	reader_jail_enter(&jail, 10);
	if (file < 0 || read(file, &byte, 1) != 1)
		return NOT_STARTED;
	if (open("/proc/self/status", O_RDONLY) >= 0)
		return 1;
	if (open("/tmp", O_RDONLY | O_DIRECTORY) >= 0)
		return 2;
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0)
		return 3;
	if (kill(parent, 0) == 0)
		return 4;
	if (fork() >= 0)
		return 5;
	if (execve("/proc/self/exe", none, none) == 0)
		return 6;
	if (ptrace(PTRACE_ATTACH, parent, NULL, NULL) == 0)
		return 7;
	if (geteuid() == 0)
		return 8;
	if (setresuid(0, 0, 0) == 0)
		return 9;
	if (mkdir("/tmp/heaptap-jail", 0700) == 0 || unlink("/tmp/heaptap-jail") == 0)
		return 10;
	return IS_HELD;
}

static void nothing_is_allowed(void **state)
{
	(void)state;
	need_bounds();
	assert_int_equal(in_child(try_all), IS_HELD);
}

static int spin(void)
{
	struct reader_jail jail;

	reader_jail_enter(&jail, 1);
	for (volatile u64 i = 0; i < UINT64_MAX; i++)
		;
	return 1;
}

static void time_is_limited(void **state)
{
	(void)state;
	assert_int_equal(in_child(spin), -SIGKILL);
}

static bool has_memory(u64 bytes)
{
	void *p =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	munmap(p, bytes);
	return true;
}

static int fill(void)
{
	struct reader_jail jail;
	u64 step = 1ULL << 30, all = 0;

	reader_jail_enter(&jail, 10);
	if (!jail.limit)
		return NOT_STARTED;
	while (has_memory(all + step) && all < 64 * step)
		all += step;
	if (!all || all >= 10 * step)
		return 1;
	/* A file of that size may be mapped beside. */
	if (has_memory(all + 2 * step))
		return 2;
	reader_jail_expect(&jail, 3 * step);
	if (!has_memory(all + 2 * step))
		return 3;
	reader_jail_tighten(&jail, step / 4);
	if (has_memory(step / 2))
		return 4;
	reader_jail_relax(&jail);
	if (!has_memory(step / 2))
		return 5;
	/* Whoever has taken the reader over can raise the limit that far, and no further. */
	reader_jail_expect(&jail, 1ULL << 46);
	return has_memory(1ULL << 45) ? 6 : IS_HELD;
}

static void memory_is_limited(void **state)
{
	(void)state;
	need_bounds();
	assert_int_equal(in_child(fill), IS_HELD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_allowed),
		cmocka_unit_test(time_is_limited),
		cmocka_unit_test(memory_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
