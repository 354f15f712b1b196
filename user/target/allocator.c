/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of allocator functions. */
#include "user/target/allocator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Rows may be in any order: events carry the row, recordings the name. The C++ names are those of the Itanium C++ ABI,
 * with size_t as unsigned long (m) and, on 32-bit targets, unsigned int (j).
 */
static const struct alloc_fn builtin[] = {
	{ "", "unknown", ALLOC_MALLOC, FAMILY_CUSTOM, .size_arg = 0 },
	{ "malloc", "malloc", ALLOC_MALLOC, FAMILY_MALLOC, .size_arg = 1 },
	{ "calloc", "calloc", ALLOC_MALLOC, FAMILY_MALLOC, .size_arg = 2, .count_arg = 1 },
	{ "realloc", "realloc", ALLOC_REALLOC, FAMILY_MALLOC, .size_arg = 2, .old_arg = 1 },
	{ "reallocarray", "reallocarray", ALLOC_REALLOC, FAMILY_MALLOC, .size_arg = 3, .count_arg = 2,
	  .old_arg = 1 },
	{ "free", "free", ALLOC_FREE, FAMILY_MALLOC, .old_arg = 1 },
	{ "cfree", "cfree", ALLOC_FREE, FAMILY_MALLOC, .old_arg = 1 },
	{ "free_sized", "free_sized", ALLOC_FREE, FAMILY_MALLOC, .size_arg = 2, .old_arg = 1 },
	{ "free_aligned_sized", "free_aligned_sized", ALLOC_FREE, FAMILY_MALLOC, .size_arg = 3, .old_arg = 1,
	  .align_arg = 2 },
	{ "posix_memalign", "posix_memalign", ALLOC_OUT, FAMILY_MALLOC, .size_arg = 3, .out_arg = 1,
	  .align_arg = 2 },
	/* No symbol has such a name: a function with both, as in glibc. */
	{ "aligned_alloc/memalign", "aligned_alloc/memalign", ALLOC_MALLOC, FAMILY_MALLOC, .size_arg = 2,
	  .align_arg = 1, .first = "aligned_alloc", .second = "memalign" },
	{ "aligned_alloc", "aligned_alloc", ALLOC_MALLOC, FAMILY_MALLOC, .size_arg = 2, .align_arg = 1 },
	{ "memalign", "memalign", ALLOC_MALLOC, FAMILY_MALLOC, .size_arg = 2, .align_arg = 1 },
	{ "valloc", "valloc", ALLOC_MALLOC, FAMILY_MALLOC, .size_arg = 1 },
	{ "pvalloc", "pvalloc", ALLOC_MALLOC, FAMILY_MALLOC, .size_arg = 1 },
	{ "_Znwm", "operator new(size)", ALLOC_MALLOC, FAMILY_NEW, .size_arg = 1, .can_throw = true },
	{ "_ZnwmRKSt9nothrow_t", "operator new(size, nothrow)", ALLOC_MALLOC, FAMILY_NEW, .size_arg = 1 },
	{ "_ZnwmSt11align_val_t", "operator new(size, align)", ALLOC_MALLOC, FAMILY_NEW, .size_arg = 1,
	  .can_throw = true, .align_arg = 2 },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t", "operator new(size, align, nothrow)", ALLOC_MALLOC,
	  FAMILY_NEW, .size_arg = 1, .align_arg = 2 },
	{ "_Znwj", "operator new(size)", ALLOC_MALLOC, FAMILY_NEW, .size_arg = 1, .can_throw = true },
	{ "_ZnwjRKSt9nothrow_t", "operator new(size, nothrow)", ALLOC_MALLOC, FAMILY_NEW, .size_arg = 1 },
	{ "_ZnwjSt11align_val_t", "operator new(size, align)", ALLOC_MALLOC, FAMILY_NEW, .size_arg = 1,
	  .can_throw = true, .align_arg = 2 },
	{ "_ZnwjSt11align_val_tRKSt9nothrow_t", "operator new(size, align, nothrow)", ALLOC_MALLOC,
	  FAMILY_NEW, .size_arg = 1, .align_arg = 2 },
	{ "_Znam", "operator new[](size)", ALLOC_MALLOC, FAMILY_NEW_ARRAY, .size_arg = 1, .can_throw = true },
	{ "_ZnamRKSt9nothrow_t", "operator new[](size, nothrow)", ALLOC_MALLOC, FAMILY_NEW_ARRAY,
	  .size_arg = 1 },
	{ "_ZnamSt11align_val_t", "operator new[](size, align)", ALLOC_MALLOC, FAMILY_NEW_ARRAY,
	  .size_arg = 1, .can_throw = true, .align_arg = 2 },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t", "operator new[](size, align, nothrow)", ALLOC_MALLOC,
	  FAMILY_NEW_ARRAY, .size_arg = 1, .align_arg = 2 },
	{ "_Znaj", "operator new[](size)", ALLOC_MALLOC, FAMILY_NEW_ARRAY, .size_arg = 1, .can_throw = true },
	{ "_ZnajRKSt9nothrow_t", "operator new[](size, nothrow)", ALLOC_MALLOC, FAMILY_NEW_ARRAY,
	  .size_arg = 1 },
	{ "_ZnajSt11align_val_t", "operator new[](size, align)", ALLOC_MALLOC, FAMILY_NEW_ARRAY,
	  .size_arg = 1, .can_throw = true, .align_arg = 2 },
	{ "_ZnajSt11align_val_tRKSt9nothrow_t", "operator new[](size, align, nothrow)", ALLOC_MALLOC,
	  FAMILY_NEW_ARRAY, .size_arg = 1, .align_arg = 2 },
	{ "_ZdlPv", "operator delete(ptr)", ALLOC_FREE, FAMILY_NEW, .old_arg = 1 },
	{ "_ZdlPvRKSt9nothrow_t", "operator delete(ptr, nothrow)", ALLOC_FREE, FAMILY_NEW, .old_arg = 1 },
	{ "_ZdlPvSt11align_val_t", "operator delete(ptr, align)", ALLOC_FREE, FAMILY_NEW, .old_arg = 1,
	  .align_arg = 2 },
	{ "_ZdlPvSt11align_val_tRKSt9nothrow_t", "operator delete(ptr, align, nothrow)", ALLOC_FREE,
	  FAMILY_NEW, .old_arg = 1, .align_arg = 2 },
	{ "_ZdlPvm", "operator delete(ptr, size)", ALLOC_FREE, FAMILY_NEW, .size_arg = 2, .old_arg = 1 },
	{ "_ZdlPvj", "operator delete(ptr, size)", ALLOC_FREE, FAMILY_NEW, .size_arg = 2, .old_arg = 1 },
	{ "_ZdlPvmSt11align_val_t", "operator delete(ptr, size, align)", ALLOC_FREE, FAMILY_NEW,
	  .size_arg = 2, .old_arg = 1, .align_arg = 3 },
	{ "_ZdlPvjSt11align_val_t", "operator delete(ptr, size, align)", ALLOC_FREE, FAMILY_NEW,
	  .size_arg = 2, .old_arg = 1, .align_arg = 3 },
	{ "_ZdaPv", "operator delete[](ptr)", ALLOC_FREE, FAMILY_NEW_ARRAY, .old_arg = 1 },
	{ "_ZdaPvRKSt9nothrow_t", "operator delete[](ptr, nothrow)", ALLOC_FREE, FAMILY_NEW_ARRAY,
	  .old_arg = 1 },
	{ "_ZdaPvSt11align_val_t", "operator delete[](ptr, align)", ALLOC_FREE, FAMILY_NEW_ARRAY,
	  .old_arg = 1, .align_arg = 2 },
	{ "_ZdaPvSt11align_val_tRKSt9nothrow_t", "operator delete[](ptr, align, nothrow)", ALLOC_FREE,
	  FAMILY_NEW_ARRAY, .old_arg = 1, .align_arg = 2 },
	{ "_ZdaPvm", "operator delete[](ptr, size)", ALLOC_FREE, FAMILY_NEW_ARRAY, .size_arg = 2,
	  .old_arg = 1 },
	{ "_ZdaPvj", "operator delete[](ptr, size)", ALLOC_FREE, FAMILY_NEW_ARRAY, .size_arg = 2,
	  .old_arg = 1 },
	{ "_ZdaPvmSt11align_val_t", "operator delete[](ptr, size, align)", ALLOC_FREE, FAMILY_NEW_ARRAY,
	  .size_arg = 2, .old_arg = 1, .align_arg = 3 },
	{ "_ZdaPvjSt11align_val_t", "operator delete[](ptr, size, align)", ALLOC_FREE, FAMILY_NEW_ARRAY,
	  .size_arg = 2, .old_arg = 1, .align_arg = 3 },
	{ "mmap", "mmap", ALLOC_MMAP, FAMILY_MMAP, .size_arg = 2 },
	{ "mmap64", "mmap64", ALLOC_MMAP, FAMILY_MMAP, .size_arg = 2 },
	{ "munmap", "munmap", ALLOC_MUNMAP, FAMILY_MMAP, .size_arg = 2, .old_arg = 1 },
	/* Markers of include/heaptap.h; no symbol has such a name. */
	{ "heaptap:alloc", "HEAPTAP_ALLOC", ALLOC_MALLOC, FAMILY_POOL, .size_arg = 2 },
	{ "heaptap:free", "HEAPTAP_FREE", ALLOC_FREE, FAMILY_POOL, .old_arg = 1 },
	{ "mremap", "mremap", ALLOC_MREMAP, FAMILY_MMAP, .size_arg = 3, .old_arg = 1 },
	/* The system call; its function of the C library has another result. */
	{ "kernel:brk", "brk", ALLOC_MMAP, FAMILY_MMAP },
	/* Markers of a program with a sampler of its own (user/source/placing_notes.c). */
	/* clang-format off */
	OF_HOST({ "otel_memory:alloc", "otel_memory:alloc", ALLOC_MALLOC, FAMILY_SAMPLER, .size_arg = 2 })
	OF_HOST({ "otel_memory:free", "otel_memory:free", ALLOC_FREE, FAMILY_SAMPLER, .old_arg = 1 })
	/* clang-format on */
};

