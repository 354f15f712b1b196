/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resource limits that heaptap raises for itself: programs that it starts get those that it came with. */
#pragma once

#include <sys/resource.h>

/* Raise the soft limit of @resource to @wanted, or as far as the hard one lets us; a higher one stays. */
void limits_raise(int resource, rlim_t wanted);

/* The same, and lift the hard limit too if we may. */
void limits_lift(int resource);

/* As it was before. Async-signal-safe, both. */
void limits_restore(int resource);
void limits_restore_all(void);
