/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stops a process, and keeps another one ready that resumes it: the pipe to that one has its end when heaptap has gone.
 * A debugger can attach to a process that waits by SIGSTOP, and heaptap's own commands can stop and read it.
 */
#include "user/console/held_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/helper_process.h"
#include "user/lib/privileges.h"
#include "user/lib/proc.h"
#include "user/target/target.h"

static const char HELPER_COMM[] = "holder-of-heapt";

/* Words of heaptap to the helper. */
enum { MAY_BE_STOPPED = 's', RUNS = 'r' };

struct held_process {
	struct target target;			   /* who it is, with a descriptor of its own */
	bool is_stopped, is_expected, was_stopped; /* by us; perhaps, by somebody for us; before */
	int fd;					   /* owned; of the pipe, -1 = none */
	pid_t helper;				   /* 0 = none */
};

/* heaptap has gone. Its probes go, too, but until then one that waits for a call may stop the process once more. */
static void let_it_run(const struct held_process *h)
{
	enum { LOOKS = 20, LOOK_NS = 100 * 1000 * 1000 };
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	struct proc_stat stat;

	(void)!target_signal(&h->target, SIGCONT);
	for (int i = 0; i < LOOKS; i++) {
		nanosleep(&pause, NULL);
		if (!proc_read_stat(&stat, h->target.pid) && stat.state == 'T')
			(void)!target_signal(&h->target, SIGCONT);
	}
}

static void helper_main(struct held_process *h, int fd) __attribute__((noreturn));
static void helper_main(struct held_process *h, int fd)
{
	int fds[] = { fd, h->target.pidfd };
	char bytes[16];
	ssize_t n;

	helper_process_settle(HELPER_COMM);
	privileges_drop(PRIVILEGES_HOLDING, 0);
	helper_process_keep(fds, ARRAY_SIZE(fds), false);
	h->target.pidfd = fds[1];
	while ((n = read(fds[0], bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			h->is_stopped = bytes[n - 1] == MAY_BE_STOPPED;
	if (h->is_stopped)
		let_it_run(h);
	_exit(0);
}

static int held_process_start_helper(struct held_process *h)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	h->fd = fds[1];
	h->helper = helper_process_fork();
	if (!h->helper)
		helper_main(h, fds[0]);
	close(fds[0]);
	return h->helper < 0 ? -errno : 0;
}

int held_process_new(struct held_process **out, const struct target *t)
{
	struct held_process *h = calloc(1, sizeof(*h));
	struct proc_stat stat;
	int err;

	if (!h)
		return -ENOMEM;
	h->fd = -1;
	h->target = (struct target){ .pid = t->pid, .start_time = t->start_time, .pidfd = -1 };
	h->was_stopped = !proc_read_stat(&stat, t->pid) && stat.state == 'T';
	if (t->pidfd >= 0)
		h->target.pidfd = fcntl(t->pidfd, F_DUPFD_CLOEXEC, 0);
	err = t->pidfd >= 0 && h->target.pidfd < 0 ? -errno : held_process_start_helper(h);
	if (err)
		held_process_free(h);
	else
		*out = h;
	return err;
}

/* 0 or -errno. */
static int held_process_tell(const struct held_process *h, char what)
{
	return write(h->fd, &what, 1) == 1 ? 0 : -errno;
}

int held_process_expect(struct held_process *h)
{
	h->is_expected = true;
	return held_process_tell(h, MAY_BE_STOPPED);
}

void held_process_found(struct held_process *h)
{
	h->is_stopped = true;
}

int held_process_stop(struct held_process *h)
{
	/* First: heaptap may be killed between the two. */
	int err = held_process_expect(h);

	if (!err)
		err = target_signal(&h->target, SIGSTOP);
	h->is_stopped = !err;
	return err;
}

pid_t held_process_pid(const struct held_process *h)
{
	return h->target.pid;
}

void held_process_free(struct held_process *h)
{
	if (!h)
		return;
	/* Perhaps it was stopped, and the call was never heard of. */
	if (h->is_stopped || (h->is_expected && !h->was_stopped))
		(void)!target_signal(&h->target, SIGCONT);
	if (h->fd >= 0)
		(void)!held_process_tell(h, RUNS);
	if (h->fd >= 0)
		close(h->fd);
	helper_process_wait(h->helper, NULL);
	if (h->target.pidfd >= 0)
		close(h->target.pidfd);
	free(h);
}
