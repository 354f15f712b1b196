/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds wrappers of the allocator by structure: places that allocate blocks of many sizes for many callers. */
#pragma once

#include "user/heap/heap.h"
#include "user/heap/stacks.h"

struct wrappers;

/*
 * Look at the stacks of all callers of @heap. @names: more wrappers, as "xmalloc,pool_get"; borrowed, NULL =
 * none. *@out is owned by the caller: wrappers_free(). 0 or -ENOMEM.
 */
int wrappers_new(struct wrappers **out, const struct heap *heap, const struct stack_table *stacks,
		 const char *names) __must_check;
void wrappers_free(struct wrappers *w);

/* Does the frame @ref pass on blocks to many callers? @w may be NULL: nothing is known. */
bool wrappers_has(const struct wrappers *w, struct code_ref ref);

/* From how many places the function of the frame @ref was called, as far as they were counted; 0 = not known. */
u32 wrappers_callers(const struct wrappers *w, struct code_ref ref);

/* Does the user say that @function, a demangled name, is one? */
bool wrappers_is_named(const struct wrappers *w, const char *function);
/* Were names given? "list" is one that no function has. */
bool wrappers_has_names(const struct wrappers *w);

/* Frame @i of all that were looked at, whether they are wrappers or not. False behind the last one. */
bool wrappers_frame(const struct wrappers *w, size_t i, struct code_ref *ref);
