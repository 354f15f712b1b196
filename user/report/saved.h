/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a report that was saved as JSON: each caller of each process, for those who compare reports. */
#pragma once

#include "user/lib/types.h"
#include "user/report/report_verdict.h"

/* Numbers of one caller, or of all callers. */
struct saved_numbers {
	u64 live_bytes, live_blocks;
	u64 alloc_bytes, allocs;
	u64 leaked_bytes, leaked_blocks;     /* definite and indirect */
	u64 definite_bytes, definite_blocks; /* included */
	u64 lost_bytes;	 /* definite, and those that only they lead to, whoever allocated them */
	u64 peak_bytes;	 /* held when the process had its peak */
	double variance; /* of live_bytes, where they are an estimate; else 0 */
};

/* A process of a report. */
struct saved_process {
	u64 pid;
	char comm[32];
	char verdict[VERDICT_MAX];    /* the sentence that all outputs begin with; "" = not known */
	struct saved_numbers numbers; /* of its callers */
};

struct saved_caller {
	const char *function; /* "malloc" */
	const char *frames;   /* one per line, innermost first: a function, or file+0xoffset */
	const char *place;    /* the one that names it: "make_node (list.c:42)"; "" = not known */
	struct saved_numbers numbers;
};

/* A report as a whole. */
struct saved_totals {
	struct saved_numbers numbers;
	size_t nr_processes, nr_scanned;
	char comm[32]; /* of the first process */
	u64 time_ns;   /* when the report was made, since the machine started */
	u64 duration_ns;
	u64 lost; /* events */
};

/* The reader gives each caller and process to these functions. Each returns 0, or -errno, which ends the reading. */
struct saved_sink {
	void *ctx;
	int (*caller)(void *ctx, const struct saved_process *p, const struct saved_caller *c);
	int (*process)(void *ctx, const struct saved_process *p); /* after its callers; may be NULL */
};

/*
 * Read the JSON report @text of @len bytes: give its callers and processes to @sink, and add the sums to @totals. 0;
 * -errno of @sink; -ENOMEM; or -EBADMSG if @text is not a report: *@why says why, and *@at is the position of the
 * error; 0 = it is of the whole text.
 */
int saved_read(const char *text, size_t len, const struct saved_sink *sink, struct saved_totals *totals,
	       const char **why, size_t *at) __must_check;

/* Add @n to @to. */
void saved_add(struct saved_numbers *to, const struct saved_numbers *n);

/* Is the file @path JSON, compressed by gzip or not? 1 or 0, or -errno. */
int saved_is_json(const char *path) __must_check;

/*
 * All of the text in the file @path, without gzip's compression; the caller owns *@text. 0, -errno, -EFBIG for more
 * than 1 GiB of text, or -EBADMSG if the compressed data are damaged.
 */
int saved_load(const char *path, char **text, size_t *len) __must_check;
