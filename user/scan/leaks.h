/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Leak verdicts on a running process, for reports: leaks_find() drains its events, stops it, scans it
 * (user/scan/scan.h), resumes it, and keeps sums by caller. Then leaks_suppress() applies the user's rules.
 */
#pragma once

#include <stdio.h>

#include "user/heap/heap_sample.h"
#include "user/scan/leaks_blocks.h"
#include "user/scan/leaks_books.h"
#include "user/scan/leaks_marks.h"
#include "user/scan/leaks_rows.h"
#include "user/scan/leaks_samples.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot.h"
#include "user/scan/snapshot_way.h"

struct scan_chain;

/* The verdicts on one process, or the reason why it has no verdict. */
struct leaks {
	bool has_verdict;
	int err;       /* without a verdict */
	char why[160]; /* then: one sentence without full stop */
	struct scan_result result;
	struct scan_sum suppressed; /* taken out of result.sums by rules */
	struct scan_sum left_out;   /* taken out of result.sums by leaks_options.kinds */
	struct scan_sum fresh; /* lost or possibly lost now, but not at the last scan; before taking out */
	struct scan_sum again; /* lost at the last scan, and found again now */
	bool has_before;       /* there was a last scan */
	u64 pause_ns;	       /* how long the process was stopped */
	bool is_copied;	       /* its memory was read from a copy: snapshot_copy() */
	u64 max_pause_ns;      /* how long it could have been stopped */
	bool is_partial;       /* the heap does not know all blocks */
	struct leak_row *rows; /* owned; by number of the row */
	size_t nr_rows;
	struct leak_link *links; /* owned; each pair of rows once */
	size_t nr_links;
	struct leak_why
		*whys; /* owned; user/scan/leaks_why.h; one example for each caller that is worth it */
	size_t nr_whys;
	struct leak_why *asked;	   /* owned; the answer to leaks_options.why_addr, NULL = nobody asked */
	u8 word_size;		   /* of the process, bytes */
	struct leak_blocks blocks; /* not of a recording */
	struct leak_samples samples;
	struct leak_books books; /* of a sampled heap, or with only_books */
};

/* How to scan. Functions get @ctx, and return 0 or -errno unless they say otherwise. */
struct leaks_options {
	pid_t pid;
	const struct heap *heap;
	const struct stack_table *stacks; /* of the heap; NULL = not known */
	u64 max_pause_ns;
	enum snapshot_way way;
	u32 nr_jobs;					   /* snapshot.nr_jobs */
	u64 max_copy;					   /* snapshot_plan_options.max_copy */
	u64 max_memory;					   /* bytes that the scan may take; 0 = no limit */
	bool is_price_known;				   /* snapshot_plan_options.is_price_known */
	enum stop_by by;				   /* snapshot_options.by */
	bool is_ending;					   /* snapshot_options.is_ending */
	const struct snapshot_holder *holder;		   /* snapshot_options.holder */
	void (*copying)(void *ctx, pid_t pid, bool is_on); /* snapshot_options.copying */
	const struct kernel_words *kernel;		   /* snapshot_options.kernel */
	bool is_partial, keeps_freed, want_unaligned;	   /* scan_options */
	bool has_losses;				   /* allocations were lost */
	u64 pointer_mask;
	u32 nr_whys; /* find examples for so many callers that lost blocks possibly, and so many that hold blocks */
	taddr_t why_addr;	       /* find the chain of this block; 0 = none */
	u32 nr_samples, content_bytes; /* as in leak_samples_init() */
	const u64 *before; /* live bytes of each row at the last report: rows that grew get examples first */
	size_t nr_before;
	bool (*is_unwanted)(void); /* scan_options.is_unwanted */
	enum leak_kinds kinds;	   /* which lost blocks to report */
	struct leak_marks
		*marks; /* lost blocks of the last scan, replaced by those of this one. NULL = not kept */
	void *ctx;
	/* Stop all threads before the snapshot, at most for @max_ns. And: resume them. NULL: the snapshot does both. */
	int (*stop)(void *ctx, u64 max_ns);
	void (*release)(void *ctx);
	/*
	 * Enter all pending events in the heap, and those of the process in @scan. Called twice, the second time while
	 * the process is stopped (@is_stopped). -ESRCH: it has ended or is another program; -ENODATA: events were lost,
	 * so that no verdict can be given.
	 */
	int (*drain)(void *ctx, struct scan *scan, bool is_stopped);
	/*
	 * Another machine scans the process: give its verdicts to @scan (user/scan/scan_remote.h), drained up to the
	 * moment of the stop. Sets pause_ns, and on an error @l->why. NULL: stop and read here.
	 */
	int (*elsewhere)(void *ctx, struct scan *scan, struct leaks *l);
	/*
	 * Somebody else has the books, and wants the verdicts: @books in place of those of @heap, and in place of sums
	 * the scan and its snapshot go to @take, which owns them from then on. NULL: neither.
	 */
	const struct scan_books *books;
	void (*take)(void *ctx, struct scan *scan, struct snapshot *snap);
	/* Judge all blocks that this lists, and those of @heap by them. NULL: only those of @heap. */
	const struct leaks_lister *lister;
	bool only_books; /* @heap knows few blocks: the sums are those of @lister, without which there is no verdict */
	/* With elsewhere: scan_whys_find() of the other machine. NULL: it cannot say who holds a block. */
	int (*why)(void *ctx, taddr_t addr, struct scan_chain **out);
	/* Run @work(@arg), which takes long and only reads the heap. Returns its result. */
	int (*aside)(void *ctx, int (*work)(void *arg), void *arg);
};

/*
 * Stop the process, read it, resume it, judge. *@out is owned by the caller: leaks_free(). 0 also without a verdict,
 * then leaks->why says why; -ENOMEM if even that does not fit.
 */
int leaks_find(struct leaks **out, const struct leaks_options *options) __must_check;

/* Make *@out, which is the caller's, without a verdict because of @why. 0 or -ENOMEM. */
int leaks_none(struct leaks **out, const char *why) __must_check;
void leaks_free(struct leaks *l);

/* Fill in links, and sums @through of rows. @left_out: bits from leaks_compare(), or NULL. 0 or -ENOMEM. */
int leaks_link(struct leaks *l, const struct scan *scan, const struct heap *heap,
	       const u8 *left_out) __must_check;

/* The sums of row @row. All zero for a row that is newer than the scan. */
struct leak_row leaks_row(const struct leaks *l, u32 row);

/* Definite blocks of the caller, and all blocks lost through them. */
struct scan_sum leaks_lost(const struct leak_row *row);

/* Row @i of the heap is row @to[i] now, not above @i, for the @nr rows of before; several may have become one. */
void leaks_fold(struct leaks *l, const u32 *to, size_t nr);

/* Is the sum of leaks known by the books of the allocator? Rules that take blocks out know sampled ones only. */
static inline bool leaks_by_books(const struct leaks *l)
{
	return HAS_SAMPLES && *l->books.allocator && !l->suppressed.blocks && !l->left_out.blocks;
}

/* The sums of all blocks: by the books, older ones included, or as those of the heap. */
static inline const struct scan_sums *leaks_all(const struct leaks *l)
{
	return leaks_by_books(l) ? &l->books.sums : &l->result.sums;
}
