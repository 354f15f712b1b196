/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of a call, from its beginning to its end: one request by the program becomes one event. Allocator functions
 * that call each other are not counted twice, and calls that never return (longjmp, exceptions, cancellation) leave
 * nothing wrong behind.
 *
 * This text is compiled into each program that sees calls: the BPF programs (bpf/heaptap.bpf.c), the ptrace tracer
 * (fallback/inflight.c), and code that runs inside a target. The text calls no library and needs no thread-local
 * storage. Only the functions of the adaptor, which the including file defines, read the target.
 */
#pragma once

#include "bpf/event.h"
#include "call/inflight.h"
#include "call/probe.h"

#ifdef __bpf__
#define LIFE_STEP   static __always_inline
#define LIFE_CALL   static __noinline /* keeps a program small enough for the verifier */
#define LIFE_UNROLL _Pragma("unroll") /* older kernels refuse loops */
/* The verifier must see that @i is below @max, a power of two. The compiler would leave a plain mask out. */
#define LIFE_LIMIT(i, max) asm volatile("%0 &= %1" : "+r"(i) : "i"((max)-1))
/* The compiler must not see where @value comes from. */
#define LIFE_HIDE(value) asm volatile("" : "+r"(value))
#else
#ifndef LIFE_STEP /* or as the including file says */
#define LIFE_STEP static inline
#endif
#define LIFE_CALL static __attribute__((noinline, unused))
#define LIFE_UNROLL
#define LIFE_LIMIT(i, max) ((i) &= (max)-1)
#define LIFE_HIDE(value)   ((void)(value))
#endif

#ifndef LIFE_SAMPLES /* or as the including file says: may call_choose() leave calls out? */
#define LIFE_SAMPLES true
#endif

/*
 * The adaptor: a thread of the target that has stopped at a probe. The including file defines struct call as it likes
 * (the kernel's registers, a traced thread), and these functions.
 */
struct call;

/* Registers now; the return address of a call whose first instructions run; argument @n, from 1. Unreadable: 0. */
LIFE_STEP u64 call_sp(const struct call *c);
LIFE_STEP u64 call_ip(const struct call *c);
LIFE_STEP u64 call_return_address(const struct call *c, const struct call_probe *p);
LIFE_STEP u64 call_arg(const struct call *c, const struct call_probe *p, u8 n);
/* The result of a call that returns, as wide as a word of the target. */
LIFE_STEP u64 call_result(const struct call *c, const struct call_probe *p);
/* At a call instruction: the stack pointer at the entry of the called function. */
LIFE_STEP u64 call_sp_inside(const struct call *c, const struct call_probe *p);
/* A word of the target's memory, 0 if it cannot be read. */
LIFE_STEP u64 call_read_word(const struct call *c, const struct call_probe *p, u64 addr);

/*
 * How the ends of calls are seen. True: calls with PROBE_RETURNS have their return address exchanged for that of a
 * trampoline, as the kernel does for uretprobes; a delegate's return address stays. False: the stack is left as it is.
 */
LIFE_STEP bool call_has_trampolines(const struct call *c);
LIFE_STEP bool call_is_trampoline(const struct call *c, u64 ret);

/* Probe number @index, NULL if it does not exist. */
LIFE_STEP const struct call_probe *call_probe_at(const struct call *c, u32 index);

/* Fill in PID, thread and time of @ev, and send it. False: there is no room for it; the loss is not counted yet. */
LIFE_STEP bool call_send(const struct call *c, const struct inflight *t, const struct heap_event *ev);
/* Take the stack above the call: its id, STACK_NONE or STACK_LOST. @how is what life_enter_*() were given. */
LIFE_STEP u64 call_take_stack(const struct call *c, const struct inflight *t, const struct call_probe *p,
			      u32 how);
enum call_loss { CALL_LOSS_ALLOC, CALL_LOSS_FREE, CALL_LOSS_ABANDONED };
LIFE_STEP void call_count_loss(const struct call *c, const struct inflight *t, enum call_loss loss, u32 nr);

/*
 * Where blocks are sampled: the part of a call by the program that counts (enum call_choice), at t->distance. One that
 * does not count is followed to its end if it may make others. And: does the release of the block at @addr count?
 */
