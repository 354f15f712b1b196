/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap diff: two recordings or saved reports compared, or the growth over many of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/commands.h"
#include "user/cli/report_file.h"
#include "user/cli/rights.h"
#include "user/cli/series_command.h"
#include "user/report/diff.h"
#include "user/report/format.h"
#include "user/lib/cleanup.h"
#include "user/lib/flush.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/lib/wrap.h"
#include "user/cli/options_rooms.h"
#include "user/report/output.h"
#include "user/report/report_rows.h"

/* Add one of the two files. 0 or an exit status. */
static int cmd_diff_add(const struct options *o, struct diff *d, u32 side, int *status)
{
	const char *path = o->args[side];
	auto_free char *text = NULL;
	const char *why = NULL;
	size_t len = 0, at = 0;
	int failed = report_file_load(o, path, &text, &len, status);
	int err = failed ? 0 : diff_add(d, side, text, len, &why, &at);

	return err ? report_file_refuse(o, path, err, why, at) : failed;
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
static int cmd_diff_write_pages(struct diff *d, const char *const names[2], struct outputs *outs, size_t nr)
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

static int cmd_diff_write_diff(const struct options *o, struct diff *d, enum diff_key key,
			       struct outputs *outs)
{
	const char *const names[] = { o->args[0], o->args[1] };
	bool is_screen = !o->json && isatty(STDOUT_FILENO);
	FILE *out = stdout;
	int err;

	if (o->outputs.nr)
		return cmd_diff_write_pages(d, names, outs, o->outputs.nr);
	if (is_screen)
		out = wrap_open(stdout, wrap_width(stdout));
	if (!out)
		return -ENOMEM;
	err = o->json ? diff_write_json(out, d, key, names)
		      : diff_write_text(out, d, key, o->top, is_screen && !o->has_top && !o->verbose, names);
	if (is_screen && fclose(out) && !err)
		err = -errno;
	/* A reader of a pipe that goes away has what it wants. */
	if (err && err != -EPIPE) {
		error("diff: standard output: %s", strerror(-err));
		flush_forget(stdout);
	}
	return err;
}

/* The status by --fail-on. Logs why it is none of success. */
static int judge_diff(const struct options *o, const struct diff *d)
{
	const struct diff_sums sums = diff_sums(d);
	u64 before = diff_totals(d, 0).numbers.live_bytes;
	u64 more = sums.live_bytes > 0 && !sums.is_noise ? (u64)sums.live_bytes : 0;
	bool has_grown = (o->fail_growth_bytes && more >= o->fail_growth_bytes) ||
			 (o->fail_growth && more && more * 1000 >= before * o->fail_growth);
	bool leaks = sums.leaked_blocks > 0 || sums.leaked_bytes > 0;

	if (o->fail_on_definite && !sums.has_leaks) {
		error("diff: --fail-on: no leak verdict in both reports");
		return STATUS_NO_VERDICT;
	}
	if (!has_grown && !(o->fail_on_definite && leaks && sums.leaked_bytes >= (s64)o->fail_bytes))
		return STATUS_DONE;
	warn("diff: failed: %s",
	     has_grown ? "more is live (--fail-on growth)" : "more is lost (--fail-on leaks)");
	return o->error_exitcode ? (int)o->error_exitcode : STATUS_FINDINGS;
}

static int compare_two(const struct options *o, enum diff_key key)
{
	const struct output_options oo = options_output(o);
	struct outputs *outs = NULL;
	struct diff *d = NULL;
	int status = STATUS_DONE, err = outputs_new(&outs, &oo, stdout);

	if (err)
		return outputs_status(err);
	rights_keep_files(o, outs);
	if (diff_new(&d)) {
		error("diff: %s", strerror(ENOMEM));
		err = STATUS_IMPOSSIBLE;
	}
	for (u32 side = 0; side < 2 && !err; side++)
		err = cmd_diff_add(o, d, side, &status);
	if (!err && cmd_diff_write_diff(o, d, key, outs))
		err = STATUS_UNTRUSTED;
	if (!err && !status)
		status = judge_diff(o, d);
	diff_free(d);
	outputs_free(outs);
	return err ? err : status;
}

int cmd_diff(const struct options *o)
{
	enum diff_key key = diff_key_find(report_keys[o->sort].name);

	if (key == NR_DIFF_KEYS) {
		error("diff: --sort: must be one of live-bytes live-blocks total-bytes total-blocks "
		      "leaked-bytes peak");
		return STATUS_USAGE;
	}
	if (o->fail_on_errors) {
		error("diff: --fail-on: must be leaks, definite:64K, growth:64K or growth:5%%");
		return STATUS_USAGE;
	}
	if (o->nr_args == 2)
		return check_outputs(o) ? STATUS_USAGE : compare_two(o, key);
	if (key != DIFF_LIVE_BYTES) {
		error("diff: --sort: only for two reports");
		return STATUS_USAGE;
	}
	return series_command(o);
}
