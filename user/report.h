/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports: the books of one or more processes, as people and scripts read them. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

#include "user/heap.h"
#include "user/leaks.h"
#include "user/lib/human.h"
#include "user/module.h"

struct losses;
struct report_key;
struct span_course;
struct stack;
struct stack_table;
struct symbol;
struct symbolizer;
struct target;
struct trend;

/* An allocator found in a process. */
struct report_allocator {
	const char *object; /* path as the target knows it */
	const char *kind; /* "glibc", "musl", "jemalloc", "tcmalloc", "mimalloc", "libstdc++", "program"... */
};

/* One process; all pointers borrowed. */
struct report_process {
	const struct target *target;
	const struct heap *heap;
	const struct stack_table *stacks;
	const struct losses *losses;
	const struct report_allocator *allocators;
	size_t nr_allocators;
	const struct leaks *leaks; /* with a verdict; NULL = not scanned */
	const struct trend *trend; /* NULL = not known */
	const u64 *reported; /* live bytes of the first rows at the last report; NULL = this is the first */
	size_t nr_reported;
	const char *const *notes; /* one sentence each, no full stop; shown in every format */
	size_t nr_notes;
	bool is_replaced, has_unseen; /* by another process of the report; calls were left out */
};

struct report_options {
	const struct report_key *sort; /* NULL = live-bytes */
	u32 top;		       /* callers in the text, 0 = all */
	u32 only;		       /* the one caller that is wanted, its id + 1; 0 = all */
	u64 min_size, max_size;	       /* live blocks outside are not counted for callers; max 0 = no limit */
	u64 older_ns;		       /* nor are younger ones */
	u32 width;		       /* of a text line where it can be chosen, 0 = 100 */
	bool color;
	bool verbose;	       /* full paths, nothing folded */
	bool gen_suppressions; /* text: a suppression for each caller with leaks */
};

struct report {
	const char *backend;		   /* "bpf", "ptrace", "replay" */
	u64 time_ns;			   /* of the report, CLOCK_MONOTONIC */
	u64 duration_ns;		   /* since tracing began */
	const struct span_course *between; /* what was allocated between two moments alone; NULL = all */
	bool is_broken_off;		   /* the recording ends before the processes did */
	u64 nr_strays;			   /* events of processes that nobody asked for, left out */
	const struct report_process *processes;
	size_t nr_processes;
	struct symbolizer *symbolizer; /* NULL = no names */
	const struct module_table *modules;
	struct report_options options;
};

/*
 * Write @r to @out and flush it. Names are looked up on the way, which may block on disk I/O; no target is
 * touched. Returns 0, -ENOMEM, or -errno of the first write that failed (-EIO if it is not known).
 */
int report_text(FILE *out, const struct report *r) __must_check;
int report_json(FILE *out, const struct report *r) __must_check;

/* A format that a file's name ends in. */
struct report_format {
	const char *ending; /* ".json" */
	int (*write)(FILE *out, const struct report *r);
};

/* All formats; the last row has no ending. */
extern const struct report_format report_formats[];

/* The format of @path by its ending, NULL if there is none. */
const struct report_format *report_format_find(const char *path);

/* One caller, as all formats see it. */
struct report_row {
	u32 id;		       /* of the row in the books: the same in each report of a session */
	struct heap_row row;   /* live_* only of blocks within min_size and max_size */
	u64 mismatched, bad;   /* wrong releases: of its blocks; by it, of what is no block (any more) */
	s64 grown;	       /* live bytes, since the last report; without one, all of them */
	u64 oldest_ns;	       /* age of its oldest live block; only for the sort key "age" */
	struct leak_row leaks; /* all zero when not scanned */
	const struct leak_why
		*why; /* of one of its blocks; NULL = not asked, or not one of the callers worth it */
};

/* What rows can be sorted by, largest first. */
struct report_key {
	const char *name;
	const char *what; /* in a heading: "callers by live bytes" */
	double (*value)(const struct report_row *row);
	bool is_of_live;   /* all zero when nothing is live */
	bool wants_blocks; /* needs a look at each live block */
	bool wants_scan;   /* all zero without a scan */
	struct human (*human)(u64 value);
	const char *label; /* behind the value: "at the peak"; NULL where every format shows it anyway */
};

extern const struct report_key report_keys[];
/* NULL if there is no key @name. */
const struct report_key *report_key_find(const char *name);

/*
 * The callers of @p in the order of @r's sort key, or of total-bytes where nothing that the key is about is
 * live, or of live-bytes where it is about leaks and there was no scan; *@key says which (may be NULL).
 * *@rows is owned by the caller. 0 or -ENOMEM.
 */
int report_rows(const struct report *r, const struct report_process *p, struct report_row **rows, size_t *nr,
		const struct report_key **key) __must_check;

/*
 * Those of @rows that leak, worst first: by @key if that is about leaks, else by bytes lost for sure, then by those
 * possibly lost. *@leaks is owned by the caller. 0 or -ENOMEM.
 */
int report_leak_rows(const struct report_row *rows, size_t nr, const struct report_key *key,
		     struct report_row **leaks, size_t *nr_leaks) __must_check;

/* The stack of @row, NULL if there is none; *@truncated is NULL for a complete one, else why not, in one word. */
const struct stack *report_stack(const struct report_process *p, const struct report_row *row,
				 const char **truncated);

/* Calls of all functions that have the name of row @fn; 0 if an earlier row has that name. */
u64 report_calls(const struct heap *heap, u16 fn);

/* What was lost of @p on the way and in the books. */
struct losses report_losses(const struct report_process *p);

/* The names of one frame, at least one, innermost first. As symbolize(). */
int report_symbols(const struct report *r, struct code_ref ref, const struct symbol **symbols,
		   size_t *nr) __must_check;

/* Flush @out. 0, or -errno of the write that failed. */
int report_flush(FILE *out) __must_check;
