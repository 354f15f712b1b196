/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects reports by process and caller, and draws a straight line through the live bytes of each. */
#include "user/report/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash.h"
#include "user/lib/hash_index.h"
#include "user/lib/random.h"
#include "user/report/saved.h"

enum { MAX_REPORTS = 1 << 16, MAX_ROWS = 1 << 22, MAX_POINTS = 1 << 24 };

static const double NS_PER_HOUR = 3600e9;

/* All processes of one name, or one caller in them. Its points become a line, or a line for each PID. */
struct series_row {
	char *comm, *function, *frames; /* owned; the last two are empty for processes */
	u32 process;			/* row of the processes; its own number for them */
	struct series_point *points;	/* owned */
	u32 nr, max;
	bool is_many;	    /* of processes: a report has two or more PIDs */
	u32 line, nr_lines; /* of processes: in series.processes, before these are sorted by growth */
};

struct series {
	struct series_row *rows; /* owned */
	size_t nr_rows, max_rows;
	struct hash_index by_names; /* rows */
	u64 seed;		    /* random, so that a report cannot choose names whose hashes are equal */
	size_t nr_points;
	struct series_report *reports; /* owned */
	size_t nr_reports, max_reports;
	struct series_line *processes, *callers; /* owned */
	size_t nr_processes, max_processes, nr_callers, max_callers;
};

static bool is_flat(const double *y, size_t nr)
{
	size_t i = 1;

	while (i < nr && y[i] == y[0])
		i++;
	return i >= nr;
}

struct series_slope series_slope(const double *hours, const double *y, size_t nr)
{
	double mean_x = 0, mean_y = 0, sxx = 0, sxy = 0, rest = 0;
	struct series_slope slope = { .per_hour = 0 };

	for (size_t i = 0; i < nr; i++) {
		mean_x += hours[i] / (double)nr;
		mean_y += y[i] / (double)nr;
	}
	for (size_t i = 0; i < nr; i++) {
		sxx += (hours[i] - mean_x) * (hours[i] - mean_x);
		sxy += (hours[i] - mean_x) * (y[i] - mean_y);
	}
	if (!(sxx > 0))
		return slope;
	slope.has_error = nr >= 3;
	/* Rounding would leave a little slope in points of one height. */
	if (is_flat(y, nr))
		return slope;
	slope.per_hour = sxy / sxx;
	if (!slope.has_error)
		return slope;
	for (size_t i = 0; i < nr; i++) {
		double off = y[i] - mean_y - slope.per_hour * (hours[i] - mean_x);

		rest += off * off;
	}
	slope.error = sqrt(rest / (double)(nr - 2) / sxx);
	slope.is_significant = slope.per_hour != 0 && fabs(slope.per_hour) >= 2 * slope.error;
	return slope;
}

int series_new(struct series **out)
{
	struct series *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (random_fill(&s->seed, sizeof(s->seed)))
		s->seed = (uintptr_t)s;
	*out = s;
	return 0;
}

void series_free(struct series *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_rows; i++) {
		free(s->rows[i].comm);
		free(s->rows[i].function);
		free(s->rows[i].frames);
		free(s->rows[i].points);
	}
	for (size_t i = 0; i < s->nr_reports; i++)
		free(s->reports[i].name);
	free(s->rows);
	hash_index_fini(&s->by_names);
	free(s->reports);
	free(s->processes);
	free(s->callers);
	free(s);
}