#define NR_BUILTIN ARRAY_SIZE(builtin)
_Static_assert(NR_BUILTIN < (size_t)ALLOC_MAX_FNS, "rows must fit in an event's fn");

enum { NR_BEGINNINGS = 256 };

struct alloc_table {
	struct alloc_fn custom[ALLOC_MAX_FNS - NR_BUILTIN]; /* strings are owned */
	size_t nr_custom;
	/* Rows whose symbols begin alike, those with the lower index first. 0 = no more. */
	u16 first[NR_BEGINNINGS], next[ALLOC_MAX_FNS];
};

/* Of the first four bytes of @symbol: large C++ libraries have 100,000 symbols, nearly all of which begin otherwise. */
static u8 beginning_of(const char *symbol)
{
	u32 bytes = 0;

	for (int i = 0; i < 4 && symbol[i]; i++)
		bytes = bytes << 8 | (u8)symbol[i];
	return bytes * 0x9e3779b1U >> 24;
}

static void add_to_index(struct alloc_table *t, u16 fn)
{
	u16 *at = &t->first[beginning_of(alloc_fn(t, fn)->symbol)];

	while (*at)
		at = &t->next[*at];
	*at = fn;
}

int alloc_table_new(struct alloc_table **out)
{
	struct alloc_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	for (u16 fn = 1; fn < NR_BUILTIN; fn++)
		add_to_index(t, fn);
	*out = t;
	return 0;
}

