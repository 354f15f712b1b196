/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signal stacks that threads have registered by sigaltstack(). Only the kernel knows them. */
#pragma once

#include "user/lib/types.h"

struct alt_stacks;
struct listed_words;
struct alt_stack_fields;

/*
 * Load a BPF program that lists them (an iterator over tasks, Linux 5.8), by @fields of the kernel's types, all
 * 0 if they are not known. @is_other_ns: PIDs of the kernel are not ours. *@out is the caller's: alt_stacks_free().
 * -ENOENT or another -errno where this cannot be done; not logged.
 */
int alt_stacks_new(struct alt_stacks **out, const struct alt_stack_fields *fields,
		   bool is_other_ns) __must_check;

void alt_stacks_free(struct alt_stacks *a); /* NULL is fine */

/*
 * Call @add for the start of each signal stack of the threads of @pid, which need not run. A result other than 0 ends
 * this and is returned. 0 or -errno.
 */
int alt_stacks_read(const struct alt_stacks *a, pid_t pid, int (*add)(void *ctx, taddr_t start),
		    void *ctx) __must_check;

/*
 * Add those of the @nr processes @pids to @list, by what is known of this kernel, or by its description of its types.
 * 0; -EPERM without the rights for BPF; -ENOMEM; or another -errno. Not logged.
 */
int alt_stacks_list(struct listed_words *list, const pid_t *pids, size_t nr) __must_check;
