/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code that runs inside a target, at the entries and ends of its allocator functions: calls become records in rings
 * that heaptap reads. It makes no system call, calls no library, and touches no vector register.
 */
#include "inline/shape.h"
#include "inline/wait.h"

/* Events are in registers until they are written. */
#define LIFE_STEP static inline __attribute__((always_inline))
#include "call/life.h"

/* A thread in a hook. */
struct hook {
	u64 sp, ip, ret;
	const struct piece_regs *regs;
	struct piece_ring *ring;
	struct piece_walk *walk;
	bool has_room;	 /* in the ring for a record: no wait */
	bool has_stacks; /* allocations have one */
};

/* struct call is never defined: it stands for struct hook. */
static const struct call *call_of(const struct hook *h)
{
	return (const struct call *)h;
}

static const struct hook *hook_of(const struct call *c)
{
	return (const struct hook *)c;
}

/* The compiler makes calls of these. */
void *memset(void *to, int value, size_t len)
{
	fill_bytes(to, value, len);
	return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
	copy_bytes(to, from, len);
	return to;
}

/* ---- the adaptor of call/life.h ---- */

static u64 call_sp(const struct call *c)
{
	return hook_of(c)->sp;
}

static u64 call_ip(const struct call *c)
{
	return hook_of(c)->ip;
}

static u64 call_return_address(const struct call *c, const struct call_probe *p)
{
	(void)p;
	return hook_of(c)->ret;
}

static u64 call_arg(const struct call *c, const struct call_probe *p, u8 n)
{
	(void)p;
	return regs_arg(hook_of(c)->regs, n);
}

static u64 call_result(const struct call *c, const struct call_probe *p)
{
	(void)p;
	return regs_result(hook_of(c)->regs);
}

static u64 call_sp_inside(const struct call *c, const struct call_probe *p)
{
	(void)p;
	return hook_of(c)->sp;
}

/* Only a call that was successful has its result read, from where the function itself has written it. */
static u64 call_read_word(const struct call *c, const struct call_probe *p, u64 addr)
{
	(void)c;
	(void)p;
	return *(const u64 *)(uintptr_t)addr;
}

static bool call_has_trampolines(const struct call *c)
{
	(void)c;
	return true;
}

static bool call_is_trampoline(const struct call *c, u64 ret)
{
	(void)c;
	return ret == (u64)(uintptr_t)piece_returned;
}

static const struct call_probe *call_probe_at(const struct call *c, u32 index)
{
	(void)c;
	return index < PIECE_MAX_PROBES ? &shared()->probes[index].call : NULL;
}

static inline __attribute__((always_inline)) bool call_send(const struct call *c, const struct inflight *t,
							    const struct heap_event *ev)
{
	struct piece_ring *r = hook_of(c)->ring;
	u64 written = r->written;
	struct piece_record *rec = &r->records[written % PIECE_RING_RECORDS];

	(void)t;
	/* A call after the end of the trace is no loss. */
	if (!hook_of(c)->has_room && !has_room(r, 1))
		return !is_on();
	/* First, because a number of the sequence would wait for all that was written before. */
	rec->stamp = next_stamp();
	rec->kind = ev->h.kind;
	rec->flags = ev->h.flags;
	rec->fn = ev->h.fn;
	rec->reserved = 0;
	rec->addr = ev->addr;
	rec->old_addr = ev->old_addr;
	rec->size = ev->size;
	rec->stack = ev->stack;
	__atomic_store_n(&r->written, written + 1, __ATOMIC_RELEASE);
	fetch_ahead(r, written + 1);
	return true;
}

static u64 call_take_stack(const struct call *c, const struct inflight *t, const struct call_probe *p,
			   u32 how)
{
	const struct hook *h = hook_of(c);
	u64 id;

	(void)t;
	(void)p;
	(void)how;
	if (!h->has_stacks)
		return STACK_NONE;
	id = piece_take_stack(h->walk, h->ring, h->sp, regs_fp(h->regs), h->ret);
	/* After the end of the trace there is no room for a stack, and no call that needs it. */
	if (id == STACK_LOST && is_on())
		h->ring->lost_stacks++;
	return id;
}

