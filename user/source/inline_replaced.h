/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that put code in the place of that with our jumps, as they had it before: their calls are missed. */
#pragma once

#include "user/lib/types.h"

struct inline_target;
struct watched_code;

/* Are the jumps of @t still there? Those that are not count in losses(), and are told. */
void inline_replaced_look(struct inline_target *t);

/* At a poll: the same, once a second (less often of many targets), until one is gone. */
void inline_replaced_poll(struct inline_target *t);

/*
 * The jump at the process's end, for the kernel's program that looks at it when a thread ends: the C library is not
 * unloaded, unlike others.
 */
void inline_replaced_watch(const struct inline_target *t, struct watched_code *out);

/* [@start, @end) is no longer mapped from its file: forget jumps there, and copies of pages. */
void inline_replaced_forget(struct inline_target *t, taddr_t start, taddr_t end);
