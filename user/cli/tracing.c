/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From options to outputs, a session and a control, and to their end. */
#include "user/cli/tracing.h"

#include <stdio.h>
#include <string.h>

#include "user/cli/options_rooms.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/report/output.h"
#include "user/session/control.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/session/session_span.h"
#include "user/stream/recorder.h"

int tracing_run(const struct options *o, bool is_launch,
		int (*work)(const struct options *o, struct session *s, struct control *c))
{
	struct session_options so = options_session(o);
	const struct output_options oo = options_output(o);
	const struct control_times times = options_times(o);
	struct session *s = NULL;
	struct control *c = NULL;
	struct outputs *outs = NULL;
	int status, err = outputs_new(&outs, &oo, is_launch ? stderr : stdout);

	if (err)
		return outputs_status(err);
	so.source.stops_at_checks = true;
	status = STATUS_USAGE;
	if (recorder_check(&so.recorder))
		goto out;
	status = STATUS_IMPOSSIBLE;
	if (session_new(&s, &so, outs, is_launch))
		goto out;
	if (so.between)
		session_span_set(s, so.between);
	err = control_new(&c, &times, is_launch);
	if (err)
		error("%s: signals: %s", so.command, strerror(-err));
	else
		control_guard(c, so.command, session_lifeline(s));
	if (!err)
		status = work(o, s, c);
out:
	session_free(s);
	control_free(c);
	outputs_free(outs);
	return status;
}
