/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocators by their names in reports ("glibc", "jemalloc"): traits that others must know. */
#pragma once

#include "user/lib/types.h"

enum allocator_trait {
	ALLOCATOR_IS_LEAF = 1, /* its free() calls no free() of another one */
	ALLOCATOR_IS_APART =
		2, /* the library of its name has nothing else; libc calls free for the program, too */
	ALLOCATOR_KEEPS_FREED = 4, /* the memory of freed blocks stays near live ones */
	ALLOCATOR_JOINS_NAMES = 8, /* malloc and operators new may be one function */
};

/* @kind NULL: false. */
bool allocator_is(const char *kind, enum allocator_trait trait);

/* How its free pages go back to the kernel; NULL = not known. Not in the agent. */
const char *allocator_way_out(const char *kind);
