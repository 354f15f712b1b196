/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts many reports of a long run into one table: the live bytes of each caller over time, and its growth. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

/* A straight line through points, by least squares. */
struct series_slope {
	double per_hour;     /* y for each hour of x */
	double error;	     /* the standard error of per_hour; 0 without has_error */
	bool has_error;	     /* there are three points or more */
	bool is_significant; /* per_hour is at least two standard errors away from 0 */
};

/* The line through @nr points. Without two different values of @hours the slope is 0. */
struct series_slope series_slope(const double *hours, const double *y, size_t nr);

/* The live bytes and blocks of a process or a caller when a report was made. */
struct series_point {
	u32 report; /* number in series_reports() */
	u32 pid;
	u64 bytes, blocks; /* live */
};

/* A process, or a caller in a process. All is borrowed from the series. */
struct series_line {
	const char *comm;
	const char *function, *frames; /* of a caller; see struct saved_caller */
	u32 pid; /* 0 = reports have one process of this name, perhaps under several PIDs */
	const struct series_point
		*points; /* in the order of reports; a caller has none where it held nothing */
	size_t nr;
	u64 first, last;       /* bytes in the first and last report that has the process */
	u32 nr_steps, nr_grew; /* steps from report to report, and those in which bytes grew */
	struct series_slope slope;
	/* Of a process: */
	const struct series_line *callers; /* the largest growth first */
	size_t nr_callers;
};

struct series_report {
	char *name; /* owned */
	u64 time_ns, duration_ns;
	u64 lost; /* events */
};

struct series;

int series_new(struct series **out) __must_check;
void series_free(struct series *s);

/* Add the JSON report @text of @len bytes, whose file is @name. Errors as with saved_read(); -E2BIG for too many. */
int series_add(struct series *s, const char *name, const char *text, size_t len, const char **why,
	       size_t *at) __must_check;

/* All reports are added: sort them by time, those of one time by name, and compute the lines. Once. 0 or -ENOMEM. */
int series_end(struct series *s) __must_check;

/* After series_end(): the reports in order; the processes, the largest growth first. */
const struct series_report *series_reports(const struct series *s, size_t *nr);
const struct series_line *series_processes(const struct series *s, size_t *nr);

/* Write all. The text has at most @top callers (0 = all) of each process. 0 or -errno. */
int series_write_text(FILE *out, const struct series *s, u32 top) __must_check;
int series_write_json(FILE *out, const struct series *s) __must_check;
/* A page for a browser. */
int series_write_html(FILE *out, const struct series *s) __must_check;
