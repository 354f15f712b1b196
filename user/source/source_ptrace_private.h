/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the ptrace source, for user/source/source_ptrace*.c only. */
#pragma once

#include "user/source/placing.h"
#include "user/source/sample_pace.h"
#include "user/source/source.h"
#include "user/source/source_ptrace_watch.h"

/* A process that is traced. */
struct attached {
	pid_t pid;
	struct trap_watch watch;
	bool is_refused;  /* no calls of it are seen */
	bool is_declined; /* beside a taker: by that, so its calls are seen by breakpoints */
};

/* For each thread that waits for an answer, its process. */
struct waiting {
	pid_t *pids; /* owned */
	size_t nr, max;
};

struct ptrace_source {
	struct source_options options;
	struct guardian *guardian; /* owned */
	struct placing placing;
	struct attached *attached; /* owned */
	size_t nr_attached;
	u32 nr_polls;
	struct waiting checked;	 /* until a leak check is over */
	struct waiting changed;	 /* until the record of a change, which was put aside, is handled */
	struct sample_pace pace; /* of samples by the guardian */
	bool is_detached, is_death_reported;
	bool walks_stacks; /* beside a taker: by breakpoints, from now on */
	bool *has_table; /* owned; of the files by their numbers: the guardian has their rows, beside a taker */
	size_t max_tables;
};

/* Does the guardian leave calls out? */
static inline bool does_sample(const struct source_options *o)
{
	return !IS_AGENT && o->sample_bytes && !o->probes.only_sampler && !o->taker;
}

/* How breakpoints are put in, and how they are beside a taker. */
extern const struct placing_ops ptrace_place, ptrace_place_for_taker;

/* Put in the points of @f from number @first on, as put_in() of struct placing_ops. */
int source_ptrace_put_in(const struct ptrace_source *s, const struct target *t, const struct mapping *map,
			 const struct probed_file *f, u32 first) __must_check;

/* NULL: it is not traced. */
struct attached *source_ptrace_find(const struct ptrace_source *s, pid_t pid);

/* wait_for() of struct source_ops. */
bool source_ptrace_wait_for(struct source *source, const struct call_wish *wish);

/* Detach from @pid. */
void source_ptrace_leave(const struct ptrace_source *s, pid_t pid);
