/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The keeper: a process that owns all links of BPF programs to probed places.
 *
 * The kernel takes a breakpoint out of a process when the last reference to its link is closed. This fails, and the
 * breakpoint stays for ever ("failed to unregister, leaking uprobe"), when the closing thread has a fatal signal
 * pending: get_user_pages_remote() gives up then. A SIGKILL that arrives while links are being closed did that.
 * Therefore heaptap itself never holds a link. The keeper creates the links, and they end only when a process that
 * holds them exits: an exiting process takes no more signals.
 *
 * The keeper ignores all signals but SIGKILL, and exits when heaptap closes the socket or dies.
 */
#pragma once

#include <string.h>

#include "user/lib/types.h"

/* Names of the keeper without and with a changer; the kernel keeps 15 bytes. */
#define KEEPER_COMM	 "links-of-heapta"
#define KEEPER_COMM_CODE "keeper-of-heapt"

/* Is @comm one of these? */
static inline bool link_keeper_is(const char *comm)
{
	return !strcmp(comm, KEEPER_COMM) || !strcmp(comm, KEEPER_COMM_CODE);
}

enum { KEEPER_MAX_PLACES = 8192, KEEPER_MAX_WARDS = 4096 };

/* Memory that heaptap and the keeper share. */
struct keeper_places {
	/* The places of the request that is under way. */
	u64 offsets[KEEPER_MAX_PLACES]; /* in the file */
	u64 cookies[KEEPER_MAX_PLACES];
	u64 semaphores[KEEPER_MAX_PLACES]; /* in the file; 0 = none */
	/*
	 * Processes that a probe may have stopped when heaptap dies. The keeper then resumes them. 0 = a free entry.
	 * All entries are 0 when heaptap ends as usual.
	 */
	pid_t wards[KEEPER_MAX_WARDS];
	u32 end;      /* enum keeper_end: the links have ended, or end with the keeper */
	u32 outlives; /* the links: helper_process_end() */
};

enum keeper_end { KEEPER_SERVES, KEEPER_HAS_ENDED /* as it was asked to */, KEEPER_HAS_FAILED };

struct source_state;
struct tracer_changer; /* fallback/tracer_change.h */

enum keeper_op { KEEPER_ADD, KEEPER_DROP, KEEPER_TOUCH, KEEPER_LEAVE };

/*
 * One packet. KEEPER_ADD and KEEPER_TOUCH come with two descriptors, of the program and of the file. The answer is an
 * int: 0 or -errno.
 */
struct keeper_request {
	u32 op; /* enum keeper_op */
	/*
	 * ADD: the process whose calls alone are seen, 0 = all processes. DROP: links of this one end. TOUCH: a link to
	 * the places is made and ends at once, so that the kernel looks at them anew in all processes. LEAVE: links of
	 * the processes in offsets[], which have ended, end some time later.
	 */
	pid_t pid;
	u32 group; /* ADD: of links that may end together; DROP: end these and not those of a process; 0 = none */
	u32 nr;		  /* places; LEAVE: processes */
	bool is_multi;	  /* one uprobe_multi link for all places; else a perf event for each */
	bool is_return;	  /* uretprobes */
	bool has_cookies; /* else the programs have fixed ones */
	bool has_semaphores;
};

/*
 * Run the keeper in this process, which was forked for it. @fd is its end of the socket. @state of the programs; NULL
 * = they stop nobody. Exits with 0 when it was asked to end, and with 1 after an error; all links have ended then, too.
 * With a @changer (NULL = none) it only does so where it cannot end them without that: then outlive() is brief.
 */
void keeper_main(int fd, struct keeper_places *places, struct source_state *state,
		 const struct tracer_changer *changer) __attribute__((noreturn));