LIFE_STEP u8 call_choose(const struct call *c, struct inflight *t, const struct call_probe *p);
LIFE_STEP bool call_is_followed(const struct call_probe *p);
LIFE_STEP bool call_chooses_free(const struct call *c, struct inflight *t, const struct call_probe *p,
				 u64 addr);

/* Calls that one request makes at most. */
enum { MOST_WITHIN = 320 };

/* Level @i, which is below INFLIGHT_LEVELS. */
LIFE_STEP struct inflight_level *life_level(struct inflight *t, u64 i)
{
	LIFE_LIMIT(i, INFLIGHT_LEVELS);
	return &t->levels[i];
}

LIFE_STEP bool life_send(const struct call *c, const struct inflight *t, const struct heap_event *ev)
{
	if (call_send(c, t, ev))
		return true;
	/* The end of a realloc reports all that its beginning did: a lost beginning is no loss. */
	if (ev->h.kind == EVENT_FREE)
		call_count_loss(c, t, CALL_LOSS_FREE, 1);
	else if (ev->h.kind != EVENT_REALLOC_BEGIN)
		call_count_loss(c, t, CALL_LOSS_ALLOC, 1);
	return false;
}

LIFE_STEP bool life_counts(const struct inflight_level *l)
{
	return !LIFE_SAMPLES || l->choice != CALL_NONE;
}

/*
 * The end of call @l was not seen: an operator new has thrown or caught, or a jump has left another function. A failed
 * call has reported its failure already. The failure of an operator inside a wrapper is reported with that one. Calls
 * that were taken to be made by @l may have been the program's, after a jump: each is a loss.
 */
LIFE_CALL void life_abandon(const struct call *c, const struct inflight *t, const struct inflight_level *l)
{
	const struct call_probe *p;
	struct heap_event ev = {};
	u32 nr_lost;

	if (!t || !l)
		return;
	nr_lost = l->nr_within;
	if (l->state == LEVEL_BUSY && life_counts(l) &&
	    !(l->keeper && l->flags & (PROBE_DELEGATES | PROBE_WRAPS))) {
		p = call_probe_at(c, l->probe);
		if (p && p->flags & PROBE_THROWS) {
			ev.h.kind = EVENT_ALLOC;
			ev.h.fn = p->fn;
			ev.alignment = l->alignment;
			ev.size = l->size;
			ev.stack = l->stack;
			life_send(c, t, &ev);
			/* An operator that throws makes some calls. */
			nr_lost = nr_lost < MOST_WITHIN ? 0 : nr_lost;
		} else {
			nr_lost++;
		}
	}
	if (nr_lost)
		call_count_loss(c, t, CALL_LOSS_ABANDONED, nr_lost);
}

/* Report the held block @h as a block of its own. */
LIFE_CALL void life_send_held(const struct call *c, struct inflight *t, struct inflight_held *h)
{
	struct heap_event ev = {};

	if (!t || !h || !h->addr)
		return;
	ev.h.kind = EVENT_ALLOC;
	ev.h.fn = h->fn;
	ev.addr = h->addr;
	ev.size = h->size;
	ev.stack = h->stack;
	h->addr = 0;
	t->nr_held--;
	life_send(c, t, &ev);
}

/* Is a result at @addr, of @size bytes, inside the block @h? There may be a header or padding, but not a pool. */
LIFE_STEP bool life_is_under(const struct inflight_held *h, u64 addr, u64 size)
{
	enum { MOST_EXTRA = 256 };

	return addr == h->addr || (addr - h->addr < h->size && h->size / 2 <= size + MOST_EXTRA / 2);
}

/*
 * The wrappers from level t->nr on have ended: report the blocks that they hold. Not the one that @addr is inside, the
 * result of the last one, for a request of @size bytes.
 */
LIFE_CALL void life_settle(const struct call *c, struct inflight *t, u64 addr, u64 size)
{
	if (!t || !t->nr_held)
		return;
	LIFE_UNROLL
	for (u32 i = 0; i < INFLIGHT_HELD; i++) {
		struct inflight_held *h = &t->held[i];

		if (!h->addr || h->level < t->nr)
			continue;
		if (addr && life_is_under(h, addr, size)) {
			h->addr = 0;
			t->nr_held--;
		} else {
			life_send_held(c, t, h);
		}
	}
}

