/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A bounded memory of releases, and the wrong ones found by it; filled by heap_check.c. */
#include "user/misuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FREED_BITS = 16, NR_FREED = 1 << FREED_BITS };

static const struct {
	const char *name, *what;
} kinds[] = {
	[MISUSE_MISMATCHED] = { "mismatched-free", "mismatched release" },
	[MISUSE_DOUBLE] = { "double-free", "double release" },
	[MISUSE_BAD_FREE] = { "bad-free", "release of no block" },
	[MISUSE_BAD_REALLOC] = { "bad-realloc", "realloc of no block" },
};
_Static_assert(ARRAY_SIZE(kinds) == NR_MISUSES, "a name for each");

const char *misuse_name(enum misuse_kind kind)
{
	return kinds[kind].name;
}

const char *misuse_what(enum misuse_kind kind)
{
	return kinds[kind].what;
}

int misuse_table_new(struct misuse_table **out, struct budget *budget)
{
	const u64 bytes = sizeof(struct misuse_table) + NR_FREED * sizeof(struct misuse_freed);
	struct misuse_table *t;

	if (!budget_take(budget, bytes))
		return -ENOMEM;
	t = calloc(1, sizeof(*t));
	if (t)
		t->freed = calloc(NR_FREED, sizeof(*t->freed));
	if (!t || !t->freed) {
		free(t);
		budget_give(budget, bytes);
		return -ENOMEM;
	}
	t->budget = budget;
	*out = t;
	return 0;
}

int misuse_table_copy(struct misuse_table **out, const struct misuse_table *t, struct budget *budget)
{
	int err = misuse_table_new(out, budget);

	/* What is empty takes no memory as long as nobody writes there. */
	for (size_t i = 0; !err && t->freed && i < NR_FREED; i++)
		if (t->freed[i].addr)
			(*out)->freed[i] = t->freed[i];
	return err;
}

void misuse_table_end(struct misuse_table *t)
{
	if (!t || !t->freed)
		return;
	free(t->freed);
	t->freed = NULL;
	budget_give(t->budget, NR_FREED * sizeof(*t->freed));
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

static struct misuse_freed *slot_of(const struct misuse_table *t, taddr_t addr)
{
	return &t->freed[(addr * 0x9e3779b97f4a7c15ULL) >> (64 - FREED_BITS)];
}

void misuse_note_freed(struct misuse_table *t, taddr_t addr, u32 alloc_row, const struct heap_event *ev)
{
	if (t->freed)
		*slot_of(t, addr) = (struct misuse_freed){
			.addr = addr, .stack = ev->stack, .alloc_row = alloc_row, .fn = ev->h.fn
		};
}

const struct misuse_freed *misuse_find_freed(const struct misuse_table *t, taddr_t addr)
{
	const struct misuse_freed *f = t->freed ? slot_of(t, addr) : NULL;

	return f && f->addr == addr ? f : NULL;
}

static bool is_alike(const struct misuse *a, const struct misuse *b)
{
	return a->kind == b->kind && a->fn == b->fn && a->alloc_row == b->alloc_row &&
	       a->free_row == b->free_row && a->earlier_row == b->earlier_row;
}

static bool grow(struct misuse_table *t)
{
	size_t max = t->max ? t->max * 2 : 16;
	u64 more = (max - t->max) * sizeof(*t->list);
	struct misuse *list;

	if (t->nr < t->max)
		return true;
	if (t->nr >= MISUSE_MAX || !budget_take(t->budget, more))
		return false;
	list = realloc(t->list, max * sizeof(*list));
	if (!list) {
		budget_give(t->budget, more);
		return false;
	}
	t->list = list;
	t->max = max;
	return true;
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
	if (grow(t))
		t->list[t->nr++] = *m;
	else
		t->counts.nr_dropped += m->count;
}
