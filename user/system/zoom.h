/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Growing processes are traced exactly, a few at a time: which ones, since when, until when. */
#pragma once

#include "user/session/code_choice.h"
#include "user/session/cost_book.h"
#include "user/system/price.h"
#include "user/system/watch.h"

enum { ZOOM_MAX = 64, ZOOM_MAX_ANSWERS = 256 };

/* Strings, lists and options are borrowed. */
struct zoom_options {
	const struct session_options *session;
	u32 nr;		/* processes at a time; 0 = none */
	bool is_chosen; /* the watched processes were chosen: they are traced although they do not grow */
	const char *const *spare; /* NULL-terminated names of programs not to trace, or NULL */
	bool wants_scan;
	u32 max_cost; /* of tracing, tenths of a percent of a CPU; 0 = no limit */
};

/* Gets the session of each process that is left, before it ends. */
typedef void (*zoom_end_fn)(void *ctx, struct session *s);

/* A process that is traced. */
struct zoom {
	pid_t pid;
	u64 start_time;
	struct session *session; /* owned */
	u64 begin_ns;
	u32 answer; /* number in answers */
	struct price price;
	struct cost_book book;
	u64 calls; /* that are in the book */
	struct code_choice choice;
	u64 saved_ns; /* when the last step to make it cheaper was taken; 0 = never */
};

struct zooms {
	const struct zoom_options *options; /* borrowed */
	struct zoom list[ZOOM_MAX];
	u32 nr;
	int epoll;		     /* owned; readable when events of one wait */
	bool is_off;		     /* nothing can be traced here, which was logged */
	struct zoom_answer *answers; /* owned; ZOOM_MAX_ANSWERS */
	u32 nr_answers;
	u64 nr_dropped; /* answers that had to make room */
	u32 permyriad;	/* of one CPU, that all traced processes pay */
	struct control
		*control;   /* borrowed; takes the probes out when heaptap does not answer; may be NULL */
	zoom_end_fn at_end; /* NULL = none */
	void *end_ctx;
};

/* 0 or -errno. */
int zooms_init(struct zooms *z, const struct zoom_options *options) __must_check;

/* After a look at @w: leave processes, begin with others, find verdicts. Says each decision in one line. */
void zooms_decide(struct zooms *z, struct watch *w);

/* Enter the events that have arrived. */
void zooms_poll(struct zooms *z);

/* The last verdicts; then no process is traced any more. */
void zooms_end(struct zooms *z, struct watch *w);
void zooms_fini(struct zooms *z);

/* The answer on a process, of now or of before; NULL = it was never traced. */
const struct zoom_answer *zooms_answer(const struct zooms *z, pid_t pid, u64 start_time);

/* The next thing to do. */
struct zoom_step {
	const struct watched *trace; /* NULL = nothing */
	u32 leave;	 /* number in the list, whose place it gets; as many as there are: there is room */
	const char *why; /* to leave; static */
};

/*
 * A report that is asked for comes first, then a process that was never traced, then the others. The place of a process
 * that has its answer is for one that has none. Who is spared is said and refused in @w. 0 or -ENOMEM.
 */
int zoom_places_next(struct zooms *z, struct watch *w, struct zoom_step *out) __must_check;