/* Report the held block at @addr, which is released or moved. True if there is one. */
LIFE_CALL bool life_settle_one(const struct call *c, struct inflight *t, u64 addr)
{
	if (!t || !t->nr_held)
		return false;
	LIFE_UNROLL
	for (u32 i = 0; i < INFLIGHT_HELD; i++) {
		if (t->held[i].addr != addr)
			continue;
		life_send_held(c, t, &t->held[i]);
		return true;
	}
	return false;
}

/* The call @l, made by a wrapper, has returned the block @addr. */
LIFE_STEP void life_hold(const struct call *c, struct inflight *t, const struct inflight_level *l, u16 fn,
			 u64 addr)
{
	u64 slot = t->next_held++;
	struct inflight_held *h;

	LIFE_LIMIT(slot, INFLIGHT_HELD);
	h = &t->held[slot];
	life_send_held(c, t, h);
	h->addr = addr;
	h->size = l->size;
	h->stack = l->stack;
	h->fn = fn;
	h->level = l->keeper - 1;
	t->nr_held++;
}

/*
 * Forget calls that must have ended: their frame lies below the stack pointer. Frames far away may belong to another
 * stack of the thread (signal stack, coroutine) and are kept while there is room.
 */
LIFE_STEP void life_drop_ended(const struct call *c, struct inflight *t, u64 sp)
{
	for (int i = 0; i < INFLIGHT_LEVELS; i++) {
		u32 top = t->nr - 1;
		struct inflight_level *l;

		if (top >= INFLIGHT_LEVELS)
			return;
		l = life_level(t, top);
		if (l->sp >= sp || sp - l->sp > SAME_STACK_BYTES)
			return;
		life_abandon(c, t, l);
		t->nr = top;
		life_settle(c, t, 0, 0);
	}
}

/* Is the return address @ret inside the code that belongs to the call at @ip? */
LIFE_STEP bool life_is_own_code(const struct call *c, u32 probe, u64 ip, u64 ret)
{
	const struct call_probe *p = call_probe_at(c, probe);

	return p && ret - (ip - p->own_before) < (u64)p->own_before + p->own_after;
}

/*
 * A call has the stack pointer of request @l: has @l jumped there? A jump changes neither the stack pointer nor the
 * return address: @ret is that of @l. If the end of @l is seen by a trampoline, the return address was exchanged
 * after the entry of @l: then a jump arrives with the trampoline, and a call by the program with an address of the
 * program's. Delegates have no trampoline, but may first have jumped to a function that has one.
 */
LIFE_STEP bool life_has_jumped(const struct call *c, const struct inflight_level *l, u64 ret)
{
	if (call_has_trampolines(c) &&
	    (!(l->flags & PROBE_DELEGATES) || (l->nr_inner && !l->inner[0].depth && ret != l->ret)))
		return call_is_trampoline(c, ret);
	return ret == l->ret;
}

/* Has the inner call @in jumped to a call with its stack pointer and the return address @ret? As life_has_jumped(). */
LIFE_STEP bool life_has_inner_jumped(const struct call *c, const struct inflight_inner *in, u64 ret)
{
	return call_has_trampolines(c) ? call_is_trampoline(c, ret) : ret == in->ret;
}

/* Was a call @depth bytes below the request @l, with return address @ret, made by a call inside @l? */
LIFE_STEP bool life_is_in_inner(const struct call *c, const struct inflight_level *l, u32 depth, u64 ret,
				u32 probe)
{
	LIFE_UNROLL
	for (u32 i = 0; i < INFLIGHT_INNER; i++) {
		const struct inflight_inner *in = &l->inner[i];

		if (i >= l->nr_inner || in->depth > depth)
			break;
		if (l->state == LEVEL_FAILED) {
			if (depth == in->depth && ret == in->ret && probe == in->probe)
				return true;
			continue;
		}
		/* An example: glibc's realloc(NULL, n) jumps into malloc. */
		if (depth == in->depth && probe != in->probe && life_has_inner_jumped(c, in, ret))
			return true;
		if (life_is_own_code(c, in->probe, in->ip, ret))
			return true;
	}
	return false;
}

