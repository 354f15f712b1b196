/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guard: a process that takes the piece of code out of all targets when heaptap ends without doing so. Changes of
 * targets are made by processes of their own, too, so that none is left half done when heaptap is killed.
 */
#pragma once

#include "fallback/tracer_change.h"
#include "user/inject/process.h"

enum { GUARD_MAX_TARGETS = 4096 };

struct guard;

/* 0 or -errno. The guard is the process that runs outlive() of guard_changer(). */
int guard_new(struct guard **out) __must_check;
/* Heaptap makes no more changes but to take the piece out: nobody waits for the process when its links have ended. */
void guard_end(struct guard *g);
/* Ends the guard, which first takes the piece out of targets that still have it. Behind the end of the source below. */
void guard_free(struct guard *g);

/*
 * Another process that traces the targets, and so must make all changes: the functions stop a process there until
 * release(), and have it make the change that struct tracer_changer is told of. 0 or -errno; -ESRCH: it does not trace
 * @pid; hold(): -EBUSY: @pid is stopped already.
 */
struct guard_tracer {
	void *ctx; /* borrowed */
	int (*hold)(void *ctx, pid_t pid, u64 max_ns);
	void (*release)(void *ctx, pid_t pid);
	int (*change)(void *ctx, pid_t pid, int fd);
};

/* For the start of that process, or of the one that keeps links; valid as long as the guard. And: the former runs. */
const struct tracer_changer *guard_changer(struct guard *g);
void guard_set_tracer(struct guard *g, const struct guard_tracer *t);

/*
 * The memory that a target shares with us, whose code was put in or renewed last: a descriptor, the caller's; -1 = it
 * is not known, and to be opened as the target's mapping.
 */
int guard_take_file(struct guard *g);

/* A new target in memory that the guard sees. NULL: there are GUARD_MAX_TARGETS. Valid until guard_drop(). */
struct injection *guard_add(struct guard *g, pid_t pid, u64 start_time);
/* As guard_add(), for a forked child, which has what is in its parent @of. */
struct injection *guard_copy(struct guard *g, const struct injection *of, pid_t pid, u64 start_time);
/* The target has ended, has executed another program, or the piece was taken out. */
void guard_drop(struct injection *in);

/*
 * inject_put_in(), inject_grow() and inject_take_out(), which a signal to heaptap cannot interrupt. All wait while the
 * guard takes the piece out because its lifeline was shut down.
 */
int guard_put_in(struct guard *g, struct injection *in, const struct inject_site *sites, size_t nr,
		 const struct inject_file *f) __must_check;
int guard_grow(struct guard *g, struct injection *in, u32 nr_places, u32 nr_shards) __must_check;
int guard_take_out(struct guard *g, struct injection *in) __must_check;
/*
 * The end of a trace of many: a process for each takes 10 ms. Take the piece out of all that let it go at once, by a
 * few processes. guard_take_out() is for the others, and says why.
 */
void guard_take_out_many(struct guard *g);
/* inject_renew() by the tracer of the child. */
int guard_renew(struct guard *g, struct injection *in) __must_check;
