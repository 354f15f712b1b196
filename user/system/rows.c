/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of text about the processes of the watch. */
#include "user/system/rows.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/system/answer.h"

void row_rate(double bytes_per_s, char *text, size_t size)
{
	double per_min = fabs(bytes_per_s) * 60;
	bool is_slow = per_min < 100 * 1024;

	snprintf(text, size, "%s%s/%s", bytes_per_s < 0 ? "-" : "",
		 human_bytes((u64)(is_slow ? per_min * 60 : per_min)).text, is_slow ? "h" : "min");
}

static void describe_growth(const struct system_state *s, const struct watched *p, struct row_text *out)
{
	u64 left_ns;

	if (p->state != WATCHED_GROWS)
		return;
	row_rate(p->line.bytes_per_s, out->rate, sizeof(out->rate));
	/* Twice the error of the line: 19 times of 20 the rate is within it. */
	snprintf(out->error, sizeof(out->error), "+-%s",
		 human_percent((u64)(2 * p->line.error_per_s), (u64)p->line.bytes_per_s + 1).text);
	out->since = human_duration(watched_growing_ns(&s->watch, p) / 1000000000 * 1000000000);
	left_ns = limit_time_ns(&p->limit, p->line.bytes_per_s);
	if (left_ns)
		snprintf(out->limit, sizeof(out->limit), "%s (%s)",
			 human_duration(left_ns / 1000000000 * 1000000000).text, limit_name(p->limit.kind));
}

void row_describe(const struct system_state *s, const struct watched *p, struct row_text *out)
{
	const struct zoom_answer *f;
	const char *end;
	char box[192];

	*out = (struct row_text){ 0 };
	out->needs = human_bytes(watched_needs(p));
	out->resident = human_bytes(p->resident);
	describe_growth(s, p, out);
	container_describe(&p->container, box, sizeof(box));
	escape_buf(out->container, sizeof(out->container), box);
	f = zooms_answer(&s->zooms, p->pid, p->start_time);
	if (!f)
		return;
	answer_describe(f, out->zoom, sizeof(out->zoom));
	end = strstr(f->where, " < ");
	snprintf(out->place, sizeof(out->place), "%.*s",
		 (int)(end ? (size_t)(end - f->where) : strlen(f->where)), f->where);
}

static size_t count_growing(const struct system_state *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->watch.nr; i++)
		nr += s->watch.list[i].state == WATCHED_GROWS;
	return nr;
}

void rows_head(const struct system_state *s, char *text, size_t size)
{
	const struct watch *w = &s->watch;
	size_t growing = count_growing(s);
	int len = snprintf(text, size, "%s process%s, %s %s, %u traced; %s resident; heaptap %s of a CPU",
			   human_count(w->nr).text, w->nr == 1 ? "" : "es",
			   growing ? human_count(growing).text : "none", growing == 1 ? "grows" : "grow",
			   s->zooms.nr + s->everything.nr_traced, human_bytes(w->resident).text,
			   human_percent(s->cpu_permyriad, 10000).text);

	if (w->nr_evicted && len > 0 && (size_t)len < size)
		snprintf(text + len, size - (size_t)len, "; %s not watched (--watch)",
			 human_count(w->nr_evicted).text);
}

static void write_row(FILE *out, const struct system_state *s, const struct watched *p)
{
	char comm[4 * PROC_COMM_SIZE];
	struct row_text t;

	row_describe(s, p, &t);
	fprintf(out, "%8d  %-15s %10s %10s  %14s %-8s %9s  %s%s%s\n", (int)p->pid,
		escape_buf(comm, sizeof(comm), p->comm), t.needs.text, t.resident.text,
		t.rate[0] ? t.rate : "-", t.error, t.since.text, t.limit,
		t.limit[0] && t.container[0] ? "  " : "", t.container);
	if (t.zoom[0])
		fprintf(out, "%8s  %s\n", "", t.zoom);
}

/* The time of day, in local time. */
static void write_time(FILE *out)
{
	char text[32];
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		fprintf(out, "%s  ", text);
}

int rows_write(FILE *out, const struct system_state *s, u32 top)
{
	auto_free const struct watched **list = NULL;
	char head[256];
	int err = watch_rank(&s->watch, &list);

	if (err)
		return err;
	rows_head(s, head, sizeof(head));
	write_time(out);
	fprintf(out, "%s\n", head);
	fprintf(out, "%8s  %-15s %10s %10s  %14s %-7s %9s  %s\n", "PID", "NAME", "NEEDS", "RESIDENT",
		"GROWS BY", "", "SINCE", "FULL IN");
	for (size_t i = 0; i < s->watch.nr && (!top || i < top); i++)
		write_row(out, s, list[i]);
	putc('\n', out);
	return 0;
}
