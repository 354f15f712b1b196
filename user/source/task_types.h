/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offsets of fields of a task, from the kernel's description of its types (BTF), which not every kernel has. */
#pragma once

#include "bpf/maps.h"

/* Fill in *@out. 0; -ENOENT: no description, or a field is not in it; or -errno. Not logged; *@out is 0 then. */
int task_types_read(struct task_fields *out) __must_check;
