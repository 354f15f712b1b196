/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code that runs inside a target, at the entries and ends of its allocator functions: calls become records in rings
 * that heaptap reads. It makes no system call, calls no library, and touches no vector register.
 */
#include "inline/renew.h"
#include "inline/sample_choice.h"
#include "inline/shape.h"
#include "inline/wish.h"

/* Events are in registers until they are written. */
#define LIFE_STEP static inline __attribute__((always_inline))
#include "call/life.h"

/* struct call is never defined: it stands for struct piece_hook. */
static const struct call *piece_call_of(const struct piece_hook *h)
{
	return (const struct call *)h;
}

static const struct piece_hook *hook_of(const struct call *c)
{
	return (const struct piece_hook *)c;
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
	return index < PIECE_MAX_PROBES ? &region_shared()->probes[index].call : NULL;
}

static inline __attribute__((always_inline)) bool call_send(const struct call *c, const struct inflight *t,
							    const struct heap_event *ev)
{
	struct piece_ring *r = hook_of(c)->ring;
	u64 written = r->written;
	struct piece_record *rec = &r->records[written % PIECE_RING_RECORDS];

	(void)t;
	if ((ev->h.kind == EVENT_ALLOC || ev->h.kind == EVENT_REALLOC_END) && region_shared()->sample_bytes &&
	    !note_sampled(ev))
		return false;
	__atomic_store_n(&r->is_telling, 1, __ATOMIC_RELAXED);
	/* A call after the end of the trace is no loss. */
	if (!hook_of(c)->has_room && !has_room(r, 1)) {
		__atomic_store_n(&r->is_telling, 0, __ATOMIC_RELAXED);
		return !is_on();
	}
	/* First, because a number of the sequence would wait for all that was written before. */
	rec->stamp = next_stamp();
	rec->kind = ev->h.kind;
	rec->flags = ev->h.flags;
	rec->fn = ev->h.fn;
	rec->distance = ev->h.distance;
	rec->addr = ev->addr;
	rec->old_addr = ev->old_addr;
	rec->size = ev->size;
	rec->stack = ev->stack;
	ring_add(r, 1);
	__atomic_store_n(&r->is_telling, 0, __ATOMIC_RELAXED);
	fetch_ahead(r, written + 1);
	/* Of a call that takes the long way. */
	if (!hook_of(c)->has_room && region_shared()->wish.call.pid)
		wish_meet(r, ev->h.kind, ev->h.fn, ev->stack);
	return true;
}

/* Losses of all threads are together: heaptap asks for them with each poll, and threads may be many. */
static void add_losses(u64 *counter, u32 nr)
{
	__atomic_fetch_add(counter, nr, __ATOMIC_RELAXED);
}

static void add_loss(u64 *counter)
{
	add_losses(counter, 1);
}

/* The stack of the call whose registers are @regs and whose stack pointer at entry is @sp. */
static inline u64 hook_take_stack(struct piece_walk *walk, struct piece_ring *r,
				  const struct piece_regs *regs, u64 sp)
{
	u64 id = piece_take_stack(walk, r, sp, regs_fp(regs), CODE_ADDRESS(regs->ret));

	/* After the end of the trace there is no room for a stack, and no call that needs it. */
	if (id == STACK_LOST && is_on())
		add_loss(&region_shared()->lost_stacks);
	return id;
}

static u64 call_take_stack(const struct call *c, const struct inflight *t, const struct call_probe *p,
			   u32 how)
{
	const struct piece_hook *h = hook_of(c);

	(void)t;
	(void)p;
	(void)how;
	if (!h->has_stacks)
		return STACK_NONE;
	return h->stack ? h->stack : hook_take_stack(h->walk, h->ring, h->regs, h->sp);
}

static void call_count_loss(const struct call *c, const struct inflight *t, enum call_loss loss, u32 nr)
{
	(void)t;
	(void)c;
	if (loss == CALL_LOSS_ALLOC)
		add_losses(&region_shared()->lost_allocs, nr);
	else if (loss == CALL_LOSS_FREE)
		add_losses(&region_shared()->lost_frees, nr);
	else
		add_losses(&region_shared()->abandoned, nr);
}

