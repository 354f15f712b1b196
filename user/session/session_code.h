/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that is traced by breakpoints gets code in their place. */
#pragma once

#include "user/lib/types.h"

struct process_pace;
struct session;

/* Can session_put_code() do anything? */
bool session_may_put_code(const struct session *s);

/* Code may yet take the place of the breakpoints of the process @pace, which does not rest, and end what they cost. */
bool session_awaits_code(const struct session *s, const struct process_pace *pace);

/*
 * From now on calls of @pid are seen by code in it, where --backend auto may put it there; none is missed. Stops the
 * process for some 50 ms. 0; -ESRCH: it has ended; or another -errno: it is traced as before. -EAGAIN: a thread stays
 * in a call, try again. -EOPNOTSUPP: it cannot have code, which was logged if it was to be expected.
 */
int session_put_code(struct session *s, pid_t pid) __must_check;