static void free_strings(const struct alloc_fn *row)
{
	free((char *)row->symbol);
	free((char *)row->name);
}

void alloc_table_free(struct alloc_table *t)
{
	for (size_t i = 0; t && i < t->nr_custom; i++)
		free_strings(&t->custom[i]);
	free(t);
}

size_t alloc_fn_count(const struct alloc_table *t)
{
	return NR_BUILTIN + (t ? t->nr_custom : 0);
}

const struct alloc_fn *alloc_fn(const struct alloc_table *t, u16 fn)
{
	if (fn < NR_BUILTIN)
		return &builtin[fn];
	return fn < alloc_fn_count(t) ? &t->custom[fn - NR_BUILTIN] : &builtin[0];
}

u16 alloc_fn_find(const struct alloc_table *t, const char *symbol)
{
	u16 fn = t ? t->first[beginning_of(symbol)] : 1;

	while (fn && strcmp(alloc_fn(t, fn)->symbol, symbol))
		fn = t ? t->next[fn] : (fn + 1U) % NR_BUILTIN;
	return fn;
}

u16 alloc_fn_join(const struct alloc_table *t, u16 a, u16 b)
{
	char both[64];

	snprintf(both, sizeof(both), "%s/%s", alloc_fn(t, a < b ? a : b)->symbol,
		 alloc_fn(t, a < b ? b : a)->symbol);
	return alloc_fn_find(t, both);
}

int alloc_fn_add(struct alloc_table *t, const struct alloc_fn *row)
{
	struct alloc_fn copy = *row;

	if (t->nr_custom == ARRAY_SIZE(t->custom))
		return -ENOSPC;
	copy.symbol = strdup(row->symbol);
	copy.name = strdup(row->name);
	if (!copy.symbol || !copy.name) {
		free_strings(&copy);
		return -ENOMEM;
	}
	t->custom[t->nr_custom] = copy;
	add_to_index(t, NR_BUILTIN + t->nr_custom++);
	return NR_BUILTIN + t->nr_custom - 1;
}

const char *alloc_family_name(enum alloc_family family)
{
	static const char *const names[] = {
		[FAMILY_MALLOC] = "malloc",	  [FAMILY_NEW] = "new",	      [FAMILY_NEW_ARRAY] = "new[]",
		[FAMILY_MMAP] = "mmap",		  [FAMILY_CUSTOM] = "custom", [FAMILY_POOL] = "pool",
		[FAMILY_SAMPLER] = "otel_memory",
	};
	_Static_assert(ARRAY_SIZE(names) == NR_FAMILIES, "a name for each family");

	return names[family];
}
