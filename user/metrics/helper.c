/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Begins and ends helper processes. */
#include "user/metrics/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/lib/clock.h"
#include "user/lib/helper_process.h"
#include "user/lib/log.h"
#include "user/metrics/channel.h"

enum { READY_MS = 10000 };

void helper_leave_heaptap(const char *name, int *fds, int nr)
{
	setsid();
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	helper_process_keep(fds, nr, false);
}

int helper_wait_ready(int channel, const char *what)
{
	struct pollfd wait = { .fd = channel, .events = POLLIN };
	struct channel_message ready;
	int fd, n;

	do
		n = poll(&wait, 1, READY_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0 || channel_take(channel, &ready, &fd)) {
		error("%s: the helper process has not begun", what);
		return -EPIPE;
	}
	if (fd >= 0)
		close(fd);
	if (!ready.status)
		return 0;
	error("%s: %s", what, ready.text);
	return -ENOSYS;
}

void helper_end(pid_t pid, int wait_ms)
{
	u64 end_ns = clock_now_ns() + (u64)wait_ms * 1000000;
	pid_t done = 0;

	if (pid <= 0)
		return;
	while (!(done = waitpid(pid, NULL, WNOHANG)) && clock_pause(5000000, end_ns))
		;
	if (done)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
