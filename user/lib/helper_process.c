/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of heaptap beside the first one. */
#include "user/lib/helper_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The most that the kernel gives a process, unless fs.nr_open says otherwise. */
enum { MAX_DESCRIPTORS = 1 << 20 };

void helper_process_settle(const char *name)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	sigset_t all;
	int fd;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, name);
	/* The limit is for heaptap's own work, which no such process does. Without the right to lift it, it stays. */
	setrlimit(RLIMIT_CPU, &unlimited);
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "-1000", 5);
		close(fd);
	}
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