/* The number of the row with these names, which is added if there is none. 0 or -ENOMEM. */
static int series_find_row(struct series *s, const char *comm, const char *function, const char *frames,
			   u32 *number)
{
	auto_free char *own_comm = NULL, *own_function = NULL, *own_frames = NULL;
	u64 hash = hash_bytes(comm, strlen(comm), s->seed);
	u32 at = 0;

	hash = hash_bytes(frames, strlen(frames), hash_bytes(function, strlen(function), hash));
	while ((*number = hash_index_next(&s->by_names, hash, &at)) != HASH_NO_ITEM) {
		const struct series_row *row = &s->rows[*number];

		if (!strcmp(row->frames, frames) && !strcmp(row->function, function) &&
		    !strcmp(row->comm, comm))
			return 0;
	}
	own_comm = strdup(comm);
	own_function = strdup(function);
	own_frames = strdup(frames);
	if (!own_comm || !own_function || !own_frames || s->nr_rows == MAX_ROWS ||
	    array_reserve(s->rows, s->max_rows, s->nr_rows + 1) ||
	    hash_index_add(&s->by_names, hash, (u32)s->nr_rows))
		return -ENOMEM;
	*number = (u32)s->nr_rows++;
	s->rows[*number] = (struct series_row){ .comm = take_ptr(own_comm),
						.function = take_ptr(own_function),
						.frames = take_ptr(own_frames),
						.process = *number };
	return 0;
}

/* Add what @p or one of its callers holds to row @number. Rows of one process come together. 0 or -errno. */
static int series_add_point(struct series *s, u32 number, const struct saved_process *p,
			    const struct saved_numbers *n)
{
	struct series_row *row = &s->rows[number];
	u32 report = (u32)s->nr_reports, pid = (u32)p->pid;
	struct series_point *last = row->nr ? &row->points[row->nr - 1] : NULL;

	if (row->nr && last->report == report && last->pid == pid) {
		last->bytes += n->live_bytes;
		last->blocks += n->live_blocks;
		return 0;
	}
	if (s->nr_points == MAX_POINTS)
		return -E2BIG;
	if (array_reserve(row->points, row->max, row->nr + 1))
		return -ENOMEM;
	row->points[row->nr++] = (struct series_point){ report, pid, n->live_bytes, n->live_blocks };
	s->nr_points++;
	return 0;
}

static int on_caller(void *ctx, const struct saved_process *p, const struct saved_caller *c)
{
	struct series *s = ctx;
	u32 process, number;
	int err;

	/* A caller that holds nothing has no point. */
	if (!c->numbers.live_bytes && !c->numbers.live_blocks)
		return 0;
	err = series_find_row(s, p->comm, "", "", &process);
	if (!err)
		err = series_find_row(s, p->comm, c->function[0] ? c->function : "?", c->frames, &number);
	if (err)
		return err;
	s->rows[number].process = process;
	return series_add_point(s, number, p, &c->numbers);
}

static int series_on_process(void *ctx, const struct saved_process *p)
{
	struct series *s = ctx;
	u32 number;
	int err = series_find_row(s, p->comm, "", "", &number);

	return err ? err : series_add_point(s, number, p, &p->numbers);
}

int series_add(struct series *s, const char *name, const char *text, size_t len, const char **why, size_t *at)
{
	const struct saved_sink sink = { s, on_caller, series_on_process };
	struct saved_totals totals = { .nr_processes = 0 };
	auto_free char *own = strdup(name);
	int err;

	if (s->nr_reports == MAX_REPORTS)
		return -E2BIG;
	if (!own || array_reserve(s->reports, s->max_reports, s->nr_reports + 1))
		return -ENOMEM;
	err = saved_read(text, len, &sink, &totals, why, at);
	if (!err)
		s->reports[s->nr_reports++] = (struct series_report){ .name = take_ptr(own),
								      .time_ns = totals.time_ns,
								      .duration_ns = totals.duration_ns,
								      .lost = totals.lost };
	return err;
}

/* Sorts numbers of reports by their time. */
static int compare_reports(const void *a, const void *b, void *ctx)
{
	const struct series_report *reports = ctx, *x = &reports[*(const u32 *)a],
				   *y = &reports[*(const u32 *)b];
	int order = (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);

	return order ? order : strcmp(x->name, y->name);
}

