/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks of calls: the adaptor of bpf/walk.h for code that runs inside the target. A read of memory that is not mapped
 * would end the target, so a walk reads only the stack that its thread runs on, above the call.
 */
#include "inline/remember.h"
#include "inline/wait.h"

#define WALK_KNOWS_RULES
#define WALK_KNOWS_WORDS
#define WALK_KEEPS_MORE
#define WALK_KNOWS_RETURNS
#define WALK_UNKNOWN_APART
#include "bpf/walk.h"

/* ---- the stack that the thread runs on ---- */

/*
 * A stack ends at the thread's own data. One that is in no list yet is read up to there if that is near: below the
 * thread's stack may be that of a coroutine, and between them what cannot be read.
 */
enum { MAX_THREAD_STACK = 64 << 20, NEAR_OWN_DATA = 64 << 10, NEW_LISTS = 2 };

/* The number of regions that begin at or below @addr. */
static u32 search_regions(const struct piece_tables *t, u64 addr)
{
	u32 low = 0, high = t->nr_regions < PIECE_MAX_STACKS ? t->nr_regions : PIECE_MAX_STACKS;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (t->regions[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Find the memory around @sp in the list of heaptap. False: it is not there, or the list changes. */
static bool stack_find_region(struct piece_walk *pw, u64 sp)
{
	const struct piece_tables *t = region_tables();
	u32 seq = __atomic_load_n(&t->seq, __ATOMIC_ACQUIRE), at;

	pw->seq = seq;
	pw->low = pw->high = 0;
	if (seq & 1)
		return false;
	if (sp >= t->stack_low && sp < t->stack_top) {
		pw->low = t->stack_low;
		pw->high = t->stack_top;
	} else {
		at = search_regions(t, sp);
		if (at && sp < t->regions[at - 1].end) {
			pw->low = t->regions[at - 1].start;
			pw->high = t->regions[at - 1].end;
		}
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return pw->high && seq == __atomic_load_n(&t->seq, __ATOMIC_RELAXED);
}

/*
 * Wait until heaptap, which has been asked, has looked for stacks anew, and find that at @sp: some milliseconds, for
 * the first deep call of a new thread. A thread whose stack is in no new list either does not wait again.
 */
static __attribute__((noinline)) bool await_region(struct piece_walk *pw, u64 sp)
{
	struct piece_wait w = wait_begin();
	u32 seq = __atomic_load_n(&region_tables()->seq, __ATOMIC_ACQUIRE);
	bool is_there;

	if (pw->has_waited)
		return false;
	do
		is_there = stack_find_region(pw, sp);
	while (!is_there && pw->seq - seq <= 2 * NEW_LISTS && wait_goes_on(&w));
	wait_end(&w);
	pw->has_waited = !is_there;
	return is_there;
}

/* Was @addr in a list that the thread has seen? */
static bool is_listed_at(const struct piece_tables *t, u64 addr)
{
	u32 at = search_regions(t, addr);

	return at && addr < t->regions[at - 1].end;
}

/*
 * Is the stack at @sp, which is in no list, that of the new thread whose own data is at @own? The first thread's data
 * is no end of a stack, and may lie close above the stack of a coroutine: it was listed, or the thread has been on its
 * own stack before. A list that changes tells nothing.
 */
static bool ends_at_own_data(const struct piece_walk *pw, u64 sp, u64 own)
{
	const struct piece_tables *t = region_tables();

	return own > sp && own - sp < NEAR_OWN_DATA && !pw->was_elsewhere && !is_listed_at(t, own) &&
	       !(pw->seq & 1) && pw->seq == __atomic_load_n(&t->seq, __ATOMIC_ACQUIRE);
}

/*
 * Learn up to where the stack at @sp can be read. The C library puts a thread's own data, to which the thread pointer
 * leads, at the upper end of its stack.
 */
static void stack_find_stack(struct piece_walk *pw, u64 sp)
{
	u64 own = thread_pointer() & ~7ULL;
	bool is_listed = stack_find_region(pw, sp), is_near = !is_listed && ends_at_own_data(pw, sp, own);

	if (!is_listed) {
		__atomic_fetch_add(&region_shared()->nr_unknown_stacks, 1, __ATOMIC_RELAXED);
		is_listed = !is_near && await_region(pw, sp);
	}
	if (is_listed) {
		if (own > sp && own - sp < MAX_THREAD_STACK && own < pw->high)
			pw->high = own;
		pw->was_elsewhere |= pw->high != own;
		return;
	}
	pw->low = sp & ~(u64)(PIECE_PAGE - 1);
	pw->high = is_near ? own : pw->low + PIECE_PAGE;
}

static struct piece_walk *walk_of(struct walk *w)
{
	return (struct piece_walk *)((u8 *)w - __builtin_offsetof(struct piece_walk, walk));
}

/* The stack at @sp is read from now on, from @from on. */
static void use_stack(struct piece_walk *pw, u64 sp, u64 from)
{
	u64 bytes;

	if (sp < pw->low || sp >= pw->high ||
	    pw->seq != __atomic_load_n(&region_tables()->seq, __ATOMIC_RELAXED))
		stack_find_stack(pw, sp);
	bytes = pw->high - from;
	pw->walk.copy_start = from;
	pw->walk.copy_bytes = bytes < ~7U ? (u32)bytes & ~7U : ~7U;
}

/* A word outside of the stack: the walk may have come to another one, by the frame of a signal handler. */
static __attribute__((noinline)) bool word_elsewhere(struct walk *w, u64 addr)
{
	if (w->sp - w->copy_start < w->copy_bytes || addr < w->sp || w->sp & 7)
		return false;
	if (!stack_find_region(walk_of(w), w->sp)) {
		__atomic_fetch_add(&region_shared()->nr_unknown_stacks, 1, __ATOMIC_RELAXED);
		return false;
	}
	use_stack(walk_of(w), w->sp, w->sp);
	return addr - w->copy_start < w->copy_bytes;
}

/* ---- the adaptor of bpf/walk.h ---- */

WALK_STEP bool word_at(struct walk *w, u64 addr, u64 *word)
{
	if (addr & 7 || (addr - w->copy_start >= w->copy_bytes && !word_elsewhere(w, addr)))
		return false;
	*word = *(const u64 *)(uintptr_t)addr;
	if (HAS_LINK || *word != (u64)(uintptr_t)piece_returned)
		return true;
	*word = piece_real_return(addr);
	return *word;
}

/* With a link register, a function has saved where it returns to, perhaps signed: CODE_ADDRESS() was applied to it. */
WALK_STEP bool real_return(struct walk *w, u64 cfa, u64 *pc)
{
	(void)w;
	if (*pc == (u64)(uintptr_t)piece_returned)
		*pc = piece_real_return(cfa);
	return *pc;
}

WALK_STEP const struct unwind_maps *walk_maps(u32 pid)
{
	const struct piece_tables *t = region_tables();

	(void)pid;
	return &t->maps[__atomic_load_n(&t->maps_at, __ATOMIC_ACQUIRE) & 1];
}

/* Is all of [@from, @to) code that is mapped? */
static bool stack_is_code(u64 from, u64 to)
{
	const struct unwind_map *m = find_map(walk_maps(0), from);

	return holds_pc(m, from) && to - 1 >= from && holds_pc(m, to - 1);
}

static bool stack_read_code(u64 from, u64 *code)
{
	if (!stack_is_code(from, from + sizeof(*code)))
		return false;
	__builtin_memcpy(code, (const void *)(uintptr_t)from, sizeof(*code));
	return true;
}

WALK_STEP bool code_before(struct walk *w, u64 pc, u64 *code)
{
	u64 in_page = pc & (PIECE_PAGE - 1);

	(void)w;
	if (stack_read_code(pc - sizeof(*code), code))
		return true;
	if (in_page >= sizeof(*code) || !stack_read_code(pc - in_page, code))
		return false;
	*code = in_page ? *code << 8 * (sizeof(*code) - in_page) : 0;
	return true;
}

WALK_STEP u64 code_at(struct walk *w, u64 pc)
{
	u64 code;

	(void)w;
	return stack_read_code(pc, &code) ? code : 0;
}

WALK_STEP u32 find_rule(const struct unwind_map *m, u64 pc)
{
	const struct cfi_row *rows = region_tables()->shards[m->shard % PIECE_MAX_SHARDS].rows;
	u64 first = m->first, nr = m->nr, offset = pc - m->base;

	if (!nr || first + nr > SHARD_ROWS)
		return CFI_NONE;
	while (nr > 1) {
		u64 half = nr / 2;

		first += rows[first + half].pc <= offset ? half : 0;
		nr -= half;
	}
	return rows[first].rule;
}

/* The rule of a return address, as two words that fit together only if one thread wrote both. */
struct piece_rule {
	u64 key;   /* the address, xor value */
	u64 value; /* the rule, and the number of the mappings above it */
};

/*
 * A search in the rows of a large library waits for memory many times: so more rules are kept than a kernel can, once
 * for all threads. Two threads may write to a place at the same time.
 */
WALK_STEP struct known_rule *known_rule_at(struct walk *w, u64 pc)
{
	(void)w;
	_Static_assert(PIECE_KNOWN_RULES == 1 << 15, "bits of the hash");
	return (struct known_rule *)region_private()->rules[pc * 0x9e3779b97f4a7c15 >> 49];
}

WALK_STEP bool recall_rule(const struct known_rule *known, const struct walk *w, u64 pc, u32 *rule)
{
	const struct piece_rule *r = (const struct piece_rule *)known;
	u64 key = __atomic_load_n(&r->key, __ATOMIC_RELAXED),
	    value = __atomic_load_n(&r->value, __ATOMIC_RELAXED);

	if ((key ^ value) != pc || value >> 32 != w->seq)
		return false;
	*rule = (u32)value;
	return true;
}

WALK_STEP void keep_rule(struct known_rule *known, const struct walk *w, u64 pc, u32 rule)
{
	struct piece_rule *r = (struct piece_rule *)known;
	u64 value = (u64)w->seq << 32 | rule;

	__atomic_store_n(&r->key, pc ^ value, __ATOMIC_RELAXED);
	__atomic_store_n(&r->value, value, __ATOMIC_RELAXED);
}

WALK_STEP bool is_known_unchanged(struct walk *w)
{
	return words_hold(&walk_of(w)->words, w);
}

WALK_STEP u32 nr_known_unchanged(struct walk *w)
{
	return words_nr_same(&walk_of(w)->words, w);
}

static u32 asked_for(const struct walk *w)
{
	return ((const struct piece_walk *)((const u8 *)w - __builtin_offsetof(struct piece_walk, walk)))
		->depth;
}

/*
 * A walk takes half as many frames more as are asked for, and later ones keep up to WALK_FRAMES. So a stack that is
 * deeper than what is asked for can grow and shrink without being walked anew: recursive programs have such stacks.
 */
static u32 frames_to_walk(u32 depth)
{
	u32 nr = depth + depth / 2;

	return nr < STACK_MAX_FRAMES ? nr : STACK_MAX_FRAMES;
}

/* @depth is the number of frames to walk. Of a stack that was cut, enough frames must be left. */
WALK_STEP bool may_keep(const struct walk *w, u32 depth)
{
	(void)depth;
	return w->end != STACK_DEPTH || w->nr_fresh + w->candidate >= asked_for(w);
}

/* Drop outer frames. */
WALK_STEP void make_room(struct walk *w, u32 depth)
{
	u32 drop = w->candidate + w->nr_fresh - depth;

	if (w->candidate + w->nr_fresh < WALK_FRAMES)
		return;
	for (u32 i = drop; i < w->candidate; i++)
		w->last[i - drop] = w->last[i];
	w->candidate -= drop;
	w->end = STACK_DEPTH;
	walk_of(w)->words.nr_frames = 0;
}

WALK_STEP void run_loop(struct walk_loop *loop, bool has_loop, enum loop which, u32 most)
{
	(void)has_loop;
	for (u32 i = 0; i < most; i++) {
		long is_last = which == LOOP_WALK    ? walk_round(i, loop)
			       : which == LOOP_CHECK ? check_round(i, loop)
						     : keep_round(i, loop);
		if (is_last)
			return;
	}
}

/* ---- stacks that heaptap has ---- */

static u64 *seen_set(u64 id)
{
	return region_shared()
		->seen[(id >> 7) % (region_shared()->sample_bytes ? PIECE_SEEN_SAMPLED : PIECE_SEEN_SETS)];
}

static bool is_seen_stack(u64 id)
{
	const u64 *set = seen_set(id);

	for (u32 i = 0; i < PIECE_SEEN_WAYS; i++)
		if (__atomic_load_n(&set[i], __ATOMIC_ACQUIRE) == id)
			return true;
	return false;
}

/* A stack that drops out of the set is sent again. */
static void note_seen(u64 id)
{
	u64 *set = seen_set(id);
	u32 at = (u32)(id >> 3);

	for (u32 i = 0; i < PIECE_SEEN_WAYS; i++) {
		if (set[i])
			continue;
		at = i;
		break;
	}
	__atomic_store_n(&set[at % PIECE_SEEN_WAYS], id, __ATOMIC_RELEASE);
}

/* ---- taking a stack ---- */

/* The number of frames that were walked and are not asked for. */
static u32 frames_too_many(const struct walk *w)
{
	return w->nr > asked_for(w) ? w->nr - asked_for(w) : 0;
}

/* How the stack ended that was walked. */
static u8 end_of_stack(const struct walk *w)
{
	u8 end = stack_end(w);

	return end != STACK_STALE && frames_too_many(w) ? STACK_DEPTH : end;
}

/* The id of the stack that was walked: that of the innermost frame is by all frames of a stack that is complete. */
static u64 stack_id(const struct walk *w)
{
	u64 id = STACK_ID_BEGIN;

	if (w->end != STACK_DEPTH && !frames_too_many(w))
		id = walk_innermost(w)->id;
	else
		for (u32 i = frames_too_many(w); i < w->nr; i++)
			id = stack_id_frame(id, w->last[i % WALK_FRAMES].pc);
	return stack_id_end(id, region_shared()->pid, w->epoch, end_of_stack(w));
}

/*
 * Write the stack that was walked to the ring. False: no room. The record that names it has room behind it: a hook that
 * has seen room for that one does not look again.
 */
static bool stack_send_stack(struct piece_ring *r, const struct walk *w, u64 id)
{
	u32 nr_frames = w->nr - frames_too_many(w);
	u32 nr_records = 1 + (nr_frames + PIECE_STACK_FRAMES - 1) / PIECE_STACK_FRAMES;
	struct piece_stack *head = (void *)&r->records[r->written % PIECE_RING_RECORDS];

	if (!has_room(r, nr_records + 1))
		return false;
	head->kind = EVENT_STACK;
	head->end = end_of_stack(w);
	head->nr_frames = (u16)nr_frames;
	head->epoch = w->epoch;
	head->id = id;
	for (u32 i = 0; i < nr_frames; i++) {
		u64 record = r->written + 1 + i / PIECE_STACK_FRAMES;
		u64 *ips = (u64 *)&r->records[record % PIECE_RING_RECORDS];

		ips[i % PIECE_STACK_FRAMES] = w->last[(w->nr - 1 - i) % WALK_FRAMES].pc;
	}
	head->stamp = next_stamp();
	ring_add(r, nr_records);
	return true;
}

/* The walk begins at the return address @ret of the call whose stack pointer at entry is @sp. */
static void walk_begin(struct piece_walk *pw, u64 sp, u64 fp, u64 ret)
{
	const struct piece_shared *s = region_shared();
	u64 generation = __atomic_load_n(&s->generation, __ATOMIC_ACQUIRE);
	struct walk *w = &pw->walk;

	w->word = sizeof(u64);
	w->nr_fresh = 0;
	w->is_guessed = 0;
	w->is_matched = 0;
	w->is_interrupted = 0;
	w->has_fp = 1;
	if (w->generation != generation) {
		w->generation = generation;
		w->epoch = s->epoch;
		w->nr = 0;
		w->last_id = 0;
		pw->high = 0;
	}
	w->candidate = w->nr;
	pw->loop.w = w;
	pw->loop.depth = frames_to_walk(pw->depth);
	/* Our own frames lie below those of the program: a bad rule that leads there is seen as such. */
	use_stack(pw, sp, (u64)(uintptr_t)__builtin_frame_address(0) & ~7ULL);
	w->sp = HAS_LINK ? sp : sp + sizeof(u64);
	w->fp = fp;
	if (HAS_LINK)
		w->has_lr = 0;
	w->pc = ret == (u64)(uintptr_t)piece_returned ? piece_real_return(sp) : ret;
}

/* Walk the stack. False: there is none. */
static __attribute__((noinline)) bool stack_walk(struct piece_walk *pw)
{
	return walk_again(&pw->walk, &pw->loop, 0, true);
}

/* The call whose stack has the id @id may come again. */
static u64 stack_found(struct piece_walk *pw, u64 id)
{
	if (pw->ret != (u64)(uintptr_t)piece_returned)
		remember_walk(pw, call_key(pw->sp, pw->ret), pw->sp, pw->ret, id, frames_too_many(&pw->walk));
	return id;
}

/* The id of the stack that was walked. It is sent if heaptap does not have it. */
static __attribute__((noinline)) u64 stack_take_walked(struct piece_walk *pw, struct piece_ring *r)
{
	struct walk *w = &pw->walk;
	u64 id = stack_id(w);

	__builtin_prefetch(seen_set(id));
	words_follow(&pw->words, w, w->is_matched && pw->words.nr_frames ? w->candidate : 0);
	if (!is_seen_stack(id)) {
		if (!stack_send_stack(r, w, id))
			return STACK_LOST;
		note_seen(id);
	}
	w->last_id = id;
	return stack_found(pw, id);
}

static __attribute__((noinline)) u64 stack_take_anew(struct piece_walk *pw, struct piece_ring *r)
{
	pw->walk.last_id = 0;
	return stack_walk(pw) ? stack_take_walked(pw, r) : STACK_LOST;
}

/* Has the call exactly the last stack? Most have. */
static bool stack_is_last(struct piece_walk *pw)
{
	struct walk *w = &pw->walk;

	return w->last_id && w->nr && is_last_frame(w, pw->loop.depth) && is_unchanged(&pw->loop, true);
}

u64 piece_take_stack(struct piece_walk *pw, struct piece_ring *r, u64 sp, u64 fp, u64 ret)
{
	const struct piece_shared *s = region_shared();
	u32 depth = __atomic_load_n(&s->depth, __ATOMIC_RELAXED);
	const struct piece_remembered *m = find_remembered(pw, call_key(sp, ret));

	if (!depth || depth > STACK_MAX_FRAMES)
		return STACK_NONE;
	pw->depth = depth;
	__builtin_prefetch(known_rule_at(&pw->walk, ret));
	if (m && is_remembered(pw, m, __atomic_load_n(&s->generation, __ATOMIC_ACQUIRE), sp, fp, ret))
		return m->id;
	pw->sp = sp;
	pw->ret = ret;
	walk_begin(pw, sp, fp, ret);
	if (stack_is_last(pw))
		return stack_found(pw, pw->walk.last_id);
	return stack_take_anew(pw, r);
}
