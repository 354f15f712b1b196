/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The latest releases in a table of bounded size, and the list of wrong ones. */
#include "user/heap/misuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_BITS = 10, MAX_BITS = 16 };

static const struct {
	const char *name, *what, *many;
	bool is_mismatch;
} kinds[] = {
	[MISUSE_MISMATCHED] = { "mismatched-free", "mismatched release", "mismatched releases", true },
	[MISUSE_DOUBLE] = { "double-free", "double release", "double releases" },
	[MISUSE_BAD_FREE] = { "bad-free", "release of no block", "releases of no block" },
	[MISUSE_BAD_REALLOC] = { "bad-realloc", "realloc of no block", "reallocs of no block" },
	[MISUSE_SIZE] = { "size-mismatch", "wrong size", "wrong sizes", true },
	[MISUSE_ALIGNMENT] = { "alignment-mismatch", "wrong alignment", "wrong alignments", true },
};
_Static_assert(ARRAY_SIZE(kinds) == NR_MISUSES, "one name each");

const char *misuse_name(enum misuse_kind kind)
{
	return kinds[kind].name;
}

const char *misuse_what(enum misuse_kind kind, u64 count)
{
	return count == 1 ? kinds[kind].what : kinds[kind].many;
}

static const struct {
	const char *name, *what;
} notices[] = {
	[NOTICE_REALLOC_ZERO] = { "realloc-zero", "realloc to size 0" },
	[NOTICE_BAD_ALIGNMENT] = { "bad-alignment", "bad alignment" },
	[NOTICE_HUGE_SIZE] = { "huge-size", "allocation of a size that is most likely a negative number" },
};
_Static_assert(ARRAY_SIZE(notices) == NR_NOTICES_KINDS, "one name each");

const char *notice_name(enum notice_kind kind)
{
	return notices[kind].name;
}

const char *notice_what(enum notice_kind kind)
{
	return notices[kind].what;
}

bool misuse_is_mismatch(enum misuse_kind kind)
{
	return kinds[kind].is_mismatch;
}

static struct misuse_freed *misuse_slot_of(const struct misuse_table *t, taddr_t addr)
{
	return &t->freed[(addr * 0x9e3779b97f4a7c15ULL) >> (64 - t->bits)];
}

static u64 freed_bytes(u32 bits)
{
	return sizeof(struct misuse_freed) << bits;
}

/* Replace the table of releases by one of 1 << @bits. -ENOMEM: the old one stays. */
static int misuse_set_size(struct misuse_table *t, u32 bits)
{
	struct misuse_freed *freed, *old = t->freed;
	u32 old_bits = t->bits;

	if (!budget_take(t->budget, freed_bytes(bits)))
		return -ENOMEM;
	freed = calloc(1UL << bits, sizeof(*freed));
	if (!freed) {
		budget_give(t->budget, freed_bytes(bits));
		return -ENOMEM;
	}
	t->freed = freed;
	t->bits = bits;
	if (!old)
		return 0;
	for (u64 i = 0; i < 1UL << old_bits; i++)
		if (old[i].addr)
			*misuse_slot_of(t, old[i].addr) = old[i];
	free(old);
	budget_give(t->budget, freed_bytes(old_bits));
	return 0;
}

static int new_table(struct misuse_table **out, struct budget *budget, u32 bits)
{
	struct misuse_table *t;

	if (!budget_take(budget, sizeof(*t)))
		return -ENOMEM;
	t = calloc(1, sizeof(*t));
	if (!t) {
		budget_give(budget, sizeof(*t));
		return -ENOMEM;
	}
	t->budget = budget;
	if (misuse_set_size(t, bits)) {
		free(t);
		budget_give(budget, sizeof(*t));
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

int misuse_table_new(struct misuse_table **out, struct budget *budget)
{
	return new_table(out, budget, MIN_BITS);
}

int misuse_table_copy(struct misuse_table **out, const struct misuse_table *t, struct budget *budget)
{
	int err = new_table(out, budget, t->bits);

	if (err)
		return err;
	if (t->freed)
		memcpy((*out)->freed, t->freed, freed_bytes(t->bits));
	(*out)->nr_noted = t->nr_noted;
	return 0;
}

void misuse_table_end(struct misuse_table *t)
{
	if (!t || !t->freed)
		return;
	free(t->freed);
	t->freed = NULL;
	budget_give(t->budget, freed_bytes(t->bits));
}

void misuse_table_free(struct misuse_table *t)
{
	if (!t)
		return;
	misuse_table_end(t);
	budget_give(t->budget, sizeof(*t) + t->max * sizeof(*t->list));
	free(t->list);
	free(t);
}

void misuse_note_freed(struct misuse_table *t, taddr_t addr, u32 alloc_row, const struct heap_event *ev)
{
	if (!t->freed)
		return;
	/* The table begins small, because a process may have many small children. Without memory it does not grow. */
	if (++t->nr_noted >> t->bits && t->bits < MAX_BITS && misuse_set_size(t, t->bits + 1))
		t->nr_noted = 0;
	*misuse_slot_of(t, addr) = (struct misuse_freed){
		.addr = addr, .stack = ev->stack, .alloc_row = alloc_row, .fn = ev->h.fn
	};
}

const struct misuse_freed *misuse_find_freed(const struct misuse_table *t, taddr_t addr)
{
	const struct misuse_freed *f = t->freed ? misuse_slot_of(t, addr) : NULL;

	return f && f->addr == addr ? f : NULL;
}

static bool is_alike(const struct misuse *a, const struct misuse *b)
{
	return a->kind == b->kind && a->fn == b->fn && a->alloc_row == b->alloc_row &&
	       a->free_row == b->free_row && a->earlier_row == b->earlier_row;
}

void misuse_add(struct misuse_table *t, const struct misuse *m)
{
	t->counts.of[m->kind] += m->count;
	for (size_t i = 0; i < t->nr; i++) {
		if (!is_alike(&t->list[i], m))
			continue;
		t->list[i].count += m->count;
		t->list[i].time_ns = m->time_ns;
		return;
	}
	if (t->nr >= MISUSE_MAX || budget_array(t->budget, t->list, t->max, t->nr + 1))
		t->counts.nr_dropped += m->count;
	else
		t->list[t->nr++] = *m;
}
