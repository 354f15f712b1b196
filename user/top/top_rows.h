/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The callers on the screen: rows of the report, their rates, and their names. */
#pragma once

#include "user/lib/hash_index.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"

/* A caller of one process. */
struct top_row {
	const struct target *of; /* says only whose it is: a program that was executed has another one */
	pid_t pid;
	struct report_row row; /* its pointers are not valid any more */
	u64 allocs_per_s;
	u32 known; /* number in struct top_rows */
};

/* Kept for each caller from one look to the next. */
struct top_known {
	const struct target *of;
	u32 id;
	u64 allocs;  /* at the last tick */
	char *names; /* owned; "malloc < make_node < add_node"; NULL = not asked for yet */
};

/* All zero: no callers. */
struct top_rows {
	struct top_row *
		list; /* owned; by the sort key, only callers that have something by it and pass the filter */
	size_t nr, max;
	const struct report_key *key; /* that was used; NULL = no report yet */
	bool is_scanned;	      /* at least one process has a verdict */
	u64 whole;		      /* of all callers: live bytes, or bytes allocated */
	u64 tick_ns;		      /* time of the last tick */
	struct top_known *known;      /* owned */
	size_t nr_known, max_known;
	struct hash_index index; /* of known */
	u64 nr_folded;		 /* callers, at the last look: user/heap/fold.h */
};

void top_rows_fini(struct top_rows *t);

/*
 * Take the callers of @r, by the sort key in its options, whose names contain @filter ("" = all). With @is_tick the
 * rates are new. Of processes that have ended only if none runs. 0 or -ENOMEM: then there are fewer rows.
 */
int top_rows_take(struct top_rows *t, const struct report *r, const char *filter, bool is_tick) __must_check;

/* Look up the names of @nr rows from number @first on. 0 or -ENOMEM. */
int top_rows_name(struct top_rows *t, const struct report *r, size_t first, size_t nr) __must_check;

/* The names of a row, escaped; "" if they are not known. */
const char *top_rows_names(const struct top_rows *t, const struct top_row *row);

/* The number of the row of this caller, or @otherwise if it is not there. */
size_t top_rows_find(const struct top_rows *t, const struct target *of, u32 id, size_t otherwise);

/* Is @p one of the processes to show: does it run, or does none? */
bool top_shows_process(const struct report *r, const struct report_process *p);
