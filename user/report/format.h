/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The formats of reports: one table, for --output, --format, the help and the checks. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

struct report;

/* One format. */
struct report_format {
	const char *name;   /* for --format: "json" */
	const char *ending; /* of the names of its files: ".json" */
	const char *help;   /* one line: what it holds, or who reads it */
	/* One of the functions below. NULL = not in this program. */
	int (*write)(FILE *out, const struct report *r);
	bool wants_tape;   /* it shows events: heap_keep_tape() */
	bool wants_slices; /* it shows parts of the time: heap_keep_slices() */
	bool is_binary;	   /* no text: nothing for a terminal */
};

/*
 * The functions of the rows. Write @r to @out and flush it. Names are looked up on the way, which may block on disk
 * I/O; no target is touched. 0, -ENOMEM, or -errno of the first write that failed (-EIO if it is not known).
 */
int report_text(FILE *out, const struct report *r) __must_check;
int report_json(FILE *out, const struct report *r) __must_check;
int report_pprof(FILE *out, const struct report *r) __must_check;
int report_html(FILE *out, const struct report *r) __must_check;
int report_junit(FILE *out, const struct report *r) __must_check;
int report_sarif(FILE *out, const struct report *r) __must_check;
int report_github(FILE *out, const struct report *r) __must_check;
int report_suppressions(FILE *out, const struct report *r) __must_check;
int report_heaptrack(FILE *out, const struct report *r) __must_check;
int report_csv(FILE *out, const struct report *r) __must_check;
int report_folded(FILE *out, const struct report *r) __must_check;
int report_speedscope(FILE *out, const struct report *r) __must_check;
int report_massif(FILE *out, const struct report *r) __must_check;
int report_dot(FILE *out, const struct report *r) __must_check;
int report_all_blocks_json(FILE *out, const struct report *r) __must_check;
int report_all_blocks_csv(FILE *out, const struct report *r) __must_check;

/* The table of formats, text first; the last row has no name. */
extern const struct report_format report_formats[];

/* The format whose ending @path has, or NULL. Of several the one with the longest ending. */
const struct report_format *report_format_find(const char *path);

/* How a file is compressed: what is behind the ending of its format. */
enum packing { PACK_NOT, PACK_GZIP /* .gz */, PACK_ZSTD /* .zst, only for formats with wants_tape */ };

/* As above, and the same also for files that are to be compressed ("x.json.gz"). */
const struct report_format *report_format_of(const char *path, enum packing *packing);

/* The format @name, or NULL. */
const struct report_format *report_format_named(const char *name);

/* Write the table: one line for each format with its name, its ending and its help. */
void report_formats_list(FILE *out);
