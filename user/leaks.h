/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leak verdicts on a process that goes on living: events up to one moment, a snapshot of it, sums for reports. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "user/leaks_marks.h"
#include "user/scan.h"

struct heap;
struct scan_chain;
struct snapshot_holder;
struct leak_why;
struct module_table;
struct stack_table;
struct suppress_list;
struct symbolizer;

/* What became of the blocks of one caller (struct heap_row). */
struct leak_row {
	struct scan_sums sums;	    /* without what is suppressed */
	struct scan_sum through;    /* indirect: lost through this caller's definite blocks */
	struct scan_sum suppressed; /* lost, but left out by a rule */
};

/* Indirect blocks of one caller that were lost through definite ones of another (or the same). */
struct leak_link {
	u32 row, leader; /* numbers of rows */
	struct scan_sum sum;
};

/* The verdicts on one process, or why there are none. */
struct leaks {
	bool has_verdict;
	char why[160]; /* one sentence without full stop when there is none */
	struct scan_result result;
	struct scan_sum suppressed; /* taken out of result.sums */
	struct scan_sum left_out;   /* the same, by leaks_options.kinds */
	struct scan_sum fresh; /* lost, perhaps so, now and not at the last scan; with what was taken out */
	struct scan_sum again; /* lost then, and not any more */
	bool has_before;       /* there was a last scan */
	u64 pause_ns;	       /* how long the process stood */
	u64 max_pause_ns;      /* it was allowed to */
	bool is_partial;       /* the books do not know all blocks */
	struct leak_row *rows; /* owned; by number of the row */
	size_t nr_rows;
	struct leak_link *links; /* owned; each pair of rows once */
	size_t nr_links;
	struct leak_why *whys; /* owned; user/leaks_why.h; an example for callers worth one */
	size_t nr_whys;
	struct leak_why *asked; /* owned; what leaks_options.why_addr asked for, NULL = nothing */
	u8 word_size;		/* of the process, bytes */
};

/* How to scan. */
struct leaks_options {
	pid_t pid;
	const struct heap *heap;
	u64 max_pause_ns;
	bool is_traced;			      /* as snapshot_options */
	const struct snapshot_holder *holder; /* likewise */
	bool is_partial;		      /* as scan_options */
	bool has_losses;		      /* of allocations */
	u64 pointer_mask;
	bool want_unaligned;
	u32 nr_whys; /* callers to find examples for: so many of those possibly lost and of the reachable */
	taddr_t why_addr; /* a block to find the chain of, 0 = none */
	const u64 *
		before; /* live bytes of the first rows when the last report was made: what grew comes first */
	size_t nr_before;
	enum leak_kinds kinds;	  /* which lost blocks to tell */
	struct leak_marks *marks; /* of the last scan; this one's come in their place. NULL = not wanted */
	void *ctx;
	/* NULL, or: let all threads stand before the snapshot is taken, and go on after it. 0 or -errno. */
	int (*stop)(void *ctx, u64 max_ns);
	void (*release)(void *ctx);
	/*
	 * Enter all events that are there in the books; those of the process also in @scan. Called twice, the
	 * second time while the process stands. -ESRCH: it ended or is another program; -ENODATA: events were
	 * lost, so that nothing can be said; or another -errno.
	 */
	int (*drain)(void *ctx, struct scan *scan, bool is_standing);
	/*
	 * NULL, or in place of stopping and reading: give @scan the verdicts that were found elsewhere
	 * (user/scan_remote.h), drain up to their moment. Sets pause_ns; 0, or -errno with @l->why.
	 */
	int (*elsewhere)(void *ctx, struct scan *scan, struct leaks *l);
	/* With elsewhere: scan_whys_find() of there. NULL: nobody can say who holds what. */
	int (*why)(void *ctx, taddr_t addr, struct scan_chain **out);
	/* Run what takes long and only reads the books: @work(@arg), whose result is returned. */
	int (*aside)(void *ctx, int (*work)(void *arg), void *arg);
};

/*
 * Stop the process, read it, let it go on, judge. *@out is owned by the caller: leaks_free(). 0 also when there is
 * no verdict (leaks->why says so); -ENOMEM when not even that fits.
 */
int leaks_find(struct leaks **out, const struct leaks_options *options) __must_check;

/* No verdict, because of @why. *@out is owned by the caller. */
int leaks_none(struct leaks **out, const char *why) __must_check;
void leaks_free(struct leaks *l);

/*
 * Fill in the links and what they say of rows, from a scan with verdicts. @left_out: bits as leaks_compare() sets
 * them, or NULL. 0 or -ENOMEM.
 */
int leaks_link(struct leaks *l, const struct scan *scan, const struct heap *heap,
	       const u8 *left_out) __must_check;

/* The sums of row @row; all zero for one that came since. */
struct leak_row leaks_row(const struct leaks *l, u32 row);

/* Bytes and blocks lost for sure, with what is lost through them. */
struct scan_sum leaks_lost(const struct leak_row *row);

/* What names of stacks come from. */
struct leaks_names {
	const struct heap *heap;
	const struct stack_table *stacks;
	const struct module_table *modules;
	struct symbolizer *symbolizer; /* NULL = no names */
};

/* Move what a rule of @list leaves out from the sums to the suppressed ones. 0 or -ENOMEM. */
int leaks_suppress(struct leaks *l, const struct suppress_list *list,
		   const struct leaks_names *names) __must_check;

/* Write a suppression for each caller with leaks. 0, -ENOMEM or -EIO. */
int leaks_write_suppressions(FILE *out, const struct leaks *l, const struct leaks_names *names) __must_check;