/* The thread in @place, with the ring @r, is in a hook of a call whose stack pointer at entry was @sp. */
static inline __attribute__((always_inline)) void hook_begin(struct piece_hook *h, struct piece_place *place,
							     struct piece_ring *r,
							     const struct piece_regs *regs, u64 sp, u64 ip)
{
	h->sp = sp;
	h->ip = ip;
	h->ret = CODE_ADDRESS(regs->ret);
	h->regs = regs;
	h->ring = r;
	h->walk = &place->walk;
	h->stack = STACK_NONE;
	h->has_room = false;
	h->has_stacks = false;
}

/* A hook that was left by a jump has left things half done. A call that was no longer listed is a loss, too. */
static __attribute__((noinline)) void renew_place(const struct piece_hook *h, struct piece_place *place)
{
	if (h->ring->is_telling && !place->thread.calls.nr)
		add_loss(&region_shared()->abandoned);
	h->ring->is_telling = 0;
	life_end(piece_call_of(h), &place->thread.calls);
	memset(&place->thread.calls, 0, sizeof(place->thread.calls));
	place->walk.low = place->walk.high = 0;
	place->walk.walk.generation = 0;
	place->walk.walk.nr = 0;
	place->walk.words.nr_frames = 0;
	memset(place->walk.keys, 0, sizeof(place->walk.keys));
}

/* ---- return addresses ---- */

/*
 * Have the call return to the piece. It is the call @nr, from 0, of the thread that does. Whoever looks for a call sees
 * it when it is complete.
 */
static inline void push_pending(struct piece_thread *t, u32 nr, struct piece_regs *regs, u64 sp, u32 probe)
{
	struct piece_pending *p = &t->pending[nr];

	p->ret = regs->ret;
	p->probe = probe;
	asm volatile("" : : : "memory");
	p->sp = sp;
	asm volatile("" : : : "memory");
	if (t->nr_pending <= nr)
		t->nr_pending = nr + 1;
	asm volatile("" : : : "memory");
	regs->ret = (u64)(uintptr_t)piece_returned;
}

/* Calls at the end of the list that have returned. */
static void trim_pending(struct piece_thread *t)
{
	while (t->nr_pending && t->nr_pending <= PIECE_MAX_PENDING && !t->pending[t->nr_pending - 1].sp)
		t->nr_pending--;
}

/*
 * Has the call @p ended, which a jump has left? Its return address may be read if it lies on the stack that the thread
 * is known to use (@walk), and is another one now.
 */
static bool is_left(const struct piece_pending *p, const struct piece_walk *walk, u64 sp)
{
	return !HAS_LINK && p->sp >= walk->low && p->sp < sp && sp < walk->high &&
	       *(const volatile u64 *)(uintptr_t)p->sp != (u64)(uintptr_t)piece_returned;
}

/*
 * Room for a call at @sp. A call that this one proves to have ended, because its return address takes the place of that
 * one's, is forgotten; it has not ended if it has jumped here (@is_jump). A call further down the stack seems to have
 * ended, too, but a signal handler may have a stack above the call that it interrupts. PIECE_MAX_PENDING: there are too
 * many that may not have ended.
 */
static u32 room_for_pending(struct piece_place *place, u64 sp, bool is_jump)
{
	struct piece_thread *t = &place->thread;
	bool is_full = t->nr_pending >= PIECE_MAX_PENDING;

	for (u32 i = place_nr_pending(t); i-- > 0;) {
		struct piece_pending *p = &t->pending[i % PIECE_MAX_PENDING];

		if ((p->sp == sp && !is_jump) || (is_full && is_left(p, &place->walk, sp)))
			p->sp = 0;
	}
	trim_pending(t);
	if (t->nr_pending < PIECE_MAX_PENDING)
		return t->nr_pending;
	for (u32 i = 0; i < PIECE_MAX_PENDING && !is_jump; i++)
		if (!t->pending[i].sp)
			return i;
	return PIECE_MAX_PENDING;
}

/*
 * Take the latest call that was entered at @sp. False if @t has none. Later calls stay: they may be on other stacks of
 * the thread, between which the program switched in the middle of an allocator.
 */
