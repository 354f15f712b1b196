/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that shares the memory of heaptap, and outlives it where it must. */
#include "user/scan/outliving.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "user/lib/helper_process.h"

enum { STACK_BYTES = 256 << 10 };

struct start {
	struct outliving *o;
	void (*work)(void *arg);
	void *arg;
};

static int process_main(void *arg)
{
	const struct start *s = arg;

	s->o->pid = getpid();
	/* Not "heaptap": helper_process_name(). The memory with the arguments is that of heaptap. */
	prctl(PR_SET_NAME, "stopper-of-heap");
	setpgid(0, 0);
	outliving_end(s->o);
	s->work(s->arg);
	return 0;
}

int outliving_run(struct outliving *o, void (*work)(void *arg), void *arg)
{
	struct start start = { o, work, arg };
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
			   -1, 0);
	pid_t pid;
	int err;

	if (stack == MAP_FAILED)
		return -ENOMEM;
	*o = (struct outliving){ .parent = getpid() };
	/* CLONE_VFORK: the thread's local storage is in use by one of the two only. */
	pid = clone(process_main, stack + STACK_BYTES, CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_VFORK,
		    &start);
	err = pid < 0 ? -errno : 0;
	helper_process_wait(pid, NULL);
	munmap(stack, STACK_BYTES);
	return err;
}

void outliving_begin(const struct outliving *o)
{
	if (o->pid == getpid())
		prctl(PR_SET_PDEATHSIG, 0);
}

void outliving_end(const struct outliving *o)
{
	if (o->pid != getpid())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != o->parent)
		_exit(1);
}
