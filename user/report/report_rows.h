/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The callers of one process, as all formats show them, and the sort keys that order them. */
#pragma once

#include "user/heap/heap.h"
#include "user/lib/human.h"
#include "user/lib/types.h"
#include "user/scan/leaks_rows.h"

struct report;
struct report_process;

/* One caller. */
struct report_row {
	u32 id;		     /* of the row in the heap: equal in each report of a session */
	struct heap_row row; /* live_* only of blocks that the filters of struct report_options let through */
	u64 mismatched;	     /* wrong releases of blocks that this caller allocated */
	u64 bad;	     /* releases by this caller of an address that is no block */
	s64 grown;     /* change of live bytes since the last report; all live bytes in the first report */
	u64 oldest_ns; /* age of its oldest live block; 0 unless the sort key wants_blocks, or a filter is set */
	struct leak_row leaks; /* all zero when not scanned */
	const struct leak_why
		*why; /* who holds one of its blocks; NULL = not asked, or not one of the first callers */
};

/* The numbers of a caller that keys, measures and verdicts are about. */
enum row_number {
	ROW_LIVE_BYTES,
	ROW_LIVE_BLOCKS,
	ROW_TOTAL_BYTES,
	ROW_TOTAL_BLOCKS,
	ROW_LOST_BYTES, /* leaks_lost() */
	ROW_LOST_BLOCKS,
	ROW_LEAKED_BYTES, /* adds up: each lost block counts for its own caller */
	ROW_LEAKED_BLOCKS,
	ROW_POSSIBLE_BYTES,
	ROW_PEAK,
	ROW_TEMPORARY,
	ROW_MISMATCHED,
	ROW_BAD,
	ROW_GROWTH, /* 0 if the caller shrank */
	ROW_AGE,
	NR_ROW_NUMBERS
};

/* One of them: bytes, blocks or nanoseconds. */
u64 report_number(const struct report_row *row, enum row_number number);

/* A sort key for rows, largest first. */
struct report_key {
	const char *name; /* for --sort: "live-bytes" */
	const char *what; /* in a heading: "callers by live bytes" */
	enum row_number number;
	bool is_average;		  /* the number for each block allocated */
	bool is_of_live;		  /* all zero when nothing is live */
	bool wants_blocks;		  /* needs a look at each live block */
	bool wants_scan;		  /* all zero without a scan */
	struct human (*human)(u64 value); /* with its unit, for people; set with label */
	const char *label; /* behind the value: "at the peak"; NULL = every format shows the value anyway */
};

/* All keys; the last row has no name. */
extern const struct report_key report_keys[];
const struct report_key *report_key_find(const char *name); /* NULL: no key @name */
double report_key_value(const struct report_key *key, const struct report_row *row);

/*
 * The callers of @p by the sort key of @r. Without live blocks a key of live blocks becomes total-bytes, without a scan
 * a key of leaks becomes live-bytes; *@key (may be NULL) is the one used. The caller owns *@rows. 0 or -ENOMEM.
 */
int report_rows(const struct report *r, const struct report_process *p, struct report_row **rows, size_t *nr,
		const struct report_key **key) __must_check;

/*
 * The rows of @rows that leak, worst first: by @key if that is about leaks, else by definitely, then by possibly lost
 * bytes. The caller owns *@leaks. 0 or -ENOMEM.
 */
int report_leak_rows(const struct report_row *rows, size_t nr, const struct report_key *key,
		     struct report_row **leaks, size_t *nr_leaks) __must_check;
