/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a source of events is: BPF, ptrace, the replay of a recording, a remote server. */
#pragma once

#include "bpf/event.h"
#include "user/caps.h"
#include "user/probe.h"
#include "user/target.h"

struct arch_regs;
struct source;
struct source_told_ops; /* user/source_told.h */

/* Where records go, in the order of the calls of each process. */
struct sink {
	void *ctx;
	/* @rec is one record of bpf/event.h, @len its bytes; valid during the call. 0, or -errno to stop polling. */
	int (*record)(void *ctx, const struct event_header *rec, size_t len);
};

/* What a source could not deliver, per process. Kinds are apart because a lost free makes a false leak. */
struct losses {
	u64 allocs; /* results of calls */
	u64 frees;
	u64 stacks;	/* events whose stack was not kept */
	u64 other;	/* calls that never returned (longjmp, killed threads), process events */
	u64 abandoned;	/* of other: the calls that never returned; no free is among them */
	u64 unfollowed; /* children that were to be traced and are not; not known of their own children */
	u64 sharers;	/* processes that ran in its memory beside it, unseen */
};

struct source_options {
	u32 depth;	/* frames per stack, 0 = none, at most STACK_MAX_FRAMES */
	u64 ring_bytes; /* 0 = default */
	bool want_free_stacks;
	bool stops_at_maps;	     /* targets are ptraced by us: stop them when their mappings change */
	u32 max_followed;	     /* most children, and theirs, that are traced too; 0 = none */
	struct probe_options probes; /* which functions; what it points to outlives the source */
	const char *const *omit;     /* NULL-terminated, or NULL: no probes in files of these names */
};

/*
 * Of a source that is its targets' tracer itself, so that nobody else can be: what others do by ptrace. Functions
 * wait for an answer; none of them changes the target but by what they say.
 */
struct source_tracer {
	/* The process that traces. */
	pid_t (*pid)(const struct source *s);

	/* Trace @pid, a child of the caller's that waits before its exec. 0 or -errno. */
	int (*launch)(struct source *s, pid_t pid);

	/* Has it become the program? It stands at its first instruction then. 1, 0, or -errno: that will never be. */
	int (*is_launched)(struct source *s, pid_t pid);
	void (*start)(struct source *s, pid_t pid);

	/* Let all its threads stand, within @max_ns: 0, -ETIME, -ESRCH; and go on. */
	int (*hold)(struct source *s, pid_t pid, u64 max_ns);
	void (*release)(struct source *s, pid_t pid);

	/* Registers of a thread that stands. */
	int (*read_regs)(struct source *s, pid_t tid, struct arch_regs *regs);

	/* A launched process, or a child of one, that is about to end and stands, 0 = none; *@status as wait(2)
	 * gives it. Then let it. */
	pid_t (*exiting)(struct source *s, int *status);
	void (*let_end)(struct source *s, pid_t pid);
};

/* The life of a source, in order. */
struct source_ops {
	const char *name;		    /* "bpf", "ptrace", "replay" */
	const struct source_told_ops *told; /* NULL = its processes are this machine's */

	/*
	 * probe, create, attach: NULL in a source that is opened by a function of its own, and whose processes are
	 * told by its records.
	 */
	/* Is it usable here? 0, or -errno with the reason in @caps. Touches no target. */
	int (*probe)(struct caps *caps);

	/* Nothing is attached yet. */
	int (*create)(struct source **out, const struct source_options *options, const struct caps *caps);

	/*
	 * Start tracing @t, whose mappings have been read: events flow when it returns 0. The target is not
	 * stopped. On error nothing of it stays attached.
	 */
	int (*attach)(struct source *s, struct target *t);

	/* Its mappings have been read again: place probes in what is new. Notes allocators in the target. */
	int (*update)(struct source *s, struct target *t);

	/* Readable when much has come in; -1 = do not wait, all is there already. Small amounts do not wake. */
	int (*wait_fd)(struct source *s);

	/* Deliver what is there; does not wait. Number of records, or -errno. */
	int (*poll)(struct source *s, const struct sink *sink);

	/* They have been read again and are as they were. May be NULL. */
	void (*unchanged)(struct source *s, const struct target *t);

	/* From now on calls of the process are not seen / are seen again. */
	void (*pause)(struct source *s, pid_t pid);
	void (*resume)(struct source *s, pid_t pid);

	/* At most @depth frames per stack from now on. -EOPNOTSUPP: it was made without stacks. NULL: it cannot. */
	int (*set_depth)(struct source *s, u32 depth);

	/* @t, a new child with these mappings, has been born (EVENT_FORK). NULL: there are no children. */
	int (*fork)(struct source *s, struct target *t);
	/* The name of the program that it executed last, if any: it may have ended. May be NULL. */
	void (*comm)(struct source *s, pid_t pid, char comm[TARGET_COMM_LEN]);
	/* What the file says of the program that @t, a new image, is; where only the file knows. 0 or -ENOMEM. */
	int (*image)(struct source *s, struct target *t);
	/* It has ended, its last record been delivered. May be NULL. */
	void (*forget)(struct source *s, pid_t pid);
	/* Totals since attach. */
	struct losses (*losses)(struct source *s, pid_t pid);

	/* Send each stack again before the next event that names it. NULL = it cannot. */
	void (*forget_stacks)(struct source *s);

	/* Take every probe out; the target is as before. Records not yet polled stay readable. */
	void (*detach)(struct source *s);
	void (*free)(struct source *s);

	const struct source_tracer *tracer; /* NULL: it traces nothing by ptrace */
};

/* In order of preference. */
extern const struct source_ops source_bpf, source_ptrace;
