/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out where the kernel keeps the PID of a new task: the BPF programs get only the address of the task. */
#pragma once

#include "user/lib/types.h"

struct programs;

/*
 * Find it out with threads of our own, whose TIDs are known, and set it for the loaded programs, whose tracepoints are
 * linked. 0, -EOPNOTSUPP if it cannot be found out (in a PID namespace, for example), or -errno. Not logged.
 */
int task_layout_find(const struct programs *p) __must_check;
