/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses a source of events by options and by what works here. */
#pragma once

#include "user/lib/types.h"

struct alloc_table;
struct probe_custom;
struct source;
struct source_ops;

enum source_backend { BACKEND_AUTO, BACKEND_BPF, BACKEND_PTRACE, BACKEND_INLINE };

/* Says how a thread of a target acts when its records find no room. Only the inline source gives the choice. */
enum source_on_full {
	ON_FULL_WAIT, /* for a bounded time */
	ON_FULL_DROP, /* the records, which are counted as lost */
};

/* In which programs releases are checked. */
enum source_check { CHECK_STARTED, CHECK_ALWAYS, CHECK_NEVER };

/* Where BACKEND_AUTO may put code into programs: which processes have it. */
enum source_code {
	CODE_NEVER,
	CODE_FIRST, /* each that can, from its start */
	CODE_LATER, /* each that session_put_code() names, and each for which breakpoints would be too dear */
};

/* The demands on a source. Strings and lists are borrowed. */
struct source_choice {
	const char *command; /* its name, for messages: "run" */
	u32 backend;	     /* enum source_backend */
	u32 check;	     /* enum source_check */
	u32 depth;	     /* frames per stack */
	u32 on_full;	     /* enum source_on_full */
	u32 max_followed;    /* most children that are traced too at a time; 0 = none */
	u32 code;	     /* enum source_code */
	u32 max_cost;	     /* with CODE_LATER: too dear is what takes more, in thousandths; 0 = no limit */
	u64 ring_bytes;	     /* 0 = the source's own choice */
	u64 sample_bytes;    /* mean distance of sampled bytes; 0 = all blocks are seen */
	bool want_mmap, no_cpp, adapts_samples; /* the last: sample_bytes is the first distance */
	bool tells_samples;   /* with sample_bytes: targets sample themselves (user/probe/own_sampler.h) */
	bool joins_targets;   /* the caller is going to be the ptracer of running targets (launch_join()) */
	bool joins_later;     /* it becomes that of those that get code, in session_put_code() */
	bool wants_end;	      /* the caller looks at processes that are about to end: session_await_ends() */
	bool stops_at_checks; /* the session makes leak checks that programs ask for: session_check() */
	bool wants_exec;      /* it also finds a verdict before a process executes a program */
	const char *const *chosen; /* names of programs to trace from their exec on; or NULL; BPF only */
	const char *const *usdt;   /* notes that are marks: "PROVIDER:NAME"; NULL-terminated, or NULL */
	const char *const *omit;   /* no probes in these files; NULL-terminated, or NULL */
	const struct alloc_spec *allocs;
	size_t nr_allocs;
};

/* Does the variable HEAPTAP_NO_CODE keep --backend auto from putting code into programs? */
bool source_forbids_code(void);

/*
 * Choose a source by @c and prepare it; nothing is attached yet. @is_launch: targets are started by us. Functions of
 * --alloc become rows of @fns, which is borrowed. *@source is freed with (*@ops)->free(), then *@custom, which it uses,
 * with free(); both are set on success only. Logs why not: -EPERM, -EOPNOTSUPP (no source works here), -ENOMEM or
 * another -errno.
 */
int source_open(struct source **source, const struct source_ops **ops, struct probe_custom **custom,
		struct alloc_table *fns, const struct source_choice *c, bool is_launch) __must_check;

/* Log each function of @custom (NULL = none) that no mapped file of this machine defines. Returns how many. */
size_t source_report_missing(const struct probe_custom *custom, const struct alloc_table *fns,
			     const char *command);
