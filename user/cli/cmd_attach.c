/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap attach: trace running processes until Ctrl-C, the end of the time, or theirs. */
#include "user/cli/attach.h"

#include <errno.h>

#include "user/cli/commands.h"
#include "user/cli/inline_hint.h"
#include "user/session/control.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/metrics/trace_metrics.h"
#include "user/cli/tracing.h"
#include "user/session/session.h"
#include "user/session/session_span.h"
#include "user/session/session_live.h"
#include "user/top/status_line.h"

enum { POLL_MS = 20, ALIVE_ROUNDS = 5 };

/* False: nobody reads reports any more. */
static bool report(const struct options *o, struct session *s)
{
	int err;

	if (session_poll(s))
		return true;
	if (o->scan == SCAN_ALWAYS)
		session_scan(s, NULL, false);
	err = session_report(s);
	if (err)
		debug("attach: report not written");
	return !attach_is_unread(o, err);
}

/* Trace until something ends it. */
static void trace(const struct options *o, struct trace_metrics *tm, struct session *s, struct control *c)
{
	struct status_line line = { 0 };
	bool has_line = !o->quiet && status_line_is_possible();
	int round = 0, sig;

	for (;;) {
		if (has_line)
			status_line_round(&line, s);
		switch (control_wait(c, session_wait_fd(s), POLL_MS, &sig)) {
		case CONTROL_STOP:
			return;
		case CONTROL_REPORT:
			if (!report(o, s))
				return;
			break;
		case CONTROL_ASKED:
			session_answer(s, NULL, control_questions(c));
			break;
		default:
			break;
		}
		if (session_poll(s))
			return;
		session_check(s, NULL);
		session_bound_ended(s);
		trace_metrics_round(tm, s);
		if ((o->has_between && session_span_is_over(s)) || session_is_enough(s))
			return;
		if (++round % ALIVE_ROUNDS == 0 && !session_running(s))
			return;
	}
}

static int attach_and_trace(void *tm, const struct options *o, struct session *s, struct control *c)
{
	int status = attach_targets(s, o);

	if (status != STATUS_DONE)
		return status;
	control_begin(c, 0);
	control_listen(c);
	if (!o->quiet)
		info("attached to %zu process%s; Ctrl-C stops tracing and reports", session_running(s),
		     session_running(s) == 1 ? "" : "es");
	trace(o, tm, s, c);
	log_status(NULL);
	control_finish(c);
	if (o->scan != SCAN_NEVER && control_is_cut(c))
		warn("attach: no leak verdict: heaptap was busy when the signal came");
	else if (o->scan != SCAN_NEVER)
		session_scan(s, NULL, true);
	session_stop(s);
	if (!IS_AGENT)
		inline_hint_measure(o, s);
	trace_metrics_end(tm, s);
	if (session_report(s))
		return STATUS_UNTRUSTED;
	return attach_status(o, s);
}

int cmd_attach(const struct options *o)
{
	struct trace_metrics tm;
	const struct tracing_command command = { .work = attach_and_trace, .ctx = &tm };
	int status;
	int err = trace_metrics_init(&tm, o->metrics, o->push, o->top, o->scan == SCAN_ALWAYS);

	if (err)
		status = err == -EINVAL ? STATUS_USAGE : STATUS_IMPOSSIBLE;
	else
		status = tracing_run(o, &command);
	trace_metrics_fini(&tm);
	return status;
}
