/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has the calls that are under way in a target return to the program again, and not to the piece. */
#include <errno.h>
#include <stdlib.h>

#include "inline/cpu.h"
#include "user/inject/process_private.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"

enum {
	MAX_FRAME = 64 << 10, /* bytes below its caller's frame where a function keeps its return address */
	PAGE_WORDS = PIECE_PAGE / sizeof(u64),
	STACK_WORDS = MAX_FRAME / sizeof(u64),
	NO_LIST = UINT32_MAX,
};

/* A call under way, on a CPU with a link register: where its return address is, only the function knows. */
struct linked_call {
	u64 sp, ret;
	u32 list; /* the place of its thread; of two calls with the same one, the later one is further on */
	bool is_led_to; /* the address that leads to its end was found */
};

/* The search for return addresses. */
struct returns {
	const struct injection *in;
	const struct code_cpu *cpu;
	int mem;
	bool is_dry;		   /* nothing is changed */
	struct linked_call *calls; /* owned */
	size_t nr, max;
	struct inject_link *links; /* borrowed; of all threads */
	size_t nr_links;
};

/*
 * Is the thread in a hook? A jump may have left it, and then something else is in place of its registers. (With a link
 * register they have no word that tells.)
 */
static bool is_in_hook(const struct returns *r, const struct piece_thread *t)
{
	const struct injection *in = r->in;
	u64 stub;

	if (!t->hook || r->cpu->has_link ||
	    inject_read(r->mem, t->hook + offsetof(struct piece_regs, stub), &stub, sizeof(stub)))
		return t->hook;
	for (u32 i = 0; i < in->nr_islands; i++)
		if (stub - in->islands[i].start < in->islands[i].bytes)
			return true;
	return stub == in->returned;
}

typedef int see_thread(struct returns *r, const struct piece_thread *t, u32 at);

/* Have @see see all threads that have calls. -EAGAIN: one is in a hook, or what it returned. -EBUSY only at the end. */
static int each_thread(struct returns *r, see_thread *see)
{
	const taddr_t table = r->in->region + PIECE_KEYS_OFFSET,
		      places = r->in->region + PIECE_PLACES_OFFSET + offsetof(struct piece_place, thread);
	auto_free struct piece_key *keys = malloc(PIECE_MAX_THREADS * sizeof(*keys));
	auto_free struct piece_thread *t = malloc(sizeof(*t));
	int err = 0, ret;

	if (!keys || !t || inject_read(r->mem, table, keys, PIECE_MAX_THREADS * sizeof(*keys)))
		return -EAGAIN;
	for (u32 i = 0; i < PIECE_MAX_THREADS; i++) {
		if (!inject_is_key(&keys[i], r->in))
			continue;
		if (inject_read(r->mem, places + keys[i].nr * sizeof(struct piece_place), t, sizeof(*t)))
			return -EAGAIN;
		if (r->is_dry && is_in_hook(r, t))
			return -EAGAIN;
		ret = see(r, t, i);
		if (ret && ret != -EBUSY)
			return ret;
		err = ret ? ret : err;
	}
	return err;
}

static u32 nr_pending(const struct piece_thread *t)
{
	return t->nr_pending < PIECE_MAX_PENDING ? t->nr_pending : PIECE_MAX_PENDING;
}

/* ---- return addresses on the stack: each one is where the call began ---- */

static int restore_on_stack(struct returns *r, const struct piece_thread *t, u32 at)
{
	int err = 0;

	(void)at;
	/* The latest call at a place is the one whose address is there. */
	for (u32 i = r->is_dry ? 0 : nr_pending(t); i-- > 0;) {
		const struct piece_pending *p = &t->pending[i];
		u64 now;

		if (p->ret == r->in->returned || inject_read(r->mem, p->sp, &now, sizeof(now)) ||
		    now != r->in->returned)
			continue;
		if (inject_write(r->mem, p->sp, &p->ret, sizeof(p->ret)))
			err = -EBUSY;
	}
	return err;
}

/* ---- return addresses in a link register, or where a function has saved it ---- */

/* A call that began by a jump of another one returns by that one's address. */
static int list_calls(struct returns *r, const struct piece_thread *t, u32 at)
{
	u32 nr = nr_pending(t);

	if (array_reserve(r->calls, r->max, r->nr + nr))
		return -EAGAIN;
	for (u32 i = 0; i < nr; i++)
		if (t->pending[i].sp && t->pending[i].ret != r->in->returned)
			r->calls[r->nr++] = (struct linked_call){ .sp = t->pending[i].sp,
								  .ret = t->pending[i].ret,
								  .list = at };
	return 0;
}

/*
 * The call that a return address leads to which was found while the stack pointer was @sp, or below: of the calls that
 * began at @sp or above, the latest one of its thread. A thread that is further away has another stack.
 */
static struct linked_call *call_at(const struct returns *r, u64 sp)
{
	struct linked_call *best = NULL;
	u32 seen = NO_LIST;

	for (size_t i = r->nr; i-- > 0;) {
		struct linked_call *c = &r->calls[i];

		if (c->list == seen || c->sp - sp > MAX_FRAME)
			continue;
		seen = c->list;
		if (!best || c->sp < best->sp)
			best = c;
	}
	return best;
}

/* @word, which was found while the stack pointer was @sp. 1: it becomes *@ret; 0: it leads to no call; or -EAGAIN. */
static int see_word(const struct returns *r, u64 word, u64 sp, u64 *ret)
{
	struct linked_call *c;

	if ((word & r->cpu->address_mask) != r->in->returned)
		return 0;
	c = call_at(r, sp);
	if (!c)
		return 0;
	/* The CPU has signed it for the function, and only the CPU can do that. */
	if (word != r->in->returned)
		return -EAGAIN;
	c->is_led_to = true;
	*ret = c->ret;
	return 1;
}

