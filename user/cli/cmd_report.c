/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap report: the report on a recording, a list of events or a JSON report, without a target. */
#include <stdio.h>
#include <sys/stat.h>

#include "user/cli/commands.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/cli/foreign_file.h"
#include "user/cli/options_rooms.h"
#include "user/cli/page_file.h"
#include "user/cli/report_saved.h"
#include "user/cli/rights.h"
#include "user/cli/series_command.h"
#include "user/report/output.h"
#include "user/report/saved.h"
#include "user/session/session.h"
#include "user/session/session_replay.h"

/* Of what comes through a pipe nothing may be read here. */
static bool is_saved_report(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && saved_is_json(path) == 1;
}

int cmd_report(const struct options *o)
{
	struct session *s = NULL;
	struct outputs *outs = NULL;
	const struct session_options so = options_session(o);
	struct output_options oo = options_output(o);
	struct page_file page = { .path = NULL };
	const char *foreign = foreign_file(o->args[0]);
	int status, err;

	if (foreign) {
		error("report: %s: no recording of heaptap but %s", o->args[0], foreign);
		return STATUS_NO_TARGET;
	}
	if (is_saved_report(o->args[0]))
		return report_saved(o);
	if (o->events && (o->has_between || o->outputs.nr || o->open)) {
		error("report: --events lists all events on standard output; remove --%s",
		      o->has_between ? "between"
		      : o->open	     ? "open"
				     : "output");
		return STATUS_USAGE;
	}
	if (!o->events && !o->has_between && series_is_directory(o->args[0]))
		return series_command(o);
	err = o->open ? page_file_init(&page, &oo) : 0;
	if (!err)
		err = outputs_new(&outs, &oo, stdout);
	if (err) {
		page_file_fini(&page);
		return outputs_status(err);
	}
	rights_keep_files(o, outs);
	err = session_new_replay(&s, &so, outs, o->args[0]);
	if (err) {
		status = session_replay_status(err);
		goto out;
	}
	err = o->events ? session_finish_events(s) : session_report(s);
	status = err ? STATUS_UNTRUSTED : session_status(s);
	if (o->open && !err && page_file_open(&page))
		status = STATUS_IMPOSSIBLE;
out:
	session_free(s);
	outputs_free(outs);
	page_file_fini(&page);
	return status;
}