static bool take_pending(struct piece_thread *t, u64 sp, struct piece_pending *out)
{
	for (u32 i = place_nr_pending(t); i-- > 0;) {
		if (t->pending[i].sp != sp)
			continue;
		*out = t->pending[i];
		t->pending[i].sp = 0;
		trim_pending(t);
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

/* The thread pointer is not the one of the entry, or another hook has the place of the call: look at all threads. */
static void take_pending_anywhere(u64 sp, struct piece_pending *out)
{
	enum { LOOKS = 100 };
	const struct piece_key *keys = region_private()->keys;

	for (u32 i = 0; i < LOOKS * PIECE_MAX_THREADS; i++) {
		const struct piece_key *k = &keys[i % PIECE_MAX_THREADS];

		if (k->key && k->key != PIECE_CLAIMED &&
		    take_others_pending(&place_at(k->nr)->thread, sp, out))
			return;
	}
	__builtin_trap();
}

/* A call of an interrupted hook has a state of its own. */
u64 piece_real_return(u64 sp)
{
	u64 key = thread_key(), ours = (u64)(uintptr_t)piece_returned;

	for (u32 nested = 0; nested <= PIECE_MAX_NESTED; nested++) {
		u32 at = find_thread(nested_key(key, nested), false);
		const struct piece_thread *t = at == NO_THREAD ? NULL : &place_at(at)->thread;

		for (u32 i = t ? place_nr_pending(t) : 0; i-- > 0;)
			if (t->pending[i].sp == sp && t->pending[i].ret != ours)
				return t->pending[i].ret;
	}
	return 0;
}

/* ---- most calls ---- */

static inline struct piece_place *slot_place(const struct piece_key *slot)
{
	return (struct piece_place *)(uintptr_t)slot->place;
}

static inline struct piece_ring *slot_ring(const struct piece_key *slot)
{
	return (struct piece_ring *)(uintptr_t)slot->ring;
}

/*
 * Where the table of keys has this thread, which is in the hook at @regs from now on, if it is known and in no other
 * one, and its ring has room, else NULL.
 */
static inline __attribute__((always_inline)) const struct piece_key *plain_hold(const struct piece_regs *regs)
{
	u64 key = thread_key();
	const struct piece_key *slot = &region_private()->keys[first_slot(key)];

	if (__atomic_load_n(&slot->key, __ATOMIC_ACQUIRE) != key)
		return NULL;
	if (!has_room_at_last(slot_ring(slot)) ||
	    !place_hold(&slot_place(slot)->thread, (u64)(uintptr_t)regs))
		return NULL;
	return slot;
}

/* The thread that has @slot is in the hook @h. */
static inline __attribute__((always_inline)) struct piece_thread *
plain_begin(struct piece_hook *h, const struct piece_key *slot, const struct piece_regs *regs, u64 sp, u64 ip)
{
	hook_begin(h, slot_place(slot), slot_ring(slot), regs, sp, ip);
	h->has_room = true;
	return &slot_place(slot)->thread;
}

/*
 * A function of this shape is entered, called by the only request of the thread: a malloc by an operator new, a free or
 * another operator by an operator delete. False, with nothing done, if it is another call.
 */
static inline __attribute__((always_inline)) bool enter_inner(const struct piece_hook *h,
							      struct piece_thread *t, struct piece_regs *regs,
							      u32 index, enum piece_shape shape)
{
	const struct call_probe *probe = &piece_shapes[shape];
	struct inflight_level *l = &t->calls.levels[0];
	u64 outer = region_shared()->probes[l->probe % PIECE_MAX_PROBES].shape;

	if (t->calls.nr != 1 || t->calls.nr_held || l->nr_inner || shape == SHAPE_NEW ||
	    !life_is_nested(piece_call_of(h), l, h->sp, h->ret, index))
		return false;
	if (shape == SHAPE_MALLOC) {
		if (outer != SHAPE_NEW || l->state != LEVEL_BUSY || t->nr_pending)
			return false;
		life_note_inner(l, h->sp, h->ip, h->ret, index);
		push_pending(t, 0, regs, h->sp, index);
		return true;
	}
	if ((outer != SHAPE_DELETE && outer != SHAPE_SIZED_DELETE) ||
	    l->old != call_arg(piece_call_of(h), probe, 1))
		return false;
	if (shape == SHAPE_FREE)
		t->calls.nr = 0;
	else
		life_note_inner(l, h->sp, h->ip, h->ret, index);
	return true;
}

/*
 * A function of this shape is entered, by the thread that has @slot, which is let go. False, with nothing done, if it
 * is no call by the program itself, nor as above. The shape is a constant wherever this is called.
 */
static inline __attribute__((always_inline)) bool enter_plain(const struct piece_key *slot,
							      struct piece_regs *regs, u32 index,
							      const struct piece_probe *p,
							      enum piece_shape shape, u64 stack)
{
	struct call_probe probe = piece_shapes[shape];
	bool is_done, returns = probe.flags & PROBE_AT_RETURN;
	struct piece_hook h;
	struct piece_thread *t = plain_begin(&h, slot, regs, regs_entry_sp(regs), p->ip);

	is_done = !t->calls.nr && (!returns || !t->nr_pending);
	if (t->calls.nr) {
		is_done = enter_inner(&h, t, regs, index, shape);
	} else if (is_done) {
		probe.fn = p->call.fn;
		h.has_stacks = stack != STACK_NONE;
		h.stack = stack;
		if (probe.kind == ALLOC_FREE)
			life_enter_free(piece_call_of(&h), &t->calls, index, &probe, stack != STACK_NONE);
		else
			life_enter_alloc(piece_call_of(&h), &t->calls, index, &probe, 1);
		if (returns)
			push_pending(t, 0, regs, h.sp, index);
	}
	place_let_go(t, (u64)(uintptr_t)regs);
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
static inline __attribute__((always_inline)) void
finish_plain(const struct piece_hook *h, struct piece_thread *t, struct inflight_level *l,
	     const struct piece_probe *p, enum piece_shape shape)
{
	struct call_probe probe = piece_shapes[shape];
	u64 addr = life_block(piece_call_of(h), &piece_shapes[SHAPE_MALLOC], l);

	probe.fn = p->call.fn;
	t->nr_pending = 0;
	t->calls.nr = addr || shape == SHAPE_MALLOC ? 0 : 1;
	life_finish(piece_call_of(h), &t->calls, l, &probe, addr);
}

/* A call returns. Where to, if it is a malloc as above; 0, with nothing done, if it is another call. */
static inline __attribute__((always_inline)) u64 leave_plain(const struct piece_regs *regs, u64 sp)
{
	const struct piece_pending *pending;
	const struct piece_probe *p, *outer;
	struct inflight_level *l;
	const struct piece_key *slot = plain_hold(regs);
	struct piece_thread *t;
	struct piece_hook h;
	u64 ret = 0;

	if (!slot)
		return 0;
	t = plain_begin(&h, slot, regs, sp, 0);
	pending = &t->pending[0];
	l = &t->calls.levels[0];
	p = &region_shared()->probes[pending->probe % PIECE_MAX_PROBES];
	outer = &region_shared()->probes[l->probe % PIECE_MAX_PROBES];
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
	place_let_go(t, (u64)(uintptr_t)regs);
	return ret;
}

/* ---- hooks ---- */

static bool is_seen(void)
{
	return is_on() && !region_shared()->is_paused;
}

/* Apart, so that none needs the stack that another one needs. */
static __attribute__((noinline)) void begin_alloc(const struct piece_hook *h, struct inflight *calls,
						  u32 index, const struct call_probe *p)
{
	life_enter_alloc(piece_call_of(h), calls, index, p, 1);
}

static __attribute__((noinline)) void begin_free(const struct piece_hook *h, struct inflight *calls,
						 u32 index, const struct call_probe *p)
{
	life_enter_free(piece_call_of(h), calls, index, p, region_shared()->has_free_stacks);
}

static __attribute__((noinline)) void end_call(const struct piece_hook *h, struct inflight *calls, u32 index,
					       const struct call_probe *p)
{
	life_leave(piece_call_of(h), calls, index, p, h->sp);
}

static __attribute__((noinline)) void begin_internal(const struct piece_hook *h, struct inflight *calls,
						     u32 index, const struct call_probe *p)
{
	life_internal_call(piece_call_of(h), calls, index, p);
}

static void inline_piece_enter(struct piece_place *place, u32 index, const struct piece_probe *p, u32 kind)
{
	struct inflight *calls = &place->thread.calls;

	if (kind == PIECE_INTERNAL_CALL)
		begin_internal(&place->hook, calls, index, &p->call);
	else if (kind == PIECE_RET)
		end_call(&place->hook, calls, index, &p->call);
	else if (kind == PIECE_FREE)
		begin_free(&place->hook, calls, index, &p->call);
	else
		begin_alloc(&place->hook, calls, index, &p->call);
}

/* A call that begins is lost: of a thread without a place, or one in too many calls. */
static void count_lost(const struct piece_regs *regs)
{
	const struct call_probe *p = &regs_probe(regs)->call;
	u64 sp = regs_entry_sp(regs),
	    *own_free = &region_private()->own_frees[sp / sizeof(u64) % PIECE_OWN_FREES];
	u32 kind = regs_kind(regs);

	if (kind == PIECE_INTERNAL_CALL)
		*own_free = regs_arg(regs, p->old_arg) ? sp : 0;
	if (kind == PIECE_FREE && *own_free == sp) {
		*own_free = 0;
		return;
	}
	if (kind == PIECE_ALLOC)
		add_loss(&region_shared()->lost_allocs);
	if (kind <= PIECE_FREE && p->old_arg && regs_arg(regs, p->old_arg))
		add_loss(&region_shared()->lost_frees);
}

/* As enter_any(), of a hook that has @place. */
static __attribute__((noinline)) bool enter_held(struct piece_place *place, struct piece_regs *regs)
{
	const struct piece_probe *p = regs_probe(regs);
	u32 kind = regs_kind(regs);
	bool was_ours = regs->ret == (u64)(uintptr_t)piece_returned;
	/* A function that throws would have its unwinder meet our address: its end is seen at its ret instructions. */
	bool returns = kind <= PIECE_FREE && p->call.flags & PROBE_AT_RETURN;
	u32 nr = returns ? room_for_pending(place, place->hook.sp, was_ours) : 0;

	if (nr == PIECE_MAX_PENDING) {
		count_lost(regs);
		return false;
	}
	inline_piece_enter(place, regs_index(regs), p, kind);
	if (returns)
		push_pending(&place->thread, nr, regs, place->hook.sp, regs_index(regs));
	return returns && !was_ours;
}

/* Will this call, which no other one has made, have its stack taken? */
static bool wants_stack(const struct piece_regs *regs)
{
	u32 kind = regs_kind(regs), old_arg = regs_probe(regs)->call.old_arg;

	if (kind > PIECE_FREE || (kind == PIECE_FREE && !region_shared()->has_free_stacks) ||
	    !region_shared()->depth)
		return false;
	return kind == PIECE_ALLOC || (old_arg && regs_arg(regs, old_arg));
}

/*
 * As piece_enter(), of the part @choice of a call. The stack is taken here, where the fewest words of the piece lie
 * above the walk.
 */
static __attribute__((noinline)) bool enter_any_part(struct piece_regs *regs, u32 choice)
{
	bool is_left, is_replaced;
	u32 at = thread_begin((u64)(uintptr_t)regs, &is_left);
	struct piece_place *place = place_at(at);
	struct piece_hook *h = &place->hook;

	if (at == NO_THREAD) {
		count_lost(regs);
		return false;
	}
	hook_begin(h, place, &region_shared()->rings[at], regs, regs_entry_sp(regs), regs_probe(regs)->ip);
	h->has_stacks = region_shared()->depth && choice != CALL_OLD;
	place->thread.calls.choice = choice;
	place->thread.calls.distance = sample_last_distance();
	if (is_left)
		renew_place(h, place);
	if (!place->thread.calls.nr && h->has_stacks && wants_stack(regs))
		h->stack = hook_take_stack(h->walk, h->ring, regs, h->sp);
	is_replaced = enter_held(place, regs);
	place->thread.calls.choice = CALL_COUNTS;
	place_let_go(&place->thread, (u64)(uintptr_t)regs);
	return is_replaced;
}

static inline bool enter_any(struct piece_regs *regs)
{
	return enter_any_part(regs, CALL_COUNTS);
}

/* An operator delete goes on with its stack. */
static __attribute__((noinline)) bool enter_delete_with(struct piece_regs *regs, const struct piece_key *slot,
							u64 stack)
{
	u32 index = regs_index(regs);
	const struct piece_probe *p = regs_probe(regs);

	if (p->shape == SHAPE_DELETE ? enter_plain(slot, regs, index, p, SHAPE_DELETE, stack)
				     : enter_plain(slot, regs, index, p, SHAPE_SIZED_DELETE, stack))
		return false;
	return enter_any(regs);
}

/* The call at @regs, of the thread that has @slot, goes on with its stack. Returns as piece_enter(). */
static __attribute__((noinline)) bool enter_with(struct piece_regs *regs, const struct piece_key *slot,
						 u64 stack)
{
	u32 index = regs_index(regs);
	const struct piece_probe *p = regs_probe(regs);

	if (p->shape == SHAPE_MALLOC) {
		if (enter_plain(slot, regs, index, p, SHAPE_MALLOC, stack))
			return true;
	} else if (p->shape == SHAPE_NEW) {
		if (enter_plain(slot, regs, index, p, SHAPE_NEW, stack))
			return false;
	} else if (p->shape != SHAPE_FREE) {
		return enter_delete_with(regs, slot, stack);
	} else if (enter_plain(slot, regs, index, p, SHAPE_FREE, stack)) {
		return false;
	}
	return enter_any(regs);
}

/*
 * As enter_with(), with a stack, which is taken before anything else: its walk needs more room on the stack of the
 * program than all else, and so has the fewest words of the piece above it.
 */
static __attribute__((noinline)) bool enter_with_stack(struct piece_regs *regs, const struct piece_key *slot)
{
	u64 stack = hook_take_stack(&slot_place(slot)->walk, slot_ring(slot), regs, regs_entry_sp(regs));

	return enter_with(regs, slot, stack);
}

/* The process ends: until heaptap traces it by ptrace, which lets it have a last verdict. */
static __attribute__((noinline)) bool wait_at_end(void)
{
	struct piece_wait w = wait_begin();
	u32 *end = &region_shared()->end, watched = PIECE_END_WATCHED;

	if (__atomic_compare_exchange_n(end, &watched, PIECE_ENDS, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		while (__atomic_load_n(end, __ATOMIC_RELAXED) == PIECE_ENDS && wait_goes_on(&w))
			;
	wait_end(&w);
	return false;
}

/*
 * A function is entered, or is about to return, or the C library calls free for itself. Whatever is called from here is
 * called last: so no call needs a stack frame here.
 */
bool piece_enter(struct piece_regs *regs)
{
	const struct piece_key *slot;
	u32 choice;

	if (!is_seen()) {
		sample_go_on();
		return false;
	}
	if (region_shared()->sample_bytes && regs_kind(regs) != PIECE_END) {
		choice = sample_choose(regs);
		if (choice == CALL_NONE)
			return false;
		if (choice != CALL_COUNTS)
			return enter_any_part(regs, choice);
	}
	slot = regs_kind(regs) <= PIECE_FREE && regs_probe(regs)->shape ? plain_hold(regs) : NULL;
	if (!slot)
		return regs_kind(regs) == PIECE_END ? wait_at_end() : enter_any(regs);
	if (!slot_place(slot)->thread.calls.nr && wants_stack(regs))
		return enter_with_stack(regs, slot);
	return enter_with(regs, slot, STACK_NONE);
}

/* The call @pending of @place has returned. */
static void inline_piece_leave(u32 at, const struct piece_pending *pending, const struct piece_regs *regs,
			       bool is_left)
{
	struct piece_shared *s = region_shared();
	u32 probe = (u32)pending->probe % PIECE_MAX_PROBES;
	const struct piece_probe *p = &s->probes[probe];
	struct piece_place *place = place_at(at);
	struct piece_hook *h = &place->hook;

	hook_begin(h, place, &s->rings[at], regs, pending->sp, p->ip);
	if (is_left)
		renew_place(h, place);
	end_call(h, &place->thread.calls, probe, &p->call);
}

/*
 * Take the latest call at @sp from the thread's place @at, if no other hook has that, and report its end. False: it is
 * not there.
 */
static bool leave_place(u32 at, const struct piece_regs *regs, u64 sp, bool is_traced, u64 *ret)
{
	struct piece_thread *t = &place_at(at)->thread;
	u64 hook = (u64)(uintptr_t)regs;
	bool is_left = false, is_there;
	struct piece_pending p;

	if (!place_hold(t, hook)) {
		is_left = place_inherit(t, hook);
		if (!is_left)
			return false;
	}
	is_there = take_pending(t, sp, &p);
	if (is_there)
		*ret = p.ret;
	if (is_there && is_traced)
		inline_piece_leave(at, &p, regs, is_left);
	place_let_go(t, hook);
	return is_there;
}

/* A call that began by a jump of another one returns together with that one. */
static __attribute__((noinline)) u64 leave_any(const struct piece_regs *regs, u64 sp, bool is_traced)
{
	u64 key = thread_key(), ret = 0;
	struct piece_pending p;

	do {
		bool is_there = false;

		for (u32 i = 0; i <= PIECE_MAX_NESTED && !is_there; i++) {
			u32 at = find_thread(nested_key(key, i), false);

			is_there = at != NO_THREAD && leave_place(at, regs, sp, is_traced, &ret);
		}
		if (!is_there) {
			take_pending_anywhere(sp, &p);
			ret = p.ret;
		}
	} while (ret == (u64)(uintptr_t)piece_returned);
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
