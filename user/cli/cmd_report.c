/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap report: the report on a recording, a list of events or a JSON report, without a target. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/cli/commands.h"
#include "user/cli/report_file.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/path.h"
#include "user/lib/status.h"
#include "user/cli/options_rooms.h"
#include "user/cli/page_file.h"
#include "user/cli/rights.h"
#include "user/cli/series_command.h"
#include "user/lib/types.h"
#include "user/report/output.h"
#include "user/report/saved.h"
#include "user/report/saved_names.h"
#include "user/report/saved_text.h"
#include "user/session/session.h"
#include "user/session/session_replay.h"

/* heaptap report FILE.json: names the report that an agent has written, and prints or saves it. */

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

/* Write the JSON report o->args[0] with names to the outputs of @o, or print it. An exit status. Logs. */
static int report_saved(const struct options *o)
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

/* Knows files of other tools by their first bytes or by their names. */

enum { HEAD_BYTES = 64 };

#define HEAPTRACK "a file of heaptrack: heaptrack_print or heaptrack_gui reads it"

static const struct {
	const char *begins; /* with this the file begins; NULL = anything */
	const char *name;   /* with this its name begins, or ends if it begins with a dot; NULL = any name */
	const char *what;
} kinds[] = {
	{ "desc: ", NULL, "a file of massif: ms_print or massif-visualizer reads it" },
	{ "PERFILE2", NULL, "a file of perf: perf report reads it" },
	{ "heap profile:", NULL, "a heap profile of gperftools: google-pprof reads it" },
	{ "heap_v2/", NULL, "a heap profile of jemalloc: jeprof reads it" },
	{ "# callgrind format", NULL, "a file of callgrind: callgrind_annotate reads it" },
	{ "==", NULL, "output of valgrind, which is text for people" },
	{ NULL, "heaptrack.", HEAPTRACK },
	{ NULL, ".heaptrack.gz", HEAPTRACK },
	{ NULL, ".heaptrack.zst", HEAPTRACK },
	{ "v 1", NULL, HEAPTRACK }, /* not compressed: its version */
	{ "\x28\xb5\x2f\xfd", NULL,
	  "compressed by zstd, as files of heaptrack are: heaptrack_print reads those" },
	{ "<!doctype", NULL, "a page: a browser opens it" },
	{ "<?xml", NULL, "XML, as a report for JUnit is: a CI system reads it" },
	{ "\x1f\x8b", ".pb.gz", "a profile for pprof: go tool pprof reads it" },
	{ "\x1f\x8b", ".prof", "a profile for pprof: go tool pprof reads it" },
};

/* Name the kind of the file @path and its reader: "a file of massif: ms_print reads it". NULL: not known. */
static const char *foreign_file(const char *path)
{
	const char *name = path_name(path);
	auto_close int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	char head[HEAD_BYTES + 1] = "";
	ssize_t len = fd < 0 ? -1 : pread(fd, head, HEAD_BYTES, 0); /* takes nothing from a pipe */

	for (size_t i = 0; len > 0 && i < ARRAY_SIZE(kinds); i++) {
		const char *part = kinds[i].name;
		size_t part_len = part ? strlen(part) : 0;
		bool is_named = !part || (*part == '.' ? strlen(name) > part_len &&
								 !strcmp(name + strlen(name) - part_len, part)
						       : !strncmp(name, part, part_len));

		if (is_named &&
		    (!kinds[i].begins || !strncmp(head, kinds[i].begins, strlen(kinds[i].begins))))
			return kinds[i].what;
	}
	return NULL;
}

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
