/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap report: the report on a recording or a list of events, without a target. */
#include <errno.h>
#include <stdio.h>

#include "user/commands.h"
#include "user/lib/log.h"
#include "user/options.h"
#include "user/output.h"
#include "user/session.h"

int cmd_report(const struct options *o)
{
	struct session *s = NULL;
	struct outputs *outs = NULL;
	int status, err;

	if (o->events && (o->has_between || o->outputs.nr)) {
		error("report: --events: lists all of them on standard output: not with --%s",
		      o->has_between ? "between" : "output");
		return STATUS_USAGE;
	}
	err = outputs_new(&outs, o, stdout);
	if (err)
		return outputs_status(err);
	err = session_new_replay(&s, o, outs, o->args[0]);
	if (err) {
		status = session_replay_status(err);
		goto out;
	}
	err = o->events ? session_finish_events(s) : session_report(s);
	status = err ? STATUS_UNTRUSTED : session_status(s);
out:
	session_free(s);
	outputs_free(outs);
	return status;
}
