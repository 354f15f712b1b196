/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lets a thread of a held process carry out a system call, for a snapshot of the process, or try breakpoints. */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>

#include "arch/thread_call.h"
#include "arch/stop.h"
#include "fallback/tracer_steps.h"
#include "user/lib/proc.h"

/*
 * Can @th make a call? Not where it waits for something, and not in the middle of a system call whose result the kernel
 * has not written yet: events such as a birth stop it there.
 */
static bool tracer_call_is_free(const struct tracer_thread *th)
{
	int code;

	if (th->role != ROLE_MEMBER || th->state != THREAD_STOPPED || th->sig || th->wait != WAIT_NONE ||
	    th->needs_step || th->is_watched)
		return false;
	code = stop_code(th->tid);
	return code == (SIGTRAP | PTRACE_EVENT_STOP << 8) || code == SI_KERNEL || code == TRAP_BRKPT;
}

/* The tracer's options are not changed here, so a filter would see the call, and may kill for it. */
static bool tracer_call_has_filter(pid_t pid)
{
	struct proc_status status;

	return proc_read_status(&status, pid) || status.seccomp;
}

static int tracer_call_by(const struct tracer_thread *th, struct thread_request *r)
{
	struct thread_call call;
	int err = tracer_call_has_filter(th->tid) ? -EPERM : thread_call_begin_held(&call, th->tid, r->insn);

	if (err)
		return err;
	err = thread_call_do(&call, r);
	if (thread_call_end(&call))
		err = -ESRCH;
	return err == -EBUSY ? -EAGAIN : err;
}

int tracer_call(struct tracer *t, pid_t pid, struct thread_request *r)
{
	struct tracer_process *p = tracer_find_process(t, pid);
	int err = -EBUSY;

	if (!p)
		return -ESRCH;
	for (struct tracer_thread *th = p->threads; th && p->nr_holds && err == -EBUSY; th = th->next)
		if (tracer_call_is_free(th))
			err = tracer_call_by(th, r);
	return err;
}

enum {
	TRACER_CALL_RED_ZONE = 1024, /* bytes below a stack pointer that a program may use */
	TRACER_CALL_STOP_NS = 500 * 1000 * 1000,
};

/* Does the breakpoint at @addr stop the thread of @call? */
static int tracer_call_step_at(const struct cpu *cpu, struct thread_call *call, taddr_t addr)
{
	static const u64 no_args[INJECT_ARGS];
	struct cpu_regs regs = call->regs;
	siginfo_t si = { 0 };
	int err;

	inject_call(&regs, addr, 0, no_args);
	cpu_set(cpu, &regs, CPU_SP, cpu_get(cpu, &regs, CPU_SP) - TRACER_CALL_RED_ZONE);
	err = thread_call_step(call, &regs, &si);
	if (err || si.si_signo != SIGTRAP)
		return err ? err : -EBUSY;
	return si.si_code == SI_KERNEL ? 0 : -EEXIST;
}

static int tracer_call_try_by(const struct tracer_thread *th, taddr_t start, taddr_t end)
{
	const struct tracer_process *p = th->process;
	struct thread_call call;
	int err;

	/*
	 * The thread has met a breakpoint, and the stop that we asked for came first: a step would take the signal of
	 * that one, and the thread would go on behind the breakpoint, amid an instruction.
	 */
	if (stop_hides_signal(th->tid, SIGTRAP))
		return -EBUSY;
	err = thread_call_begin_held(&call, th->tid, 0);
	if (err)
		return err;
	for (size_t i = 0; i < p->places.nr && !err; i++) {
		taddr_t addr = p->places.list[i].addr;

		if (addr >= start && addr < end)
			err = tracer_call_step_at(p->cpu, &call, addr);
	}
	return thread_call_end(&call) ? -ESRCH : err;
}

int tracer_try(struct tracer *t, pid_t pid, taddr_t start, taddr_t end)
{
	struct tracer_process *p = tracer_find_process(t, pid);
	int err;

	if (!p)
		return -ESRCH;
	/* Uprobes of other CPUs have a breakpoint of their own kind. */
	if (p->cpu->machine != EM_X86_64)
		return 0;
	err = tracer_stop_all(t, p, TRACER_CALL_STOP_NS);
	if (err == -ESRCH)
		return err;
	err = err ? err : -EBUSY;
	for (struct tracer_thread *th = p->threads; th && err == -EBUSY; th = th->next)
		if (tracer_call_is_free(th))
			err = tracer_call_try_by(th, start, end);
	tracer_unhold(t, p);
	return err;
}
