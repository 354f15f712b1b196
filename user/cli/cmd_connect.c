/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap connect: on the host; counts, names and reports of what a heaptap serve elsewhere traces. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/cli/attach.h"
#include "user/cli/commands.h"
#include "user/cli/rights.h"
#include "user/remote/connection.h"
#include "user/session/control.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/cli/options_rooms.h"
#include "user/metrics/trace_metrics.h"
#include "user/report/output.h"
#include "user/stream/recorder.h"
#include "user/session/session.h"
#include "user/session/session_live.h"

enum { POLL_MS = 20 };

struct connect {
	const struct options *options;
	struct connection connection;
	struct trace_metrics metrics;
	bool is_told; /* tracing has begun, which was printed */
};

static void cmd_connect_look(struct connect *c)
{
	if (c->is_told || !source_remote_is_started(c->connection.source))
		return;
	c->is_told = true;
	if (!c->options->quiet)
		info("connected; Ctrl-C stops tracing and reports");
}

/* False: nobody reads reports any more. */
static bool cmd_connect_report(const struct connect *c, struct session *s)
{
	int err;

	if (!c->is_told || session_poll(s))
		return true;
	if (c->options->scan == SCAN_ALWAYS)
		session_scan(s, NULL, false);
	err = session_report(s);
	if (err)
		debug("connect: report not written");
	return !attach_is_unread(c->options, err);
}

/* Until something ends it. True if that is the other side. *@sig: the signal that does, or 0. */
static bool cmd_connect_trace(struct connect *c, struct session *s, struct control *control, int *sig)
{
	for (;;) {
		switch (control_wait(control, session_wait_fd(s), POLL_MS, sig)) {
		case CONTROL_STOP:
			return false;
		case CONTROL_REPORT:
			if (!cmd_connect_report(c, s))
				return false;
			break;
		case CONTROL_ASKED:
			session_answer(s, NULL, control_questions(control));
			break;
		default:
			break;
		}
		if (session_poll(s))
			return true;
		cmd_connect_look(c);
		connection_round(&c->connection, s, control);
		session_bound_ended(s);
		if (c->is_told)
			trace_metrics_round(&c->metrics, s);
	}
}

static int connect_and_trace(struct connect *c, struct session *s, struct control *control)
{
	bool is_over;
	int status, ended, sig;

	/* Only for markers: a request for a verdict means a process of this machine. */
	if (c->options->record)
		control_listen(control);
	is_over = cmd_connect_trace(c, s, control, &sig);
	/* After the end of --duration the first signal breaks off what is on its way, and the second ends heaptap. */
	if (is_over || sig)
		control_finish(control);
	if (!is_over)
		connection_stop(&c->connection, s, sig != 0);
	if (!is_over && !sig) {
		control_wait(control, -1, 0, &sig);
		control_finish(control);
	}
	session_stop(s);
	session_bound_ended(s);
	ended = connection_status(&c->connection);
	if (!source_remote_is_started(c->connection.source))
		return ended;
	trace_metrics_end(&c->metrics, s);
	if (session_report(s))
		return STATUS_UNTRUSTED;
	status = attach_status(c->options, s);
	return status == STATUS_DONE ? ended : status;
}

int cmd_connect(const struct options *o)
{
	struct connect c = { .options = o };
	const struct control_times times = options_times(o);
	struct session_options so = options_session(o);
	const struct connection_options co = options_connection(o, &so);
	const struct output_options oo = options_output(o);
	struct session *s = NULL;
	struct control *control = NULL;
	struct outputs *outs = NULL;
	int status = STATUS_NO_TARGET, err;

	if (connection_init(&c.connection, &co))
		return STATUS_USAGE;
	err = outputs_new(&outs, &oo, stdout);
	if (err)
		return outputs_status(err);
	if (recorder_check(&so.recorder)) {
		outputs_free(outs);
		return STATUS_USAGE;
	}
	err = trace_metrics_init(&c.metrics, o->metrics, o->push, o->top, o->scan == SCAN_ALWAYS);
	if (err) {
		trace_metrics_fini(&c.metrics);
		outputs_free(outs);
		return err == -EINVAL ? STATUS_USAGE : STATUS_IMPOSSIBLE;
	}
	/* Nothing is traced yet: a signal ends heaptap as it ends any program. */
	if (connection_open(&c.connection, &s, outs))
		goto out;
	/* The peer has sent nothing yet that was read. */
	rights_keep_peer(o, outs);
	err = control_new(&control, &times, false);
	if (err) {
		error("connect: signals: %s", strerror(-err));
		status = STATUS_IMPOSSIBLE;
		goto out;
	}
	control_guard(control, "connect");
	session_guard(s, control);
	control_begin(control, 0);
	status = connect_and_trace(&c, s, control);
out:
	session_free(s);
	control_free(control);
	trace_metrics_fini(&c.metrics);
	outputs_free(outs);
	return status;
}
