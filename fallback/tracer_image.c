/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program from its first instruction to its end: what a traced process is, and what is mapped in it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/tracee.h"
#include "fallback/tracer_steps.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"

static const u64 killer_ns = 500ULL * 1000 * 1000; /* how long to wait for a thread that ends the process */
static const u64 exit_hold_ns = 1000ULL * 1000 * 1000; /* and for the others to come to their ends */

int tracer_open_image(struct traced *p)
{
	bool is_32bit = false;
	struct proc_stat stat;
	char path[32];
	int err;

	places_fini(&p->places);
	if (p->mem_fd >= 0)
		close(p->mem_fd);
	snprintf(path, sizeof(path), "/proc/%d/mem", p->pid);
	p->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (p->mem_fd < 0)
		return errno == ENOENT ? -ESRCH : errno == EACCES ? -EPERM : -errno;
	err = proc_is_32bit(&is_32bit, p->pid);
	if (err && err != -ENOEXEC)
		return err == -EACCES ? -EPERM : err;
	p->cpu = cpu_native(is_32bit ? 4 : 8);
	if (!p->cpu)
		return -ENOTSUP;
	p->start_sp = proc_read_stat(&stat, p->pid) ? 0 : stat.start_sp;
	places_init(&p->places, p->cpu, p->mem_fd);
	p->nr_maps = 0;
	return 0;
}

/* The dynamic linker comes first: follow it to the program's entry point. */
static void watch_start(struct traced *p)
{
	struct place place = { .kind = PLACE_START };
	bool is_32bit = p->cpu->word_size == 4;
	u64 interp = 0;

	if (proc_auxv(&interp, p->pid, is_32bit, AT_BASE) || !interp ||
	    proc_auxv(&p->entry, p->pid, is_32bit, AT_ENTRY))
		return;
	place.addr = p->entry;
	p->has_new_code = false;
	p->is_starting = !places_add(&p->places, &place);
}

void tracer_enter_image(struct traced *p)
{
	p->is_starting = false;
	p->is_exit_told = false;
	if (tracer_open_image(p)) {
		/* Nothing of it can be seen any more. */
		p->losses->other++;
		p->cpu = NULL;
	} else {
		watch_start(p);
	}
}

void tracer_new_image(struct tracer *t, struct traced *p, struct thread *th)
{
	tracer_enter_image(p);
	if (!p->is_waiting) {
		tracer_tell(t, th, EVENT_EXEC);
		return;
	}
	p->is_waiting = false;
	th->waits_to_start = true;
	if (t->host.launched)
		t->host.launched(t->host.ctx, p->pid);
}

/* All libraries that the program was linked to are there. */
void tracer_at_start(struct tracer *t, struct thread *th)
{
	struct traced *p = th->process;

	places_remove(&p->places, tracer_code_address(p->cpu, p->entry), PLACE_START, 0);
	p->is_starting = false;
	tracer_tell(t, th, EVENT_MAPS);
}

/* Tell of new code before any of it can run. */
void tracer_at_syscall(struct tracer *t, struct thread *th)
{
	struct traced *p = th->process;

	if (tracee_has_loaded(th->tid, &p->has_new_code))
		tracer_tell(t, th, EVENT_MAPS);
}

static size_t count_alive(const struct traced *p)
{
	size_t nr = 0;

	for (const struct thread *th = p->threads; th; th = th->next)
		nr += !th->is_copy && !th->has_exited;
	return nr;
}

/* The process ends: let the others come to their ends, tell, and let all stand. */
static void tell_exit(struct tracer *t, struct traced *p, int status)
{
	pid_t pid = p->pid;

	p->is_exit_told = true;
	p->is_exit_held = true;
	for (struct thread *th = p->threads; th; th = th->next)
		th->is_killed = false;
	if (tracer_stop_all(t, p, exit_hold_ns) == -ESRCH)
		return;
	p->nr_holds--;
	if (!t->host.exiting || !t->host.exiting(t->host.ctx, pid, status))
		tracer_let_end(t, pid);
}

void tracer_thread_exits(struct tracer *t, struct thread *th)
{
	struct traced *p = th->process;
	unsigned long status = 0;
	enum tracee_call call = tracee_call(th->tid);

	th->has_exited = true;
	if (p->is_exit_told || th->is_copy || !p->is_launched || p->is_waiting ||
	    ptrace(PTRACE_GETEVENTMSG, th->tid, 0, &status)) {
		tracer_resume(t, th);
		return;
	}
	if (WIFSIGNALED((int)status) || call == TRACEE_CALL_EXITS_ALL || !count_alive(p)) {
		tell_exit(t, p, (int)status);
		return;
	}
	if (call != TRACEE_CALL_EXITS && clock_now_ns() >= p->futile_until_ns) {
		/* Another one has ended the process, or executes another program: which, will turn out. */
		th->is_killed = true;
		th->wait_end_ns = clock_now_ns() + killer_ns;
		tracer_arm(t);
	}
	tracer_resume(t, th);
}
