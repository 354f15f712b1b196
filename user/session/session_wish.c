/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call that a command waits for, as the source of a session sees it. */
#include "user/session/session_wish.h"

#include <errno.h>

#include "user/session/session_private.h"

int session_wish(struct session *s, const struct call_wish *wish)
{
	if (!s->ops->wait_for)
		return -EOPNOTSUPP;
	s->ops->wait_for(s->source, wish);
	return 0;
}

bool session_end_wish(struct session *s)
{
	return s->ops->wait_for && s->ops->wait_for(s->source, NULL);
}