static void call_count_loss(const struct call *c, const struct inflight *t, enum call_loss loss)
{
	(void)t;
	if (loss == CALL_LOSS_ALLOC)
		hook_of(c)->ring->lost_allocs++;
	else if (loss == CALL_LOSS_FREE)
		hook_of(c)->ring->lost_frees++;
	else
		hook_of(c)->ring->abandoned++;
}

/* The thread in @place, with the ring @r, is in a hook of a call whose stack pointer at entry was @sp. */
static inline __attribute__((always_inline)) void hook_begin(struct hook *h, struct piece_place *place,
							     struct piece_ring *r,
							     const struct piece_regs *regs, u64 sp, u64 ip)
{
	h->sp = sp;
	h->ip = ip;
	h->ret = CODE_ADDRESS(regs->ret);
	h->regs = regs;
	h->ring = r;
	h->walk = &place->walk;
	h->has_room = false;
	h->has_stacks = false;
}

/* ---- threads ---- */

enum { NO_THREAD = PIECE_MAX_THREADS };

/* Where in the table the search for @key begins. */
static u32 first_slot(u64 key)
{
	_Static_assert(PIECE_MAX_THREADS == 1 << 13, "bits of the hash");
	return (u32)(key * 0x9e3779b97f4a7c15 >> 51);
}

/* Wait until more than @nr places are mapped, but not for ever. False: there are no more for now. */
static bool wait_for_place(u32 nr)
{
	struct piece_shared *s = shared();
	struct piece_wait w = wait_begin();
	bool is_there;

	do
		is_there = __atomic_load_n(&s->nr_places, __ATOMIC_ACQUIRE) > nr;
	while (!is_there && !s->is_full && wait_goes_on(&w));
	wait_end(&w);
	if (w.is_over)
		s->is_dropping = 1;
	return is_there;
}

/* Take a place that no thread has, and no thread will have later. NO_THREAD: there is none. */
static u32 take_place(u64 key)
{
	struct piece_shared *s = shared();
	u32 nr = __atomic_load_n(&s->nr_used, __ATOMIC_RELAXED);

	do
		if (nr >= PIECE_MAX_THREADS || !wait_for_place(nr))
			return NO_THREAD;
	while (!__atomic_compare_exchange_n(&s->nr_used, &nr, nr + 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST));
	place_at(nr)->thread.key = key;
	/* Before the thread is known: from then on a signal handler of it may have calls. */
	sequence_join(&s->sequence);
	return nr;
}

