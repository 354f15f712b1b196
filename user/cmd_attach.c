/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap attach: trace running processes until Ctrl-C, the end of the time, or theirs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/commands.h"
#include "user/control.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/options.h"
#include "user/output.h"
#include "user/recorder.h"
#include "user/session.h"

enum { POLL_MS = 20, ALIVE_ROUNDS = 5 };

/* All processes that one name or number means. */
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

static void report(const struct options *o, struct session *s)
{
	if (session_poll(s))
		return;
	if (o->scan == SCAN_ALWAYS)
		session_scan(s, NULL, false);
	if (session_report(s))
		debug("attach: report not written");
}

/* After the last report. */
static int judged_status(const struct options *o, struct session *s)
{
	int found = session_findings(s);

	if (found < 0)
		return STATUS_UNTRUSTED;
	if (found)
		return o->error_exitcode ? (int)o->error_exitcode : STATUS_FINDINGS;
	return session_status(s);
}

/* Trace until something ends it. */
static void trace(const struct options *o, struct session *s, struct control *c)
{
	int round = 0, sig;

	for (;;) {
		switch (control_wait(c, session_wait_fd(s), POLL_MS, &sig)) {
		case CONTROL_STOP:
			return;
		case CONTROL_REPORT:
			report(o, s);
			break;
		case CONTROL_ASKED:
			session_answer(s, NULL, control_questions(c));
			break;
		default:
			break;
		}
		if (session_poll(s))
			return;
		if (++round % ALIVE_ROUNDS == 0 && !session_running(s))
			return;
	}
}

static int attach_and_trace(const struct options *o, struct session *s, struct control *c)
{
	int err;

	for (size_t i = 0; i < o->targets.nr; i++) {
		err = attach_target(s, o->targets.items[i]);
		if (err)
			return attach_error(err);
	}
	if (session_has_no_allocator(s))
		return STATUS_NO_TARGET;
	if (o->scan != SCAN_NEVER)
		control_listen(c);
	if (!o->quiet)
		info("attached to %zu process%s; Ctrl-C stops tracing and reports", session_running(s),
		     session_running(s) == 1 ? "" : "es");
	trace(o, s, c);
	control_finish(c);
	if (o->scan != SCAN_NEVER)
		session_scan(s, NULL, true);
	session_stop(s);
	if (session_report(s))
		return STATUS_UNTRUSTED;
	return judged_status(o, s);
}

int cmd_attach(const struct options *o)
{
	struct session *s = NULL;
	struct control *c = NULL;
	struct outputs *outs = NULL;
	int status;
	int err = outputs_new(&outs, o, stdout);

	if (err)
		return err == -ENOMEM ? STATUS_IMPOSSIBLE : STATUS_USAGE;
	status = STATUS_USAGE;
	if (recorder_check(o))
		goto out;
	status = STATUS_IMPOSSIBLE;
	if (session_new(&s, o, outs, false))
		goto out;
	err = control_new(&c, o, false);
	if (err)
		error("attach: signals: %s", strerror(-err));
	else
		status = attach_and_trace(o, s, c);
out:
	session_free(s);
	control_free(c);
	outputs_free(outs);
	return status;
}
