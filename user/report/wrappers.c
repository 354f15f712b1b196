/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts, for each frame near the allocator, the places that it is called from and the sizes of its blocks. */
#include "user/report/wrappers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/hash_index.h"

enum {
	MAX_DEPTH = 8,	    /* frames of a stack that are looked at */
	MAX_ROWS = 1 << 16, /* callers that are looked at */
	ENOUGH_CALLERS = 5, /* a function with fewer callers is no wrapper */
	ENOUGH_SIZES = 3,   /* nor is one that makes one kind of block: a constructor */
	NR_KEPT = ENOUGH_CALLERS,
};

/* A frame, and what it was seen with: the first few that differ. */
struct wrapper_frame {
	struct code_ref ref, callers[NR_KEPT];
	u64 sizes[ENOUGH_SIZES]; /* bytes */
	u8 nr_callers, nr_sizes;
};

struct wrappers {
	struct wrapper_frame *list; /* owned */
	size_t nr, max;
	struct hash_index index;
	const char *names; /* borrowed; NULL = none */
};

static u64 wrapper_hash(struct code_ref ref)
{
	return hash_u64(hash_u64(ref.offset) + ref.module);
}

static bool wrapper_is_same(struct code_ref a, struct code_ref b)
{
	return a.module == b.module && a.offset == b.offset;
}

static struct wrapper_frame *wrappers_find(const struct wrappers *w, struct code_ref ref)
{
	u32 item, at = 0;

	while ((item = hash_index_next(&w->index, wrapper_hash(ref), &at)) != HASH_NO_ITEM)
		if (wrapper_is_same(w->list[item].ref, ref))
			return &w->list[item];
	return NULL;
}

static void wrapper_note_caller(struct wrapper_frame *f, struct code_ref caller)
{
	for (u32 i = 0; i < f->nr_callers; i++)
		if (wrapper_is_same(f->callers[i], caller))
			return;
	if (f->nr_callers < NR_KEPT)
		f->callers[f->nr_callers++] = caller;
}

static void wrapper_note_size(struct wrapper_frame *f, u64 size)
{
	for (u32 i = 0; i < f->nr_sizes; i++)
		if (f->sizes[i] == size)
			return;
	if (f->nr_sizes < ENOUGH_SIZES)
		f->sizes[f->nr_sizes++] = size;
}

/* The frame @ref called the allocator, itself or by others, for @caller. */
static int wrappers_note(struct wrappers *w, struct code_ref ref, struct code_ref caller, u64 size)
{
	struct wrapper_frame *f = wrappers_find(w, ref);

	if (!f) {
		if (array_reserve(w->list, w->max, w->nr + 1) ||
		    hash_index_add(&w->index, wrapper_hash(ref), (u32)w->nr))
			return -ENOMEM;
		f = &w->list[w->nr++];
		*f = (struct wrapper_frame){ .ref = ref };
	}
	wrapper_note_caller(f, caller);
	wrapper_note_size(f, size);
	return 0;
}

static int wrappers_look(struct wrappers *w, const struct heap *heap, const struct stack_table *stacks)
{
	size_t nr = heap_row_count(heap);
	int err = 0;

	for (size_t i = 0; i < nr && i < MAX_ROWS && !err; i++) {
		struct heap_row row = heap_row_get(heap, i);
		const struct stack *s = stack_get(stacks, row.stack);
		u64 size = row.allocs ? row.alloc_bytes / row.allocs : 0;

		for (size_t k = 0; s && k + 1 < s->nr_frames && k < MAX_DEPTH && !err; k++)
			err = wrappers_note(w, s->frames[k], s->frames[k + 1], size);
	}
	return err;
}

int wrappers_new(struct wrappers **out, const struct heap *heap, const struct stack_table *stacks,
		 const char *names)
{
	struct wrappers *w = calloc(1, sizeof(*w));
	int err = w ? wrappers_look(w, heap, stacks) : -ENOMEM;

	if (err) {
		wrappers_free(w);
		return err;
	}
	w->names = names;
	*out = w;
	return 0;
}

void wrappers_free(struct wrappers *w)
{
	if (!w)
		return;
	free(w->list);
	hash_index_fini(&w->index);
	free(w);
}

bool wrappers_has(const struct wrappers *w, struct code_ref ref)
{
	const struct wrapper_frame *f = w ? wrappers_find(w, ref) : NULL;

	return f && f->nr_callers >= ENOUGH_CALLERS && f->nr_sizes >= ENOUGH_SIZES;
}

u32 wrappers_callers(const struct wrappers *w, struct code_ref ref)
{
	const struct wrapper_frame *f = w ? wrappers_find(w, ref) : NULL;

	return f ? f->nr_callers : 0;
}

/* Parameters are no part of a name. */
bool wrappers_is_named(const struct wrappers *w, const char *function)
{
	size_t len = strcspn(function, "(");

	for (const char *name = w ? w->names : NULL; name && *name; name += strspn(name, ",")) {
		size_t n = strcspn(name, ",");

		if (n == len && !strncmp(name, function, n))
			return true;
		name += n;
	}
	return false;
}

bool wrappers_has_names(const struct wrappers *w)
{
	return w && w->names;
}

bool wrappers_frame(const struct wrappers *w, size_t i, struct code_ref *ref)
{
	if (!w || i >= w->nr)
		return false;
	*ref = w->list[i].ref;
	return true;
}
