/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of a stopped thread, and its call stack. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch/unwind.h"
#include "fallback/tracer_steps.h"
#include "fallback/unwind.h"
#include "user/lib/array.h"

static const u64 stack_distance = 16 << 20; /* memory so far from the stack pointer is hardly stack */

/*
 * Fill @piece with the memory from @addr on. /proc/PID/mem would also give memory that the thread itself may not read:
 * behind the end of a stack that would be zeros, as if the stack began there. Before Linux 3.15 all is read or nothing,
 * so the end of a page, behind which the stack may end, is the end of the piece.
 */
static int tracer_stack_load(struct memory_copy *piece, const struct tracer_process *p, taddr_t addr)
{
	struct iovec to = { .iov_base = piece->bytes,
			    .iov_len = MEMORY_COPY_BYTES - (addr & (MEMORY_COPY_BYTES - 8)) },
		     from;
	ssize_t nr;

	piece->start = addr & ~7ULL;
	from = (struct iovec){ .iov_base = (void *)(uintptr_t)piece->start, .iov_len = to.iov_len };
	nr = process_vm_readv(p->pid, &to, 1, &from, 1, 0);
	if (nr < 0 && errno != EFAULT)
		nr = pread(p->mem_fd, piece->bytes, to.iov_len, (off_t)piece->start);
	piece->size = nr > 0 ? (size_t)nr : 0;
	return nr > 0 ? 0 : -EFAULT;
}

static int tracer_stack_read_memory(void *ctx, taddr_t addr, void *buf, size_t len)
{
	struct tracer *t = ctx;
	struct tracer_process *p = t->thread->process;
	taddr_t sp = cpu_get(p->cpu, &t->regs, CPU_SP);
	struct memory_copy *piece = addr - sp < stack_distance ? &t->stack : &t->other;
	bool is_there = addr >= piece->start && addr - piece->start + len <= piece->size;
	bool is_of_two_pages = (addr & (MEMORY_COPY_BYTES - 1)) + len > MEMORY_COPY_BYTES;

	if (!is_there && (len > 8 || is_of_two_pages))
		return pread(p->mem_fd, buf, len, (off_t)addr) == (ssize_t)len ? 0 : -EFAULT;
	if (!is_there && (tracer_stack_load(piece, p, addr) || addr - piece->start + len > piece->size))
		return -EFAULT;
	memcpy(buf, piece->bytes + (addr - piece->start), len);
	return 0;
}

/* For stores of emulated instructions only: memory is not read after that, so the copies may be old. */
static int tracer_stack_write_memory(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	const struct tracer *t = ctx;

	return pwrite(t->thread->process->mem_fd, buf, len, (off_t)addr) == (ssize_t)len ? 0 : -EFAULT;
}

void tracer_look_at(struct tracer *t, struct tracer_thread *th)
{
	t->thread = th;
	t->memory = (struct cpu_memory){ t, tracer_stack_read_memory, tracer_stack_write_memory };
	t->stack.size = 0;
	t->other.size = 0;
}

static bool tracer_stack_find_place(void *ctx, taddr_t pc, struct unwind_place *place)
{
	const struct tracer *t = ctx;
	const struct tracer_process *p = t->thread->process;
	size_t at = array_search(i, 0, p->nr_maps, p->maps[i].end <= pc);

	if (at == p->nr_maps || p->maps[at].start > pc)
		return false;
	place->bias = p->maps[at].bias;
	place->table = p->maps[at].table < t->nr_tables && t->tables[p->maps[at].table].is_used
			       ? &t->tables[p->maps[at].table].cfi
			       : NULL;
	return true;
}

static bool tracer_stack_send_stack(struct tracer *t, struct stack_event *ev)
{
	size_t len = offsetof(struct stack_event, ips) + ev->nr_frames * sizeof(ev->ips[0]);
	u64 *seen = &t->stacks_seen[ev->id % STACKS_SEEN];

	if (*seen == ev->id)
		return true;
	if (!t->host.record || !t->host.record(t->host.ctx, ev, len, false))
		return false;
	*seen = ev->id;
	return true;
}

/* Walk into @ips, which has room for the frames that are wanted. Returns their number. */
static size_t tracer_stack_walk(struct tracer *t, const struct tracer_process *p, bool is_at_entry, u64 *ips,
				enum stack_end *end)
{
	const struct cpu *cpu = p->cpu;
	const struct unwinder u = {
		.arch = unwind_arch(cpu->machine, cpu->word_size),
		.is_big = cpu->is_big,
		.address_mask = cpu->code_mask,
		.start_sp = p->start_sp,
		.ctx = t,
		.read = tracer_stack_read_memory,
		.find = tracer_stack_find_place,
	};
	const struct unwind_regs regs = { .pc = cpu_get(cpu, &t->regs, CPU_PC),
					  .sp = cpu_get(cpu, &t->regs, CPU_SP),
					  .fp = cpu_get(cpu, &t->regs, CPU_FP),
					  .lr = cpu_get(cpu, &t->regs, CPU_LINK),
					  .is_at_entry = is_at_entry };

	if (!u.arch)
		return 0;
	if (is_at_entry)
		return unwind_walk(&u, &regs, ips, t->options.depth, end);
	ips[0] = (cpu->code_mask ? regs.pc & cpu->code_mask : regs.pc) + 1;
	return 1 + unwind_walk(&u, &regs, ips + 1, t->options.depth - 1, end);
}

static u64 tracer_stack_take(struct tracer *t, struct tracer_process *p, bool is_at_entry)
{
	enum stack_end end = STACK_NO_INFO;
	struct stack_event ev;

	if (!t->options.depth)
		return STACK_NONE;
	memset(&ev, 0, offsetof(struct stack_event, ips));
	ev.h = (struct event_header){ .kind = EVENT_STACK, .pid = (u32)p->pid, .tid = (u32)t->thread->tid };
	ev.nr_frames = (u16)tracer_stack_walk(t, p, is_at_entry, ev.ips, &end);
	if (!ev.nr_frames) {
		p->losses->stacks++;
		return STACK_LOST;
	}
	/* The mappings have changed, and were not read since. */
	ev.end = p->nr_done < p->nr_urgent && p->nr_maps ? STACK_STALE : end;
	ev.epoch = p->epoch;
	ev.id = stack_event_id(&ev);
	if (tracer_stack_send_stack(t, &ev))
		return ev.id;
	p->losses->stacks++;
	return STACK_LOST;
}

u64 tracer_take_stack(struct tracer *t, struct tracer_process *p)
{
	return tracer_stack_take(t, p, true);
}

u64 tracer_take_stack_here(struct tracer *t, struct tracer_process *p)
{
	return tracer_stack_take(t, p, false);
}
