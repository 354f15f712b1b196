/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From calls to events: one request by the program is one event. */
#include "fallback/inflight.h"

#include <string.h>

enum { SAME_STACK_BYTES = 1 << 20 };

enum inflight_state {
	LEVEL_BUSY = 1, /* inside the call */
	LEVEL_TOLD,	/* a release inside its call: its event is sent already */
	LEVEL_INTERNAL, /* a free that the C library is about to call for itself */
	LEVEL_FAILED,	/* operator new: the malloc inside failed; a new_handler may let it try again */
	LEVEL_RETRIED,	/* it does */
};

static const struct call_probe *probe_of(const struct inflight_call *c, u32 probe)
{
	return probe < c->nr_probes ? &c->probes[probe] : NULL;
}

static taddr_t stack_pointer(const struct inflight_call *c)
{
	return c->cpu->get(c->regs, CPU_SP);
}

static taddr_t return_address(const struct inflight_call *c)
{
	taddr_t ret;

	return cpu_call_return(c->cpu, c->regs, c->memory, &ret) ? 0 : ret;
}

/* 0 if it cannot be read. */
static u64 argument(const struct inflight_call *c, u8 n)
{
	taddr_t arg;

	return cpu_call_arg(c->cpu, c->regs, c->memory, n, &arg) ? 0 : arg;
}

/* Bytes asked for; all ones when nmemb * size overflows: such a call fails. */
static u64 call_size(const struct inflight_call *c, const struct call_probe *p)
{
	u64 size = p->size_arg ? argument(c, p->size_arg) : 0;
	u64 product;

	if (!p->count_arg)
		return size;
	return __builtin_mul_overflow(size, argument(c, p->count_arg), &product) ? ~0ULL : product;
}

/*
 * A call whose end was never seen: an operator new has thrown, others were jumped out of. A failed one has
 * told all there is to tell.
 */
static void abandon(const struct inflight_call *c, const struct inflight_level *l)
{
	const struct call_probe *p = probe_of(c, l->probe);
	struct heap_event ev = { .h.kind = EVENT_ALLOC, .size = l->size, .stack = l->stack };

	if (l->state != LEVEL_BUSY)
		return;
	if (p && p->flags & CALL_THROWS) {
		ev.h.fn = p->fn;
		c->send(c->ctx, &ev);
	} else {
		c->losses->abandoned++;
	}
}

/*
 * Forget calls that cannot be under way any more: their frame lies below the stack pointer. Frames far
 * away may belong to another stack of the thread (signal stack, coroutine) and are kept while there is room.
 */
static void drop_stale(const struct inflight_call *c, u64 sp)
{
	struct inflight *t = c->thread;

	while (t->nr) {
		const struct inflight_level *l = &t->levels[t->nr - 1];

		if (l->sp >= sp || sp - l->sp > SAME_STACK_BYTES)
			return;
		abandon(c, l);
		t->nr--;
	}
}

/* Is the return address @ret inside the code that belongs to the call at @ip? */
static bool is_own_code(const struct inflight_call *c, u32 probe, u64 ip, u64 ret)
{
	const struct call_probe *p = probe_of(c, probe);

	return p && ret - (ip - p->own_before) < (u64)p->own_before + p->own_after;
}

/* Of a call lower on the stack: was it made by one of those inside @l? */
static bool is_in_inner(const struct inflight_call *c, const struct inflight_level *l, u32 depth, u64 ret)
{
	for (u32 i = 0; i < l->nr_inner && l->inner[i].depth <= depth; i++) {
		const struct inflight_inner *in = &l->inner[i];

		if (l->state == LEVEL_FAILED) {
			if (depth == in->depth && ret == in->ret && c->probe == in->probe)
				return true;
			continue;
		}
		/* A jump out of a call that it made, such as glibc's realloc(NULL, n) into malloc. */
		if (depth == in->depth && c->probe != in->probe && ret == in->ret)
			return true;
		if (is_own_code(c, in->probe, in->ip, ret))
			return true;
	}
	return false;
}

/* Was the call at @sp with return address @ret made by the request @l, rather than by the program? */
static bool is_nested(const struct inflight_call *c, const struct inflight_level *l, u64 sp, u64 ret)
{
	if (sp == l->sp) {
		if (l->state == LEVEL_INTERNAL)
			return true;
		/* A jump leaves sp as it is, and the return address. */
		return c->probe != l->probe && l->state != LEVEL_FAILED && ret == l->ret;
	}
	if (l->sp < sp || l->sp - sp > SAME_STACK_BYTES)
		return false;
	if (l->state != LEVEL_FAILED && is_own_code(c, l->probe, l->ip, ret))
		return true;
	return is_in_inner(c, l, l->sp - sp, ret);
}

