/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the growth of processes and callers over many reports, as text and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/human.h"
#include "user/lib/json.h"
#include "user/report/diff.h"
#include "user/report/series.h"

/* The absolute value of @x as a whole number. */
static u64 series_print_whole(double x)
{
	double size = x < 0 ? -x : x;

	return size >= 9e18 ? (u64)9e18 : (u64)(size + 0.5);
}

static void print_slope(FILE *out, const struct series_slope *s)
{
	fprintf(out, "%s%s/hour", s->per_hour < 0 ? "-" : "+",
		human_bytes(series_print_whole(s->per_hour)).text);
	if (s->per_hour == 0 && s->error == 0)
		return;
	if (!s->has_error)
		fputs(", uncertain (fewer than 3 reports)", out);
	else
		fprintf(out, " +- %s%s", human_bytes(series_print_whole(s->error)).text,
			s->is_significant ? "" : ", not significant");
}

static void print_points(FILE *out, const struct series_report *reports, const struct series_line *p)
{
	fprintf(out, "  %10s  %12s  %12s\n", "time", "live", "blocks");
	for (size_t i = 0; i < p->nr; i++) {
		const struct series_point *point = &p->points[i];
		u64 time = reports[point->report].time_ns - reports[0].time_ns;

		fprintf(out, "  %10s  %12s  %12s\n", time ? human_duration(time).text : "0 s",
			human_bytes(point->bytes).text, human_count(point->blocks).text);
	}
}

static void print_caller(FILE *out, const struct series_line *c, size_t number)
{
	fprintf(out, "\n#%-3zu ", number);
	print_slope(out, &c->slope);
	fprintf(out, " (%s, then %s; ", human_bytes(c->first).text, human_bytes(c->last).text);
	fprintf(out, "grew in %" PRIu32 " of %" PRIu32 " steps), by ", c->nr_grew, c->nr_steps);
	escape_text(out, c->function);
	fputc('\n', out);
	diff_print_frames(out, c->frames);
}

/* Write the callers with growth. They come first. */
static void print_callers(FILE *out, const struct series_line *p, u32 top)
{
	size_t nr = 0, shown;

	while (nr < p->nr_callers && p->callers[nr].slope.per_hour > 0)
		nr++;
	shown = top && top < nr ? top : nr;
	if (!nr) {
		fputs("\nNo caller grows.\n", out);
		return;
	}
	fputs("\nWho grows: ", out);
	if (shown < nr)
		fprintf(out, "top %s of ", human_count(shown).text);
	fprintf(out, "%s caller%s\n", human_count(nr).text, nr == 1 ? "" : "s");
	for (size_t i = 0; i < shown; i++)
		print_caller(out, &p->callers[i], i + 1);
}

static void series_print_head(FILE *out, const struct series_report *reports, size_t nr)
{
	u64 time = reports[nr - 1].time_ns - reports[0].time_ns, lost = 0;

	for (size_t i = 0; i < nr; i++)
		lost += reports[i].lost;
	fprintf(out, "%s reports in %s, from ", human_count(nr).text, human_duration(time).text);
	escape_text(out, reports[0].name);
	fputs(" to ", out);
	escape_text(out, reports[nr - 1].name);
	fputc('\n', out);
	if (lost)
		fprintf(out, "lost %s events: the numbers are not exact\n", human_count(lost).text);
	if (!time)
		fputs("All reports are of one moment: there is no growth to compute.\n", out);
}

int series_write_text(FILE *out, const struct series *s, u32 top)
{
	size_t nr_reports, nr, nr_single = 0;
	const struct series_report *reports = series_reports(s, &nr_reports);
	const struct series_line *list = series_processes(s, &nr);

	if (nr_reports)
		series_print_head(out, reports, nr_reports);
	for (const struct series_line *p = list; p < list + nr; p++) {
		if (p->nr < 2) {
			nr_single++;
			continue;
		}
		fputc('\n', out);
		escape_text(out, p->comm);
		if (p->pid)
			fprintf(out, " (pid %" PRIu32 ")", p->pid);
		fputs(": ", out);
		print_slope(out, &p->slope);
		fprintf(out, "; grew in %" PRIu32 " of %" PRIu32 " steps\n", p->nr_grew, p->nr_steps);
		print_points(out, reports, p);
		print_callers(out, p, top);
	}
	if (nr_single)
		fprintf(out, "\n%s process%s in one report only: left out.\n", human_count(nr_single).text,
			nr_single == 1 ? " is" : "es are");
	return flush_stream(out);
}

static s64 series_print_rounded(double x)
{
	return x < 0 ? -(s64)series_print_whole(x) : (s64)series_print_whole(x);
}

/* Write the keys that processes and callers share into the open object. */
static void json_line(struct json *j, const struct series_line *l)
{
	json_u64(j, "first_bytes", l->first);
	json_u64(j, "last_bytes", l->last);
	json_s64(j, "bytes_per_hour", series_print_rounded(l->slope.per_hour));
	if (l->slope.has_error)
		json_u64(j, "standard_error", series_print_whole(l->slope.error));
	else
		json_null(j, "standard_error");
	json_bool(j, "significant", l->slope.is_significant);
	json_u64(j, "steps", l->nr_steps);
	json_u64(j, "steps_grown", l->nr_grew);
}

static void json_points(struct json *j, const struct series_report *reports, const struct series_line *p)
{
	json_array_begin(j, "points");
	for (size_t i = 0; i < p->nr; i++) {
		const struct series_point *point = &p->points[i];

		json_object_begin(j, NULL);
		json_u64(j, "report", point->report);
		json_u64(j, "after_ns", reports[point->report].time_ns - reports[0].time_ns);
		json_u64(j, "pid", point->pid);
		json_u64(j, "live_bytes", point->bytes);
		json_u64(j, "live_blocks", point->blocks);
		json_object_end(j);
	}
	json_array_end(j);
}

static void series_print_json_process(struct json *j, const struct series_report *reports,
				      const struct series_line *p)
{
	json_object_begin(j, NULL);
	json_string(j, "comm", p->comm);
	json_known(j, "pid", p->pid);
	json_line(j, p);
	json_points(j, reports, p);
	json_array_begin(j, "callers");
	for (const struct series_line *c = p->callers; c < p->callers + p->nr_callers; c++) {
		json_object_begin(j, NULL);
		json_string(j, "function", c->function);
		json_line(j, c);
		diff_json_frames(j, c->frames);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

int series_write_json(FILE *out, const struct series *s)
{
	size_t nr_reports, nr;
	const struct series_report *reports = series_reports(s, &nr_reports);
	const struct series_line *list = series_processes(s, &nr);
	struct json j;

	json_init(&j, out, 5);
	json_object_begin(&j, NULL);
	json_string(&j, "schema", "heaptap-series/1");
	json_string(&j, "version", HEAPTAP_VERSION);
	json_array_begin(&j, "reports");
	for (size_t i = 0; i < nr_reports; i++) {
		json_object_begin(&j, NULL);
		json_string(&j, "file", reports[i].name);
		json_u64(&j, "time_ns", reports[i].time_ns);
		json_u64(&j, "duration_ns", reports[i].duration_ns);
		json_u64(&j, "lost", reports[i].lost);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_array_begin(&j, "processes");
	for (const struct series_line *p = list; p < list + nr; p++)
		series_print_json_process(&j, reports, p);
	json_array_end(&j);
	json_object_end(&j);
	return flush_stream(out);
}
