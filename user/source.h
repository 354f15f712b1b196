/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a source of events is: BPF, ptrace, the replay of a recording, a remote server. */
#pragma once

#include "bpf/event.h"
#include "user/caps.h"
#include "user/probe.h"
#include "user/target.h"

struct source;

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
	u64 stacks;    /* events whose stack was not kept */
	u64 other;     /* calls that never returned (longjmp, killed threads), process events */
	u64 abandoned; /* of other: the calls that never returned; no free is among them */
};

struct source_options {
	u32 depth;		     /* frames per stack, 0 = none, at most STACK_MAX_FRAMES */
	u64 ring_bytes;		     /* 0 = default */
	bool stops_at_maps;	     /* targets are ptraced by us: stop them when their mappings change */
	struct probe_options probes; /* which functions; what it points to outlives the source */
	const char *const *omit;     /* NULL-terminated, or NULL: no probes in files of these names */
};

/* The life of a source, in order. */
struct source_ops {
	const char *name; /* "bpf", "ptrace", "replay" */

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

	/* From now on calls of the process are not seen / are seen again. */
	void (*pause)(struct source *s, pid_t pid);
	void (*resume)(struct source *s, pid_t pid);

	/* Totals since attach. */
	struct losses (*losses)(struct source *s, pid_t pid);

	/* Take every probe out; the target is as before. Records not yet polled stay readable. */
	void (*detach)(struct source *s);
	void (*free)(struct source *s);
};

/* In order of preference. */
extern const struct source_ops source_bpf;
