/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The growth over many reports as an HTML page: the page of a report, with plots and with growth per hour. */
#include "user/report/series.h"

#include "user/report/html_page.h"
#include "user/report/html_tables.h"

/* The page has a plot for so many callers of each process: those that grew most. */
enum { MAX_PLOTS = 200 };

/* A column of numbers of callers. */
struct series_column {
	const char *name;
	s64 (*get)(const struct series_line *l);
};

static s64 html_series_rounded(double x)
{
	double most = x < -9e18 ? -9e18 : x > 9e18 ? 9e18 : x;

	return (s64)(most < 0 ? most - 0.5 : most + 0.5);
}

static s64 first_bytes(const struct series_line *l)
{
	return (s64)l->first;
}

static s64 last_bytes(const struct series_line *l)
{
	return (s64)l->last;
}

static s64 per_hour(const struct series_line *l)
{
	return html_series_rounded(l->slope.per_hour);
}

/* -1 = not known. */
static s64 standard_error(const struct series_line *l)
{
	return l->slope.has_error ? html_series_rounded(l->slope.error) : -1;
}

static s64 is_significant(const struct series_line *l)
{
	return l->slope.is_significant;
}

static s64 nr_steps(const struct series_line *l)
{
	return l->nr_steps;
}

static s64 nr_grew(const struct series_line *l)
{
	return l->nr_grew;
}

static const struct series_column columns[] = {
	{ "first_bytes", first_bytes }, { "last_bytes", last_bytes },	   { "per_hour", per_hour },
	{ "error", standard_error },	{ "significant", is_significant }, { "steps", nr_steps },
	{ "grown", nr_grew },
};

/* The live bytes of @caller in each report that has its process. */
static void write_plot(struct json *j, const struct series_line *process, const struct series_line *caller)
{
	size_t at = 0;

	json_array_begin(j, NULL);
	for (size_t i = 0; i < process->nr; i++) {
		u32 report = process->points[i].report;

		while (at < caller->nr && caller->points[at].report < report)
			at++;
		json_u64(j, NULL,
			 at < caller->nr && caller->points[at].report == report ? caller->points[at].bytes
										: 0);
	}
	json_array_end(j);
}

static int html_series_write_callers(struct json *j, struct html_tables *t, const struct series_line *p)
{
	const struct series_line *end = p->callers + p->nr_callers;
	u32 number;
	int err = 0;

	json_object_begin(j, "callers");
	json_u64(j, "nr", p->nr_callers);
	json_array_begin(j, "node");
	for (const struct series_line *c = p->callers; c < end && !err; c++) {
		err = html_lines(t, c->frames, &number);
		json_s64(j, NULL, number == HTML_NONE ? -1 : (s64)number);
	}
	json_array_end(j);
	json_array_begin(j, "function");
	for (const struct series_line *c = p->callers; c < end && !err; c++) {
		err = html_text(t, c->function, &number);
		json_u64(j, NULL, number);
	}
	json_array_end(j);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		json_array_begin(j, columns[i].name);
		for (const struct series_line *c = p->callers; c < end; c++)
			json_s64(j, NULL, columns[i].get(c));
		json_array_end(j);
	}
	json_array_begin(j, "plots");
	for (const struct series_line *c = p->callers; c < end && c - p->callers < MAX_PLOTS; c++)
		write_plot(j, p, c);
	json_array_end(j);
	json_object_end(j);
	return err;
}

static void write_points(struct json *j, const struct series_line *p)
{
	json_array_begin(j, "points");
	for (size_t i = 0; i < p->nr; i++) {
		json_array_begin(j, NULL);
		json_u64(j, NULL, p->points[i].report);
		json_u64(j, NULL, p->points[i].bytes);
		json_u64(j, NULL, p->points[i].blocks);
		json_array_end(j);
	}
	json_array_end(j);
}

static int html_series_write_process(struct json *j, struct html_tables *t, const struct series_line *p)
{
	int err;

	json_object_begin(j, NULL);
	json_string(j, "comm", p->comm);
	json_u64(j, "pid", p->pid); /* 0 = of several PIDs */
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		json_s64(j, columns[i].name, columns[i].get(p));
	write_points(j, p);
	err = html_series_write_callers(j, t, p);
	json_object_end(j);
	return err;
}

static void write_reports(struct json *j, const struct series_report *reports, size_t nr)
{
	json_array_begin(j, "series");
	for (size_t i = 0; i < nr; i++) {
		json_object_begin(j, NULL);
		json_string(j, "file", reports[i].name);
		json_u64(j, "after_ns", reports[i].time_ns - reports[0].time_ns);
		json_u64(j, "lost", reports[i].lost);
		json_object_end(j);
	}
	json_array_end(j);
}

static int html_series_write_data(FILE *out, const void *ctx)
{
	const struct series *s = ctx;
	size_t nr_reports, nr;
	const struct series_report *reports = series_reports(s, &nr_reports);
	const struct series_line *list = series_processes(s, &nr);
	struct html_tables tables;
	struct json j;
	int err = 0;

	html_tables_init(&tables);
	json_init(&j, out, 0);
	j.in_page = true;
	json_object_begin(&j, NULL);
	json_string(&j, "version", HEAPTAP_VERSION);
	write_reports(&j, reports, nr_reports);
	json_array_begin(&j, "processes");
	for (const struct series_line *p = list; p < list + nr && !err; p++)
		err = html_series_write_process(&j, &tables, p);
	json_array_end(&j);
	html_tables_write(&j, &tables);
	json_object_end(&j);
	html_tables_fini(&tables);
	return err;
}

int series_write_html(FILE *out, const struct series *s)
{
	return html_page(out, html_series_write_data, s);
}
