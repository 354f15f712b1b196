/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of the functions that allocators have beside malloc and its kin. */
#include "user/target/own_api.h"

#include <stdio.h>
#include <string.h>

enum {
	MIN_FOUND = 3, /* one name, or two, may be those of anything */
	NR_IN_HEAPS = 28,
};

/* The work of a function, and positions of its arguments, as in struct alloc_fn. */
#define GIVES(...)  .kind = ALLOC_MALLOC, .family = FAMILY_CUSTOM, __VA_ARGS__
#define MOVES(...)  .kind = ALLOC_REALLOC, .family = FAMILY_CUSTOM, __VA_ARGS__
#define STORES(...) .kind = ALLOC_OUT, .family = FAMILY_CUSTOM, __VA_ARGS__
#define ASKS	    .kind = ALLOC_FREE /* of no block: it gets no probe */
#define ENDS(n)	    .kind = ALLOC_DELETE, .family = FAMILY_CUSTOM, .old_arg = (n)
#define FREES(n)    .kind = ALLOC_FREE, .family = FAMILY_CUSTOM, .old_arg = (n)
#define SIZE(n)	    .size_arg = (n)
#define COUNT(n)    .count_arg = (n)
#define OLD(n)	    .old_arg = (n)
#define OUT(n)	    .out_arg = (n)
#define ALIGN(n)    .align_arg = (n)

/*
 * Rows of all tables: .symbol is the name without its prefix. The first ones of a table are those that only this
 * allocator has. The size that a release says may be any up to the usable one, so it is not read.
 */
static const struct alloc_fn jemalloc[] = {
	{ "mallocx", GIVES(SIZE(1)) },
	{ "rallocx", MOVES(OLD(1), SIZE(2)) },
	{ "xallocx", .kind = ALLOC_RESIZE, .family = FAMILY_CUSTOM, OLD(1), SIZE(2) },
	{ "sallocx", ASKS },
	{ "nallocx", ASKS },
	{ "dallocx", FREES(1) },
	{ "sdallocx", FREES(1) },
	{ "malloc", GIVES(SIZE(1)) },
	{ "calloc", GIVES(COUNT(1), SIZE(2)) },
	{ "realloc", MOVES(OLD(1), SIZE(2)) },
	{ "free", FREES(1) },
	{ "posix_memalign", STORES(OUT(1), ALIGN(2), SIZE(3)) },
	{ "aligned_alloc", GIVES(ALIGN(1), SIZE(2)) },
	{ "memalign", GIVES(ALIGN(1), SIZE(2)) },
	{ "valloc", GIVES(SIZE(1)) },
};