/* Was the call at @sp with return address @ret made by the request @l, and not by the program? */
LIFE_STEP bool life_is_nested(const struct call *c, const struct inflight_level *l, u64 sp, u64 ret,
			      u32 probe)
{
	if (sp == l->sp) {
		if (l->state == LEVEL_INTERNAL)
			return true;
		if (probe == l->probe || l->state == LEVEL_FAILED)
			return false;
		return life_has_jumped(c, l, ret);
	}
	if (l->sp < sp || l->sp - sp > SAME_STACK_BYTES)
		return false;
	if (l->state != LEVEL_FAILED && life_is_own_code(c, l->probe, l->ip, ret))
		return true;
	return life_is_in_inner(c, l, l->sp - sp, ret, probe);
}

/* The request @l is now in this call. Inner calls below its frame have ended. */
LIFE_STEP void life_note_inner(struct inflight_level *l, u64 sp, u64 ip, u64 ret, u32 probe)
{
	u32 depth = l->sp - sp;
	struct inflight_inner *in;
	u64 nr = 0;

	LIFE_UNROLL
	for (u32 i = 0; i < INFLIGHT_INNER; i++) {
		if (i >= l->nr_inner || l->inner[i].depth > depth ||
		    (l->inner[i].depth == depth && l->inner[i].probe == probe))
			break;
		nr = i + 1;
	}
	if (nr >= INFLIGHT_INNER)
		return;
	in = &l->inner[nr];
	in->depth = depth;
	in->ip = ip;
	in->ret = ret;
	in->probe = probe;
	l->nr_inner = nr + 1;
}

/*
 * Is the result of the call that was entered at @sp that of the request @l? A realloc goes on behind the malloc that it
 * calls: it has to release the old block.
 */
LIFE_STEP bool life_hands_on(const struct inflight_level *l, u64 sp)
{
	bool goes_on = l->flags & PROBE_WRAPS || (l->old && l->state != LEVEL_RELEASED);

	return l->flags & PROBE_DELEGATES && (!goes_on || l->sp == sp);
}

/* Is the request @l in a call that was entered at @sp by @probe? */
LIFE_STEP bool life_is_inner(const struct inflight_level *l, u64 sp, u32 probe)
{
	LIFE_UNROLL
	for (u32 i = 0; i < INFLIGHT_INNER; i++)
		if (i < l->nr_inner && l->sp - sp == l->inner[i].depth && l->inner[i].probe == probe)
			return true;
	return false;
}

/* A new request at the top. Where all levels are in use, nearly all are leftovers of jumps: forget all. */
LIFE_STEP struct inflight_level *life_push(const struct call *c, struct inflight *t, u32 probe, u8 flags,
					   u64 ret)
{
	struct inflight_level *l;
	u32 nr = t->nr;

	if (nr >= INFLIGHT_LEVELS) {
		for (u32 i = 0; i < INFLIGHT_LEVELS; i++)
			life_abandon(c, t, &t->levels[i]);
		nr = 0;
		t->nr = 0;
		life_settle(c, t, 0, 0);
	}
	l = life_level(t, nr);
	t->nr = nr + 1;
	l->sp = call_sp(c);
	l->ip = call_ip(c);
	l->ret = ret;
	l->nr_inner = 0;
	l->probe = probe;
	l->state = LEVEL_BUSY;
	l->flags = flags;
	l->keeper = 0;
	l->nr_within = 0;
	return l;
}

/*
 * The request @l seems to make one call more, which is no event of its own. False: it makes too many. A jump has left
 * it, and the program, whose code is that of its allocator, calls from farther down the stack.
 */
LIFE_STEP bool life_adds(struct inflight_level *l)
{
	if (l->flags & (PROBE_DELEGATES | PROBE_WRAPS))
		return true;
	if (l->nr_within >= MOST_WITHIN)
		return false;
	l->nr_within++;
	return true;
}

/*
 * The request that made this call, if an allocator made it and not the program; the call is then noted as its inner
 * call. Requests that must have ended, because this call is here, are forgotten.
 */
LIFE_CALL struct inflight_level *life_outer(const struct call *c, struct inflight *t, u32 probe, u64 ret)
{
	u64 sp = call_sp(c);
	struct inflight_level *l;
	bool is_nested;
	u32 top;

	life_drop_ended(c, t, sp);
	top = t->nr - 1;
	if (top >= INFLIGHT_LEVELS)
		return NULL;
	l = life_level(t, top);
	is_nested = life_is_nested(c, l, sp, ret, probe);
	if (is_nested && life_adds(l)) {
		if (l->state == LEVEL_FAILED)
			l->state = LEVEL_RETRIED;
		life_note_inner(l, sp, call_ip(c), ret, probe);
		return l;
	}
	if (is_nested || l->sp == sp) {
		life_abandon(c, t, l);
		t->nr--;
		life_settle(c, t, 0, 0);
	}
	return NULL;
}

