/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks, from the collector to names and reports: an arena of stacks and a hash of their ids. */
#include "user/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/budget.h"

enum {
	FIRST_BITS = 8,
	MAX_BITS = 31,
	FIRST_CHUNK = 4096, /* bytes; most processes have few stacks */
	MAX_CHUNK = 256 * 1024,
};

/* Stacks are cut from chunks that double in size up to MAX_CHUNK. */
struct chunk {
	struct chunk *next; /* owned; older */
	size_t size;	    /* bytes of this chunk, header included */
	size_t used;
};

struct stack_table {
	struct budget budget;
	struct chunk *chunks;  /* owned; newest first */
	struct stack **slots;  /* owned; open addressing by id, NULL = empty */
	struct stack **places; /* owned; the same for canonical stacks by what is in them */
	u32 slot_bits;	       /* 1 << slot_bits of each */
	u32 nr, nr_canonical;
	bool checks_ids;
	u64 nr_false;
};

_Static_assert(sizeof(struct chunk) + sizeof(struct stack) + STACK_MAX_FRAMES * sizeof(struct code_ref) <=
		       (size_t)FIRST_CHUNK,
	       "each stack fits in a chunk");

int stack_table_new(struct stack_table **out)
{
	struct stack_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->slot_bits = FIRST_BITS;
	t->slots = calloc(1UL << FIRST_BITS, sizeof(struct stack *));
	t->places = calloc(1UL << FIRST_BITS, sizeof(struct stack *));
	if (!t->slots || !t->places) {
		stack_table_free(t);
		return -ENOMEM;
	}
	t->budget.used = sizeof(*t) + 2 * (sizeof(struct stack *) << FIRST_BITS);
	*out = t;
	return 0;
}

