/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that block or ignore SIGTRAP: at a breakpoint the kernel changes that, and here it is made good. */
#include <signal.h>

#include "arch/stop.h"
#include "fallback/tracer_steps.h"
#include "user/lib/proc.h"

enum { SETS_WORD = 8 }; /* bytes, at most */

void tracer_trap_begin(struct tracer_thread *th)
{
	th->blocks_trap = stop_blocks(th->tid, SIGTRAP);
}

/* A thread begins with the mask of the one that makes it, and so do processes. */
void tracer_trap_inherit(const struct tracer *t, struct tracer_thread *th)
{
	const struct tracer_thread *maker = tracer_find_thread(t, t->maker);

	th->blocks_trap = maker && maker->blocks_trap;
}

/* Is SIGTRAP in the set at @addr of the program? -1: the set cannot be read, or there is none. */
static int tracer_trap_is_in(const struct tracer *t, const struct cpu *cpu, taddr_t addr)
{
	u8 bytes[SETS_WORD];

	if (!addr || t->memory.read(t->memory.ctx, addr, bytes, cpu->word_size))
		return -1;
	return bytes[cpu->is_big ? cpu->word_size - 1 : 0] >> (SIGTRAP - 1) & 1;
}

/* sigprocmask(how, set, ...) begins. */
void tracer_trap_at_mask(struct tracer *t, struct tracer_thread *th)
{
	const struct cpu *cpu = th->process->cpu;
	taddr_t how, set;
	int is_in;

	if (cpu_call_arg(cpu, &t->regs, &t->memory, 1, &how) ||
	    cpu_call_arg(cpu, &t->regs, &t->memory, 2, &set))
		return;
	is_in = tracer_trap_is_in(t, cpu, set);
	if (is_in == 1)
		th->blocks_trap = (int)how != SIG_UNBLOCK;
	else if (!is_in && (int)how == SIG_SETMASK)
		th->blocks_trap = false;
}

void tracer_trap_begin_process(struct tracer_process *p)
{
	struct proc_status status;

	if (!proc_read_status(&status, proc_reader(p->pid)))
		p->ignores_trap = status.signals_ignored >> (SIGTRAP - 1) & 1;
	for (struct tracer_thread *th = p->threads; th; th = th->next)
		tracer_trap_begin(th);
}

/* sigaction(sig, act, ...) begins. */
void tracer_trap_at_action(struct tracer *t, struct tracer_process *p)
{
	taddr_t sig, act, handler = 0;

	if (cpu_call_arg(p->cpu, &t->regs, &t->memory, 1, &sig) || (int)sig != SIGTRAP ||
	    cpu_call_arg(p->cpu, &t->regs, &t->memory, 2, &act) || !act)
		return;
	/* The handler comes first. */
	p->ignores_trap = !t->memory.read(t->memory.ctx, act, &handler, p->cpu->word_size) &&
			  handler == (taddr_t)(uintptr_t)SIG_IGN;
}

bool tracer_trap_awaits_makers(const struct tracer_process *p)
{
	const struct tracer_thread *th = p->threads;

	while (th && !th->blocks_trap)
		th = th->next;
	return th;
}

bool tracer_trap_is_hit(const struct tracer_thread *th)
{
	return th->blocks_trap && !stop_blocks(th->tid, SIGTRAP);
}