/* The first NR_IN_HEAPS exist for heaps too, as mi_heap_malloc: with the heap before these arguments. */
static const struct alloc_fn mimalloc[] = {
	{ "malloc", GIVES(SIZE(1)) },
	{ "malloc_small", GIVES(SIZE(1)) },
	{ "zalloc", GIVES(SIZE(1)) },
	{ "zalloc_small", GIVES(SIZE(1)) },
	{ "calloc", GIVES(COUNT(1), SIZE(2)) },
	{ "mallocn", GIVES(COUNT(1), SIZE(2)) },
	{ "malloc_aligned", GIVES(SIZE(1), ALIGN(2)) },
	{ "malloc_aligned_at", GIVES(SIZE(1)) },
	{ "zalloc_aligned", GIVES(SIZE(1), ALIGN(2)) },
	{ "zalloc_aligned_at", GIVES(SIZE(1)) },
	{ "calloc_aligned", GIVES(COUNT(1), SIZE(2), ALIGN(3)) },
	{ "calloc_aligned_at", GIVES(COUNT(1), SIZE(2)) },
	{ "realloc", MOVES(OLD(1), SIZE(2)) },
	{ "realloc_aligned", MOVES(OLD(1), SIZE(2)) },
	{ "realloc_aligned_at", MOVES(OLD(1), SIZE(2)) },
	{ "reallocf", MOVES(OLD(1), SIZE(2)) },
	{ "reallocn", MOVES(OLD(1), COUNT(2), SIZE(3)) },
	{ "rezalloc", MOVES(OLD(1), SIZE(2)) },
	{ "rezalloc_aligned", MOVES(OLD(1), SIZE(2)) },
	{ "rezalloc_aligned_at", MOVES(OLD(1), SIZE(2)) },
	{ "recalloc", MOVES(OLD(1), COUNT(2), SIZE(3)) },
	{ "recalloc_aligned", MOVES(OLD(1), COUNT(2), SIZE(3)) },
	{ "recalloc_aligned_at", MOVES(OLD(1), COUNT(2), SIZE(3)) },
	{ "alloc_new", GIVES(SIZE(1), .can_throw = true) },
	{ "alloc_new_n", GIVES(COUNT(1), SIZE(2), .can_throw = true) },
	/* How long the string is no argument says: blocks of 0 bytes. */
	{ "strdup", GIVES() },
	{ "strndup", GIVES() },
	/* With a buffer, the result is that buffer. */
	{ "realpath", GIVES(OUT(2)) },
	{ "reallocarray", MOVES(OLD(1), COUNT(2), SIZE(3)) },
	{ "aligned_recalloc", MOVES(OLD(1), COUNT(2), SIZE(3)) },
	{ "aligned_offset_recalloc", MOVES(OLD(1), COUNT(2), SIZE(3)) },
	{ "expand", MOVES(OLD(1), SIZE(2)) },
	{ "new", GIVES(SIZE(1), .can_throw = true) },
	{ "new_n", GIVES(COUNT(1), SIZE(2), .can_throw = true) },
	{ "new_aligned", GIVES(SIZE(1), ALIGN(2), .can_throw = true) },
	{ "new_nothrow", GIVES(SIZE(1)) },
	{ "new_aligned_nothrow", GIVES(SIZE(1), ALIGN(2)) },
	{ "new_realloc", MOVES(OLD(1), SIZE(2), .can_throw = true) },
	{ "new_reallocn", MOVES(OLD(1), COUNT(2), SIZE(3), .can_throw = true) },
	{ "posix_memalign", STORES(OUT(1), ALIGN(2), SIZE(3)) },
	{ "aligned_alloc", GIVES(ALIGN(1), SIZE(2)) },
	{ "memalign", GIVES(ALIGN(1), SIZE(2)) },
	{ "valloc", GIVES(SIZE(1)) },
	{ "pvalloc", GIVES(SIZE(1)) },
	{ "mbsdup", GIVES() },
	{ "wcsdup", GIVES() },
	/* The size of the block is told, too. */
	{ "umalloc", GIVES(SIZE(1)) },
	{ "umalloc_small", GIVES(SIZE(1)) },
	{ "uzalloc_small", GIVES(SIZE(1)) },
	{ "umalloc_aligned", GIVES(SIZE(1), ALIGN(2)) },
	{ "uzalloc_aligned", GIVES(SIZE(1), ALIGN(2)) },
	{ "ucalloc", GIVES(COUNT(1), SIZE(2)) },
	{ "urealloc", MOVES(OLD(1), SIZE(2)) },
	{ "ufree", FREES(1) },
	{ "heap_delete", ENDS(1) },
	{ "theap_delete", ENDS(1) },
	{ "heap_destroy", .kind = ALLOC_DESTROY, .family = FAMILY_CUSTOM, OLD(1) },
	{ "theap_destroy", .kind = ALLOC_DESTROY, .family = FAMILY_CUSTOM, OLD(1) },
	{ "free", FREES(1) },
	{ "cfree", FREES(1) },
	{ "free_size", FREES(1) },
	{ "free_size_aligned", FREES(1) },
	{ "free_aligned", FREES(1) },
	{ "free_small", FREES(1) },
};

/* Since 3.2 the ends of threads and of the process release what the allocator took unseen. */
static const struct alloc_fn mimalloc_inner[] = {
	{ "thread_done", ENDS(0) },
	{ "thread_locals_thread_done", ENDS(0) },
	{ "thread_locals_done", ENDS(0) },
};

