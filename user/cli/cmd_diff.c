/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap diff: two recordings, or two saved reports, compared. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/cli/commands.h"
#include "user/report/diff.h"
#include "user/report/format.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/cli/options_rooms.h"
#include "user/report/output.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"
#include "user/session/session.h"

enum { PORTION = 65536 };

static const u64 MAX_REPORT = 1ULL << 30; /* bytes of a JSON report */

/* Is the file @path JSON? 1 or 0, or -errno. */
static int is_report(const char *path)
{
	auto_fclose FILE *in = fopen(path, "re");
	int c;

	if (!in)
		return -errno;
	errno = 0;
	do
		c = getc(in);
	while (c == ' ' || c == '\n' || c == '\t' || c == '\r');
	if (ferror(in))
		return errno ? -errno : -EIO;
	return c == '{';
}

/* All of a JSON report; the caller owns *@text. */
static int read_report(const char *path, char **text, size_t *len)
{
	auto_fclose FILE *in = fopen(path, "re");
	auto_free char *buf = NULL;
	size_t used = 0, room = 0, n;

	if (!in)
		return -errno;
	do {
		if (used > MAX_REPORT)
			return -EFBIG;
		if (array_reserve(buf, room, used + PORTION))
			return -ENOMEM;
		n = fread(buf + used, 1, room - used, in);
		used += n;
	} while (n);
	if (ferror(in))
		return errno ? -errno : -EIO;
	*text = take_ptr(buf);
	*len = used;
	return 0;
}

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

/* Add one of the two files. 0 or an exit status. */
static int add(const struct options *o, struct diff *d, u32 side, int *status)
{
	const char *path = o->args[side];
	auto_free char *text = NULL;
	const char *why = NULL;
	size_t len = 0, at = 0;
	int is_json = is_report(path);
	int err = is_json < 0 ? is_json : 0;

	if (is_json > 0)
		err = read_report(path, &text, &len);
	else if (!is_json) {
		err = replay(o, path, &text, &len, status);
		if (err)
			return session_replay_status(err);
	}
	if (!err)
		err = diff_add(d, side, text, len, &why, &at);
	if (err && why)
		error("diff: %s: at byte %zu: %s", path, at, why);
	else if (err)
		error("diff: %s: %s", path, strerror(-err));
	return err ? session_replay_status(err) : STATUS_DONE;
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

int cmd_diff(const struct options *o)
{
	const struct output_options oo = options_output(o);
	enum diff_key key = diff_key_find(report_keys[o->sort].name);
	struct outputs *outs = NULL;
	struct diff *d = NULL;
	int status = STATUS_DONE, err = 0;

	if (key == NR_DIFF_KEYS) {
		error("diff: --sort: must be one of live-bytes live-blocks total-bytes total-blocks "
		      "leaked-bytes peak");
		return STATUS_USAGE;
	}
	if (check_outputs(o))
		return STATUS_USAGE;
	err = outputs_new(&outs, &oo, stdout);
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
