/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds wrappers of the allocator by structure: places that allocate blocks of many sizes for many callers. */
#pragma once

#include "user/heap/heap.h"
#include "user/heap/stacks.h"

struct wrappers;

/* Look at the stacks of all callers of @heap. *@out is owned by the caller: wrappers_free(). 0 or -ENOMEM. */
int wrappers_new(struct wrappers **out, const struct heap *heap,
		 const struct stack_table *stacks) __must_check;
void wrappers_free(struct wrappers *w);

/* Does the frame @ref pass on blocks to many callers? @w may be NULL: nothing is known. */
bool wrappers_has(const struct wrappers *w, struct code_ref ref);

/* From how many places the function of the frame @ref was called, as far as they were counted; 0 = not known. */
u32 wrappers_callers(const struct wrappers *w, struct code_ref ref);
