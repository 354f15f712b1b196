/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A census: the blocks of a process that nobody traced, from the books of its allocator.
 *
 * In comes one moment of the process (user/scan/snapshot.h). Out come its blocks with a leak verdict each, what the
 * allocator keeps free, and what does not add up. Nothing of it needs symbols.
 */
#pragma once

#include "user/census/census_blocks.h"
#include "user/census/census_resident.h"
#include "user/scan/residence.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot_core.h"

struct census_options {
	enum snapshot_way way;
	u32 nr_jobs;	     /* snapshot.nr_jobs */
	u64 max_copy;	     /* bytes of a copy; 0 = what there is room for */
	const char *sysroot; /* for files of a core */
	u64 max_pause_ns;    /* the longest stop of the process; 0 = CENSUS_PAUSE_NS */
	u64 pointer_mask;    /* scan_options.pointer_mask */
	bool want_unaligned;
	const struct kernel_words *kernel; /* snapshot_options.kernel */
};

#define CENSUS_PAUSE_NS 2000000000ULL

enum { CENSUS_MAX_ALLOCATORS = 8 };

/* An allocator whose blocks are listed. */
struct census_allocator {
	const char *name; /* static */
	char version[24]; /* may be empty */
	struct census_sum live;
};

/* The allocators whose books are read, for messages. */
#define CENSUS_ALLOCATORS "malloc of glibc or musl, jemalloc 5, mimalloc, tcmalloc"

/*
 * Has the process @pid, whose words have @word_size bytes, an allocator for a census? Nothing is stopped. *@name is
 * static. 0; -ENOENT none was found, and *@name is an allocator whose books are not known, or NULL; -ESRCH, -EPERM,
 * -EACCES, -ENOMEM or -errno.
 */
int census_look(const char **name, pid_t pid, u8 word_size) __must_check;

/* Plain data, to be read. */
struct census {
	pid_t pid;
	bool is_core;
	struct core_facts core; /* with is_core */
	bool is_copied;		/* its memory was read from a copy: snapshot_copy() */
	u8 word_size;
	struct census_blocks blocks;
	struct census_allocator allocators[CENSUS_MAX_ALLOCATORS]; /* the one with most live blocks first */
	u32 nr_allocators;
	bool is_damaged; /* some of its books cannot be right: blocks may be live that are not listed */
	bool has_others; /* several allocators; free memory of others that are not known would look like theirs */
	struct residence resident; /* of the moment of the blocks */
	u64 free_resident;	   /* census_resident_free(), soon after that moment */
	bool has_free_resident;
	struct scan *scan;     /* owned; with verdicts. NULL = none, and @why says why */
	struct snapshot *snap; /* owned; resumed */
	const char *
		stranger; /* an allocator that was found and whose books are not known; static. NULL = none */
	char why[160];	  /* without verdicts: one sentence without full stop */
	u64 pause_ns;	  /* how long the process was stopped, over all tries */
};

/*
 * Stop @pid, walk its heap, read its memory, resume it, judge. *@out is owned by the caller: census_free(). 0, also
 * without verdicts; -ENOENT no allocator that heaptap knows was found: *@out says more; -ESRCH, -EPERM, -ETIME, which
 * were logged; -EAGAIN it was not stopped, as that would take too long, logged; -ETIMEDOUT the walk of a copy took 10
 * minutes; -ENOMEM.
 */
int census_take(struct census **out, pid_t pid, const struct census_options *options) __must_check;

/*
 * Take a census of the core file behind @fd, which stays the caller's and open as long as *@out. -ENOEXEC: it is none;
 * -EINVAL: it is damaged; -ETIMEDOUT: the walk took 10 minutes; -EIO.
 */
int census_of_core(struct census **out, int fd, const struct census_options *options) __must_check;
void census_free(struct census *c); /* NULL is fine */

/* Lists the blocks of a process for verdicts on those that a trace has sampled: leaks_options.lister. */
struct census_lister;
struct leaks_listed;

/* *@out is owned by the caller: census_lister_free(). 0 or -ENOMEM. */
int census_lister_new(struct census_lister **out) __must_check;
void census_lister_free(struct census_lister *l); /* NULL is fine */

/* leaks_lister.list() of the lister @ctx. */
int census_list(void *ctx, struct snapshot *snap, u64 deadline_ns, bool is_last,
		struct leaks_listed *out) __must_check;
