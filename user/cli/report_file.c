/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One of the files that are compared: a JSON report is read, and a recording is replayed into one. */
#include "user/cli/report_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/cli/options_rooms.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/report/output.h"
#include "user/report/saved.h"
#include "user/session/session.h"
#include "user/session/session_replay.h"

/* The report on the recording @path as JSON; the caller owns *@text. Logs. */
static int report_file_replay(const struct options *o, const char *path, char **text, size_t *len,
			      int *status)
{
	const struct session_options so = options_session(o);
	const struct output_options oo = options_output(o);
	FILE *out = open_memstream(text, len);
	struct outputs *outs = NULL;
	struct session *s = NULL;
	int err = out ? outputs_new_stream(&outs, &oo, out, "-.json") : -ENOMEM;

	if (err)
		error("%s: %s: %s", o->command->name, path, strerror(-err));
	else
		err = session_new_replay(&s, &so, outs, path);
	if (!err)
		err = session_report(s);
	if (!err && session_status(s) != STATUS_DONE)
		*status = session_status(s);
	session_free(s);
	outputs_free(outs);
	if (out && fclose(out) && !err)
		err = -ENOMEM;
	return err;
}

int report_file_load(const struct options *o, const char *path, char **text, size_t *len, int *status)
{
	int is_json = saved_is_json(path), err;

	if (!is_json) {
		err = report_file_replay(o, path, text, len, status);
		return err ? session_replay_status(err) : STATUS_DONE;
	}
	err = is_json < 0 ? is_json : saved_load(path, text, len);
	if (err)
		error("%s: %s: %s", o->command->name, path,
		      err == -EBADMSG ? "the compressed data are damaged" : strerror(-err));
	return err ? session_replay_status(err) : STATUS_DONE;
}

int report_file_refuse(const struct options *o, const char *path, int err, const char *why, size_t at)
{
	if (why && at)
		error("%s: %s: at byte %zu: %s", o->command->name, path, at, why);
	else if (why)
		error("%s: %s: %s", o->command->name, path, why);
	else
		error("%s: %s: %s", o->command->name, path, strerror(-err));
	return session_replay_status(err);
}
