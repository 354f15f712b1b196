/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is a process one of those to watch? */
#pragma once

#include "user/system/watch.h"

/* The users of @c as numbers; the caller owns *@out. 0; -EINVAL, logged: no such user; or -ENOMEM. */
int watch_choice_uids(const struct watch_choice *c, u32 **out, size_t *nr) __must_check;

/* Is @p, whose pid and comm are known, one of @c? Reads what @c asks for, and sets its uid and container then. */
bool watch_choice_fits(const struct watch_choice *c, const u32 *uids, size_t nr_uids, struct watched *p);
