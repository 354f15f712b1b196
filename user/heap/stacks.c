/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks, from the source to names and reports: slots for their ids, and hash tables that find them. */
#include "user/heap/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/stacks_private.h"

int stack_table_new(struct stack_table **out)
{
	struct stack_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->budget.used = sizeof(*t);
	*out = t;
	return 0;
}

void stack_table_free(struct stack_table *t)
{
	if (!t)
		return;
	for (u32 i = 0; i < t->nr; i++)
		if (t->slots[i].has_frames)
			free(t->slots[i].stack);
	free(t->slots);
	free(t->young);
	hash_index_fini(&t->by_id);
	hash_index_fini(&t->by_place);
	free(t);
}

void stack_table_check_ids(struct stack_table *t)
{
	t->checks_ids = true;
}

void stack_table_set_limit(struct stack_table *t, u64 bytes)
{
	t->budget.limit = bytes;
}

static u64 hash_id(u64 id)
{
	return hash_u64(id ^ (id >> 32));
}

u32 stack_slot_find(const struct stack_table *t, u64 id)
{
	u64 hash = hash_id(id);
	u32 at = 0, i;

	while ((i = hash_index_next(&t->by_id, hash, &at)) != HASH_NO_ITEM)
		if (t->slots[i].id == id)
			break;
	return i;
}

