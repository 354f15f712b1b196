/* SPDX-License-Identifier: GPL-2.0-or-later */
/* More functions of a source whose processes are not on this machine: a recording, or a remote server. */
#pragma once

#include "user/source/tuning.h"

struct scan;
struct scan_chain;
struct source;
struct target;

/* A leak scan over there. */
struct source_scan {
	pid_t pid;
	const struct sink *sink;  /* for records up to the moment when the process was stopped */
	const struct sink *aside; /* for later records */
	const struct heap *heap;
	u64 max_pause_ns, pause_ns;
	u64 pointer_mask;    /* as in struct scan_options */
	bool want_unaligned; /* the same */
	bool is_partial, is_last;
	bool is_copied;	 /* its memory was read from a copy */
	bool has_all;	 /* heap knows all blocks since tracing began */
	bool wants_whys; /* scan_why() will be called; then scan_over() */
	struct leak_books
		*books; /* of a sampled process: sums by those of its allocator, if they could be read */
	char why[160];	/* after an error */
};

/* Only the source knows its processes. Records name them first. */
struct source_told_ops {
	/* Describe @pid, owned by the caller; update() brings it up to date. 0, -ESRCH: it is not known, or -errno. */
	int (*target)(struct source *s, pid_t pid, struct target **out);
	u64 (*now_ns)(struct source *s);   /* the clock of its records, now */
	u64 (*began_ns)(struct source *s); /* by it, a moment before the first of them */
	u64 (*sample_bytes)(
		struct source *s); /* mean distance of samples over there; 0 = all blocks are seen */
	/* The name of the source over there: "bpf", ... */
	const char *(*backend)(struct source *s);
	/* Has it ended before the trace did, so that later calls are unknown? NULL = never. */
	bool (*is_broken_off)(const struct source *s);
	/*
	 * A leak scan where the process is; NULL = there can be none. begin: records stop at a moment; blocks: those of
	 * @scan are sent, records continue to the moment when the process was stopped; wait: its verdicts have come.
	 */
	int (*scan_begin)(struct source *s, struct source_scan *o);
	int (*scan_blocks)(struct source *s, struct source_scan *o, struct scan *scan);
	int (*scan_wait)(struct source *s, struct source_scan *o, struct scan *scan);
	/* As scan_whys_find(), over there. Pointers in *@out are borrowed until the next call. */
	int (*scan_why)(struct source *s, struct source_scan *o, taddr_t addr, struct scan_chain **out);
	/* scan_why() will not be called any more. */
	void (*scan_over)(struct source *s);

	/*
	 * Trace as @t says from now on. Waits for the answer over there: 10 s if nothing comes, and 2 s if a signal
	 * wants us to end. Earlier records have gone to @sink then. 0, or -errno with the reason in @why. NULL: it
	 * takes no commands.
	 */
	int (*tune)(struct source *s, const struct tuning *t, const struct sink *sink, char *why,
		    size_t size);
	/* As tune(): see no more calls of process @pid, 0 = of all, or see them again. */
	int (*pause)(struct source *s, pid_t pid, bool is_paused, const struct sink *sink, char *why,
		     size_t size);
	/* Ask for the end of the processes; a refusal is logged when it comes. 0 or -errno. NULL: no commands. */
	int (*kill)(struct source *s);
};
