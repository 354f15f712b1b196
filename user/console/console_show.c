/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands of the console that print reports and parts of reports. */
#include "user/console/console.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/report/diff.h"
#include "user/report/estimate.h"
#include "user/lib/cleanup.h"
#include "user/lib/parse.h"
#include "user/report/output.h"
#include "user/report/format.h"
#include "user/report/report_blocks.h"
#include "user/report/report_parts.h"
#include "user/report/report_rows.h"
#include "user/session/session.h"

/* A report, or a part of one, that a command shows. */
struct view {
	struct console *console;
	struct report_options options;
	int (*write)(FILE *out, const struct report *r);
};

static void view_init(struct view *v, struct console *c, int (*write)(FILE *out, const struct report *r))
{
	*v = (struct view){ .console = c, .options = console_look(c), .write = write };
}

static int write_view(void *ctx, const struct report *r)
{
	const struct view *v = ctx;
	struct report shown = *r;

	shown.options = v->options;
	return v->write(v->console->out, &shown);
}

static int console_show_view(struct view *v)
{
	return session_show(v->console->session, v->console->pid, write_view, v);
}

/* Parse the arguments "[KEY] [N]" into @v. */
static int console_show_take_key(struct view *v, const char *command, size_t nr, char **words)
{
	u64 top;

	if (nr && (*words[0] < '0' || *words[0] > '9')) {
		v->options.sort = report_key_find(words[0]);
		if (!v->options.sort)
			return console_refuse(v->console, -EINVAL, "%s: %s: no such key; see 'help set'",
					      command, words[0]);
		words++;
		nr--;
	}
	if (nr > 1 || (nr && (parse_u64(words[0], &top) || top > UINT32_MAX)))
		return console_refuse(v->console, -EINVAL, "%s: %s: must be a number", command,
				      words[nr - 1]);
	if (nr)
		v->options.top = (u32)top;
	return 0;
}

int console_report(struct console *c, size_t nr, char **words)
{
	struct output_options o = c->options.output;
	struct outputs *outs = NULL;
	struct view v;
	int err;

	view_init(&v, c, report_text);
	/* "report > x.json" is "report x.json". */
	if (c->file && report_format_find(c->file))
		v.write = report_format_find(c->file)->write;
	if (!nr || !strcmp(words[0], "-"))
		return console_show_view(&v);
	o.names = (const char *const *)words;
	o.nr_names = 1;
	o.report.is_unwanted = v.options.is_unwanted;
	err = outputs_new(&outs, &o, stdout);
	if (err)
		return err == -ENOMEM ? err : -EINVAL;
	err = session_show(c->session, c->pid, outputs_write_to, outs);
	outputs_free(outs);
	return err;
}

/* Print the value in a column of its own, if only this sort key shows it. */
static void print_value(FILE *out, const struct heap *h, const struct report_key *key,
			const struct report_row *row)
{
	if (key->label)
		fprintf(out, "  %12s",
			row ? estimate_of(h, key->human((u64)report_key_value(key, row))).text : key->name);
}

static int top_process(FILE *out, const struct report *r, const struct report_process *p)
{
	auto_free struct report_row *rows = NULL;
	const struct report_key *key;
	size_t nr, shown;
	int err = report_rows(r, p, &rows, &nr, &key);

	if (err)
		return err;
	while (nr && !report_key_value(key, &rows[nr - 1]))
		nr--;
	if (!nr)
		return fprintf(out, "  %s is 0 for all callers\n", key->name) < 0 ? -EIO : 0;
	shown = r->options.top && r->options.top < nr ? r->options.top : nr;
	fprintf(out, "%6s", "id");
	print_value(out, p->heap, key, NULL);
	fprintf(out, "  %12s  %12s  by\n", key->is_of_live ? "live" : "allocated", "blocks");
	for (size_t i = 0; i < shown && !err; i++) {
		const struct heap_row *h = &rows[i].row;
		char names[512];

		err = report_callers(r, p, rows[i].id, names, sizeof(names));
		fprintf(out, "%6u", rows[i].id + 1);
		print_value(out, p->heap, key, &rows[i]);
		fprintf(out, "  %12s  %12s  ",
			estimate_bytes(p->heap, key->is_of_live ? h->live_bytes : h->alloc_bytes).text,
			estimate_count(p->heap, key->is_of_live ? h->live_blocks : h->allocs).text);
		report_function(out, p, h->fn);
		fprintf(out, "%s%s\n", *names ? " < " : "", names);
	}
	if (shown < nr)
		fprintf(out, "%s more\n", human_count(nr - shown).text);
	return err;
}

static int write_top(FILE *out, const struct report *r)
{
	int err = 0;

	for (size_t i = 0; i < r->nr_processes && !err; i++) {
		if (r->nr_processes > 1)
			report_name(out, r->processes[i].target);
		err = top_process(out, r, &r->processes[i]);
	}
	return err;
}

int console_top(struct console *c, size_t nr, char **words)
{
	struct view v;
	int err;

	view_init(&v, c, write_top);
	err = console_show_take_key(&v, "top", nr, words);
	return err ? err : console_show_view(&v);
}

