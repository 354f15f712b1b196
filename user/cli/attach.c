/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the names of running processes to a session that traces them; from its last report to an exit status. */
#include "user/cli/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/session/session.h"
#include "user/session/session_fill.h"
#include "user/session/session_live.h"
#include "user/source/limits.h"
#include "user/target/target.h"

/* Files that stay free for what is opened while processes are traced: reports, mapped files, /proc. */
enum { SPARE_FILES = 24 };

/* The processes that one name or PID means. */
struct found {
	pid_t *pids; /* owned */
	size_t nr;
};

/* Each process takes a descriptor. One is tried in any case. */
static bool attach_has_room(const struct session *s)
{
	return !session_count(s) || limits_has_files(SPARE_FILES);
}

static int attach_found(struct session *s, const struct found *f)
{
	size_t attached = 0;
	int err = 0;

	for (size_t i = 0; i < f->nr && attach_has_room(s); i++) {
		int one = session_attach(s, f->pids[i], false);

		attached += !one;
		if (one && i + 1 == f->nr && !attached)
			err = one;
	}
	return err;
}

/* Say that some of @nr processes that were found are not traced for lack of descriptors. */
static void say_left_out(struct session *s, const struct options *o, size_t nr)
{
	size_t nr_running = session_running(s);
	struct rlimit limit = { 0 };

	if (nr <= nr_running || attach_has_room(s))
		return;
	getrlimit(RLIMIT_NOFILE, &limit);
	warn("%s: only %zu of %zu processes are traced: heaptap may open %llu files; raise the hard limit (ulimit "
	     "-Hn)",
	     o->command->name, nr_running, nr, (unsigned long long)limit.rlim_cur);
	session_leave_out(s, nr - nr_running);
}

/* The number of processes decides how probes are placed: find all before the first one is attached. */
static int attach_all(struct session *s, const struct options *o, struct found *found)
{
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < o->targets.nr && !err; i++) {
		err = target_find(o->targets.items[i], &found[i].pids, &found[i].nr);
		nr += found[i].nr;
	}
	if (!err)
		session_expect(s, nr);
	for (size_t i = 0; i < o->targets.nr && !err; i++)
		err = attach_found(s, &found[i]);
	if (!err)
		say_left_out(s, o, nr);
	return err;
}

static int attach_error(int err)
{
	bool is_gone = err != -EPERM && err != -EACCES && err != -EOPNOTSUPP && err != -ENOMEM;

	/* A process of heaptap was killed, and the target runs on. */
	if (!IS_AGENT && err == -EPIPE)
		return STATUS_UNTRUSTED;
	return is_gone ? STATUS_NO_TARGET : STATUS_IMPOSSIBLE;
}

int attach_targets(struct session *s, const struct options *o)
{
	struct found *found = calloc(o->targets.nr + 1, sizeof(*found));
	int err = found ? attach_all(s, o, found) : -ENOMEM;

	if (!found)
		error("%s: %s", o->command->name, strerror(ENOMEM));
	for (size_t i = 0; found && i < o->targets.nr; i++)
		free(found[i].pids);
	free(found);
	if (err)
		return attach_error(err);
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

	if (found == -ENODATA)
		return STATUS_NO_VERDICT;
	if (found > 0)
		return o->error_exitcode ? (int)o->error_exitcode : STATUS_FINDINGS;
	status = session_status(s);
	return status == STATUS_DONE && session_lacks_functions(s) ? STATUS_NO_VERDICT : status;
}
