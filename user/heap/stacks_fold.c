/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes room in a table of stacks: stacks that matter least lose their inner frames, so that many become one. */
#include <errno.h>
#include <stdlib.h>

#include "user/heap/fold.h"
#include "user/heap/stacks_private.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"

enum {
	MAX_ANCHORS = 4096, /* so few that a cache of the CPU has them */
	NR_LEVELS = 64,
	FOLDED_LEVELS = 8,
	LIVE_LEVELS = 32, /* the first one of callers with live blocks */
	MAX_NAMES = 1 << 18,
	MIN_NAMES = 1 << 14,
	BYTES_PER_NAME = 512, /* of the limit; a name takes some 50 */
	MIN_CROWD = 1 << 14,  /* slots before any are forgotten because their processes are gone */
};

/* One call of stack_table_fold(). */
struct folding {
	struct stack_table *table;
	const u32 *weights; /* by number of slot */
	const u32 *young;   /* the slots that may be folded; NULL = all */
	u32 nr;
	bool *is_wanted;	      /* owned; by number of slot: those to fold */
	const struct stack **anchors; /* owned; sorted */
	u32 nr_anchors;
};

static u32 stacks_fold_slot_at(const struct folding *f, u32 i)
{
	return f->young ? f->young[i] : i;
}

/* Frames of @s that are functions of the program. */
static u16 path_length(const struct stack *s)
{
	return s->nr_frames - (s->nr_frames && code_ref_is_folded(s->frames[0]));
}

static struct code_ref outer_frame(const struct stack *s, u16 i)
{
	return s->frames[s->nr_frames - 1 - i];
}

static int compare_refs(struct code_ref a, struct code_ref b)
{
	if (a.module != b.module)
		return a.module < b.module ? -1 : 1;
	return (a.offset > b.offset) - (a.offset < b.offset);
}

/* Compare the frames from the outermost one on. *@common: so many are equal. */
static int compare_paths(const struct stack *a, const struct stack *b, u16 *common)
{
	u16 nr_a = path_length(a), nr_b = path_length(b);

	*common = 0;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	for (u16 i = 0; i < nr_a && i < nr_b; i++) {
		int cmp = compare_refs(outer_frame(a, i), outer_frame(b, i));

		if (cmp)
			return cmp;
		++*common;
	}
	return (nr_a > nr_b) - (nr_a < nr_b);
}

static int compare_anchors(const void *pa, const void *pb)
{
	const struct stack *const *a = pa, *const *b = pb;
	u16 common;

	return compare_paths(*a, *b, &common);
}

static bool can_fold(const struct folding *f, u32 nr)
{
	const struct stack_slot *slot = &f->table->slots[nr];

	return slot->id && slot->has_frames && path_length(slot->stack);
}

/*
 * How much the stack of slot @nr weighs, 0 to NR_LEVELS - 1; all of callers with live blocks weigh more than others. A
 * stack that was folded before stands for many, so it weighs as much as one with more allocations.
 */
static u32 level_of(const struct folding *f, u32 nr)
{
	const struct stack *s = f->table->slots[nr].stack;
	u32 weight = f->weights[nr], allocs = weight & ~FOLD_IS_LIVE;
	u32 level = allocs ? 32 - (u32)__builtin_clz(allocs) : 0;

	if (allocs && code_ref_is_folded(s->frames[0]))
		level = level + FOLDED_LEVELS < LIVE_LEVELS ? level + FOLDED_LEVELS : LIVE_LEVELS - 1;
	return (weight & FOLD_IS_LIVE ? LIVE_LEVELS : 0) + level;
}

static u64 gain_of(const struct folding *f, u32 nr)
{
	return stack_bytes(f->table->slots[nr].stack->nr_frames) + (f->weights[nr] ? FOLD_ROW_BYTES : 0);
}

