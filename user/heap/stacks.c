/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks, from the source to names and reports: memory for stacks, and hash tables that find them. */
#include "user/heap/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/budget.h"
#include "user/lib/hash_index.h"

enum {
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
	struct stack **stacks; /* owned; the stacks themselves are in chunks; in order of arrival */
	u32 nr, max;
	struct hash_index by_id;
	struct hash_index by_place; /* canonical stacks by their frames */
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
	t->budget.used = sizeof(*t);
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
	free(t->stacks);
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

/* The stack that came as @id, or NULL. */
static struct stack *find_id(const struct stack_table *t, u64 id)
{
	u64 hash = hash_id(id);
	u32 at = 0, i;

	while ((i = hash_index_next(&t->by_id, hash, &at)) != HASH_NO_ITEM)
		if (t->stacks[i]->id == id)
			return t->stacks[i];
	return NULL;
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

/* The canonical stack with the frames of @s, or NULL. */
static const struct stack *find_place(const struct stack_table *t, const struct stack *s, u64 hash)
{
	u32 at = 0, i;

	while ((i = hash_index_next(&t->by_place, hash, &at)) != HASH_NO_ITEM)
		if (is_same_place(t->stacks[i], s))
			return t->stacks[i];
	return NULL;
}

/* Make sure that one more stack can be kept. */
static int reserve(struct stack_table *t)
{
	int err = budget_array(&t->budget, t->stacks, t->max, (size_t)t->nr + 1);

	if (!err)
		err = budget_index(&t->budget, &t->by_id, (size_t)t->by_id.nr + 1);
	return err ? err : budget_index(&t->budget, &t->by_place, (size_t)t->by_place.nr + 1);
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

/* The return address may be the first byte behind the mapping, but the call before it is inside. */
static struct code_ref place_of(const struct mapping_list *maps, taddr_t return_addr)
{
	struct code_ref ref = mapping_ref(maps, return_addr - 1);

	ref.offset++;
	return ref;
}

/*
 * @s is the newest stack in the newest chunk. A stack that equals an earlier one keeps no frames of its own. Needs
 * reserve().
 */
static int keep_stack(struct stack_table *t, struct stack *s)
{
	u64 hash = hash_places(s);
	const struct stack *first = find_place(t, s, hash);
	int err = 0;

	t->stacks[t->nr] = s;
	if (first) {
		t->chunks->used -= s->nr_frames * sizeof(struct code_ref);
		s->nr_frames = 0;
		s->canonical = first->id;
	} else {
		s->canonical = s->id;
		err = hash_index_add(&t->by_place, hash, t->nr);
	}
	if (!err)
		err = hash_index_add(&t->by_id, hash_id(s->id), t->nr);
	t->nr += !err;
	return err;
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
	stack = find_id(t, ev->id);
	if (stack) {
		if (stack->check != check)
			note_false(t, stack);
		return 0;
	}
	err = reserve(t);
	if (err)
		return err;
	err = new_stack(t, nr_frames, &stack);
	if (err)
		return err;
	*stack = (struct stack){ .id = ev->id, .check = check, .nr_frames = nr_frames };
	if (t->checks_ids && stack_event_id(ev) != ev->id)
		note_false(t, stack);
	stack->end = ev->end < NR_STACK_ENDS
			     ? ev->end
			     : STACK_LIMIT; /* a newer source may send another word: not complete */
	for (u16 i = 0; i < nr_frames; i++)
		stack->frames[i] = place_of(maps, ev->ips[i]);
	return keep_stack(t, stack);
}

const struct stack *stack_get(const struct stack_table *t, u64 id)
{
	const struct stack *s = find_id(t, id);

	return s && s->canonical != id ? find_id(t, s->canonical) : s;
}

u64 stack_table_canonical(const struct stack_table *t, u64 id)
{
	const struct stack *s = find_id(t, id);

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
	return t->by_place.nr;
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
