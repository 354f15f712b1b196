/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a traced process grows, and what its leak verdict says: the answer to why it was traced. */
#pragma once

#include "user/lib/proc.h"
#include "user/report/report.h"
#include "user/scan/scan_result.h"
#include "user/system/price.h"

enum answer_kind {
	ANSWER_NONE,	  /* nothing yet */
	ANSWER_UNWATCHED, /* it has no allocator that can be probed */
	ANSWER_STILL,	  /* nothing of what it allocated since is live */
	ANSWER_GROWS,	  /* a function holds more and more; there is no verdict */
	ANSWER_HELD,	  /* likewise, and the program can still reach these blocks */
	ANSWER_POSSIBLE,  /* likewise, but only by pointers into the middle of blocks */
	ANSWER_LEAKS,	  /* they are lost */
	NR_ANSWERS
};

struct zoom_answer {
	pid_t pid;
	u64 start_time;
	char comm[PROC_COMM_SIZE];
	char container[160];  /* "" = none; not escaped */
	u64 begin_ns, end_ns; /* of tracing, CLOCK_MONOTONIC; end 0 = it is traced now */
	u64 first_ns;	      /* begin of the first window */

	/* Growth, as the watch saw it last. */
	double bytes_per_s;
	u64 needs, needed; /* now, and when its probes were in */

	/* The answer, from the last verdict. */
	enum answer_kind kind;
	u64 time_ns;		     /* when; 0 = never */
	struct report_window window; /* then */
	char where[320];   /* functions, innermost first: "make_node < add_node"; escaped; "" = not known */
	u64 bytes, blocks; /* of this caller, all of now, by its kind: lost, or held */
	struct scan_sum through; /* of ANSWER_LEAKS: lost with these blocks */
	u64 grown;		 /* by all callers, since the first verdict, or since tracing began */
	u64 held;		 /* by live blocks of all callers and by the allocator for them, at least */
	u64 held_needs;		 /* what the process needed then */
	char why[200];		 /* without a verdict, or unwatched: a reason; escaped */
	u64 distance;		 /* of samples, by which bytes and blocks are estimates; 0 = they are exact */
	u64 nr_verdicts;

	/* The last leak verdict, of all callers together. */
	struct scan_sums sums;
	u64 verdict_ns; /* CLOCK_MONOTONIC; 0 = there was none */

	/* The price. */
	enum price_saving saving;
	u32 permyriad;	/* of one CPU, that tracing costs the process; the last one if it is not traced */
	u32 nr_windows; /* times that it was traced, if it is traced in windows; else 0 */
};

/* The words of a kind, for JSON: "leaks", "held", ... */
const char *answer_kind_name(enum answer_kind kind);

/*
 * Find a verdict on the process of @s, unless @wants_scan is false, and fill in the answer. The process is stopped for
 * a moment. 0; or -errno, logged.
 */
int answer_look(struct zoom_answer *f, struct session *s, bool wants_scan) __must_check;

/* Fill in the answer on process @pid of @s (0 = the only one) from the verdicts that there are. As answer_look(). */
int answer_take(struct zoom_answer *f, struct session *s, pid_t pid) __must_check;

/*
 * Of a process that is traced in windows: the bytes of the answer, which are exact for its window, scaled to the time
 * since the first window began. 0 = there was no gap.
 */
u64 answer_scaled(const struct zoom_answer *f);

/*
 * The bytes by which a process had grown at the last answer since tracing began, and that are in none of its blocks: in
 * memory that it maps itself, as runtimes do. 0 = little or nothing, or it is traced in windows, or there is no answer.
 */
u64 answer_elsewhere(const struct zoom_answer *f);

/* "leaks 1.20 MiB in 20 blocks: make_node < add_node" */
void answer_describe(const struct zoom_answer *f, char *text, size_t size);
