/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for CI systems that read JUnit's XML: a suite for each process, a failed test for each finding. */
#include "user/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/report/findings.h"
#include "user/report/format.h"
#include "user/report/report_verdict.h"
#include "user/scan/leaks.h"
#include "user/target/target.h"

enum { DOUBT_MAX = 512, NS_PER_MS = 1000000, MS_PER_S = 1000 };

/* The tests of one process: text in memory, and their numbers. */
struct suite {
	FILE *out;
	const char *process; /* its name, escaped */
	u64 nr_tests, nr_failures, nr_errors, nr_skipped;
};

/* Write @text, which escape_text() has made, so that it can be in an attribute and between tags. */
static void put_xml(FILE *out, const char *text)
{
	static const struct {
		char c;
		const char *entity;
	} entities[] = {
		{ '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" }, { '\'', "&#39;" }
	};

	for (const char *s = text; *s; s++) {
		size_t i = 0;

		/* U+FFFE and U+FFFF are valid UTF-8, but not allowed in XML. */
		if (!strncmp(s, "\xef\xbf\xbe", 3) || !strncmp(s, "\xef\xbf\xbf", 3)) {
			putc('?', out);
			s += 2;
			continue;
		}
		while (i < ARRAY_SIZE(entities) && entities[i].c != *s)
			i++;
		if (i < ARRAY_SIZE(entities))
			fputs(entities[i].entity, out);
		else
			putc(*s, out);
	}
}

static void put_attribute(FILE *out, const char *name, const char *value)
{
	fprintf(out, " %s=\"", name);
	put_xml(out, value);
	putc('"', out);
}

static void put_case(struct suite *s, const char *name)
{
	s->nr_tests++;
	fputs("  <testcase", s->out);
	put_attribute(s->out, "classname", s->process);
	put_attribute(s->out, "name", name);
}

static void put_passed(struct suite *s, const char *name)
{
	put_case(s, name);
	fputs("/>\n", s->out);
}

/* A test that says nothing about the process, because of @why. */
static void put_missing(struct suite *s, const char *name, const char *element, const char *why)
{
	put_case(s, name);
	fprintf(s->out, "><%s", element);
	put_attribute(s->out, "message", why);
	fputs("/></testcase>\n", s->out);
}

static int report_junit_put_place(struct suite *s, const struct findings *f, const struct finding_item *item)
{
	struct finding_place place;
	auto_free char *file = NULL;
	int err = finding_place(f, item, &place);

	if (err || !place.line)
		return err;
	file = escape_new(place.file);
	if (!file)
		return -ENOMEM;
	put_attribute(s->out, "file", file);
	fprintf(s->out, " line=\"%u\"", place.line);
	return 0;
}

/* A finding is a failed test, or a skipped one if it is a warning. */
static int report_junit_put_finding(struct suite *s, const struct findings *f,
				    const struct finding_item *item)
{
	bool is_failure = finding_rules[item->kind].level == LEVEL_ERROR;
	const char *element = is_failure ? "failure" : "skipped";
	auto_free char *title = NULL, *message = NULL, *text = NULL;
	int err = finding_title(f, item, &title);

	if (!err)
		err = finding_message(f, item, &message);
	if (!err)
		err = finding_text(f, item, &text);
	if (err)
		return err;
	put_case(s, title);
	err = report_junit_put_place(s, f, item);
	fprintf(s->out, "><%s", element);
	if (is_failure)
		put_attribute(s->out, "type", finding_rules[item->kind].id);
	put_attribute(s->out, "message", message);
	putc('>', s->out);
	put_xml(s->out, text);
	fprintf(s->out, "</%s></testcase>\n", element);
	s->nr_failures += is_failure;
	s->nr_skipped += !is_failure;
	return err;
}

/* Tests of things that were looked for and not found, or not looked for. */
static void put_rest(struct suite *s, const struct report_process *p, bool has_leaks, bool has_misuses)
{
	char text[DOUBT_MAX];

	for (size_t i = 0; finding_doubt(p, i, text, sizeof(text)); i++) {
		put_missing(s, "the report is whole", "error", text);
		s->nr_errors++;
	}
	if (!p->leaks && !p->unwatched) {
		put_missing(s, "no leaks", "skipped", "no leak verdict was asked for");
		s->nr_skipped++;
	} else if (p->leaks && p->leaks->has_verdict && !has_leaks) {
		put_passed(s, "no leaks");
	}
	if (!heap_is_checked(p->heap) && !p->unwatched) {
		put_missing(s, "no wrong releases", "skipped", "releases were not checked");
		s->nr_skipped++;
	} else if (heap_is_checked(p->heap) && !p->unwatched && !has_misuses) {
		put_passed(s, "no wrong releases");
	}
}

static int put_cases(struct suite *s, const struct findings *f, const struct report_process *p)
{
	bool has_leaks = false, has_misuses = false;
	int err = 0;

	for (const struct finding_item *item = f->list; item < f->list + f->nr && !err; item++) {
		/* Indirect leaks go with their definite leak. */
		if (item->process != p || finding_rules[item->kind].level == LEVEL_NOTE)
			continue;
		has_misuses |= item->misuse != NULL;
		has_leaks |= !item->misuse;
		err = report_junit_put_finding(s, f, item);
	}
	put_rest(s, p, has_leaks, has_misuses);
	return err;
}

static int put_suite(FILE *out, const struct findings *f, const struct report_process *p)
{
	char name[4 * TARGET_COMM_LEN];
	auto_free char *text = NULL;
	size_t len;
	struct suite s = { .out = open_memstream(&text, &len),
			   .process = escape_buf(name, sizeof(name), p->target->comm) };
	u64 ms = f->report->duration_ns / NS_PER_MS;
	struct report_verdict v;
	int err;

	if (!s.out)
		return -ENOMEM;
	err = report_verdict_of(&v, f->report, p);
	if (!err)
		err = put_cases(&s, f, p);
	if (fclose(s.out) && !err)
		err = -ENOMEM;
	if (err)
		return err;
	fprintf(out, " <testsuite");
	put_attribute(out, "name", name);
	fprintf(out,
		" tests=\"%" PRIu64 "\" failures=\"%" PRIu64 "\" errors=\"%" PRIu64 "\" skipped=\"%" PRIu64
		"\" time=\"%" PRIu64 ".%03" PRIu64 "\">\n",
		s.nr_tests, s.nr_failures, s.nr_errors, s.nr_skipped, ms / MS_PER_S, ms % MS_PER_S);
	fprintf(out, "  <properties><property name=\"pid\" value=\"%d\"/><property name=\"verdict\"",
		(int)p->target->pid);
	put_attribute(out, "value", v.text);
	fputs("/></properties>\n", out);
	fputs(text, out);
	fputs(" </testsuite>\n", out);
	return 0;
}

int report_junit(FILE *out, const struct report *r)
{
	struct findings f;
	int err = findings_init(&f, r);

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"heaptap\">\n", out);
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = put_suite(out, &f, &r->processes[i]);
	fputs("</testsuites>\n", out);
	findings_fini(&f);
	return err ? err : flush_stream(out);
}