static const struct alloc_fn tcmalloc[] = {
	{ "malloc", GIVES(SIZE(1)) },
	{ "malloc_skip_new_handler", GIVES(SIZE(1)) },
	{ "calloc", GIVES(COUNT(1), SIZE(2)) },
	{ "realloc", MOVES(OLD(1), SIZE(2)) },
	{ "posix_memalign", STORES(OUT(1), ALIGN(2), SIZE(3)) },
	{ "memalign", GIVES(ALIGN(1), SIZE(2)) },
	{ "valloc", GIVES(SIZE(1)) },
	{ "pvalloc", GIVES(SIZE(1)) },
	{ "new", GIVES(SIZE(1), .can_throw = true) },
	{ "new_nothrow", GIVES(SIZE(1)) },
	{ "new_aligned", GIVES(SIZE(1), ALIGN(2), .can_throw = true) },
	{ "new_aligned_nothrow", GIVES(SIZE(1), ALIGN(2)) },
	{ "newarray", GIVES(SIZE(1), .can_throw = true) },
	{ "newarray_nothrow", GIVES(SIZE(1)) },
	{ "newarray_aligned", GIVES(SIZE(1), ALIGN(2), .can_throw = true) },
	{ "newarray_aligned_nothrow", GIVES(SIZE(1), ALIGN(2)) },
	{ "free", FREES(1) },
	{ "free_sized", FREES(1) },
	{ "cfree", FREES(1) },
	{ "delete", FREES(1) },
	{ "delete_sized", FREES(1) },
	{ "delete_nothrow", FREES(1) },
	{ "delete_aligned", FREES(1) },
	{ "delete_aligned_nothrow", FREES(1) },
	{ "delete_sized_aligned", FREES(1) },
	{ "deletearray", FREES(1) },
	{ "deletearray_sized", FREES(1) },
	{ "deletearray_nothrow", FREES(1) },
	{ "deletearray_aligned", FREES(1) },
	{ "deletearray_aligned_nothrow", FREES(1) },
	{ "deletearray_sized_aligned", FREES(1) },
};

static const struct alloc_fn rpmalloc[] = {
	{ "malloc", GIVES(SIZE(1)) },
	{ "zalloc", GIVES(SIZE(1)) },
	{ "calloc", GIVES(COUNT(1), SIZE(2)) },
	{ "realloc", MOVES(OLD(1), SIZE(2)) },
	{ "aligned_realloc", MOVES(OLD(1), SIZE(3)) },
	{ "aligned_alloc", GIVES(ALIGN(1), SIZE(2)) },
	{ "aligned_zalloc", GIVES(ALIGN(1), SIZE(2)) },
	{ "aligned_calloc", GIVES(ALIGN(1), COUNT(2), SIZE(3)) },
	{ "memalign", GIVES(ALIGN(1), SIZE(2)) },
	{ "posix_memalign", STORES(OUT(1), ALIGN(2), SIZE(3)) },
	{ "malloc_heap_alloc", GIVES(SIZE(2)) },
	{ "malloc_heap_aligned_alloc", GIVES(ALIGN(2), SIZE(3)) },
	{ "malloc_heap_calloc", GIVES(COUNT(2), SIZE(3)) },
	{ "malloc_heap_aligned_calloc", GIVES(ALIGN(2), COUNT(3), SIZE(4)) },
	{ "malloc_heap_realloc", MOVES(OLD(2), SIZE(3)) },
	{ "malloc_heap_aligned_realloc", MOVES(OLD(2), SIZE(4)) },
	{ "malloc_heap_free", FREES(2) },
	{ "malloc_heap_free_all", .kind = ALLOC_DESTROY, .family = FAMILY_CUSTOM, OLD(1) },
	{ "free", FREES(1) },
};

