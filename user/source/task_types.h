/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offsets of fields of a task, from the kernel's description of its types (BTF), which not every kernel has. */
#pragma once

#include "bpf/maps.h"

/* Fill in *@out. 0; -ENOENT: no description, or a field is not in it; or -errno. Not logged; *@out is 0 then. */
int task_types_read(struct task_fields *out) __must_check;

/* Like task_types_read(), for pending signals. */
int task_types_pending(struct pending_fields *out) __must_check;

/* For an iterator over tasks: its id, and offsets of fields of a task. */
struct alt_stack_fields {
	u32 iterator;
	u32 start, tgid;
};

/* Like task_types_read(), for the signal stacks of tasks. */
int task_types_alt_stack(struct alt_stack_fields *out) __must_check;
