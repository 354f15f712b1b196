/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports: the heaps of one or more processes, written for people and for scripts. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"
#include "user/heap/heap.h"
#include "user/scan/leaks.h"
#include "user/lib/human.h"
#include "user/target/module.h"

struct losses;
struct report_key;
struct report_marks;
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
	const char
		*no_verdict; /* why it was searched without a verdict; one of the notes; NULL = see leaks */
	const struct trend *trend; /* NULL = not known */
	const u64 *reported; /* live bytes of the first rows at the last report; NULL = this is the first */
	size_t nr_reported;
	const char *const *notes; /* one sentence each, no full stop; shown in every format */
	size_t nr_notes;
	const char *unwatched;	      /* why nothing could be watched; NULL = watched */
	const char *unwatched_help;   /* what would help; NULL = not known */
	bool is_replaced, has_unseen; /* another process of the report replaced it; heaptap left out calls */
};

struct report_options {
	const struct report_key *sort; /* NULL = live-bytes */
	u32 top;		       /* callers in the text, 0 = all */
	u32 only;		       /* the one caller that is wanted, its id + 1; 0 = all */
	u64 min_size, max_size;	       /* live blocks outside are not counted for callers; max 0 = no limit */
	u64 older_ns;		       /* younger live blocks are not counted for callers */
	u32 width;		       /* columns of a text line where there is a choice, 0 = 80 */
	bool color, verbose;	       /* verbose: full paths, nothing folded */
	bool gen_suppressions;	       /* text: a suppression for each caller with leaks */
	bool (*is_unwanted)(void);     /* break a list of blocks off, by -ECANCELED? Any thread; NULL = no */
};

struct report {
	const char *backend;		   /* "bpf", "ptrace", "replay" */
	u64 time_ns;			   /* when the report was made, CLOCK_MONOTONIC */
	u64 duration_ns;		   /* since tracing began */
	u64 real_ns;			   /* the moment of time_ns by CLOCK_REALTIME; 0 = not known */
	const struct span_course *between; /* only blocks allocated between two moments; NULL = all */
	const struct report_marks *marks;  /* moments with names; NULL = not known */
	bool is_broken_off;		   /* the recording ends before the processes did */
	const char *title;		   /* "Report 3, 2026-01-31 23:59:59"; NULL = none */
	u64 nr_strays; /* events left out, because they are of processes that nobody asked for */
	const struct report_process *processes;
	size_t nr_processes;
	struct symbolizer *symbolizer; /* NULL = no names */
	const struct module_table *modules;
	struct report_options options;
};

/*
 * The formats of user/report/format.h. Write @r to @out and flush it. Names are looked up on the way, which may block
 * on disk I/O; no target is touched. Returns 0, -ENOMEM, or -errno of the first write that failed (-EIO if it is not
 * known).
 */
int report_text(FILE *out, const struct report *r) __must_check;
int report_json(FILE *out, const struct report *r) __must_check;
int report_pprof(FILE *out, const struct report *r) __must_check;
int report_html(FILE *out, const struct report *r) __must_check;
int report_junit(FILE *out, const struct report *r) __must_check;
int report_sarif(FILE *out, const struct report *r) __must_check;
int report_github(FILE *out, const struct report *r) __must_check;

/* One caller, as all formats see it. */
struct report_row {
	u32 id;		     /* of the row in the heap: equal in each report of a session */
	struct heap_row row; /* live_* only of blocks within min_size and max_size */
	u64 mismatched,
		bad; /* wrong releases: of blocks of this caller; by this caller, of an address that is no block */
	s64 grown;     /* change of live bytes since the last report; all live bytes in the first report */
	u64 oldest_ns; /* age of its oldest live block; only for the sort key "age" */
	struct leak_row leaks; /* all zero when not scanned */
	const struct leak_why
		*why; /* who holds one of its blocks; NULL = not asked, or not one of the first callers */
};

/* A sort key for rows, largest first. */
struct report_key {
	const char *name;
	const char *what; /* in a heading: "callers by live bytes" */
	double (*value)(const struct report_row *row);
	bool is_of_live;   /* all zero when nothing is live */
	bool wants_blocks; /* needs a look at each live block */
	bool wants_scan;   /* all zero without a scan */
	struct human (*human)(u64 value);
	const char *label; /* behind the value: "at the peak"; NULL = every format shows the value anyway */
};

extern const struct report_key report_keys[];
const struct report_key *report_key_find(const char *name); /* NULL: no key @name */

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

/* The stack of @row, or NULL. *@truncated: NULL for a complete stack, else one word that says why it is cut. */
const struct stack *report_stack(const struct report_process *p, const struct report_row *row,
				 const char **truncated);

/* Calls of all functions that have the name of row @fn; 0 if an earlier row has that name. */
u64 report_calls(const struct heap *heap, u16 fn);

/* Events of @p that were lost before they were entered, and entries that the heap lost. */
struct losses report_losses(const struct report_process *p);

/* The names of one frame, at least one, innermost first. Like symbolize(). */
int report_symbols(const struct report *r, struct code_ref ref, const struct symbol **symbols,
		   size_t *nr) __must_check;

/* Flush @out. 0, or -errno of the write that failed. */
int report_flush(FILE *out) __must_check;
