/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the inline source, for user/source/source_inline.c and user/source/inline_place.c only. */
#pragma once

#include <pthread.h>

#include "arch/stop_all.h"
#include "user/inject/guard.h"
#include "user/lib/courtesy.h"
#include "user/source/inline_life.h"
#include "user/source/inline_limits.h"
#include "user/source/inline_waker.h"
#include "user/source/probe_taker.h"
#include "user/source/source.h"

struct inline_source {
	struct source_options options;
	struct probe_taker taker;
	const struct inline_life *life;
	struct source *below; /* owned; of life->ops */
	struct guard *guard;
	struct guard_tracer tracer;	/* of the guard */
	struct inline_target **targets; /* owned, and each; changed under the lock */
	size_t nr_targets;
	const struct sink *sink; /* during poll */
	bool may_decline;	 /* what cannot be changed is left to the source below */
	bool has_declined;	 /* that was so with a process */
	bool has_in_place;	 /* a process has jumps in pages that stay mappings of files */
	bool is_used;		 /* the piece has seen a process */
	bool is_detached;
	pid_t wished_pid; /* of inline_wish_begin(); 0 = there is no wish */
	struct inline_waker waker;
	struct limits_turn turn;	/* of the waker's thread */
	struct stopped_threads stopped; /* of the process that is changed over; late ones stay for a while */
	pthread_mutex_t lock;		/* of targets: the waker's thread looks at them */
	u64 breakpoint_ns;		/* of a call that is seen by one, by estimate */
	struct courtesy_hurry hurry;	/* of the thread that polls */
	u32 sample_sum;			/* as in struct sample_pace */
};

/* NULL: it is not known. */
struct inline_target *inline_source_find(const struct inline_source *s, pid_t pid);
/* Begin with @pid; nothing is changed in it. 0 or -errno. */
int inline_source_add(struct inline_source *s, pid_t pid, u64 start_time) __must_check;

/* Open the source below, by the options @to, which get what it needs beside, and the guard. 0 or -errno. */
int inline_life_open(struct inline_source *s, struct source_options *to,
		     const struct caps *caps) __must_check;

/* Take the code out of all targets. */
void inline_life_take_out(struct inline_source *s);

/* Of the source below, which is the one by BPF. Its probes are measured while they see all calls. */
int inline_life_measure(struct source *source, bool is_on, struct probe_runs *out) __must_check;
int inline_life_rest(struct source *source, struct target *target, bool is_on) __must_check;
void inline_life_keep_files(struct source *source, bool *is_used);
void inline_life_limit_samples(struct source *source, u32 sum);
enum source_way inline_life_way(const struct source *source, pid_t pid);
void inline_life_sleep(struct source *source, bool is_asleep);
bool inline_life_wait_for(struct source *source, const struct call_wish *wish);
int inline_life_kernel_words(const struct source *source, pid_t pid, int (*add)(void *ctx, taddr_t word),
			     void *ctx) __must_check;

/* For its processes that the source below traces by ptrace. */
extern const struct source_tracer inline_tracer;

/*
 * @pid has executed a program. With --follow, and by run, that is stopped at its start, unless it is left to a
 * debugger: then it runs already, and nothing sees it before the first breakpoints in all processes. Such a program is
 * noted.
 */
void inline_place_note_late(struct inline_source *s, pid_t pid);

/* The probes that the source below leaves to @s. */
struct probe_taker inline_place_taker(struct inline_source *s);