/* The request is now in this call: those below its frame have ended. */
static void note_inner(const struct inflight_call *c, struct inflight_level *l, u64 sp, u64 ret)
{
	u32 depth = l->sp - sp;
	u32 nr = 0;

	while (nr < l->nr_inner && l->inner[nr].depth <= depth &&
	       !(l->inner[nr].depth == depth && l->inner[nr].probe == c->probe))
		nr++;
	if (nr >= INFLIGHT_INNER)
		return;
	l->inner[nr] = (struct inflight_inner){
		.ip = c->cpu->get(c->regs, CPU_PC), .ret = ret, .depth = depth, .probe = c->probe
	};
	l->nr_inner = nr + 1;
}

static bool is_inner(const struct inflight_level *l, u64 sp, u32 probe)
{
	for (u32 i = 0; i < l->nr_inner; i++)
		if (l->sp - sp == l->inner[i].depth && l->inner[i].probe == probe)
			return true;
	return false;
}

/* A new request at the top. So many under way in one thread are nearly all leftovers of jumps: then all go. */
static struct inflight_level *push_level(const struct inflight_call *c, u8 flags, u64 sp, u64 ret)
{
	struct inflight *t = c->thread;
	struct inflight_level *l;

	if (t->nr == INFLIGHT_LEVELS) {
		for (u32 i = 0; i < t->nr; i++)
			abandon(c, &t->levels[i]);
		t->nr = 0;
	}
	l = &t->levels[t->nr++];
	*l = (struct inflight_level){ .sp = sp,
				      .ip = c->cpu->get(c->regs, CPU_PC),
				      .ret = ret,
				      .probe = c->probe,
				      .state = LEVEL_BUSY,
				      .flags = flags };
	return l;
}

/*
 * The request that made this call, if an allocator made it and not the program: remembered there as
 * its inner call. Requests that this call proves to be over are forgotten.
 */
static struct inflight_level *outer_level(const struct inflight_call *c, u64 sp, u64 ret)
{
	struct inflight *t = c->thread;
	struct inflight_level *l;

	drop_stale(c, sp);
	if (!t->nr)
		return NULL;
	l = &t->levels[t->nr - 1];
	if (is_nested(c, l, sp, ret)) {
		if (l->state == LEVEL_FAILED)
			l->state = LEVEL_RETRIED;
		note_inner(c, l, sp, ret);
		return l;
	}
	if (l->sp == sp) {
		abandon(c, l);
		t->nr--;
	}
	return NULL;
}

void inflight_enter_alloc(const struct inflight_call *c)
{
	const struct call_probe *p = probe_of(c, c->probe);
	u64 sp = stack_pointer(c), ret = return_address(c);
	struct inflight_level *l;
	struct heap_event ev = { .h.kind = EVENT_REALLOC_BEGIN };

	if (!p || outer_level(c, sp, ret))
		return;
	l = push_level(c, p->flags, sp, ret);
	l->size = call_size(c, p);
	l->old = p->old_arg ? argument(c, p->old_arg) : 0;
	l->out = p->out_arg ? argument(c, p->out_arg) : 0;
	l->stack = c->take_stack(c->ctx);
	if (!l->old)
		return;
	ev.h.fn = p->fn;
	ev.old_addr = l->old;
	ev.size = l->size;
	ev.stack = l->stack;
	c->send(c->ctx, &ev);
}

/* The word that posix_memalign has stored. */
static u64 read_out(const struct inflight_call *c, taddr_t addr)
{
	u8 bytes[8];

	return c->memory->read(c->memory->ctx, addr, bytes, c->cpu->word_size) ? 0 : cpu_word(c->cpu, bytes);
}

/* The block that a finished call gave, 0 if it failed. */
static u64 call_result(const struct inflight_call *c, const struct call_probe *p,
		       const struct inflight_level *l)
{
	u64 result = c->cpu->get(c->regs, CPU_RESULT);
	u64 failed = c->cpu->word_size == 4 ? 0xffffffffULL : ~0ULL;

	if (p->kind == CALL_OUT)
		return (u32)result == 0 ? read_out(c, l->out) : 0;
	if (p->kind == CALL_MMAP || p->kind == CALL_MREMAP)
		return result == failed ? 0 : result;
	return result;
}

