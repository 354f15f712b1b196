/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads many reports, and writes how the heap changed over them: as text, as JSON, and as a page for a browser. */
#include "user/cli/series_command.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/cli/options_rooms.h"
#include "user/cli/page_file.h"
#include "user/cli/report_file.h"
#include "user/cli/rights.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/report/format.h"
#include "user/report/output.h"
#include "user/report/series.h"

enum { MAX_OUTPUTS = 64 };

bool series_is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Add the report @path to a series. 0 or an exit status. */
static int series_command_add_file(const struct options *o, struct series *s, const char *path, int *status)
{
	auto_free char *text = NULL;
	const char *why = NULL;
	size_t len = 0, at = 0;
	int failed = report_file_load(o, path, &text, &len, status);
	int err = failed ? 0 : series_add(s, path, text, len, &why, &at);

	return err ? report_file_refuse(o, path, err, why, at) : failed;
}

/* Does the name of a file in a directory say that it is a report? */
static int is_report_name(const struct dirent *entry)
{
	static const char other[] = ".speedscope.json";
	const char *name = entry->d_name;
	size_t len = strlen(name);

	if (len > 3 && !strcmp(name + len - 3, ".gz"))
		len -= 3;
	if (len >= sizeof(other) && !strncmp(name + len + 1 - sizeof(other), other, sizeof(other) - 1))
		return 0;
	return name[0] != '.' && len > 5 && !strncmp(name + len - 5, ".json", 5);
}

/* Add the reports in the directory @path. 0 or an exit status. */
static int add_directory(const struct options *o, struct series *s, const char *path, int *status)
{
	struct dirent **list = NULL;
	int nr = scandir(path, &list, is_report_name, alphasort), err = STATUS_DONE;

	if (nr < 0 && errno == ENOTDIR) {
		error("%s: %s: is one file; give two or more, or a directory", o->command->name, path);
		return STATUS_USAGE;
	}
	if (nr < 0)
		return report_file_refuse(o, path, -errno, NULL, 0);
	if (nr < 2) {
		error("%s: %s: the directory has %d reports (*.json, *.json.gz); 2 or more are needed",
		      o->command->name, path, nr);
		err = STATUS_NO_TARGET;
	}
	for (int i = 0; i < nr; i++) {
		auto_free char *file = NULL;

		if (!err && asprintf(&file, "%s/%s", path, list[i]->d_name) < 0)
			err = report_file_refuse(o, path, -ENOMEM, NULL, 0);
		else if (!err)
			err = series_command_add_file(o, s, file, status);
		free(list[i]);
	}
	free(list);
	return err;
}

static int series_command_write_text(FILE *out, const struct series *s, u32 top)
{
	return series_write_text(out, s, top);
}

static int series_command_write_json(FILE *out, const struct series *s, u32 top)
{
	(void)top;
	return series_write_json(out, s);
}

static int write_html(FILE *out, const struct series *s, u32 top)
{
	(void)top;
	return series_write_html(out, s);
}

static const struct writer {
	const char *format; /* of report_formats */
	int (*write)(FILE *out, const struct series *s, u32 top);
} writers[] = { { "text", series_command_write_text },
		{ "json", series_command_write_json },
		{ "html", write_html } };

static const struct writer *writer_of(const char *format)
{
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++)
		if (!strcmp(writers[i].format, format))
			return &writers[i];
	return NULL;
}

/* Find the writers of all outputs before anything is read. *@nr: how many. 0 or an exit status. */
static int choose_writers(const struct options *o, const struct outputs *outs,
			  const struct writer *chosen[MAX_OUTPUTS], size_t *nr)
{
	struct output_format formats[MAX_OUTPUTS];

	*nr = outputs_describe(outs, formats, MAX_OUTPUTS);
	if (*nr > MAX_OUTPUTS) {
		error("%s: --output: more than %d files", o->command->name, MAX_OUTPUTS);
		return STATUS_USAGE;
	}
	for (size_t i = 0; i < *nr; i++) {
		chosen[i] = writer_of(formats[i].name);
		if (chosen[i])
			continue;
		error("%s: the growth over many reports has no format %s: must be one of text json html",
		      o->command->name, formats[i].name);
		return STATUS_USAGE;
	}
	return 0;
}

/* Write the series to all outputs, each file whole or not at all. Logs. */
static int series_command_write_all(const struct options *o, const struct series *s, struct outputs *outs,
				    const struct writer *const *chosen, size_t nr)
{
	FILE *files[MAX_OUTPUTS] = { NULL };
	int fds[MAX_OUTPUTS], err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		files[i] = tmpfile();
		err = files[i] ? chosen[i]->write(files[i], s, o->top) : -errno;
		fds[i] = files[i] ? fileno(files[i]) : -1;
	}
	if (err)
		error("%s: %s", o->command->name, strerror(-err));
	else
		err = outputs_copy(outs, 0, fds, nr);
	for (size_t i = 0; i < nr; i++)
		if (files[i])
			fclose(files[i]);
	return err;
}

/* Returns an exit status. */
static int series_command_run(const struct options *o, struct outputs *outs)
{
	const struct writer *chosen[MAX_OUTPUTS];
	struct series *s = NULL;
	size_t nr;
	int status = STATUS_DONE, failed = choose_writers(o, outs, chosen, &nr), err;

	if (failed)
		return failed;
	err = series_new(&s);
	if (err)
		return report_file_refuse(o, o->args[0], err, NULL, 0);
	if (o->nr_args == 1)
		failed = add_directory(o, s, o->args[0], &status);
	for (size_t i = 0; o->nr_args > 1 && i < o->nr_args && !failed; i++)
		failed = series_command_add_file(o, s, o->args[i], &status);
	if (!failed) {
		err = series_end(s);
		if (err)
			error("%s: %s", o->command->name, strerror(-err));
		else
			err = series_command_write_all(o, s, outs, chosen, nr);
	}
	series_free(s);
	return failed ? failed : err ? STATUS_UNTRUSTED : status;
}

int series_command(const struct options *o)
{
	struct output_options oo = options_output(o);
	struct page_file page = { .path = NULL };
	struct outputs *outs = NULL;
	int status, err = o->open ? page_file_init(&page, &oo) : 0;

	if (o->json)
		oo.format = report_format_named("json");
	if (!err)
		err = outputs_new(&outs, &oo, stdout);
	if (!err)
		rights_keep_files(o, outs);
	status = err ? outputs_status(err) : series_command_run(o, outs);
	if (o->open && status == STATUS_DONE && page_file_open(&page))
		status = STATUS_IMPOSSIBLE;
	outputs_free(outs);
	page_file_fini(&page);
	return status;
}
