/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the kernel keeps the number of a new task: the programs are told of one by its address only. */
#pragma once

#include "user/lib/types.h"

struct programs;

/*
 * Find it out, by threads of our own whose numbers are known, and tell the loaded programs, whose tracepoints are
 * linked. 0, -EOPNOTSUPP if it cannot be told (in a PID namespace of our own, say), or -errno. Not logged.
 */
int task_layout_find(const struct programs *p) __must_check;