/* The request @l has its result: tell, and forget it unless it may try again. */
static void finish(const struct inflight_call *c, struct inflight_level *l, const struct call_probe *p,
		   u64 addr)
{
	bool is_realloc = p->kind == CALL_REALLOC || p->kind == CALL_MREMAP;
	struct heap_event ev = { .h.kind = is_realloc ? EVENT_REALLOC_END : EVENT_ALLOC,
				 .h.flags = l->state == LEVEL_RETRIED ? EVENT_RETRY : 0,
				 .h.fn = p->fn,
				 .addr = addr,
				 .old_addr = l->old,
				 .size = l->size,
				 .stack = l->stack };

	if (addr)
		c->thread->last_alloc = addr;
	/* Of a failure that was told before nothing more is to be told. */
	if ((addr || l->state != LEVEL_RETRIED) && !c->send(c->ctx, &ev) && l->old && (addr || !l->size))
		c->losses->frees++;
	if (!addr && p->flags & CALL_DELEGATES)
		l->state = LEVEL_FAILED;
}

/* The malloc inside the request @l, or the free inside, has ended; it was the last one. */
static void leave_inner(const struct inflight_call *c, u32 i, const struct call_probe *inner)
{
	struct inflight_level *l = &c->thread->levels[i];
	const struct call_probe *outer = probe_of(c, l->probe);
	u64 result;

	if (!outer)
		return;
	if (outer->kind == CALL_FREE) {
		c->thread->nr = i;
		return;
	}
	result = call_result(c, inner, l);
	finish(c, l, outer, result);
	c->thread->nr = result ? i : i + 1;
}

void inflight_leave(const struct inflight_call *c, taddr_t sp)
{
	struct inflight *t = c->thread;
	const struct call_probe *p = probe_of(c, c->probe);

	for (u32 i = t->nr; p && i-- > 0;) {
		struct inflight_level *l = &t->levels[i];

		if (l->sp == sp && l->probe == c->probe) {
			t->nr = i;
			if (p->kind != CALL_FREE && p->kind != CALL_MUNMAP)
				finish(c, l, p, call_result(c, p, l));
			return;
		}
		if (l->flags & CALL_DELEGATES && is_inner(l, sp, c->probe)) {
			leave_inner(c, i, p);
			return;
		}
	}
}

void inflight_enter_free(const struct inflight_call *c)
{
	const struct call_probe *p = probe_of(c, c->probe);
	struct inflight *t = c->thread;
	u64 sp = stack_pointer(c), ret;
	struct heap_event ev = { .h.kind = EVENT_FREE };
	struct inflight_level *l;

	if (!p)
		return;
	ev.addr = argument(c, p->old_arg);
	if (!ev.addr)
		return;
	/* Read only where somebody wants it: it is the one look at memory that most releases would take. */
	ret = t->nr || p->flags & (CALL_DELEGATES | CALL_RETURNS) ? return_address(c) : 0;
	l = outer_level(c, sp, ret);
	if (l) {
		/*
		 * The free that a delete hands its block to is the end of the delete, unless its own end is still
		 * to come: it may jump on into another one.
		 */
		if (l->state == LEVEL_INTERNAL || (l->flags & CALL_DELEGATES && l->old == ev.addr &&
						   !(p->flags & (CALL_DELEGATES | CALL_RETURNS))))
			t->nr--;
		return;
	}
	ev.h.fn = p->fn;
	if (p->kind == CALL_MUNMAP) {
		ev.h.flags = EVENT_UNMAP;
		ev.size = argument(c, p->size_arg);
	} else if (ev.addr == t->last_alloc) {
		ev.h.flags = EVENT_TEMPORARY;
	}
	t->last_alloc = 0;
	if (c->has_free_stacks)
		ev.stack = c->take_stack(c->ctx);
	c->send(c->ctx, &ev);
	if (p->flags & (CALL_DELEGATES | CALL_RETURNS)) {
		l = push_level(c, p->flags, sp, ret);
		l->old = ev.addr;
		l->state = LEVEL_TOLD;
	}
}

void inflight_internal_call(const struct inflight_call *c)
{
	u64 sp = stack_pointer(c);
	struct inflight_level *l;

	if (!probe_of(c, c->probe))
		return;
	drop_stale(c, sp);
	l = push_level(c, 0, c->cpu->has_link ? sp : sp - c->cpu->word_size, 0);
	l->state = LEVEL_INTERNAL;
}

void inflight_end(const struct inflight_call *c)
{
	for (u32 i = 0; i < c->thread->nr; i++)
		abandon(c, &c->thread->levels[i]);
	c->thread->nr = 0;
}
