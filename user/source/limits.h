/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resource limits that heaptap changes for itself. Programs that it starts get the former limits. */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>

/* Raise the soft limit of @resource to @wanted, or to the hard limit if that is lower. A higher one stays. */
void limits_raise(int resource, rlim_t wanted);

/* Like limits_raise(), and lift the hard limit, too, if that is permitted. */
void limits_lift(int resource);

/*
 * Let the soft limit of CPU time, at which SIGXCPU comes, be below the hard one, at which the kernel ends heaptap: the
 * time between them is for the report. A hard limit of one second leaves no room for that.
 */
void limits_leave_cpu_time(void);

/*
 * Tracing ends because heaptap, or a process of its own, may not use much more CPU time: noted for the exit status.
 * True the first time. For any thread.
 */
bool limits_note_out_of_cpu_time(void);
/* Was that noted? */
bool limits_is_out_of_cpu_time(void);

/* True if @nr more files can be opened before the limit is reached. Opens nothing that stays open. */
bool limits_has_files(unsigned int nr);

/* Put the former limits back. Both functions are async-signal-safe. */
void limits_restore(int resource);
void limits_restore_all(void);