/* Choose the stacks that weigh least, until they take @bytes; of young ones none of callers with live blocks. */
static void stacks_fold_choose(struct folding *f, u64 bytes)
{
	u64 of[NR_LEVELS] = { 0 }, left = bytes;
	u32 level = 0, end = f->young ? LIVE_LEVELS : NR_LEVELS;

	for (u32 i = 0; i < f->nr; i++)
		if (can_fold(f, stacks_fold_slot_at(f, i)))
			of[level_of(f, stacks_fold_slot_at(f, i))] += gain_of(f, stacks_fold_slot_at(f, i));
	while (level < end - 1 && of[level] < left)
		left -= of[level++];
	/* Of equals the latest go: who came first is known to people. */
	for (u32 i = f->nr; i-- > 0;) {
		u32 nr = stacks_fold_slot_at(f, i), mine = can_fold(f, nr) ? level_of(f, nr) : NR_LEVELS;

		f->is_wanted[nr] = mine < level || (mine == level && left);
		if (mine == level && left)
			left -= gain_of(f, nr) < left ? gain_of(f, nr) : left;
	}
}

/* Some stacks that are kept, from everywhere: anchors, from whose frames the lengths of folded stacks come. */
static int choose_anchors(struct folding *f)
{
	const struct stack_table *t = f->table;
	u32 step = t->nr / MAX_ANCHORS + 1;

	f->anchors = calloc(MAX_ANCHORS, sizeof(const struct stack *));
	if (!f->anchors)
		return -ENOMEM;
	for (u32 i = 0; i < t->nr; i += step) {
		u32 nr = i;

		while (nr < t->nr && nr < i + step && (!t->slots[nr].has_frames || f->is_wanted[nr]))
			nr++;
		if (nr < t->nr && nr < i + step)
			f->anchors[f->nr_anchors++] = t->slots[nr].stack;
	}
	qsort(f->anchors, f->nr_anchors, sizeof(const struct stack *), compare_anchors);
	return 0;
}

/* The number of outer frames that are left of @s: those that it shares with a stack that is kept, but not all. */
static u16 depth_left(const struct folding *f, const struct stack *s)
{
	u16 depth = 0, common;
	size_t at = array_search(i, 0, f->nr_anchors, compare_paths(f->anchors[i], s, &common) < 0);

	for (size_t i = at ? at - 1 : 0; i <= at && i < f->nr_anchors; i++) {
		compare_paths(f->anchors[i], s, &common);
		depth = common > depth ? common : depth;
	}
	return depth < path_length(s) ? depth : path_length(s) - 1;
}

/* *@out is the slot whose stack is the @depth outermost frames of @s, a new one if it has to be. 0 or -ENOMEM. */
static int find_outer(struct stack_table *t, const struct stack *s, u16 depth, u32 *out)
{
	struct stack *outer;
	struct stack_slot slot = { .has_frames = true };
	int err = stack_slot_reserve(t, depth + 1, &outer);

	if (err)
		return err;
	outer->end = s->end;
	outer->frames[0] = (struct code_ref){ .offset = STACK_FOLDED_OFFSET };
	for (u16 i = 0; i < depth; i++)
		outer->frames[depth - i] = outer_frame(s, i);
	slot.id = stack_hash(outer);
	*out = stack_slot_find_place(t, outer, slot.id);
	if (*out != HASH_NO_ITEM) {
		stack_drop(t, outer);
		return 0;
	}
	while (slot.id < STACK_FIRST_ID || stack_slot_find(t, slot.id) != HASH_NO_ITEM)
		slot.id++;
	outer->id = slot.id;
	slot.stack = outer;
	*out = stack_slot_add(t, &slot);
	return 0;
}

static int fold_slot(struct folding *f, u32 nr)
{
	struct stack_table *t = f->table;
	struct stack *s = t->slots[nr].stack;
	u32 outer;
	int err = find_outer(t, s, depth_left(f, s), &outer);

	if (err)
		return err;
	hash_index_del(&t->by_place, stack_hash(s), nr);
	t->slots[nr].has_frames = false;
	t->slots[nr].is_used = true;
	t->slots[nr].recorded = s->id;
	t->slots[nr].canonical = outer;
	t->nr_names++;
	stack_drop(t, s);
	return 0;
}

/*
 * Lead each id to a stack that has frames, if that of another one has lost them. Stacks get ever shorter, so there is
 * no circle.
 */
static void lead_on(struct stack_table *t)
{
	for (u32 i = 0; i < t->nr; i++) {
		struct stack_slot *slot = &t->slots[i];

		while (slot->id && !t->slots[slot->canonical].has_frames)
			slot->canonical = t->slots[slot->canonical].canonical;
	}
}