/*
 * Is the call of @p, made by the request @outer, a level of its own? A wrapper may call for itself (a log), but
 * jumps to do its work. The result of a wrapper inside a delegate is known only at its own end.
 */
LIFE_STEP bool life_is_apart(const struct call *c, const struct inflight *t,
			     const struct inflight_level *outer, const struct call_probe *p)
{
	if (t->nr >= INFLIGHT_LEVELS)
		return false;
	if (outer->flags & PROBE_WRAPS && outer->sp != call_sp(c))
		return true;
	return outer->flags & PROBE_DELEGATES && p->flags & PROBE_WRAPS;
}

/*
 * The return address of the call that begins, 0 where it decides nothing: it is compared with the requests above, and
 * later with the calls that this one makes by a jump. Most releases would read no other memory.
 */
LIFE_STEP u64 life_return_address(const struct call *c, const struct inflight *t, const struct call_probe *p)
{
	u8 compared = call_has_trampolines(c) ? PROBE_DELEGATES : PROBE_DELEGATES | PROBE_RETURNS;

	return t->nr || p->flags & compared ? call_return_address(c, p) : 0;
}

/* Bytes asked for; all ones when nmemb * size overflows: such a call fails. */
LIFE_STEP u64 life_size(const struct call *c, const struct call_probe *p)
{
	u64 size = p->size_arg ? call_arg(c, p, p->size_arg) : 0;
	u64 count, most;

	if (!p->count_arg)
		return size;
	count = call_arg(c, p, p->count_arg);
	if (!((size | count) >> 32))
		return size * count;
	most = size ? ~0ULL / size : ~0ULL;
	/* Otherwise clang makes a multiplication of 128 bits, which BPF does not have. */
	LIFE_HIDE(most);
	return count > most ? ~0ULL : size * count;
}

/* The alignment that the call asks for or says, as in an event. */
LIFE_STEP u64 life_alignment(const struct call *c, const struct call_probe *p)
{
	u64 alignment = p->align_arg ? call_arg(c, p, p->align_arg) : 0;

	return alignment || !p->align_arg ? alignment : ALIGNMENT_ZERO;
}

/*
 * A call begins of a function that allocates: @p, whose index is @probe. The stack is taken now, while the return
 * address is where a call leaves it. @how is handed on to call_take_stack().
 */
LIFE_STEP void life_enter_alloc(const struct call *c, struct inflight *t, u32 probe,
				const struct call_probe *p, u32 how)
{
	u64 ret = life_return_address(c, t, p);
	struct heap_event ev = {};
	struct inflight_level *l = t->nr ? life_outer(c, t, probe, ret) : NULL;
	u8 keeper = l ? t->nr : 0, choice = CALL_COUNTS;

	if (l && !life_is_apart(c, t, l, p))
		return;
	if (LIFE_SAMPLES)
		choice = call_choose(c, t, p);
	if (choice == CALL_NONE && !call_is_followed(p))
		return;
	l = life_push(c, t, probe, p->flags, ret);
	l->keeper = keeper;
	l->size = life_size(c, p);
	if (LIFE_SAMPLES) {
		l->choice = choice;
		l->distance = (u8)t->distance;
	}
	l->old = p->old_arg && choice <= CALL_OLD ? call_arg(c, p, p->old_arg) : 0;
	l->out = p->out_arg ? call_arg(c, p, p->out_arg) : 0;
	l->alignment = life_alignment(c, p);
	l->stack = choice == CALL_OLD || choice == CALL_NONE ? STACK_NONE : call_take_stack(c, t, p, how);
	if (!l->old)
		return;
	life_settle_one(c, t, l->old);
	ev.h.kind = EVENT_REALLOC_BEGIN;
	ev.h.fn = p->fn;
	ev.old_addr = l->old;
	ev.size = l->size;
	ev.stack = l->stack;
	life_send(c, t, &ev);
}

LIFE_STEP bool life_is_release(const struct call_probe *p)
{
	return alloc_kind_releases(p->kind);
}

