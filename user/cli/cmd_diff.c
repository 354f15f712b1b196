/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap diff: two recordings or saved reports compared, or the growth over many of them. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/cli/commands.h"
#include "user/report/diff.h"
#include "user/report/format.h"
#include "user/report/saved.h"
#include "user/report/series.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/cli/options_rooms.h"
#include "user/report/output.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"
#include "user/session/session.h"

/* The report on the recording @path as JSON; the caller owns *@text. Logs. */
static int replay(const struct options *o, const char *path, char **text, size_t *len, int *status)
{
	const struct session_options so = options_session(o);
	const struct output_options oo = options_output(o);
	FILE *out = open_memstream(text, len);
	struct outputs *outs = NULL;
	struct session *s = NULL;
	int err = out ? outputs_new_stream(&outs, &oo, out, "-.json") : -ENOMEM;

	if (err)
		error("diff: %s: %s", path, strerror(-err));
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

/* The report @path, or that on the recording @path, as JSON; the caller owns *@text. 0 or an exit status. */
static int load(const struct options *o, const char *path, char **text, size_t *len, int *status)
{
	int is_json = saved_is_json(path), err;

	if (!is_json) {
		err = replay(o, path, text, len, status);
		return err ? session_replay_status(err) : STATUS_DONE;
	}
	err = is_json < 0 ? is_json : saved_load(path, text, len);
	if (err)
		error("diff: %s: %s", path,
		      err == -EBADMSG ? "the compressed data are damaged" : strerror(-err));
	return err ? session_replay_status(err) : STATUS_DONE;
}

/* Say that @path is no report. Returns an exit status. */
static int refuse(const char *path, int err, const char *why, size_t at)
{
	if (why)
		error("diff: %s: at byte %zu: %s", path, at, why);
	else
		error("diff: %s: %s", path, strerror(-err));
	return session_replay_status(err);
}

/* Add one of the two files. 0 or an exit status. */
static int add(const struct options *o, struct diff *d, u32 side, int *status)
{
	const char *path = o->args[side];
	auto_free char *text = NULL;
	const char *why = NULL;
	size_t len = 0, at = 0;
	int failed = load(o, path, &text, &len, status);
	int err = failed ? 0 : diff_add(d, side, text, len, &why, &at);

	return err ? refuse(path, err, why, at) : failed;
}

/* Only a page is written to a file: what is printed can be redirected. */
static int check_outputs(const struct options *o)
{
	for (size_t i = 0; i < o->outputs.nr; i++) {
		const struct report_format *f = report_format_find(o->outputs.items[i]);

		if (f && f->write == report_html)
			continue;
		error("diff: --output: %s: must end in .html", o->outputs.items[i]);
		return -EINVAL;
	}
	return 0;
}

/* Write one page to all outputs. Logs. */
static int write_pages(struct diff *d, const char *const names[2], struct outputs *outs, size_t nr)
{
	auto_fclose FILE *page = tmpfile();
	auto_free int *fds = calloc(nr, sizeof(*fds));
	int err = page ? 0 : -errno;

	if (!fds)
		err = -ENOMEM;
	if (!err)
		err = diff_write_html(page, d, names);
	if (err) {
		error("diff: %s", strerror(-err));
		return err;
	}
	for (size_t i = 0; i < nr; i++)
		fds[i] = fileno(page);
	return outputs_copy(outs, 0, fds, nr);
}

static int write_diff(const struct options *o, struct diff *d, enum diff_key key, struct outputs *outs)
{
	const char *const names[] = { o->args[0], o->args[1] };
	int err;

	if (o->outputs.nr)
		return write_pages(d, names, outs, o->outputs.nr);
	err = o->json ? diff_write_json(stdout, d, key, names)
		      : diff_write_text(stdout, d, key, o->top, names);
	if (err)
		error("diff: %s", strerror(-err));
	return err;
}

static int compare_two(const struct options *o, enum diff_key key)
{
	const struct output_options oo = options_output(o);
	struct outputs *outs = NULL;
	struct diff *d = NULL;
	int status = STATUS_DONE, err = outputs_new(&outs, &oo, stdout);

	if (err)
		return outputs_status(err);
	if (diff_new(&d)) {
		error("diff: %s", strerror(ENOMEM));
		err = STATUS_IMPOSSIBLE;
	}
	for (u32 side = 0; side < 2 && !err; side++)
		err = add(o, d, side, &status);
	if (!err && write_diff(o, d, key, outs))
		err = STATUS_UNTRUSTED;
	diff_free(d);
	outputs_free(outs);
	return err ? err : status;
}

/* Add the report @path to a series. 0 or an exit status. */
static int add_to_series(const struct options *o, struct series *s, const char *path, int *status)
{
	auto_free char *text = NULL;
	const char *why = NULL;
	size_t len = 0, at = 0;
	int failed = load(o, path, &text, &len, status);
	int err = failed ? 0 : series_add(s, path, text, len, &why, &at);

	return err ? refuse(path, err, why, at) : failed;
}

/* Does the name of a file in a directory say that it is a report? */
static int is_report_name(const struct dirent *entry)
{
	const char *name = entry->d_name;
	size_t len = strlen(name);

	if (len > 3 && !strcmp(name + len - 3, ".gz"))
		len -= 3;
	return name[0] != '.' && len > 5 && !strncmp(name + len - 5, ".json", 5);
}

/* Add the reports in the directory @path. 0 or an exit status. */
static int add_directory(const struct options *o, struct series *s, const char *path, int *status)
{
	struct dirent **list = NULL;
	int nr = scandir(path, &list, is_report_name, alphasort), err = STATUS_DONE;

	if (nr < 0 && errno == ENOTDIR) {
		error("diff: %s: is one file; give two or more, or a directory", path);
		return STATUS_USAGE;
	}
	if (nr < 0)
		return refuse(path, -errno, NULL, 0);
	if (nr < 2) {
		error("diff: %s: has %d files of the names *.json and *.json.gz; 2 or more are needed", path,
		      nr);
		err = STATUS_NO_TARGET;
	}
	for (int i = 0; i < nr; i++) {
		auto_free char *file = NULL;

		if (!err && asprintf(&file, "%s/%s", path, list[i]->d_name) < 0)
			err = refuse(path, -ENOMEM, NULL, 0);
		else if (!err)
			err = add_to_series(o, s, file, status);
		free(list[i]);
	}
	free(list);
	return err;
}

/* How the heap moved over many reports. */
static int compare_many(const struct options *o)
{
	struct series *s = NULL;
	int status = STATUS_DONE, failed = STATUS_DONE, err = series_new(&s);

	if (err)
		return refuse(o->args[0], err, NULL, 0);
	if (o->nr_args == 1)
		failed = add_directory(o, s, o->args[0], &status);
	for (size_t i = 0; o->nr_args > 1 && i < o->nr_args && !failed; i++)
		failed = add_to_series(o, s, o->args[i], &status);
	if (!failed)
		err = series_end(s);
	if (!failed && !err)
		err = o->json ? series_write_json(stdout, s) : series_write_text(stdout, s, o->top);
	if (err) {
		error("diff: %s", strerror(-err));
		failed = STATUS_UNTRUSTED;
	}
	series_free(s);
	return failed ? failed : status;
}

int cmd_diff(const struct options *o)
{
	enum diff_key key = diff_key_find(report_keys[o->sort].name);

	if (key == NR_DIFF_KEYS) {
		error("diff: --sort: must be one of live-bytes live-blocks total-bytes total-blocks "
		      "leaked-bytes peak");
		return STATUS_USAGE;
	}
	if (check_outputs(o))
		return STATUS_USAGE;
	if (o->nr_args == 2)
		return compare_two(o, key);
	if (o->outputs.nr || key != DIFF_LIVE_BYTES) {
		error("diff: %s: only for two reports", o->outputs.nr ? "--output" : "--sort");
		return STATUS_USAGE;
	}
	return compare_many(o);
}