/* A word at @at of a stack. */
static int see_memory(const struct returns *r, u64 at, u64 word, u64 sp)
{
	u64 ret;
	int is = see_word(r, word, sp, &ret);

	if (is <= 0 || r->is_dry)
		return is < 0 ? is : 0;
	return inject_write(r->mem, at, &ret, sizeof(ret)) ? -EBUSY : 0;
}

/* The stack pointer of the thread of @c: the next one below. 0: its thread is on another stack (a signal handler). */
static u64 process_returns_stack_of(const struct returns *r, const struct linked_call *c)
{
	u64 best = 0;

	for (size_t i = 0; i < r->nr_links; i++)
		if (c->sp - r->links[i].sp <= MAX_FRAME && r->links[i].sp > best)
			best = r->links[i].sp;
	return best;
}

/* See the words of the stack in [@low, @high), the upper ones first, which are there. */
static int see_words(const struct returns *r, u64 low, u64 high)
{
	u64 words[PAGE_WORDS];
	int err = 0;

	while (high > low && !err) {
		u64 page = (high - 1) & ~(u64)(PIECE_PAGE - 1), from = page > low ? page : low;

		if (inject_read(r->mem, from, words, high - from))
			break;
		for (u64 i = 0; i < (high - from) / sizeof(u64) && !err; i++)
			err = see_memory(r, from + i * sizeof(u64), words[i], from + (i + 1) * sizeof(u64));
		high = from;
	}
	return err;
}

/* Read the stack at @sp. Returns the number of words. */
static size_t process_returns_read_words(int mem, u64 sp, u64 *stack)
{
	size_t nr = 0;

	while (nr + PAGE_WORDS <= STACK_WORDS) {
		u64 at = sp + nr * sizeof(u64), len = PIECE_PAGE - at % PIECE_PAGE;

		if (inject_read(mem, at, stack + nr, len))
			break;
		nr += len / sizeof(u64);
	}
	return nr;
}

/* See the link registers of calls that signal handlers have interrupted, on whatever stack those run. */
static int see_signals(const struct returns *r)
{
	auto_free u64 *stack = malloc(STACK_WORDS * sizeof(*stack));
	const struct code_cpu *cpu = r->cpu;
	int err = stack ? 0 : -EAGAIN;

	for (size_t t = 0; t < r->nr_links && !err; t++) {
		u64 sp = r->links[t].sp & ~7ULL;
		size_t nr = process_returns_read_words(r->mem, sp, stack);

		for (size_t i = 2; i + cpu->nr_pc_words < nr && !err; i++)
			if (cpu->is_saved_pc(stack + i))
				err = see_memory(r, sp + (i + cpu->saved_link) * sizeof(u64),
						 stack[i + cpu->saved_link], stack[i + cpu->saved_sp]);
	}
	return err;
}

static int see_registers(const struct returns *r)
{
	for (size_t i = 0; i < r->nr_links; i++) {
		struct inject_link *l = &r->links[i];
		u64 ret;
		int is = see_word(r, l->value, l->sp, &ret);

		if (is < 0)
			return is;
		if (is && !r->is_dry) {
			l->value = ret;
			l->is_changed = true;
		}
	}
	return 0;
}

static int see_links(struct returns *r)
{
	bool is_sure = true;
	int err = see_registers(r);

	for (size_t i = 0; i < r->nr && !err; i++) {
		u64 sp = process_returns_stack_of(r, &r->calls[i]);

		is_sure &= sp != 0;
		err = see_words(r, sp ? (sp + 7) & ~7ULL : r->calls[i].sp - MAX_FRAME, r->calls[i].sp);
		is_sure &= r->calls[i].is_led_to;
	}
	if (!err && !is_sure)
		err = see_signals(r);
	for (size_t i = 0; i < r->nr && !err; i++)
		if (!r->calls[i].is_led_to)
			err = -EAGAIN;
	return err;
}

int inject_restore_links(const struct injection *in, const struct code_cpu *cpu, int mem,
			 struct inject_link *links, size_t nr, bool is_dry)
{
	struct returns r = { in, cpu, mem, is_dry, .links = links, .nr_links = nr };
	int err = each_thread(&r, list_calls);

	if (!err)
		err = see_links(&r);
	free(r.calls);
	return err;
}

/* ---- both ---- */

static int read_links(struct inject_link *links, const struct stopped *s)
{
	const struct cpu *cpu;
	struct cpu_regs regs;

	for (size_t i = 0; i < s->all.nr; i++) {
		if (threads_all_regs(s, &s->all.threads[i], &cpu, &regs))
			return -EAGAIN;
		links[i] = (struct inject_link){ .sp = cpu_get(cpu, &regs, CPU_SP),
						 .value = cpu_get(cpu, &regs, CPU_LINK) };
	}
	return 0;
}

int inject_restore_returns(const struct injection *in, struct stopped *s, int mem, bool is_dry)
{
	const struct code_cpu *cpu = code_native();
	struct returns r = { in, cpu, mem, is_dry };
	auto_free struct inject_link *links = NULL;
	int err;

	if (!in->returned)
		return 0;
	if (!cpu->has_link)
		return each_thread(&r, restore_on_stack);
	links = calloc(s->all.nr + 1, sizeof(*links));
	err = links ? read_links(links, s) : -EAGAIN;
	if (!err)
		err = inject_restore_links(in, cpu, mem, links, s->all.nr, is_dry);
	for (size_t i = 0; i < s->all.nr && !err; i++)
		if (links[i].is_changed && threads_set_link(s, &s->all.threads[i], links[i].value))
			err = -EBUSY;
	return err;
}
