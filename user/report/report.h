/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One report: the heaps of one or more processes, as each format gets them. It owns nothing: all pointers are borrowed.
 *
 * user/session/session_report.c fills it in. user/report/format.h has the formats, user/report/report_rows.h the
 * callers and their order, user/report/report_parts.h pieces of the text.
 */
#pragma once

#include "user/lib/types.h"
#include "user/target/module.h"

struct report_row;
struct scan_sum;
struct symbol;

/* An allocator found in a process. */
struct report_allocator {
	const char *object; /* path as the target knows it */
	const char *kind; /* "glibc", "musl", "jemalloc", "tcmalloc", "mimalloc", "libstdc++", "program"... */
};

/* One process. */
struct report_process {
	const struct target *target;

	/* Events. */
	const struct heap *heap;
	const struct stack_table *stacks;
	const struct losses *losses; /* of the source; report_losses() adds those of the heap */

	/* Allocators; or why nothing could be watched, NULL = watched; and what would help, NULL = not known. */
	const struct report_allocator *allocators;
	size_t nr_allocators;
	const char *unwatched, *unwatched_help;

	/* A leak scan with a verdict; or why it has none, which is one of the notes. Both NULL = not scanned. */
	const struct leaks *leaks;
	const char *no_verdict;
	const char *ending; /* why leaks at the end need not be leaks, one of the notes; NULL = no reason */
	/* Live bytes of rows 0 to nr_reported - 1 at the last report; later rows had none. NULL: none. */
	const u64 *reported;
	size_t nr_reported;
	const struct trend *trend;		  /* does it grow? NULL = not known */
	const struct wrappers *wrappers;	  /* of the allocator; NULL = not known */
	const struct report_residence *residence; /* user/report/report_residence.h; NULL = not known */

	/* Remarks for readers of the numbers, in every format: one sentence each, no full stop. */
	const char *const *notes;
	size_t nr_notes;

	bool is_replaced;	   /* it executed a program, which is another process of the report */
	bool has_unseen;	   /* calls were left out on purpose: a pause, a filter */
	bool lacks_books, saw_few; /* no census can read its allocator; most of its calls were not seen */
};

struct report_options {
	/* Which callers, in which order. The last three say which live blocks count for them. */
	const struct report_key *sort; /* NULL = live-bytes */
	u32 top, only;	  /* callers in the text, 0 = all; id + 1 of the one that is wanted, 0 = all */
	bool want_leaked; /* lists of blocks: only those that the last verdict calls leaked */
	u64 min_size, max_size, older_ns; /* bytes, both included, max_size 0 = no limit; at least so old */
	/* The look of the text. */
	u32 width;		   /* columns of a line where there is a choice, 0 = 80 */
	bool color, verbose;	   /* verbose: full paths, nothing folded */
	bool is_terminal, has_top; /* a reader at a screen, who has not chosen @top: the text is short */
	bool gen_suppressions, libraries; /* a suppression for each leak; the code that is mapped */

	/* Break lists of blocks and the search for names off, by -ECANCELED? Called in any thread. NULL = no. */
	bool (*is_unwanted)(void);
};

/* The cost of heaptap itself since tracing began, without that of its probes in targets. cpu_ns 0 = not known. */
struct report_cost {
	u64 events, cpu_ns;
	/* If probes take much time, else 0: what one costs a call, and would inline; their part of the CPU time. */
	u64 call_ns, inline_call_ns, probes_permille;
};

/* One of several times that a process was traced, with gaps between them. All zero: there are no gaps. */
struct report_window {
	u32 number;	       /* 2 = the second time */
	u64 seen_ns, whole_ns; /* this time so far; since the first time began */
};

struct report {
	const char *title;   /* "Report 3, 2026-01-31 23:59:59"; NULL = none */
	const char *backend; /* "bpf", "ptrace", "replay" */

	/* Times. */
	u64 time_ns, duration_ns; /* when the report was made, CLOCK_MONOTONIC; since tracing began */
	u64 real_ns;		  /* the moment of time_ns by CLOCK_REALTIME; 0 = not known */
	struct report_window window;
	const struct span_course *between; /* only blocks allocated between two moments; NULL = all */
	const struct report_marks *marks;  /* moments with names; NULL = not known */
	/* The trace goes on behind it; its processes are of another machine or time; are traced; may be scanned. */
	bool is_broken_off, is_elsewhere, goes_on, may_be_scanned;
	bool is_short; /* there was no memory for more: without names, and the text without most callers */

	/* Processes. */
	const struct report_process *processes;
	size_t nr_processes;
	struct report_cost cost; /* of the session so far */
	u64 nr_strays;		 /* events left out, because they are of processes that nobody asked for */

	/* Names of places. */
	const struct module_table *modules;
	struct symbolizer *symbolizer; /* NULL = no names */

	struct report_options options;
};

/* By how much the numbers of a window stand for the whole time, in thousandths: 1000 = there are no gaps. */
u64 report_window_permille(const struct report_window *w);

/*
 * The stack of @row, a caller of @p, borrowed. NULL without one; then, and where frames are missing, *@truncated is one
 * word that says why, else NULL.
 */
const struct stack *report_stack(const struct report_process *p, const struct report_row *row,
				 const char **truncated);

/*
 * The live blocks of each thread of @p, by the numbers of heap_thread(): all blocks, whatever the filters of the report
 * are. The caller owns *@live. 0 or -ENOMEM.
 */
int report_threads(const struct report_process *p, struct scan_sum **live) __must_check;

/* Calls of all functions with the name of row @fn; 0 if an earlier row has it. */
u64 report_calls(const struct heap *heap, u16 fn);

/* Events of @p that were lost before they were entered, and entries that the heap lost. */
struct losses report_losses(const struct report_process *p);

/*
 * The names of the place @ref, borrowed as those of symbolize(): at least one, innermost first. Without a symbolizer
 * one symbol that knows nothing. May block on disk I/O. 0, -ENOMEM, or -ECANCELED if options.is_unwanted says so.
 */
int report_symbols(const struct report *r, struct code_ref ref, const struct symbol **symbols,
		   size_t *nr) __must_check;