u64 stack_hash(const struct stack *s)
{
	u64 h = 0x9e3779b97f4a7c15ULL ^ s->end;

	for (u16 i = 0; i < s->nr_frames; i++) {
		h = (h ^ s->frames[i].offset ^ (u64)s->frames[i].module << 40) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	return h;
}

static bool is_same_place(const struct stack *a, const struct stack *b)
{
	if (a->nr_frames != b->nr_frames || a->end != b->end)
		return false;
	for (u16 i = 0; i < a->nr_frames; i++)
		if (a->frames[i].module != b->frames[i].module || a->frames[i].offset != b->frames[i].offset)
			return false;
	return true;
}

u32 stack_slot_find_place(const struct stack_table *t, const struct stack *s, u64 hash)
{
	u32 at = 0, i;

	while ((i = hash_index_next(&t->by_place, hash, &at)) != HASH_NO_ITEM)
		if (is_same_place(t->slots[i].stack, s))
			break;
	return i;
}

int stack_slot_reserve(struct stack_table *t, u16 nr_frames, struct stack **out)
{
	int err = budget_index(&t->budget, &t->by_id, (size_t)t->by_id.nr + 1);

	if (!err && !t->first_free)
		err = budget_array(&t->budget, t->slots, t->max, (size_t)t->nr + 1);
	if (!err)
		err = budget_index(&t->budget, &t->by_place, (size_t)t->by_place.nr + 1);
	if (!err && !budget_take(&t->budget, stack_bytes(nr_frames)))
		err = -ENOMEM;
	if (err)
		return err;
	*out = malloc(sizeof(**out) + nr_frames * sizeof(struct code_ref));
	if (*out) {
		**out = (struct stack){ .nr_frames = nr_frames };
		return 0;
	}
	budget_give(&t->budget, stack_bytes(nr_frames));
	return -ENOMEM;
}

void stack_drop(struct stack_table *t, struct stack *s)
{
	budget_give(&t->budget, stack_bytes(s->nr_frames));
	free(s);
}

u32 stack_slot_add(struct stack_table *t, const struct stack_slot *slot)
{
	u32 nr = t->first_free ? t->first_free - 1 : t->nr++;
	int err;

	if (t->first_free)
		t->first_free = t->slots[nr].canonical;
	t->slots[nr] = *slot;
	if (slot->has_frames)
		t->slots[nr].canonical = nr;
	/* There is room. */
	err = hash_index_add(&t->by_id, hash_id(slot->id), nr);
	if (!err && slot->has_frames)
		err = hash_index_add(&t->by_place, stack_hash(slot->stack), nr);
	t->nr_names += !slot->has_frames;
	(void)err;
	return nr;
}

void stack_slot_del(struct stack_table *t, u32 nr)
{
	hash_index_del(&t->by_id, hash_id(t->slots[nr].id), nr);
	t->slots[nr] = (struct stack_slot){ .canonical = t->first_free };
	t->first_free = nr + 1;
	t->nr_names--;
}

/* The return address may be the first byte behind the mapping, but the call before it is inside. */
static struct code_ref stacks_place_of(const struct mapping_list *maps, taddr_t return_addr)
{
	struct code_ref ref = mapping_ref(maps, return_addr - 1);

	ref.offset++;
	return ref;
}

/* A hash that differs between two stacks of one id. */
static u64 check_of(const struct stack_event *ev, u16 nr_frames)
{
	u64 check = ((u64)ev->epoch << 32 | ev->h.pid) * 0xd6e8feb86659fd93ULL + ev->end;

	for (u16 i = 0; i < nr_frames; i++) {
		check = (check << 23 | check >> 41) ^ ev->ips[i];
		check *= 0xa0761d6478bd642fULL;
	}
	return check;
}

static void note_false(struct stack_table *t, struct stack_slot *slot)
{
	if (!slot->is_false)
		t->nr_false++;
	slot->is_false = true;
}

/* Enter @slot, whose stack is @s. A stack that equals an earlier one keeps no frames of its own. */
static void keep_stack(struct stack_table *t, struct stack_slot *slot, struct stack *s)
{
	u32 first = stack_slot_find_place(t, s, stack_hash(s));

	slot->has_frames = first == HASH_NO_ITEM;
	if (slot->has_frames) {
		slot->stack = s;
	} else {
		slot->canonical = first;
		slot->recorded = t->slots[first].id;
		stack_drop(t, s);
	}
	first = stack_slot_add(t, slot);
	if (slot->has_frames)
		t->young[t->nr_young++] = first;
}

int stack_table_add(struct stack_table *t, const struct stack_event *ev, const struct mapping_list *maps)
{
	u16 nr_frames = ev->nr_frames < STACK_MAX_FRAMES ? ev->nr_frames : STACK_MAX_FRAMES;
	struct stack_slot slot = { .id = ev->id,
				   .check = check_of(ev, nr_frames),
				   .pid = IS_AGENT ? 0 : ev->h.pid & ~(7U << 29) };
	struct stack *stack;
	u32 known;
	int err;

	if (ev->id < STACK_FIRST_ID)
		return 0;
	known = stack_slot_find(t, ev->id);
	if (known != HASH_NO_ITEM) {
		if (t->slots[known].check != slot.check)
			note_false(t, &t->slots[known]);
		return 0;
	}
	err = budget_array(&t->budget, t->young, t->max_young, (size_t)t->nr_young + 1);
	if (!err)
		err = stack_slot_reserve(t, nr_frames, &stack);
	if (err)
		return err;
	if (t->checks_ids && stack_event_id(ev) != ev->id)
		note_false(t, &slot);
	stack->id = ev->id;
	stack->end = ev->end < NR_STACK_ENDS
			     ? ev->end
			     : STACK_LIMIT; /* a newer source may send another word: not complete */
	for (u16 i = 0; i < nr_frames; i++)
		stack->frames[i] = stacks_place_of(maps, ev->ips[i]);
	keep_stack(t, &slot, stack);
	return 0;
}

const struct stack *stack_get(const struct stack_table *t, u64 id)
{
	u32 nr = stack_slot_find(t, id);

	return nr == HASH_NO_ITEM ? NULL : t->slots[t->slots[nr].canonical].stack;
}

u64 stack_table_canonical(const struct stack_table *t, u64 id)
{
	u32 nr = stack_slot_find(t, id);
	struct stack_slot *slot = &t->slots[nr];

	if (nr == HASH_NO_ITEM)
		return id;
	if (slot->is_false)
		return STACK_LOST;
	if (slot->has_frames)
		return id;
	slot->is_used = true;
	return t->slots[slot->canonical].id;
}

u64 stack_recorded(const struct stack_table *t, u64 id)
{
	u32 nr = id < STACK_FIRST_ID ? HASH_NO_ITEM : stack_slot_find(t, id);

	if (nr == HASH_NO_ITEM)
		return id;
	if (t->slots[nr].is_false)
		return STACK_LOST;
	return t->slots[nr].has_frames ? id : t->slots[nr].recorded;
}

u64 stack_table_false(const struct stack_table *t)
{
	return t->nr_false;
}

u64 stack_table_memory(const struct stack_table *t)
{
	return t->budget.used;
}

const char *stack_end_word(u8 end)
{
	static const char *const words[] = {
		[STACK_COMPLETE] = "complete",	    [STACK_DEPTH] = "depth",
		[STACK_NO_INFO] = "no-unwind-info", [STACK_UNSUPPORTED] = "unsupported",
		[STACK_UNREADABLE] = "unreadable",  [STACK_NOT_GROWING] = "not-growing",
		[STACK_UNMAPPED] = "unmapped",	    [STACK_LIMIT] = "limit",
		[STACK_GUESSED] = "frame-pointers", [STACK_STALE] = "stale-mappings",
	};
	_Static_assert(ARRAY_SIZE(words) == NR_STACK_ENDS, "a word for each end");

	return end < NR_STACK_ENDS ? words[end] : "unsupported";
}