/* snmalloc as Rust has it. */
static const struct alloc_fn snmalloc[] = {
	{ "rust_alloc", GIVES(ALIGN(1), SIZE(2)) },
	{ "rust_alloc_zeroed", GIVES(ALIGN(1), SIZE(2)) },
	{ "rust_realloc", MOVES(OLD(1), SIZE(4)) },
	{ "rust_dealloc", FREES(1) },
	{ "malloc", GIVES(SIZE(1)) },
	{ "calloc", GIVES(COUNT(1), SIZE(2)) },
	{ "realloc", MOVES(OLD(1), SIZE(2)) },
	{ "free", FREES(1) },
};

#define TABLE(fns) fns, ARRAY_SIZE(fns)

static const struct {
	const char *kind, *prefix; /* NULL: any */
	const struct alloc_fn *fns;
	u8 nr, nr_telling; /* only this allocator has the first ones */
	u8 nr_in_heaps;
	u8 nr_enough; /* so many of its names need no proof */
} allocators[] = {
	{ "jemalloc", NULL, TABLE(jemalloc), 7, 0, 6 },
	{ "mimalloc", "mi_", TABLE(mimalloc), ARRAY_SIZE(mimalloc), NR_IN_HEAPS, 12 },
	{ "mimalloc", "_mi_", TABLE(mimalloc_inner), ARRAY_SIZE(mimalloc_inner), 0, 3 },
	{ "tcmalloc", "tc_", TABLE(tcmalloc), ARRAY_SIZE(tcmalloc), 0, 12 },
	{ "rpmalloc", "rp", TABLE(rpmalloc), ARRAY_SIZE(rpmalloc), 0, 12 },
	{ "snmalloc", "sn_", TABLE(snmalloc), ARRAY_SIZE(snmalloc), 0, ARRAY_SIZE(snmalloc) },
};

/*
 * A library may call anything mallocx or mi_free. These functions prove that names of the allocator mean what they say:
 * no linker leaves out all of those that its allocator has.
 */
static const struct {
	const char *kind, *symbol;
} proofs[] = {
	{ "mimalloc", "mi_usable_size" },	{ "mimalloc", "_mi_malloc_generic" },
	{ "tcmalloc", "tc_malloc_size" },	{ "tcmalloc", "tc_set_new_mode" },
	{ "rpmalloc", "rpmalloc_usable_size" }, { "rpmalloc", "rpmalloc_thread_initialize" },
	{ "snmalloc", "sn_rust_alloc" },	{ "snmalloc", "sn_malloc_usable_size" },
};
/* Parts of names that jemalloc has under any prefix; the second one is of functions within it. */
static const char control[] = "mallctl", inner[] = "je_arena_";

_Static_assert(ARRAY_SIZE(mimalloc) <= 64, "own_api.found has a bit for each");

/* The rest of @name behind @begin; NULL if it begins otherwise. */
static const char *own_api_behind(const char *name, const char *begin)
{
	size_t len = strlen(begin);

	return strncmp(name, begin, len) ? NULL : name + len;
}

/* @name without the word that the functions of heaps have. */
static const char *without_heap(const char *name)
{
	const char *rest = own_api_behind(name, "heap_");

	rest = rest ? rest : own_api_behind(name, "theap_");
	return rest ? rest : name;
}

/* The row of allocator @a for the name @stem without prefix, or NULL. *@in_heap: a heap is before the arguments. */
static const struct alloc_fn *row_of_stem(size_t a, const char *stem, bool *in_heap)
{
	const char *in_all = without_heap(stem);

	for (size_t i = 0; i < allocators[a].nr; i++) {
		const struct alloc_fn *row = &allocators[a].fns[i];

		*in_heap = i < allocators[a].nr_in_heaps && in_all != stem && !strcmp(row->symbol, in_all);
		if (*in_heap || !strcmp(row->symbol, stem))
			return row;
	}
	return NULL;
}