static int sort_reports(struct series *s)
{
	auto_free u32 *order = calloc(s->nr_reports + 1, sizeof(*order));
	auto_free u32 *place = calloc(s->nr_reports + 1, sizeof(*place));
	struct series_report *sorted = calloc(s->nr_reports + 1, sizeof(*sorted));

	if (!order || !place || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	for (u32 i = 0; i < s->nr_reports; i++)
		order[i] = i;
	qsort_r(order, s->nr_reports, sizeof(*order), compare_reports, s->reports);
	for (u32 i = 0; i < s->nr_reports; i++) {
		place[order[i]] = i;
		sorted[i] = s->reports[order[i]];
	}
	free(s->reports);
	s->reports = sorted;
	for (size_t i = 0; i < s->nr_rows; i++)
		for (u32 k = 0; k < s->rows[i].nr; k++)
			s->rows[i].points[k].report = place[s->rows[i].points[k].report];
	return 0;
}

static int compare_by_report(const void *a, const void *b)
{
	const struct series_point *x = a, *y = b;
	int order = (x->report > y->report) - (x->report < y->report);

	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

static int compare_by_pid(const void *a, const void *b)
{
	const struct series_point *x = a, *y = b;
	int order = (x->pid > y->pid) - (x->pid < y->pid);

	return order ? order : compare_by_report(a, b);
}

/* Sort the points of @row; then each PID has at most one point of a report. */
static void sort_points(struct series_row *row, bool is_many)
{
	u32 nr = 0;

	if (!row->nr)
		return;
	qsort(row->points, row->nr, sizeof(*row->points), is_many ? compare_by_pid : compare_by_report);
	for (u32 i = 1; i < row->nr; i++) {
		struct series_point *last = &row->points[nr], *p = &row->points[i];

		if (p->report == last->report && p->pid == last->pid) {
			last->bytes += p->bytes;
			last->blocks += p->blocks;
		} else {
			row->points[++nr] = *p;
		}
	}
	row->nr = nr + 1;
}

/* Sort the points of all rows: by PID first where a report has several processes of that name. */
static void sort_all_points(struct series *s)
{
	for (size_t i = 0; i < s->nr_rows; i++) {
		struct series_row *row = &s->rows[i];

		if (row->process != i)
			continue;
		sort_points(row, false);
		for (u32 k = 1; k < row->nr; k++)
			row->is_many |= row->points[k].report == row->points[k - 1].report;
		sort_points(row, row->is_many);
	}
	for (size_t i = 0; i < s->nr_rows; i++)
		if (s->rows[i].process != i)
			sort_points(&s->rows[i], s->rows[s->rows[i].process].is_many);
}

/* The points of @row from @from on that are one line: those of one PID, or all of them. */
static struct series_line line_of(const struct series_row *row, bool is_many, u32 from)
{
	struct series_line line = { .comm = row->comm,
				    .function = row->function,
				    .frames = row->frames,
				    .pid = is_many ? row->points[from].pid : 0,
				    .points = &row->points[from] };

	while (from + line.nr < row->nr && (!is_many || line.points[line.nr].pid == line.pid))
		line.nr++;
	return line;
}

static int add_processes(struct series *s, u32 number)
{
	struct series_row *row = &s->rows[number];

	row->line = (u32)s->nr_processes;
	for (u32 from = 0; from < row->nr; row->nr_lines++) {
		if (array_reserve(s->processes, s->max_processes, s->nr_processes + 1))
			return -ENOMEM;
		s->processes[s->nr_processes] = line_of(row, row->is_many, from);
		from += (u32)s->processes[s->nr_processes++].nr;
	}
	return 0;
}

/* Compute @line of @process over the reports that have the process. @x and @y have room for all reports. */
static void series_compute(const struct series *s, const struct series_line *process,
			   struct series_line *line, double *x, double *y)
{
	size_t k = 0;

	for (size_t i = 0; i < process->nr; i++) {
		u32 report = process->points[i].report;
		u64 bytes = 0;

		while (k < line->nr && line->points[k].report < report)
			k++;
		if (k < line->nr && line->points[k].report == report)
			bytes = line->points[k].bytes;
		x[i] = (double)(s->reports[report].time_ns - s->reports[0].time_ns) / NS_PER_HOUR;
		y[i] = (double)bytes;
		if (!i)
			line->first = bytes;
		line->nr_steps += i > 0;
		line->nr_grew += i > 0 && bytes > line->last;
		line->last = bytes;
	}
	line->slope = series_slope(x, y, process->nr);
}

/* Add the lines of caller @row to those of its processes. */
static int series_add_callers(struct series *s, const struct series_row *row, double *x, double *y)
{
	const struct series_row *of = &s->rows[row->process];

	for (u32 from = 0; from < row->nr;) {
		struct series_line line = line_of(row, of->is_many, from), *process;
		size_t at =
			array_search(i, of->line, of->line + of->nr_lines, s->processes[i].pid < line.pid);

		from += (u32)line.nr;
		/* Without its process only in a report that names the process twice. */
		if (at == of->line + of->nr_lines || s->processes[at].pid != line.pid)
			continue;
		process = &s->processes[at];
		series_compute(s, process, &line, x, y);
		if (array_reserve(s->callers, s->max_callers, s->nr_callers + 1))
			return -ENOMEM;
		s->callers[s->nr_callers++] = line;
		process->nr_callers++;
	}
	return 0;
}

/* Sorts lines by process, and those of a process by growth. Names decide among equals. */
static int compare_callers(const void *a, const void *b)
{
	const struct series_line *x = a, *y = b;
	int order = strcmp(x->comm, y->comm);

	if (!order)
		order = (x->pid > y->pid) - (x->pid < y->pid);
	if (!order)
		order = (x->slope.per_hour < y->slope.per_hour) - (x->slope.per_hour > y->slope.per_hour);
	if (!order)
		order = strcmp(x->frames, y->frames);
	return order ? order : strcmp(x->function, y->function);
}

static int compare_names(const void *a, const void *b)
{
	const struct series_line *x = a, *y = b;
	int order = strcmp(x->comm, y->comm);

	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

static int compare_growth(const void *a, const void *b)
{
	const struct series_line *x = a, *y = b;
	int order = (x->slope.per_hour < y->slope.per_hour) - (x->slope.per_hour > y->slope.per_hour);

	return order ? order : compare_names(a, b);
}

/* Give each process its callers, which are sorted in the order of the names of processes. */
static void sort_lines(struct series *s)
{
	const struct series_line *callers = s->callers;

	if (s->nr_callers)
		qsort(s->callers, s->nr_callers, sizeof(*s->callers), compare_callers);
	if (!s->nr_processes)
		return;
	qsort(s->processes, s->nr_processes, sizeof(*s->processes), compare_names);
	for (size_t i = 0; i < s->nr_processes; i++) {
		s->processes[i].callers = callers;
		callers += s->processes[i].nr_callers;
	}
	qsort(s->processes, s->nr_processes, sizeof(*s->processes), compare_growth);
}

int series_end(struct series *s)
{
	auto_free double *x = calloc(s->nr_reports + 1, sizeof(*x));
	auto_free double *y = calloc(s->nr_reports + 1, sizeof(*y));
	int err = x && y ? sort_reports(s) : -ENOMEM;

	if (err)
		return err;
	sort_all_points(s);
	for (u32 i = 0; i < s->nr_rows && !err; i++)
		if (s->rows[i].process == i)
			err = add_processes(s, i);
	for (size_t i = 0; i < s->nr_rows && !err; i++)
		if (s->rows[i].process != i)
			err = series_add_callers(s, &s->rows[i], x, y);
	for (size_t i = 0; i < s->nr_processes && !err; i++)
		series_compute(s, &s->processes[i], &s->processes[i], x, y);
	if (!err)
		sort_lines(s);
	return err;
}

const struct series_report *series_reports(const struct series *s, size_t *nr)
{
	*nr = s->nr_reports;
	return s->reports;
}

const struct series_line *series_processes(const struct series *s, size_t *nr)
{
	*nr = s->nr_processes;
	return s->processes;
}