int console_stacks(struct console *c, size_t nr, char **words)
{
	struct view v;
	int err;

	view_init(&v, c, report_text_callers);
	err = console_show_take_key(&v, "stacks", nr, words);
	return err ? err : console_show_view(&v);
}

/* Parse the number of a caller, as `top` shows it. */
static int take_id(const struct console *c, const char *command, const char *word, u32 *id)
{
	u64 value;

	if (parse_u64(word, &value) || !value || value > UINT32_MAX)
		return console_refuse(c, -EINVAL, "%s: %s: must be the id of a caller, as top shows it",
				      command, word);
	*id = (u32)value;
	return 0;
}

int console_caller(struct console *c, size_t nr, char **words)
{
	const struct report_key *total = report_key_find("total-bytes");
	struct view v;
	int err;

	(void)nr;
	view_init(&v, c, report_text_callers);
	err = take_id(c, "caller", words[0], &v.options.only);
	/* Show the caller even if nothing is live, and its leaks, too. */
	v.options.sort = total;
	if (!err)
		err = console_show_view(&v);
	if (!err && !ftell(c->out))
		return console_refuse(c, -EINVAL, "caller: %s: there is no such caller", words[0]);
	return err;
}

int console_blocks(struct console *c, size_t nr, char **words)
{
	struct view v;
	int err = 0;

	view_init(&v, c, c->file ? report_blocks_writer(c->file) : report_blocks_text);
	/* A file for other programs gets all of them. */
	if (v.write != report_blocks_text)
		v.options.top = 0;
	/* The argument 0 means all callers. */
	v.options.want_leaked = nr && !strcmp(words[0], "leaked");
	if (nr && strcmp(words[0], "0") && !v.options.want_leaked)
		err = take_id(c, "blocks", words[0], &v.options.only);
	if (!err && nr > 1)
		err = console_show_take_key(&v, "blocks", 1, words + 1);
	if (!err && v.options.want_leaked)
		return console_with_verdict(c, write_view, &v);
	return err ? err : console_show_view(&v);
}

/* Make a JSON report of this moment. The caller owns *@text. */
static int make_json(struct console *c, char **text, size_t *len)
{
	FILE *shown = c->out;
	struct view v;
	int err;

	view_init(&v, c, report_json);
	v.options.color = false;
	c->out = open_memstream(text, len);
	err = c->out ? console_show_view(&v) : -ENOMEM;
	if (c->out && fclose(c->out) && !err)
		err = -ENOMEM;
	c->out = shown;
	return err;
}

int console_baseline(struct console *c, size_t nr, char **words)
{
	char *text = NULL;
	size_t len = 0;
	int err = make_json(c, &text, &len);

	(void)nr;
	(void)words;
	if (err) {
		free(text);
		return err;
	}
	free(c->baseline);
	c->baseline = text;
	c->baseline_len = len;
	/* In a recording, growth counts from the last report of the recording itself. */
	if (!c->path)
		session_reported(c->session);
	return 0;
}

static int console_show_write_diff(struct console *c, struct diff *d, const char *now, size_t len,
				   const struct view *v)
{
	static const char *const names[] = { "baseline", "now" };
	const char *sort = v->options.sort ? v->options.sort->name : "live-bytes";
	enum diff_key key = diff_key_find(sort);
	const char *why;
	size_t at;
	int err;

	if (key == NR_DIFF_KEYS)
		return console_refuse(c, -EINVAL,
				      "diff: %s: must be one of live-bytes live-blocks total-bytes "
				      "total-blocks leaked-bytes",
				      sort);
	err = diff_add(d, 0, c->baseline, c->baseline_len, &why, &at);
	if (!err)
		err = diff_add(d, 1, now, len, &why, &at);
	return err ? err : diff_write_text(c->out, d, key, v->options.top, false, names);
}

int console_diff(struct console *c, size_t nr, char **words)
{
	auto_free char *now = NULL;
	struct diff *d = NULL;
	struct view v;
	size_t len = 0;
	int err;

	view_init(&v, c, NULL);
	/* The sort key of the session may not be a key of diff. */
	if (diff_key_find(v.options.sort->name) == NR_DIFF_KEYS)
		v.options.sort = NULL;
	err = console_show_take_key(&v, "diff", nr, words);
	if (err)
		return err;
	if (!c->baseline)
		return console_refuse(c, -EINVAL,
				      "diff: there is nothing to compare with: type 'baseline' first");
	err = diff_new(&d);
	if (!err)
		err = make_json(c, &now, &len);
	if (!err)
		err = console_show_write_diff(c, d, now, len, &v);
	diff_free(d);
	if (err && err != -EINVAL)
		console_refuse(c, err, "diff: %s", strerror(-err));
	return err;
}

int console_processes(struct console *c, size_t nr, char **words)
{
	struct view v;

	(void)nr;
	(void)words;
	view_init(&v, c, report_text_processes);
	return session_show(c->session, 0, write_view, &v);
}
