/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offsets of fields of a task, from the kernel's description of its types (BTF), which not every kernel has. */
#pragma once

#include "user/lib/types.h"

struct pending_fields;
struct task_fields;
struct task_types;

#define TASK_TYPES_PATH "/sys/kernel/btf/vmlinux"

/*
 * Read the description in the file @path. *@out is owned by the caller: task_types_free(). 0 or -errno, not logged:
 * then *@out is NULL, which the functions below take for a description of nothing.
 */
int task_types_new(struct task_types **out, const char *path) __must_check;
void task_types_free(struct task_types *t);

/* Fill in *@out. 0; -ENOENT: a field is not in the description. Not logged; *@out is 0 then. */
int task_types_task(const struct task_types *t, struct task_fields *out) __must_check;

/* Like task_types_task(), for pending signals; *@out is as it was then. */
int task_types_pending(const struct task_types *t, struct pending_fields *out) __must_check;

/* For an iterator over tasks: its id, and offsets of fields of a task. */
struct alt_stack_fields {
	u32 iterator;
	u32 start, tgid;
};

/* Like task_types_task(), for the signal stacks of tasks. */
int task_types_alt_stack(const struct task_types *t, struct alt_stack_fields *out) __must_check;
