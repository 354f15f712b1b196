/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the names of running processes to a session that traces them; from its last report to an exit status. */
#include "user/cli/attach.h"

#include <errno.h>

#include "user/lib/cleanup.h"
#include "user/lib/status.h"
#include "user/session/session.h"
#include "user/target/target.h"

/* Attach to all processes that one name or PID means. */
static int attach_target(struct session *s, const char *name)
{
	auto_free pid_t *pids = NULL;
	size_t nr = 0, attached = 0;
	int err = target_find(name, &pids, &nr);

	for (size_t i = 0; !err && i < nr; i++) {
		int one = session_attach(s, pids[i], false);

		attached += !one;
		if (one && i + 1 == nr && !attached)
			err = one;
	}
	return err;
}

static int attach_error(int err)
{
	bool is_gone = err != -EPERM && err != -EACCES && err != -EOPNOTSUPP && err != -ENOMEM;

	return is_gone ? STATUS_NO_TARGET : STATUS_IMPOSSIBLE;
}

int attach_targets(struct session *s, const struct options *o)
{
	for (size_t i = 0; i < o->targets.nr; i++) {
		int err = attach_target(s, o->targets.items[i]);

		if (err)
			return attach_error(err);
	}
	if (!session_has_no_allocator(s))
		return STATUS_DONE;
	return session_running(s) ? STATUS_NO_VERDICT : STATUS_NO_TARGET;
}

bool attach_is_unread(const struct options *o, int err)
{
	return err == -EPIPE && o->outputs.nr <= 1 && !o->record;
}

int attach_status(const struct options *o, struct session *s)
{
	int found = session_findings(s);

	int status;

	if (found < 0)
		return STATUS_NO_VERDICT;
	if (found)
		return o->error_exitcode ? (int)o->error_exitcode : STATUS_FINDINGS;
	status = session_status(s);
	return status == STATUS_DONE && session_lacks_functions(s) ? STATUS_NO_VERDICT : status;
}