void stack_table_free(struct stack_table *t)
{
	if (!t)
		return;
	while (t->chunks) {
		struct chunk *c = t->chunks;

		t->chunks = c->next;
		free(c);
	}
	free(t->slots);
	free(t->places);
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

/* Where the stack @id is, or the empty slot where it belongs. */
static struct stack **slot_of(struct stack **slots, u32 bits, u64 id)
{
	u32 mask = (1U << bits) - 1;
	u32 i = (id ^ (id >> 32)) * 0x9e3779b97f4a7c15ULL >> (64 - bits);

	while (slots[i] && slots[i]->id != id)
		i = (i + 1) & mask;
	return &slots[i];
}

static u64 hash_places(const struct stack *s)
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

/* Where a canonical stack with the places of @s is, or the empty slot where it belongs. */
static struct stack **place_slot(struct stack **places, u32 bits, const struct stack *s)
{
	u32 mask = (1U << bits) - 1;
	u32 i = hash_places(s) >> (64 - bits);

	while (places[i] && !is_same_place(places[i], s))
		i = (i + 1) & mask;
	return &places[i];
}

static int grow_slots(struct stack_table *t)
{
	u32 bits = t->slot_bits + 1;
	u64 bytes = 2 * ((u64)sizeof(struct stack *) << bits);
	struct stack **slots, **places;

	if (bits > MAX_BITS || !budget_take(&t->budget, bytes))
		return -ENOMEM;
	slots = calloc(1UL << bits, sizeof(struct stack *));
	places = calloc(1UL << bits, sizeof(struct stack *));
	if (!slots || !places) {
		budget_give(&t->budget, bytes);
		free(slots);
		free(places);
		return -ENOMEM;
	}
	for (u32 i = 0; i < 1U << t->slot_bits; i++) {
		if (t->slots[i])
			*slot_of(slots, bits, t->slots[i]->id) = t->slots[i];
		if (t->places[i])
			*place_slot(places, bits, t->places[i]) = t->places[i];
	}
	budget_give(&t->budget, bytes / 2);
	free(t->slots);
	free(t->places);
	t->slots = slots;
	t->places = places;
	t->slot_bits = bits;
	return 0;
}

static int add_chunk(struct stack_table *t)
{
	size_t size = t->chunks ? t->chunks->size * 2 : (size_t)FIRST_CHUNK;
	struct chunk *c;

	if (size > MAX_CHUNK)
		size = MAX_CHUNK;
	if (!budget_take(&t->budget, size))
		return -ENOMEM;
	c = malloc(size);
	if (!c) {
		budget_give(&t->budget, size);
		return -ENOMEM;
	}
	c->next = t->chunks;
	c->size = size;
	c->used = sizeof(*c);
	t->chunks = c;
	return 0;
}

static int new_stack(struct stack_table *t, u16 nr_frames, struct stack **out)
{
	size_t size = sizeof(struct stack) + nr_frames * sizeof(struct code_ref);
	int err;

	if (!t->chunks || t->chunks->size - t->chunks->used < size) {
		err = add_chunk(t);
		if (err)
			return err;
	}
	*out = (struct stack *)((char *)t->chunks + t->chunks->used);
	t->chunks->used += size;
	return 0;
}

/* The call lies before its return address, which may be the first byte behind the mapping. */
static struct code_ref place_of(const struct mapping_list *maps, taddr_t return_addr)
{
	struct code_ref ref = mapping_ref(maps, return_addr - 1);

	ref.offset++;
	return ref;
}

/* @s is the newest in the newest chunk. One that equals an earlier one keeps no frames of its own. */
static void keep_stack(struct stack_table *t, struct stack *s)
{
	struct stack **first = place_slot(t->places, t->slot_bits, s);

	if (*first) {
		t->chunks->used -= s->nr_frames * sizeof(struct code_ref);
		s->nr_frames = 0;
		s->canonical = (*first)->id;
	} else {
		*first = s;
		s->canonical = s->id;
		t->nr_canonical++;
	}
	*slot_of(t->slots, t->slot_bits, s->id) = s;
	t->nr++;
}

/* Two stacks of one id differ in this. */
static u64 check_of(const struct stack_event *ev, u16 nr_frames)
{
	u64 check = ((u64)ev->epoch << 32 | ev->h.pid) * 0xd6e8feb86659fd93ULL + ev->end;

	for (u16 i = 0; i < nr_frames; i++) {
		check = (check << 23 | check >> 41) ^ ev->ips[i];
		check *= 0xa0761d6478bd642fULL;
	}
	return check;
}

static void note_false(struct stack_table *t, struct stack *s)
{
	if (!s->is_false)
		t->nr_false++;
	s->is_false = true;
}

int stack_table_add(struct stack_table *t, const struct stack_event *ev, const struct mapping_list *maps)
{
	u16 nr_frames = ev->nr_frames < STACK_MAX_FRAMES ? ev->nr_frames : STACK_MAX_FRAMES;
	u64 check = check_of(ev, nr_frames);
	struct stack *stack;
	int err;

	if (ev->id < STACK_FIRST_ID)
		return 0;
	stack = *slot_of(t->slots, t->slot_bits, ev->id);
	if (stack) {
		if (stack->check != check)
			note_false(t, stack);
		return 0;
	}
	if (t->nr >= (1U << t->slot_bits) / 4 * 3) {
		err = grow_slots(t);
		if (err)
			return err;
	}
	err = new_stack(t, nr_frames, &stack);
	if (err)
		return err;
	*stack = (struct stack){ .id = ev->id, .check = check, .nr_frames = nr_frames };
	if (t->checks_ids && stack_event_id(ev) != ev->id)
		note_false(t, stack);
	stack->end =
		ev->end < NR_STACK_ENDS ? ev->end : STACK_LIMIT; /* a newer source's word: not complete */
	for (u16 i = 0; i < nr_frames; i++)
		stack->frames[i] = place_of(maps, ev->ips[i]);
	keep_stack(t, stack);
	return 0;
}

const struct stack *stack_get(const struct stack_table *t, u64 id)
{
	const struct stack *s = *slot_of(t->slots, t->slot_bits, id);

	return s && s->canonical != id ? *slot_of(t->slots, t->slot_bits, s->canonical) : s;
}

u64 stack_canonical(const struct stack_table *t, u64 id)
{
	const struct stack *s = *slot_of(t->slots, t->slot_bits, id);

	if (s && s->is_false)
		return STACK_LOST;
	return s ? s->canonical : id;
}

u64 stack_table_false(const struct stack_table *t)
{
	return t->nr_false;
}

size_t stack_count(const struct stack_table *t)
{
	return t->nr_canonical;
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
