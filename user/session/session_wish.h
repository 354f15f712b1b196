/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call that a command waits for. */
#pragma once

#include "user/source/source.h"

struct session;

/*
 * From now on the process of @wish is stopped by SIGSTOP when it makes such a call, before the call returns to it. 0;
 * -EOPNOTSUPP: this source sees calls later.
 */
int session_wish(struct session *s, const struct call_wish *wish) __must_check;

/* Wait no more. True: the process was stopped. */
bool session_end_wish(struct session *s);
