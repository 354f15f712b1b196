/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts code into a process that is traced by breakpoints, while it runs. */
#include "user/session/session_code.h"

#include <errno.h>

#include "user/session/session_private.h"
#include "user/session/session_process.h"

enum { MAX_READS = 8 };

/* The mappings of @p change while the code is put in: it is put into the new ones. */
static void finish_placing(struct session *s, struct process *p)
{
	for (int i = 0; i < MAX_READS && target_wants_maps(p->target); i++)
		session_read_maps(s, p);
}

bool session_may_put_code(const struct session *s)
{
	return s->ops->put_code && s->options->source.code == CODE_LATER;
}

bool session_awaits_code(const struct session *s, const struct process_pace *pace)
{
	return pace->way == SOURCE_AWAITS_CODE && !pace->is_settled && !pace->until_ns &&
	       session_may_put_code(s);
}

int session_put_code(struct session *s, pid_t pid)
{
	struct process *p;
	int err;

	if (!session_may_put_code(s) || s->stop_ns)
		return -EOPNOTSUPP;
	/* Less is then to be read behind it. Its last records may tell of its end. */
	err = session_poll(s);
	p = session_find(s, (u32)pid);
	if (err || !p || process_is_over(p))
		return err ? err : -ESRCH;
	if (p->tuned.pace.until_ns || p->tuned.pauses.begin_ns)
		return -EOPNOTSUPP;
	err = s->ops->put_code(s->source, p->target);
	finish_placing(s, p);
	return err;
}
