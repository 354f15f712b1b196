/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Are the processes of a session on another machine, or its books? For user/session/session*.c only. */
#pragma once

#include "user/lib/serve_only.h"
#include "user/session/session_private.h"
#include "user/source/source_told.h"

/* More functions of a source of another machine; NULL = its processes are here. The agent has no such source. */
static inline const struct source_told_ops *session_told(const struct session *s)
{
	return IS_AGENT ? NULL : s->ops->told;
}

/* Does it only pass on what it learns (user/session/session_forward.h)? */
static inline bool session_forwards(const struct session *s)
{
	return IS_SERVE_ONLY || s->options->recorder.sink;
}
