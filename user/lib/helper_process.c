/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of heaptap beside the first one. */
#include "user/lib/helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The most that the kernel gives a process, unless fs.nr_open says otherwise. */
enum { MAX_DESCRIPTORS = 1 << 20 };

pid_t helper_process_fork(void)
{
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid)
		sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

bool helper_process_wait(pid_t pid, int *status)
{
	pid_t got = 0;

	while (pid > 0 && (got = waitpid(pid, status, __WALL)) < 0 && errno == EINTR)
		;
	return got > 0;
}

void helper_process_end(pid_t pid, int fd, const u32 *outlives)
{
	ssize_t len = 1;
	char byte;

	/* There may be copies of @fd. If it cannot be told, it ends when heaptap ends and with it the copies. */
	if (shutdown(fd, SHUT_WR))
		return;
	while (!__atomic_load_n(outlives, __ATOMIC_ACQUIRE) && (len > 0 || (len && errno == EINTR)))
		len = recv(fd, &byte, sizeof(byte), 0);
	if (!*outlives)
		helper_process_wait(pid, NULL);
}

/* The name of the command and all arguments, of which this process has a copy of its own, become @name. */
static void replace_arguments(const char *name)
{
	enum { FIRST_FIELD = 3, ARG_START = 48 }; /* proc_pid_stat(5) */
	char text[1024], *at, *start;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	size_t room;

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	at = strrchr(text, ')');
	for (int field = FIRST_FIELD - 1; at && field < ARG_START; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return;
	start = (char *)strtoul(at, &at, 10);
	room = (char *)strtoul(at, NULL, 10) - start;
	/* Under an emulator such as memcheck, these are the arguments of the emulator. */
	if (start != program_invocation_name || room < 2)
		return;
	memset(start, 0, room);
	memcpy(start, name, strnlen(name, room - 1));
}

void helper_process_name(const char *name)
{
	prctl(PR_SET_NAME, name);
	if (!IS_AGENT)
		replace_arguments(name);
}

void helper_process_settle(const char *name)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	sigset_t all;
	int fd;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	helper_process_name(name);
	/* The limit is for heaptap's own work, which no such process does. Without the right to lift it, it stays. */
	setrlimit(RLIMIT_CPU, &unlimited);
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "-1000", 5);
		close(fd);
	}
}

/* A number for @fd that is behind those of helper_process_keep(), and that none of @fds has. */
static int move_behind(int fd, const int *fds, int nr)
{
	int to = HELPER_PROCESS_FIRST + nr;

	for (int i = 0; i < nr; i++)
		if (fds[i] == to) {
			to++;
			i = -1;
		}
	return dup2(fd, to);
}

void helper_process_keep(int *fds, int nr, bool has_messages)
{
	int null;

	/* The agent makes them in this order. */
	for (int i = 0; !IS_AGENT && i < nr; i++)
		fds[i] = move_behind(fds[i], fds, nr);
	for (int i = 0; i < nr; i++) {
		int own = HELPER_PROCESS_FIRST + i;

		if (fds[i] < 0)
			close(own);
		else
			fds[i] = dup2(fds[i], own);
	}
	helper_process_close((unsigned int)(HELPER_PROCESS_FIRST + nr), ~0U);
	null = open("/dev/null", O_RDWR);
	for (int i = 0; null >= 0 && i < HELPER_PROCESS_FIRST - has_messages; i++)
		dup2(null, i);
	if (null >= HELPER_PROCESS_FIRST)
		close(null);
}

void helper_process_close(unsigned int first, unsigned int last)
{
	struct rlimit limit;
	rlim_t end = MAX_DESCRIPTORS;

	if (!syscall(SYS_close_range, first, last, 0))
		return;
	/* Before Linux 5.9. */
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < end)
		end = limit.rlim_cur;
	for (unsigned int fd = first; fd <= last && fd < end; fd++)
		close((int)fd);
}