/* The block that a finished call of @p returns, 0 if it failed. */
LIFE_STEP u64 life_block(const struct call *c, const struct call_probe *p, const struct inflight_level *l)
{
	u64 result = call_result(c, p);

	if (p->kind == ALLOC_RESIZE)
		return l->old;
	if (p->kind == ALLOC_OUT)
		return (u32)result == 0 ? call_read_word(c, p, l->out) : 0;
	if (p->kind == ALLOC_MMAP || p->kind == ALLOC_MREMAP) {
		u64 failed = p->flags & PROBE_32BIT ? 0xffffffffULL : ~0ULL;

		return result == failed ? 0 : result;
	}
	return result;
}

/* The request @l of function @p has its result: report it. A delegate that failed may try again. */
LIFE_STEP void life_finish(const struct call *c, struct inflight *t, struct inflight_level *l,
			   const struct call_probe *p, u64 addr)
{
	/* A chain of calls inside a delegate may fail one after the other, or only the inner ones. */
	bool has_failed = l->state == LEVEL_FAILED || l->state == LEVEL_RETRIED;
	bool moves = p->kind == ALLOC_REALLOC || p->kind == ALLOC_MREMAP || p->kind == ALLOC_RESIZE;
	struct heap_event ev = {};

	/* The caller's own buffer is no block (mi_realpath). */
	if (!life_counts(l) || (p->kind == ALLOC_MALLOC && l->out && addr == l->out))
		return;
	ev.h.kind = moves ? EVENT_REALLOC_END : EVENT_ALLOC;
	ev.h.flags = has_failed ? EVENT_RETRY : 0;
	if (LIFE_SAMPLES) {
		ev.h.flags |= l->choice == CALL_OLD ? EVENT_UNSAMPLED : 0;
		ev.h.distance = l->distance;
	}
	ev.h.fn = p->fn;
	ev.addr = addr;
	ev.alignment = l->alignment;
	if (l->old)
		ev.old_addr = l->old;
	ev.size = l->size;
	/* Where the block could not grow so far, the result is what it has. */
	if (p->kind == ALLOC_RESIZE && call_result(c, p) < l->size)
		ev.size = call_result(c, p);
	ev.stack = l->stack;
	if (addr)
		t->last_alloc = addr;
	/* A failure is reported only once. With the end of a realloc the release of its old block is lost, too. */
	if ((addr || !has_failed) && !life_send(c, t, &ev) && l->old && (addr || !l->size))
		call_count_loss(c, t, CALL_LOSS_FREE, 1);
	if (!addr && p->flags & PROBE_DELEGATES)
		l->state = LEVEL_FAILED;
}

/* A call of function @p has ended, which the wrapper or release @outer made: it was @l. */
LIFE_STEP void life_end_within(const struct call *c, struct inflight *t, const struct inflight_level *outer,
			       struct inflight_level *l, const struct call_probe *p, u64 addr)
{
	if (outer->state == LEVEL_RELEASED || l->old)
		life_finish(c, t, l, p, addr);
	else if (addr)
		life_hold(c, t, l, p->fn, addr);
}

/*
 * A call of function @p ends whose stack pointer at entry was @sp: the end of a request, or of the malloc inside an
 * operator new, or of a call that is not followed. Where a delegate made this call, its end is that of the delegate.
 */
LIFE_STEP void life_leave(const struct call *c, struct inflight *t, u32 probe, const struct call_probe *p,
			  u64 sp)
{
	for (int i = INFLIGHT_LEVELS - 1; i >= 0; i--) {
		/* Plain &levels[i] may become a pointer and a negative number; Linux 7.2 refuses that. */
		struct inflight_level *l = life_level(t, i), *outer;
		bool is_release, is_end = l->sp == sp && l->probe == probe;
		u64 addr;

		if ((u32)i >= t->nr || (!is_end && !(life_hands_on(l, sp) && life_is_inner(l, sp, probe))))
			continue;
		outer = life_level(t, l->keeper - 1);
		addr = life_is_release(p) ? 0 : life_block(c, p, l);
		if (!is_end)
			p = call_probe_at(c, l->probe);
		if (!p)
			return;
		is_release = life_is_release(p);
		t->nr = is_end || is_release || addr || l->keeper ? i : i + 1;
		if (t->nr_held)
			life_settle(c, t, addr, l->size);
		if (!l->keeper) {
			if (!is_release)
				life_finish(c, t, l, p, addr);
			return;
		}
		if (!life_hands_on(outer, l->sp)) {
			if (!is_release)
				life_end_within(c, t, outer, l, p, addr);
			return;
		}
		sp = l->sp;
		probe = l->probe;
	}
}

