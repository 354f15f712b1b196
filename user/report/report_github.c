/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leaks and wrong releases as workflow commands of GitHub, which shows them at their source lines. */
#include "user/report/report.h"

#include <errno.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/report/findings.h"
#include "user/report/format.h"
#include "user/report/report_verdict.h"
#include "user/target/target.h"

enum { DOUBT_MAX = 512 };

/* Write @text escaped; in a property colons and commas are separators too. */
static void put_escaped(FILE *out, const char *text, bool is_property)
{
	const char *special = is_property ? "%\r\n:," : "%\r\n";

	for (const char *s = text; *s; s++) {
		if (strchr(special, *s))
			fprintf(out, "%%%02X", (unsigned char)*s);
		else
			putc(*s, out);
	}
}

static void put_property(FILE *out, char separator, const char *name, const char *value)
{
	fprintf(out, "%c%s=", separator, name);
	put_escaped(out, value, true);
}

static int report_github_put_finding(FILE *out, const struct findings *f, const struct finding_item *item)
{
	static const char *const commands[] = { [LEVEL_ERROR] = "error", [LEVEL_WARNING] = "warning" };
	auto_free char *title = NULL, *text = NULL, *file = NULL;
	struct finding_place place;
	int err = finding_place(f, item, &place);

	if (!err)
		err = finding_title(f, item, &title);
	if (!err)
		err = finding_text(f, item, &text);
	if (err)
		return err;
	file = escape_new(place.line ? place.file : "");
	if (!file)
		return -ENOMEM;
	fprintf(out, "::%s", commands[finding_rules[item->kind].level]);
	put_property(out, ' ', "title", title);
	if (place.line) {
		put_property(out, ',', "file", file);
		fprintf(out, ",line=%u", place.line);
	}
	fputs("::", out);
	put_escaped(out, text, false);
	putc('\n', out);
	return 0;
}

static bool has_findings(const struct findings *f, const struct report_process *p)
{
	for (size_t i = 0; i < f->nr; i++)
		if (f->list[i].process == p)
			return true;
	return false;
}

/* The sentence that all reports begin with. */
static int report_github_put_verdict(FILE *out, const struct report *r, const struct report_process *p)
{
	char comm[4 * TARGET_COMM_LEN];
	struct report_verdict v;
	int err = report_verdict_of(&v, r, p);

	fputs("::notice title=heaptap::", out);
	put_escaped(out, escape_buf(comm, sizeof(comm), p->target->comm), false);
	fprintf(out, " (pid %d): ", (int)p->target->pid);
	put_escaped(out, v.text, false);
	putc('\n', out);
	return err;
}

static void put_doubts(FILE *out, const struct report_process *p)
{
	char text[DOUBT_MAX];

	for (size_t i = 0; finding_doubt(p, i, text, sizeof(text)); i++) {
		fputs("::warning title=heaptap::", out);
		put_escaped(out, text, false);
		fprintf(out, " (pid %d)\n", (int)p->target->pid);
	}
}

int report_github(FILE *out, const struct report *r)
{
	struct findings f;
	int err = findings_init(&f, r);

	for (size_t i = 0; i < r->nr_processes && !err; i++)
		if (has_findings(&f, &r->processes[i]))
			err = report_github_put_verdict(out, r, &r->processes[i]);
	/* A note has no line of its own: its block goes with that of a definite leak. */
	for (size_t i = 0; i < f.nr && !err; i++)
		if (finding_rules[f.list[i].kind].level != LEVEL_NOTE)
			err = report_github_put_finding(out, &f, &f.list[i]);
	findings_fini(&f);
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		put_doubts(out, &r->processes[i]);
	return err ? err : flush_stream(out);
}
