/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Links of BPF programs to places in files: made for a process, ended with it or all at once. */
#pragma once

#include "user/source/programs.h"

/* Places in one file, all for one program. */
struct link_group {
	enum program program;
	bool is_return;	    /* uretprobes */
	int fd;		    /* of the file */
	pid_t pid;	    /* whose calls alone are seen; 0 = calls of all processes */
	u32 group;	    /* link_set_drop_group(); 0 = none */
	const u64 *offsets; /* in the file */
	const u64 *cookies; /* NULL: the program has a fixed one */
	/*
	 * In the file, of words of 16 bits that the kernel counts up while somebody listens; 0, or NULL: there is none.
	 * In the processes that are seen only.
	 */
	const u64 *semaphores;
	size_t nr;
};

struct link_set;

struct tracer_changer; /* fallback/tracer_change.h */

/*
 * Start the process that holds the links of @p (user/source/link_keeper.h), and runs outlive() of @changer (NULL =
 * none, borrowed), if it can, when they have ended. Links end with the set, or when this
 * process dies, however it dies. *@out is owned by the caller: link_set_free(). 0 or -errno.
 */
int link_set_new(struct link_set **out, const struct programs *p,
		 const struct tracer_changer *changer) __must_check;

/* End all links; returns when no probe is left in any process. NULL is fine. */
void link_set_free(struct link_set *set);

/*
 * Make one uprobe_multi link for the whole group, or one perf event for each place. Blocks until the probes are in. 0,
 * -ESRCH if the keeper was asked to end meanwhile (another thread by link_set_lifeline()), -EPIPE if it was killed, or
 * -errno.
 */
int link_set_add(struct link_set *set, const struct programs *p, const struct link_group *g,
		 bool is_multi) __must_check;

/*
 * Let the kernel look anew, in all processes, if a link wants the places of @g, and take out breakpoints that none
 * wants. Blocks for milliseconds; the breakpoints are out some 50 ms later, or with the set. 0 or -errno.
 */
int link_set_touch(struct link_set *set, const struct programs *p, const struct link_group *g,
		   bool is_multi) __must_check;

/* If heaptap dies while a probe has stopped process @pid by SIGSTOP, resume @pid. Until link_set_drop(). */
void link_set_guard(struct link_set *set, pid_t pid);

/*
 * End the links of @pid alone; returns when its probes are out. 0, or -errno (no memory for the processes that end
 * them): its probes stay until the set ends.
 */
int link_set_drop(struct link_set *set, pid_t pid) __must_check;

/* As link_set_drop(), of a process that has ended: its links end some time later, those of many together. */
int link_set_leave(struct link_set *set, pid_t pid) __must_check;

/* End the links of this group, which is not 0. 0 or -errno, as above. */
int link_set_drop_group(struct link_set *set, u32 group) __must_check;

/* False: the keeper has ended, and all probes are out. */
bool link_set_is_alive(const struct link_set *set);
/*
 * The keeper that is not alive was asked to end: it was not killed and did not fail. Waits for its end. Then only
 * link_set_free().
 */
bool link_set_has_ended(struct link_set *set);

/*
 * A copy, owned by the caller, of the socket to the keeper. When it is shut down, the keeper ends all links and exits.
 * -errno.
 */
int link_set_lifeline(const struct link_set *set);

/* Links to the kernel itself: raw tracepoints of threads, exec, system calls; a kprobe at the end. 0 or -errno. */
int link_set_add_in_kernel(struct link_set *set, const struct programs *p,
			   bool has_system_calls) __must_check;
