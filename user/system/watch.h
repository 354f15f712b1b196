/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All processes of this machine, once a second: what each needs, and whether it grows. Nothing is placed in them. */
#pragma once

#include "user/lib/hash_index.h"
#include "user/lib/proc.h"
#include "user/system/container.h"
#include "user/system/growth.h"
#include "user/system/limit.h"

/* Which processes to watch: NULL-terminated lists, borrowed. One of each list that is not NULL must fit. */
struct watch_choice {
	const char *const *comms, *const *exes; /* names and paths, or patterns of these as in a shell */
	const char *const *cgroups;		/* parts of the path */
	const char *const
		*containers;	 /* names or patterns of these, ids or the first digits of these, pods */
	const char *const *pids; /* numbers, or names */
	const char *const *uids; /* names of users, or numbers */
};

/* Does it leave any process out? */
bool watch_choice_any(const struct watch_choice *c);

enum watched_growth {
	WATCHED_QUIET, /* it does not grow, or that is not known yet */
	WATCHED_GROWS,
	WATCHED_GREW, /* until a moment ago */
};

/* One process. */
struct watched {
	pid_t pid;
	u64 start_time; /* with the PID, its identity: clock ticks since boot */
	int fd;		/* owned; its statm, which stays its own when the PID is reused */
	char comm[PROC_COMM_SIZE];
	u32 uid;
	bool is_new;	   /* it may not have called exec yet */
	bool is_held;	   /* it is traced: not evicted */
	bool is_asked;	   /* its report is wanted: it is traced although it does not grow */
	bool is_tried;	   /* it was to be traced with all others (everything.h) */
	bool is_left_out;  /* by --everything: too many are traced */
	bool is_over;	   /* it has met a rule of --threshold, which was said */
	u64 dump_again_ns; /* until then no other report because of a rule; 0 = there was none yet */
	u64 refused_ns;	   /* until then it is not traced; 0 = it may be */

	/* Now, in bytes. */
	u64 size, resident, anonymous, swapped;

	/* Growth of anonymous and swapped memory. */
	u64 first_ns; /* CLOCK_MONOTONIC, of the first look */
	struct growth growth;
	struct growth_line line;
	enum watched_growth state;
	u64 grew_ns;   /* when it was seen to grow last; 0 = never */
	u64 wanted_ns; /* when it was seen to grow first; 0 = never */

	/* Read when it grows. */
	u64 details_ns; /* when; 0 = never */
	struct limit limit;
	struct container container;
};

/* A process that grew and has ended. */
struct watch_end {
	pid_t pid;
	u64 start_time;
	char comm[PROC_COMM_SIZE];
	u64 needed; /* anonymous and swapped bytes at the last look */
	u64 first_ns, end_ns;
	struct growth_line line;
};

enum { WATCH_MAX_ENDS = 32 };

struct watch {
	const struct watch_choice *choice; /* borrowed */
	u32 max_procs;
	pid_t own_pid; /* this process and its children are not watched; 0 = all are */
	u32 *uids;     /* owned; of choice */
	size_t nr_uids;
	pid_t *born; /* owned; since the last look, or with another program since */
	size_t nr_born, max_born;
	bool wants_containers; /* of all processes, also of those that do not grow */
	u32 nr_details;	       /* of these that may still be read in this look */
	u32 nr_room;	       /* processes that may still be evicted in this look */
	struct watched *list;  /* owned */
	size_t nr, max;
	struct hash_index index; /* of list, by PID */
	struct births *births;	 /* owned; NULL = the kernel does not tell of new processes */
	u64 start_ns, now_ns;	 /* of the watch, of the last look; CLOCK_MONOTONIC */
	u64 scan_ns;		 /* of the last look at the whole of /proc; 0 = it is due */
	char last_born[64];	 /* /proc/loadavg at that time names the PID of the newest process */

	/* Sums. */
	u64 resident, nr_evicted, nr_unseen;
	u64 nr_missed;			       /* processes that ended before the look after their birth */
	u64 cpu_ns;			       /* that looks have cost heaptap */
	struct watch_end ends[WATCH_MAX_ENDS]; /* in turn */
	u64 nr_ends;
};

/* @choice is borrowed. 0; -EINVAL: no such user, logged; or -ENOMEM. */
int watch_init(struct watch *w, const struct watch_choice *choice, u32 max_procs) __must_check;
void watch_fini(struct watch *w);

/* Look at all processes. -ENOMEM: some new ones are not watched, and are counted in nr_unseen. */
int watch_look(struct watch *w) __must_check;

/* Is @pid, which may be too new for the table, one to watch? Fills in who it is. */
bool watch_identify(const struct watch *w, pid_t pid, struct watched *out);

/* Borrowed until the next look; NULL = it is not watched. */
const struct watched *watch_find(const struct watch *w, pid_t pid);

/* @pid is traced (or is not any more): it is not evicted, and its details are kept up to date. */
void watch_hold(struct watch *w, pid_t pid, bool is_held);

/* Process @pid is not to be traced until @until_ns. */
void watch_refuse(struct watch *w, pid_t pid, u64 until_ns);

/* Read the sizes of @pid anew, between two looks. */
void watch_measure_again(struct watch *w, pid_t pid);

/* The bytes that a process needs for itself. */
static inline u64 watched_needs(const struct watched *p)
{
	return p->anonymous + p->swapped;
}

/* For how long it has grown, in nanoseconds; 0 if it does not. */
u64 watched_growing_ns(const struct watch *w, const struct watched *p);

/*
 * Pointers to all processes in the order of reports: those that grow, the fastest first; then by size. The caller owns
 * *@out. 0 or -ENOMEM.
 */
int watch_rank(const struct watch *w, const struct watched ***out) __must_check;