static void note_found(struct own_api_list *list, size_t a, const char *prefix, size_t prefix_len, size_t i)
{
	size_t at = 0;

	while (at < list->nr &&
	       (list->apis[at].allocator != a || strncmp(list->apis[at].prefix, prefix, prefix_len) ||
		list->apis[at].prefix[prefix_len]))
		at++;
	if (at == OWN_API_MAX || prefix_len >= OWN_API_PREFIX_BYTES)
		return;
	if (at == list->nr) {
		list->apis[list->nr++] = (struct own_api){ .allocator = (u8)a };
		memcpy(list->apis[at].prefix, prefix, prefix_len);
	}
	list->apis[at].found |= 1ULL << i;
}

/* With any prefix: the longest name that @symbol ends with. */
static void see_ending(struct own_api_list *list, size_t a, const char *symbol)
{
	size_t len = strlen(symbol), longest = 0, found = 0;

	for (size_t i = 0; i < allocators[a].nr_telling; i++) {
		size_t n = strlen(allocators[a].fns[i].symbol);

		if (n <= longest || n > len || strcmp(symbol + len - n, allocators[a].fns[i].symbol))
			continue;
		longest = n;
		found = i;
	}
	if (longest)
		note_found(list, a, symbol, len - longest, found);
}

/* The allocator that @symbol proves, or NULL. */
static const char *kind_proved(const char *symbol)
{
	size_t len = strlen(symbol), n = sizeof(control) - 1;

	if ((len >= n && !strcmp(symbol + len - n, control)) || strstr(symbol, inner))
		return "jemalloc";
	for (size_t i = 0; i < ARRAY_SIZE(proofs); i++)
		if (!strcmp(symbol, proofs[i].symbol))
			return proofs[i].kind;
	return NULL;
}

void own_api_see(struct own_api_list *list, const char *symbol)
{
	const char *kind = kind_proved(symbol);

	for (size_t a = 0; a < ARRAY_SIZE(allocators); a++) {
		const char *prefix = allocators[a].prefix,
			   *stem = prefix ? own_api_behind(symbol, prefix) : NULL;
		const struct alloc_fn *row;
		bool in_heap;

		if (!prefix)
			see_ending(list, a, symbol);
		row = stem ? row_of_stem(a, stem, &in_heap) : NULL;
		if (row)
			note_found(list, a, prefix, strlen(prefix), (size_t)(row - allocators[a].fns));
		if (kind && !strcmp(kind, allocators[a].kind))
			list->proved |= 1U << a;
	}
}

size_t own_api_settle(struct own_api_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->nr; i++) {
		const struct own_api *api = &list->apis[i];
		u8 nr_enough =
			list->proved >> api->allocator & 1 ? MIN_FOUND : allocators[api->allocator].nr_enough;

		if (__builtin_popcountll(api->found) >= nr_enough)
			list->apis[kept++] = *api;
	}
	return list->nr = kept;
}

/* Where argument @n is, if one stands before all others. */
static u8 own_api_shifted(u8 n, bool is_shifted)
{
	return n && is_shifted ? n + 1 : n;
}

int own_api_row(const struct own_api_list *list, struct alloc_table *table, const char *symbol,
		const char **kind)
{
	for (size_t i = 0; i < list->nr; i++) {
		const struct own_api *api = &list->apis[i];
		const char *stem = own_api_behind(symbol, api->prefix);
		const struct alloc_fn *found;
		struct alloc_fn row;
		bool in_heap;
		u16 known;

		found = stem ? row_of_stem(api->allocator, stem, &in_heap) : NULL;
		if (!found || (found->kind == ALLOC_FREE && !found->old_arg))
			continue;
		*kind = allocators[api->allocator].kind;
		known = alloc_fn_find(table, symbol);
		if (known)
			return known;
		row = *found;
		row.symbol = row.name = symbol;
		row.size_arg = own_api_shifted(row.size_arg, in_heap);
		row.count_arg = own_api_shifted(row.count_arg, in_heap);
		row.old_arg = own_api_shifted(row.old_arg, in_heap);
		row.out_arg = own_api_shifted(row.out_arg, in_heap);
		row.align_arg = own_api_shifted(row.align_arg, in_heap);
		return alloc_fn_add(table, &row);
	}
	return 0;
}
