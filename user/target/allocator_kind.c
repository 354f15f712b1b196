/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traits of allocators, for all who must know whose blocks they have. */
#include "user/target/allocator_kind.h"

#include <string.h>

enum {
	LEAF = ALLOCATOR_IS_LEAF,
	APART = ALLOCATOR_IS_APART,
	KEEPS = ALLOCATOR_KEEPS_FREED,
	JOINS = ALLOCATOR_JOINS_NAMES,
};

static const struct {
	char kind[10];
	u8 traits;
#if !IS_AGENT
	const char *way_out;
#endif
} allocators[] = {
	{ "glibc", LEAF,
	  OF_HOST("malloc_trim(0) gives free pages back, MALLOC_ARENA_MAX=2 makes fewer arenas") },
	{ "musl", LEAF },
	{ "jemalloc", LEAF | APART | KEEPS,
	  OF_HOST("MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0 gives free pages back sooner") },
	{ "mimalloc", LEAF | APART | KEEPS | JOINS, OF_HOST("mi_collect(true) gives free pages back") },
	{ "tcmalloc", LEAF | APART | JOINS,
	  OF_HOST("MallocExtension's ReleaseFreeMemory() gives free pages back") },
	{ "rpmalloc", LEAF | APART | KEEPS },
	{ "snmalloc", LEAF | APART | KEEPS },
	{ "scudo", LEAF | APART },
	{ "Hoard", APART },
};

/* The row of @kind; ARRAY_SIZE(allocators) = there is none. */
static size_t allocator_row(const char *kind)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(allocators) && (!kind || strcmp(kind, allocators[i].kind) != 0))
		i++;
	return i;
}

bool allocator_is(const char *kind, enum allocator_trait trait)
{
	size_t i = allocator_row(kind);

	return i < ARRAY_SIZE(allocators) && allocators[i].traits & trait;
}

#if !IS_AGENT
const char *allocator_way_out(const char *kind)
{
	size_t i = allocator_row(kind);

	return i < ARRAY_SIZE(allocators) ? allocators[i].way_out : NULL;
}
#endif
