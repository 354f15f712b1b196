/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap top: running processes, here or on another machine, on the whole screen. */
#include <errno.h>
#include <string.h>

#include "user/cli/attach.h"
#include "user/cli/commands.h"
#include "user/cli/options_rooms.h"
#include "user/cli/rights.h"
#include "user/cli/tracing.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/remote/connection.h"
#include "user/report/output.h"
#include "user/session/control.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/lib/privileges.h"
#include "user/stream/recorder.h"
#include "user/top/top.h"

/* One run of top. */
struct top_command {
	const struct options *options;
	struct session_options session;
	struct outputs *outs; /* of --output; NULL = none */
	struct connection remote;
	struct top top;
};

static int cmd_top_open_processes(struct top_command *r)
{
	int status = tracing_choose_sampler(&r->session.source, r->options, true);

	if (status != STATUS_DONE)
		return status;
	r->session.source.code = CODE_LATER;
	if (session_new(&r->top.session, &r->session, r->outs, false))
		return STATUS_IMPOSSIBLE;
	privileges_drop(PRIVILEGES_TRACING, 0);
	control_guard(r->top.control, "top");
	session_guard(r->top.session, r->top.control);
	status = attach_targets(r->top.session, r->options);
	if (status == STATUS_DONE)
		control_start_clocks(r->top.control);
	return status;
}

static int cmd_top_open_address(struct top_command *r)
{
	const struct connection_options co = options_connection(r->options, &r->session);

	if (connection_init(&r->remote, &co))
		return STATUS_USAGE;
	if (connection_open(&r->remote, &r->top.session, r->outs))
		return STATUS_NO_TARGET;
	rights_keep_peer(r->options, r->outs);
	control_guard(r->top.control, "top");
	session_guard(r->top.session, r->top.control);
	r->top.remote = &r->remote;
	return STATUS_DONE;
}

/* Tracing ends; reports are written where they were asked for. */
static int cmd_top_finish(struct top_command *r)
{
	bool wants_report = r->outs || options_have_rule(r->options);
	struct top *top = &r->top;
	int end = STATUS_DONE, status;

	control_finish(top->control);
	/* No verdict that nobody sees. */
	if (!wants_report)
		r->session.scan = SCAN_NEVER;
	if (top->remote && top->has_source)
		connection_stop(top->remote, top->session, true);
	else if (!top->remote && top->has_source && r->session.scan != SCAN_NEVER)
		session_scan(top->session, NULL, true);
	session_stop(top->session);
	if (top->remote)
		end = connection_status(top->remote);
	if (top->remote && !source_remote_is_started(top->remote->source))
		return end;
	if (r->outs && session_report(top->session))
		return STATUS_UNTRUSTED;
	status = wants_report ? attach_status(r->options, top->session) : session_status(top->session);
	return status == STATUS_DONE ? end : status;
}

static int open_and_run(struct top_command *r)
{
	const struct control_times times = options_times(r->options);
	int status, err = control_new(&r->top.control, &times, false);

	if (err) {
		error("top: signals: %s", strerror(-err));
		return STATUS_IMPOSSIBLE;
	}
	status = r->options->nr_args && connection_is_address(r->options->args[0])
			 ? cmd_top_open_address(r)
			 : cmd_top_open_processes(r);
	if (status != STATUS_DONE)
		return status;
	r->top.has_source = true;
	control_begin(r->top.control, 0);
	control_listen(r->top.control);
	if (top_run(&r->top))
		return STATUS_IMPOSSIBLE;
	return cmd_top_finish(r);
}

int cmd_top(const struct options *o)
{
	struct top_command r = { .options = o, .session = options_session(o) };
	int status = STATUS_USAGE, err = top_check();

	if (err)
		return err == -ENOTTY ? STATUS_USAGE : STATUS_IMPOSSIBLE;
	r.session.wants_slices = true; /* a page may be asked for at any time */
	r.top.output = options_output(o);
	r.top.options = &r.session;
	r.top.max_cost = o->max_cost;
	if (o->outputs.nr)
		err = outputs_new(&r.outs, &r.top.output, stdout);
	if (err == -ENOMEM)
		status = STATUS_IMPOSSIBLE;
	if (!err && !recorder_check(&r.session.recorder))
		status = open_and_run(&r);
	session_free(r.top.session);
	control_free(r.top.control);
	outputs_free(r.outs);
	return status;
}
