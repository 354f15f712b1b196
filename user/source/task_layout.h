/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out where the kernel keeps fields of a task: the BPF programs get only the address of the task. */
#pragma once

#include "user/lib/types.h"

struct programs;

/*
 * Find it out with threads of our own, whose TIDs are known, and set it for the loaded programs, whose tracepoints are
 * linked. 0, -EOPNOTSUPP if it cannot be found out (in a PID namespace, for example), or -errno. Not logged.
 */
int task_layout_find(const struct programs *p) __must_check;

/*
 * Find out where a task has its mask of blocked signals, and whether it is ptraced, with children of ours of which both
 * is known. Set it for the loaded programs. Blocks most signals of the calling thread for a moment. 0, -EOPNOTSUPP, or
 * -errno. Not logged.
 */
int task_layout_find_stop(const struct programs *p) __must_check;
