/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls by which a program takes memory from the kernel, whoever makes them, become events (--mmap). */
#pragma once

#include "bpf/call.bpf.h"

enum mapping_call { MAPPING_NONE, MAPPING_MMAP, MAPPING_MUNMAP, MAPPING_MREMAP, MAPPING_BRK };

/* A system call of the current thread, of a traced process. */
struct mapping_seen {
	enum mapping_call call;
	u32 word; /* bytes of an address */
	struct inflight *t;
	struct process_state *process;
	struct pt_regs regs;
};

/* Which one has number @nr? Most have none of these: nothing is read for them. */
static __always_inline enum mapping_call mapping_call(u64 nr, bool is_32bit)
{
	enum { MMAP2_32 = 192, MUNMAP_32 = 91, MREMAP_32 = 163, BRK_32 = 45 }; /* of i386 and arm */

	if (nr == (is_32bit ? MMAP2_32 : SYSTEM_CALL_MMAP))
		return MAPPING_MMAP;
	if (nr == (is_32bit ? MUNMAP_32 : SYSTEM_CALL_MUNMAP))
		return MAPPING_MUNMAP;
	if (nr == (is_32bit ? MREMAP_32 : SYSTEM_CALL_MREMAP))
		return MAPPING_MREMAP;
	return nr == (is_32bit ? BRK_32 : SYSTEM_CALL_BRK) ? MAPPING_BRK : MAPPING_NONE;
}

/*
 * Fill in @m of system call @nr. False: it is none of these, or its thread is not traced. A call that an allocator
 * makes inside a request is none of the program's: true, with a NULL @m->t.
 */
static __always_inline bool mapping_find(struct mapping_seen *m, const void *regs, u64 nr)
{
	if (!mapping_call(nr, false) && !mapping_call(nr, true))
		return false;
	m->t = thread_any(0);
	m->process = m->t ? process_of(m->t->pid) : NULL;
	if (!m->t || !m->process || bpf_probe_read_kernel(&m->regs, sizeof(m->regs), regs))
		return false;
	m->word = SYSTEM_CALL_IS_32BIT(&m->regs) ? 4 : 8;
	m->call = mapping_call(nr, m->word == 4);
	if (!m->call)
		return false;
	if (m->t->nr)
		life_drop_ended(NULL, m->t, REGS_SP(&m->regs));
	if (m->t->nr || thread_is_paused(m->t))
		m->t = NULL;
	return true;
}

/* The data of a process ends inside a page, which is its own. */
static __always_inline u64 page_behind(u64 addr)
{
	enum { PAGE = 4096 };

	return (addr + PAGE - 1) & ~(u64)(PAGE - 1);
}

/* The call of function @fn gives back [@addr, @addr + @size). The alignment says where it was made, for user space. */
static __always_inline void mapping_give_back(const struct mapping_seen *m, u16 fn, u64 addr, u64 size)
{
	struct heap_event ev = { .h = { .kind = EVENT_FREE, .flags = EVENT_UNMAP, .fn = fn } };

	ev.addr = addr;
	ev.size = size;
	ev.alignment = REGS_IP(&m->regs);
	m->t->last_alloc = 0;
	life_send(NULL, m->t, &ev);
}

/* Before the kernel acts: nobody else has the range yet. */
static __always_inline int mapping_begins(const void *regs, u64 nr)
{
	struct heap_event ev = { .h = { .kind = EVENT_REALLOC_BEGIN, .fn = config.mapping.mremap_fn } };
	struct mapping_seen m;
	u64 addr;

	if (!state.is_on || !mapping_find(&m, regs, nr) || !m.t)
		return 0;
	addr = SYSTEM_CALL_ARG1(&m.regs);
	if (m.call == MAPPING_MUNMAP && addr)
		mapping_give_back(&m, config.mapping.munmap_fn, addr, SYSTEM_CALL_ARG2(&m.regs));
	if (m.call == MAPPING_BRK && addr && page_behind(addr) < m.process->brk)
		mapping_give_back(&m, config.mapping.brk_fn, page_behind(addr),
				  m.process->brk - page_behind(addr));
	if (m.call != MAPPING_MREMAP)
		return 0;
	ev.old_addr = addr;
	ev.size = SYSTEM_CALL_ARG3(&m.regs);
	life_send(NULL, m.t, &ev);
	return 0;
}

/* The kernel has acted, and its result is @result. */
static __always_inline int mapping_ends(const void *regs, s64 result, bool has_loop)
{
	struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .fn = config.mapping.mmap_fn } };
	bool has_failed = result < 0 && result >= -4095;
	struct mapping_seen m;
	u64 nr = 0, brk;

	if (!state.is_on || bpf_probe_read_kernel(&nr, sizeof(nr), regs + SYSTEM_CALL_NUMBER_AT) ||
	    !mapping_find(&m, regs, (u32)nr) || m.call == MAPPING_MUNMAP)
		return 0;
	ev.addr = has_failed ? 0 : result;
	ev.size = SYSTEM_CALL_ARG2(&m.regs);
	ev.alignment = REGS_IP(&m.regs);
	if (m.call == MAPPING_BRK) {
		brk = m.process->brk;
		ev.addr = m.process->brk = page_behind(result);
		if (!brk || ev.addr <= brk)
			return 0;
		ev.h.fn = config.mapping.brk_fn;
		ev.size = ev.addr - brk;
		ev.addr = brk;
	} else if (m.call == MAPPING_MREMAP) {
		ev.h.kind = EVENT_REALLOC_END;
		ev.h.fn = config.mapping.mremap_fn;
		ev.old_addr = SYSTEM_CALL_ARG1(&m.regs);
		ev.size = SYSTEM_CALL_ARG3(&m.regs);
	}
	if (!m.t)
		return 0;
	ev.stack = stack_take(&m.regs, m.t, m.word, has_loop, STACK_BEHIND);
	m.t->last_alloc = ev.addr;
	if (!life_send(NULL, m.t, &ev) && m.call == MAPPING_MREMAP && ev.addr)
		call_count_loss(NULL, m.t, CALL_LOSS_FREE, 1);
	return 0;
}
