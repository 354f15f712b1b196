/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap report FILE.json: names the report that an agent has written, and prints or saves it. */
#include "user/cli/report_saved.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/cli/options_rooms.h"
#include "user/cli/report_file.h"
#include "user/cli/rights.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/report/output.h"
#include "user/report/saved_names.h"
#include "user/report/saved_text.h"

static bool report_saved_is_refused(const struct options *o)
{
	const char *why = o->events ? "--events" : o->has_between ? "--between" : o->open ? "--open" : NULL;

	if (why)
		error("report: %s: is a JSON report, which has no events: remove %s", o->args[0], why);
	return why;
}

/* Both forms, each in a file without a name. */
static int report_saved_make(const struct options *o, FILE *json, FILE *text)
{
	const struct session_options so = options_session(o);
	auto_free char *bytes = NULL, *named = NULL;
	const char *why = NULL, *path = o->args[0];
	struct saved_named sums = { 0 };
	size_t len = 0, named_len = 0, at = 0;
	FILE *memory;
	int status = STATUS_DONE, err;

	status = report_file_load(o, path, &bytes, &len, &status);
	if (status)
		return status;
	memory = open_memstream(&named, &named_len);
	err = memory ? saved_name(memory, bytes, len, &so.names, &sums, &why, &at) : -ENOMEM;
	if (memory && fclose(memory) && !err)
		err = -ENOMEM;
	if (!err)
		err = saved_print(text, named, named_len, o->top, &why, &at);
	if (!err && (fwrite(named, 1, named_len, json) != named_len || fflush(json) || fflush(text)))
		err = -EIO;
	if (err)
		return report_file_refuse(o, path, err, why, at);
	if (sums.nr_unnamed)
		warn("report: %s: %zu of %zu frames have no name%s", path, sums.nr_unnamed, sums.nr_frames,
		     o->sysroot ? "" : ": --sysroot DIR names the board's files");
	return STATUS_DONE;
}

/* The file that each output gets, by its format. */
static int report_saved_choose(const struct outputs *outs, FILE *json, FILE *text, int **fds, size_t *nr)
{
	auto_free struct output_format *formats = NULL;
	size_t count = outputs_describe(outs, NULL, 0);

	formats = calloc(count + 1, sizeof(*formats));
	*fds = calloc(count + 1, sizeof(**fds));
	if (!formats || !*fds)
		return -ENOMEM;
	outputs_describe(outs, formats, count);
	for (*nr = 0; *nr < count; ++*nr) {
		const char *name = formats[*nr].name;

		if (strcmp(name, "json") != 0 && strcmp(name, "text") != 0) {
			error("report: a JSON report can be written as .json and .txt only, not as %s", name);
			return -EINVAL;
		}
		(*fds)[*nr] = fileno(strcmp(name, "json") ? text : json);
	}
	return 0;
}

int report_saved(const struct options *o)
{
	const struct output_options oo = options_output(o);
	auto_fclose FILE *json = NULL, *text = NULL;
	struct outputs *outs = NULL;
	auto_free int *fds = NULL;
	size_t nr = 0;
	int status = STATUS_DONE, err;

	if (report_saved_is_refused(o))
		return STATUS_USAGE;
	err = outputs_new(&outs, &oo, stdout);
	if (err)
		return outputs_status(err);
	rights_keep_files(o, outs);
	json = tmpfile();
	text = tmpfile();
	err = json && text ? report_saved_choose(outs, json, text, &fds, &nr) : -errno;
	if (err == -EINVAL)
		status = STATUS_USAGE;
	else if (err)
		error("report: %s", strerror(-err));
	if (err && !status)
		status = STATUS_IMPOSSIBLE;
	if (!status)
		status = report_saved_make(o, json, text);
	if (!status && outputs_copy(outs, 0, fds, nr))
		status = STATUS_UNTRUSTED;
	outputs_free(outs);
	return status;
}