/* Write @key to @slot, which is free. False: another thread was first, and *@seen is what it has written. */
static bool claim(struct piece_key *slot, u64 key, u32 place, u64 *seen)
{
	*seen = 0;
	if (!__atomic_compare_exchange_n(&slot->key, seen, PIECE_CLAIMED, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return false;
	slot->nr = place;
	slot->place = (u64)(uintptr_t)place_at(place);
	slot->ring = (u64)(uintptr_t)&shared()->rings[place];
	__atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
	return true;
}

/*
 * The place of the thread with @key; NO_THREAD if it has none, and @is_new false or no room left. A signal handler of
 * the thread may take one while the thread does: then the thread has two, and one is of no use.
 */
static __attribute__((noinline)) u32 find_thread(u64 key, bool is_new)
{
	struct piece_key *keys = private()->keys;
	u32 at = first_slot(key), place = NO_THREAD;

	for (u32 i = 0; i < PIECE_MAX_THREADS; i++, at = (at + 1) % PIECE_MAX_THREADS) {
		u64 seen = __atomic_load_n(&keys[at].key, __ATOMIC_ACQUIRE);

		if (!seen) {
			if (is_new && place == NO_THREAD)
				place = take_place(key);
			if (place == NO_THREAD || claim(&keys[at], key, place, &seen))
				return place;
		}
		if (seen == key)
			return (u32)keys[at].nr;
	}
	return NO_THREAD;
}

/* The thread pointer names the thread. Bit 0 keeps the key from being 0. */
static u64 thread_key(void)
{
	return thread_pointer() | 1;
}

/* As thread_begin(), of the thread @base with @key that is in @nr hooks already. */
static __attribute__((noinline)) u32 begin_nested(struct piece_thread *base, u64 key, u32 nr, bool is_new)
{
	u32 at;

	if (nr > PIECE_MAX_NESTED)
		return NO_THREAD;
	base->nr_active = nr + 1;
	asm volatile("" : : : "memory");
	at = find_thread(key + 2 * nr, is_new);
	if (at == NO_THREAD)
		base->nr_active = nr;
	return at;
}

/*
 * The state of this thread: a state of its own for a hook that runs in a signal handler while the thread is inside
 * another hook. Such a hook is over before the other one goes on.
 */
static inline u32 thread_begin(struct piece_thread **base, bool is_new)
{
	u64 key = thread_key();
	const struct piece_key *slot = &private()->keys[first_slot(key)];
	u32 at = __atomic_load_n(&slot->key, __ATOMIC_ACQUIRE) == key ? (u32)slot->nr
								      : find_thread(key, is_new);

	if (at == NO_THREAD)
		return at;
	*base = &place_at(at)->thread;
	if ((*base)->nr_active)
		return begin_nested(*base, key, (*base)->nr_active, is_new);
	(*base)->nr_active = 1;
	asm volatile("" : : : "memory");
	return at;
}

static void thread_end(struct piece_thread *base)
{
	asm volatile("" : : : "memory");
	base->nr_active--;
}

/* ---- return addresses ---- */

/* Have the call return to the piece. It is the call @nr, from 0, of the thread that does. */
static inline void push_pending(struct piece_thread *t, u32 nr, struct piece_regs *regs, u64 sp, u32 probe)
{
	t->pending[nr] = (struct piece_pending){ .sp = sp, .ret = regs->ret, .probe = probe };
	asm volatile("" : : : "memory");
	t->nr_pending = nr + 1;
	asm volatile("" : : : "memory");
	regs->ret = (u64)(uintptr_t)piece_returned;
}

/*
 * Have the call return to the piece. A call that this one proves to have ended, because its return address takes the
 * place of that one's, is forgotten. A call further down the stack seems to have ended, too, but a signal handler may
 * have a stack above the call that it interrupts: such a call is forgotten only when there is no room. False if there
 * are too many that may not have ended.
 */
static bool replace_return(struct piece_thread *t, struct piece_regs *regs, u64 sp, u32 probe)
{
	u64 ours = (u64)(uintptr_t)piece_returned;
	bool is_jump = regs->ret == ours;
	struct piece_pending *p;

	while (t->nr_pending) {
		p = &t->pending[t->nr_pending - 1];
		if (p->sp > sp || (p->sp == sp && is_jump) || (p->sp && sp - p->sp > SAME_STACK_BYTES))
			break;
		if (p->sp && p->sp != sp && t->nr_pending < PIECE_MAX_PENDING)
			break;
		t->nr_pending--;
	}
	if (t->nr_pending == PIECE_MAX_PENDING)
		return false;
	push_pending(t, t->nr_pending, regs, sp, probe);
	return true;
}

/*
 * Take the latest call that was entered at @sp. False if @t has none. Later calls stay: they may be on other stacks of
 * the thread, between which the program switched in the middle of an allocator.
 */
static bool take_pending(struct piece_thread *t, u64 sp, struct piece_pending *out)
{
	for (u32 i = t->nr_pending; i-- > 0;) {
		if (i >= PIECE_MAX_PENDING || t->pending[i].sp != sp)
			continue;
		*out = t->pending[i];
		for (; i + 1 < t->nr_pending && i + 1 < PIECE_MAX_PENDING; i++)
			t->pending[i] = t->pending[i + 1];
		t->nr_pending = i;
		return true;
	}
	return false;
}

/* As take_pending(), of a thread that may change its list meanwhile: a place without a stack pointer is empty. */
static bool take_others_pending(struct piece_thread *t, u64 sp, struct piece_pending *out)
{
	for (u32 i = PIECE_MAX_PENDING; i-- > 0;) {
		struct piece_pending *p = &t->pending[i];
		u64 seen = sp;

		if (i >= t->nr_pending || __atomic_load_n(&p->sp, __ATOMIC_ACQUIRE) != sp)
			continue;
		*out = *p;
		if (__atomic_compare_exchange_n(&p->sp, &seen, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return true;
	}
	return false;
}

/* The thread pointer, or the number of active hooks, is not the one of the entry: look at all threads. */
static void take_pending_anywhere(u64 sp, struct piece_pending *out)
{
	enum { LOOKS = 100 };
	const struct piece_key *keys = private()->keys;

	for (u32 i = 0; i < LOOKS * PIECE_MAX_THREADS; i++) {
		const struct piece_key *k = &keys[i % PIECE_MAX_THREADS];

		if (k->key && k->key != PIECE_CLAIMED &&
		    take_others_pending(&place_at((u32)k->nr)->thread, sp, out))
			return;
	}
	__builtin_trap();
}

/* A call of an interrupted hook has a state of its own. */
u64 piece_real_return(u64 sp)
{
	u64 key = thread_key(), ours = (u64)(uintptr_t)piece_returned;

	for (u32 nested = 0; nested <= PIECE_MAX_NESTED; nested++) {
		u32 at = find_thread(key + 2 * nested, false);
		const struct piece_thread *t = at == NO_THREAD ? NULL : &place_at(at)->thread;

		for (u32 i = t ? t->nr_pending : 0; i-- > 0;)
			if (i < PIECE_MAX_PENDING && t->pending[i].sp == sp && t->pending[i].ret != ours)
				return t->pending[i].ret;
	}
	return 0;
}

/* ---- most calls ---- */

/*
 * This thread, which is in the hook @h from now on, if it is known and in no other one, and its ring has room, else
 * NULL.
 */
static inline __attribute__((always_inline)) struct piece_thread *
plain_begin(struct hook *h, const struct piece_regs *regs, u64 sp, u64 ip)
{
	u64 key = thread_key();
	const struct piece_key *slot = &private()->keys[first_slot(key)];
	struct piece_place *place;
	struct piece_ring *r;

	if (__atomic_load_n(&slot->key, __ATOMIC_ACQUIRE) != key)
		return NULL;
	place = (struct piece_place *)(uintptr_t)slot->place;
	r = (struct piece_ring *)(uintptr_t)slot->ring;
	if (place->thread.nr_active || !has_room_now(r, 1))
		return NULL;
	place->thread.nr_active = 1;
	asm volatile("" : : : "memory");
	hook_begin(h, place, r, regs, sp, ip);
	h->has_room = true;
	return &place->thread;
}

/*
 * A function of this shape is entered, called by the only request of the thread: a malloc by an operator new, a free or
 * another operator by an operator delete. False, with nothing done, if it is another call.
 */
static inline __attribute__((always_inline)) bool enter_inner(const struct hook *h, struct piece_thread *t,
							      struct piece_regs *regs, u32 index,
							      enum piece_shape shape)
{
	const struct call_probe *probe = &piece_shapes[shape];
	struct inflight_level *l = &t->calls.levels[0];
	u64 outer = shared()->probes[l->probe % PIECE_MAX_PROBES].shape;

	if (t->calls.nr != 1 || t->calls.nr_held || l->nr_inner || shape == SHAPE_NEW ||
	    !life_is_nested(call_of(h), l, h->sp, h->ret, index))
		return false;
	if (shape == SHAPE_MALLOC) {
		if (outer != SHAPE_NEW || l->state != LEVEL_BUSY || t->nr_pending)
			return false;
		life_note_inner(l, h->sp, h->ip, h->ret, index);
		push_pending(t, 0, regs, h->sp, index);
		return true;
	}
	if ((outer != SHAPE_DELETE && outer != SHAPE_SIZED_DELETE) ||
	    l->old != call_arg(call_of(h), probe, 1))
		return false;
	if (shape == SHAPE_FREE)
		t->calls.nr = 0;
	else
		life_note_inner(l, h->sp, h->ip, h->ret, index);
	return true;
}

/*
 * A function of this shape is entered. False, with nothing done, if it is no call by the program itself, nor as above.
 * The shape is a constant wherever this is called.
 */
static inline __attribute__((always_inline)) bool enter_plain(struct piece_regs *regs, u32 index,
							      const struct piece_probe *p,
							      enum piece_shape shape, bool has_stacks)
{
	struct call_probe probe = piece_shapes[shape];
	bool is_done, returns = probe.flags & PROBE_AT_RETURN;
	struct hook h;
	struct piece_thread *t = plain_begin(&h, regs, regs_entry_sp(regs), p->ip);

	if (!t)
		return false;
	is_done = !t->calls.nr && (!returns || !t->nr_pending);
	if (t->calls.nr) {
		is_done = enter_inner(&h, t, regs, index, shape);
	} else if (is_done) {
		probe.fn = p->call.fn;
		h.has_stacks = has_stacks;
		if (probe.kind == ALLOC_FREE)
			life_enter_free(call_of(&h), &t->calls, index, &probe, 0);
		else
			life_enter_alloc(call_of(&h), &t->calls, index, &probe, 1);
		if (returns)
			push_pending(t, 0, regs, h.sp, index);
	}
	thread_end(t);
	return is_done;
}

/* The compiler must not read bytes together that were written one by one: the CPU would wait for all its writes. */
static inline u8 read_byte(const u8 *byte)
{
	return __atomic_load_n(byte, __ATOMIC_RELAXED);
}

/*
 * A malloc returns, and with it ends @l, the only request of the thread. @p and @shape are those of the request: this
 * malloc, or the operator new that has called it. The steps are those of life_leave().
 */
static inline __attribute__((always_inline)) void finish_plain(const struct hook *h, struct piece_thread *t,
							       struct inflight_level *l,
							       const struct piece_probe *p,
							       enum piece_shape shape)
{
	struct call_probe probe = piece_shapes[shape];
	u64 addr = life_block(call_of(h), &piece_shapes[SHAPE_MALLOC], l);

	probe.fn = p->call.fn;
	t->nr_pending = 0;
	t->calls.nr = addr || shape == SHAPE_MALLOC ? 0 : 1;
	life_finish(call_of(h), &t->calls, l, &probe, addr);
}

/* A call returns. Where to, if it is a malloc as above; 0, with nothing done, if it is another call. */
static inline __attribute__((always_inline)) u64 leave_plain(const struct piece_regs *regs, u64 sp)
{
	const struct piece_pending *pending;
	const struct piece_probe *p, *outer;
	struct inflight_level *l;
	struct hook h;
	struct piece_thread *t = plain_begin(&h, regs, sp, 0);
	u64 ret = 0;

	if (!t)
		return 0;
	pending = &t->pending[0];
	l = &t->calls.levels[0];
	p = &shared()->probes[pending->probe % PIECE_MAX_PROBES];
	outer = &shared()->probes[l->probe % PIECE_MAX_PROBES];
	if (t->nr_pending == 1 && t->calls.nr == 1 && !t->calls.nr_held && pending->sp == sp &&
	    pending->ret != (u64)(uintptr_t)piece_returned && p->shape == SHAPE_MALLOC &&
	    !read_byte(&l->keeper) && read_byte(&l->state) == LEVEL_BUSY) {
		if (l->sp == sp && l->probe == pending->probe) {
			ret = pending->ret;
			finish_plain(&h, t, l, p, SHAPE_MALLOC);
		} else if (outer->shape == SHAPE_NEW && l->nr_inner == 1 &&
			   life_is_inner(l, sp, (u32)pending->probe)) {
			ret = pending->ret;
			finish_plain(&h, t, l, outer, SHAPE_NEW);
		}
	}
	thread_end(t);
	return ret;
}

/* ---- hooks ---- */

static bool is_seen(void)
{
	return is_on() && !shared()->is_paused;
}

static void count_lost_thread(void)
{
	__atomic_fetch_add(&shared()->lost_threads, 1, __ATOMIC_RELAXED);
}

static void enter(struct piece_thread *t, const struct hook *h, u32 index, const struct piece_probe *p,
		  u32 kind)
{
	const struct call *c = call_of(h);

	if (kind == PIECE_INTERNAL_CALL)
		life_internal_call(c, &t->calls, index, &p->call);
	else if (kind == PIECE_RET)
		life_leave(c, &t->calls, index, &p->call, h->sp);
	else if (kind == PIECE_FREE)
		life_enter_free(c, &t->calls, index, &p->call, shared()->has_free_stacks);
	else
		life_enter_alloc(c, &t->calls, index, &p->call, 1);
}

/* Returns as piece_enter(). */
static __attribute__((noinline)) bool enter_any(struct piece_regs *regs, u32 index, u32 kind,
						const struct piece_probe *p)
{
	bool was_ours = regs->ret == (u64)(uintptr_t)piece_returned;
	struct piece_thread *base = NULL, *t;
	u32 at = thread_begin(&base, true);
	struct hook h;

	if (at == NO_THREAD) {
		count_lost_thread();
		return false;
	}
	t = &place_at(at)->thread;
	hook_begin(&h, place_at(at), &shared()->rings[at], regs, regs_entry_sp(regs), p->ip);
	h.has_stacks = shared()->depth;
	enter(t, &h, index, p, kind);
	/* A function that throws would have its unwinder meet our address: its end is seen at its ret instructions. */
	if (kind <= PIECE_FREE && p->call.flags & PROBE_AT_RETURN && !replace_return(t, regs, h.sp, index))
		call_count_loss(call_of(&h), NULL, kind == PIECE_FREE ? CALL_LOSS_FREE : CALL_LOSS_ALLOC);
	thread_end(base);
	return !was_ours && regs->ret == (u64)(uintptr_t)piece_returned;
}

/* An allocation with a stack. Returns as piece_enter(). */
static __attribute__((noinline)) bool enter_with_stack(struct piece_regs *regs, u32 index,
						       const struct piece_probe *p)
{
	if (p->shape == SHAPE_MALLOC && enter_plain(regs, index, p, SHAPE_MALLOC, true))
		return true;
	if (p->shape == SHAPE_NEW && enter_plain(regs, index, p, SHAPE_NEW, true))
		return false;
	return enter_any(regs, index, PIECE_ALLOC, p);
}

/* Does it take a release without a stack? */
static inline __attribute__((always_inline)) bool enter_release(struct piece_regs *regs, u32 index,
								const struct piece_probe *p)
{
	if (p->shape == SHAPE_FREE)
		return enter_plain(regs, index, p, SHAPE_FREE, false);
	if (p->shape == SHAPE_DELETE)
		return enter_plain(regs, index, p, SHAPE_DELETE, false);
	return p->shape == SHAPE_SIZED_DELETE && enter_plain(regs, index, p, SHAPE_SIZED_DELETE, false);
}

/*
 * A function is entered, or is about to return, or the C library calls free for itself. Whatever is called from here is
 * called last: so most calls need no stack frame here.
 */
bool piece_enter(struct piece_regs *regs)
{
	u32 index = (u32)regs->index % PIECE_MAX_PROBES, kind = (u32)regs->index >> PIECE_KIND_SHIFT;
	const struct piece_probe *p = &shared()->probes[index];

	if (!is_seen())
		return false;
	if (kind == PIECE_ALLOC) {
		if (shared()->depth)
			return enter_with_stack(regs, index, p);
		if (p->shape == SHAPE_MALLOC && enter_plain(regs, index, p, SHAPE_MALLOC, false))
			return true;
		if (p->shape == SHAPE_NEW && enter_plain(regs, index, p, SHAPE_NEW, false))
			return false;
	} else if (kind == PIECE_FREE && !shared()->has_free_stacks && enter_release(regs, index, p)) {
		return false;
	}
	return enter_any(regs, index, kind, p);
}

static void leave(u32 at, const struct piece_pending *pending, const struct piece_regs *regs)
{
	struct piece_shared *s = shared();
	u32 probe = (u32)pending->probe % PIECE_MAX_PROBES;
	const struct piece_probe *p = &s->probes[probe];
	struct hook h;

	hook_begin(&h, place_at(at), &s->rings[at], regs, pending->sp, p->ip);
	life_leave(call_of(&h), &place_at(at)->thread.calls, probe, &p->call, h.sp);
}

static __attribute__((noinline)) u64 leave_any(const struct piece_regs *regs, u64 sp, bool is_traced)
{
	struct piece_pending p;
	struct piece_thread *base = NULL;
	u64 ret;
	u32 at = thread_begin(&base, is_traced);

	do {
		if (at == NO_THREAD || !take_pending(&place_at(at)->thread, sp, &p))
			take_pending_anywhere(sp, &p);
		ret = p.ret;
		if (is_traced && at != NO_THREAD)
			leave(at, &p, regs);
	} while (ret == (u64)(uintptr_t)piece_returned);
	if (at != NO_THREAD)
		thread_end(base);
	return ret;
}

/* A call has returned. The result is where it returns to. */
u64 piece_leave(const struct piece_regs *regs)
{
	u64 sp = regs_returned_sp(regs);
	bool is_traced = is_seen();
	u64 ret = is_traced ? leave_plain(regs, sp) : 0;

	return ret ? ret : leave_any(regs, sp, is_traced);
}
