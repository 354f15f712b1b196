/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signal stacks that threads have registered by sigaltstack(). Only the kernel knows them. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

struct alt_stacks;
struct alt_stack_fields;

/*
 * Load a BPF program that lists them (an iterator over tasks, Linux 5.8), by @fields of the kernel's types, all
 * 0 if they are not known. *@out is the caller's: alt_stacks_free(). -ENOENT or another -errno where this cannot be
 * done; not logged.
 */
int alt_stacks_new(struct alt_stacks **out, const struct alt_stack_fields *fields) __must_check;
void alt_stacks_free(struct alt_stacks *a); /* NULL is fine */

/*
 * Call @add for the start of each signal stack of the threads of @pid, which need not run. A result other than 0 ends
 * this and is returned. @is_other_ns: PIDs of the kernel are not ours. 0 or -errno.
 */
int alt_stacks_read(const struct alt_stacks *a, pid_t pid, bool is_other_ns,
		    int (*add)(void *ctx, taddr_t start), void *ctx) __must_check;