/*
 * The request @l makes the release @p of @addr. The free that a delete hands its block to is the end of the delete,
 * unless the end of the free is still to come: it may jump on into another one.
 */
LIFE_STEP bool life_ends_with(const struct inflight_level *l, const struct call_probe *p, u64 addr)
{
	if (l->state == LEVEL_INTERNAL)
		return true;
	return l->state == LEVEL_RELEASED && l->flags & PROBE_DELEGATES && l->old == addr &&
	       !(p->flags & (PROBE_DELEGATES | PROBE_RETURNS));
}

/* Inside a release of @addr whose end will be seen. */
LIFE_STEP struct inflight_level *life_push_release(const struct call *c, struct inflight *t, u32 probe,
						   const struct call_probe *p, u64 ret, u64 addr)
{
	struct inflight_level *l = life_push(c, t, probe, p->flags, ret);

	l->old = addr;
	l->state = LEVEL_RELEASED;
	return l;
}

/*
 * The request @l makes the release @p of @addr. True: it may be another block than that of the request, which a wrapper
 * releases for itself.
 */
LIFE_STEP bool life_frees_more(const struct call *c, struct inflight *t, struct inflight_level *l, u32 probe,
			       const struct call_probe *p, u64 addr, u64 ret)
{
	u8 keeper = t->nr;

	if (life_ends_with(l, p, addr)) {
		t->nr--;
		return false;
	}
	if (l->flags & PROBE_WRAPS) {
		life_settle_one(c, t, addr);
		return addr != l->old;
	}
	if (life_is_apart(c, t, l, p))
		life_push_release(c, t, probe, p, ret, addr)->keeper = keeper;
	return false;
}

/* A call begins of a function that releases. @how: 0 = without a stack, else handed on to call_take_stack(). */
LIFE_STEP void life_enter_free(const struct call *c, struct inflight *t, u32 probe,
			       const struct call_probe *p, u32 how)
{
	struct heap_event ev = {};
	struct inflight_level *l;
	u64 ret;

	/* The end of a thread has no argument: the level has an address that no block has. */
	ev.addr = p->old_arg ? call_arg(c, p, p->old_arg) : call_sp(c);
	if (!ev.addr)
		return;
	ret = life_return_address(c, t, p);
	l = t->nr ? life_outer(c, t, probe, ret) : NULL;
	if (l && !life_frees_more(c, t, l, probe, p, ev.addr, ret))
		return;
	if (LIFE_SAMPLES && !call_chooses_free(c, t, p, ev.addr))
		return;
	ev.h.kind = EVENT_FREE;
	ev.h.fn = p->fn;
	if (p->size_arg)
		ev.size = call_arg(c, p, p->size_arg);
	ev.alignment = life_alignment(c, p);
	if (p->kind == ALLOC_MUNMAP) {
		ev.h.flags = EVENT_UNMAP;
	} else if (l) {
		ev.h.flags = EVENT_WITHIN;
	} else if (ev.addr == t->last_alloc) {
		ev.h.flags = EVENT_TEMPORARY;
	}
	t->last_alloc = 0;
	if (how)
		ev.stack = call_take_stack(c, t, p, how);
	life_send(c, t, &ev);
	if (!l && p->flags & (PROBE_DELEGATES | PROBE_RETURNS))
		life_push_release(c, t, probe, p, ret, ev.addr);
}

/* At an instruction by which the C library calls free for itself: @p is the free, @probe its index. */
LIFE_STEP void life_internal_call(const struct call *c, struct inflight *t, u32 probe,
				  const struct call_probe *p)
{
	struct inflight_level *l;

	life_drop_ended(c, t, call_sp(c));
	l = life_push(c, t, probe, 0, 0);
	l->sp = call_sp_inside(c, p);
	l->state = LEVEL_INTERNAL;
}

/* The thread has ended. Calls that it was in are abandoned. */
LIFE_STEP void life_end(const struct call *c, struct inflight *t)
{
	for (u32 i = 0; i < INFLIGHT_LEVELS; i++)
		if (i < t->nr)
			life_abandon(c, t, &t->levels[i]);
	t->nr = 0;
}
