/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resource limits that heaptap raises for itself. Programs that it starts get the former limits. */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>

/* Raise the soft limit of @resource to @wanted, or to the hard limit if that is lower. A higher one stays. */
void limits_raise(int resource, rlim_t wanted);

/* Like limits_raise(), and lift the hard limit, too, if that is permitted. */
void limits_lift(int resource);

/* True if @nr more files can be opened before the limit is reached. Opens nothing that stays open. */
bool limits_has_files(unsigned int nr);

/* Put the former limits back. Both functions are async-signal-safe. */
void limits_restore(int resource);
void limits_restore_all(void);