void stack_table_forget(struct stack_table *t)
{
	u64 max = t->budget.limit ? t->budget.limit / BYTES_PER_NAME : MAX_NAMES;

	max = max > MAX_NAMES ? MAX_NAMES : max < MIN_NAMES ? MIN_NAMES : max;
	while (t->nr_names > max) {
		struct stack_slot *slot = &t->slots[t->hand];

		if (slot->id && !slot->has_frames && !slot->is_used)
			stack_slot_del(t, t->hand);
		slot->is_used = false;
		t->hand = (t->hand + 1) % t->nr;
	}
}

bool stack_table_is_crowded(const struct stack_table *t)
{
	return t->by_id.nr >= (t->crowd ? t->crowd : MIN_CROWD);
}

static bool stacks_fold_has_pid(const u32 *pids, size_t nr, u32 pid)
{
	size_t at = array_search(i, 0, nr, pids[i] < pid);

	return pid && at < nr && pids[at] == pid;
}

/* Forget slot @nr, also if it has frames. */
static void stacks_fold_release(struct stack_table *t, u32 nr)
{
	struct stack_slot *slot = &t->slots[nr];

	if (slot->has_frames) {
		hash_index_del(&t->by_place, stack_hash(slot->stack), nr);
		stack_drop(t, slot->stack);
		t->nr_names++;
	}
	stack_slot_del(t, nr);
}

void stack_table_keep(struct stack_table *t, bool *is_used, const u32 *pids, size_t nr_pids)
{
	u32 nr_young = 0;

	lead_on(t);
	for (u32 i = 0; i < t->nr; i++)
		if (t->slots[i].id && (is_used[i] || stacks_fold_has_pid(pids, nr_pids, t->slots[i].pid)))
			is_used[i] = is_used[t->slots[i].canonical] = true;
	for (u32 i = 0; i < t->nr_young; i++)
		if (is_used[t->young[i]])
			t->young[nr_young++] = t->young[i];
	t->nr_young = nr_young;
	for (u32 i = 0; i < t->nr; i++)
		if (t->slots[i].id && !is_used[i])
			stacks_fold_release(t, i);
	t->crowd = 2 * t->by_id.nr > MIN_CROWD ? 2 * t->by_id.nr : MIN_CROWD;
}

void stack_table_name_modules(const struct stack_table *t, bool *is_named)
{
	for (u32 i = 0; i < t->nr; i++)
		for (u16 k = 0; t->slots[i].has_frames && k < t->slots[i].stack->nr_frames; k++)
			is_named[t->slots[i].stack->frames[k].module] = true;
}

void stack_table_age(struct stack_table *t)
{
	t->nr_young = 0;
}

u32 stack_table_young(const struct stack_table *t)
{
	return t->nr_young;
}

int stack_table_fold(struct stack_table *t, const u32 *weights, u64 bytes, bool is_full)
{
	auto_free bool *is_wanted = calloc((size_t)t->nr + 1, sizeof(*is_wanted));
	struct folding f = { .table = t,
			     .weights = weights,
			     .young = is_full ? NULL : t->young,
			     .nr = is_full ? t->nr : t->nr_young,
			     .is_wanted = is_wanted };
	u64 limit = t->budget.limit;
	int err = -ENOMEM;

	if (is_wanted) {
		stacks_fold_choose(&f, bytes);
		err = choose_anchors(&f);
	}
	/* Some stacks are new before others are freed. */
	t->budget.limit = 0;
	for (u32 i = 0; i < f.nr && !err; i++)
		if (is_wanted[stacks_fold_slot_at(&f, i)])
			err = fold_slot(&f, stacks_fold_slot_at(&f, i));
	t->budget.limit = limit;
	free(f.anchors);
	if (is_full)
		lead_on(t);
	stack_table_age(t);
	return err;
}

u32 stack_table_slots(const struct stack_table *t)
{
	return t->nr;
}

u32 stack_table_number(const struct stack_table *t, u64 id)
{
	u32 nr = id < STACK_FIRST_ID ? HASH_NO_ITEM : stack_slot_find(t, id);

	return nr == HASH_NO_ITEM ? nr : t->slots[nr].canonical;
}
