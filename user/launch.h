/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that heaptap starts: stopped before its first instruction and after each library that the
 * dynamic linker maps, so that no allocation is missed; watched by ptrace (no breakpoints stay in it)
 * until it ends, so that its end and its exec can be looked at while its memory is still there.
 */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

struct launch;
struct source;
struct source_tracer;

struct launch_options {
	char *const *argv; /* program and arguments, NULL-terminated */
	const char *user;  /* run as this user, NULL = as we are */
	const char *cwd;   /* NULL = here */
	char *const *env;  /* NULL = ours */
	/* Who traces it, if not this thread: then launch_hold() is not to be used. */
	struct source *source;		    /* borrowed */
	const struct source_tracer *tracer; /* NULL = this thread */
	u32 max_children; /* most at a time, theirs included, that are watched too; 0 = none */
};

/* What the owner of a launch is told. The program stands still during each of these. */
struct launch_hooks {
	void *ctx;
	/* A new image, nothing of it has run. After a failure the program goes on untraced. */
	void (*exec)(void *ctx, pid_t pid);
	/* Perhaps new mappings, none of whose code has run. */
	void (*mapped)(void *ctx, pid_t pid);
	/* The process is about to end; its memory is still there. @status as wait(2) gives it. */
	void (*exiting)(void *ctx, pid_t pid, int status);
	/* A child, or a child's child, has ended; not needed without max_children. */
	void (*ended)(void *ctx, pid_t pid, int status);
};

/*
 * Start the program; it stands at its first instruction, hooks->exec and hooks->mapped have been called,
 * when this returns 0. Else -errno of the exec or the change of directory (-ENOENT, -EACCES, ...), -EINVAL
 * for an unknown user, -EPERM when we may not become that user. One line is logged on failure.
 */
int launch_new(struct launch **out, const struct launch_options *options,
	       const struct launch_hooks *hooks) __must_check;

/* Let it run. */
void launch_start(struct launch *l);

pid_t launch_pid(const struct launch *l);

/* Handle what happened to the program, without waiting. True once it has ended. */
bool launch_poll(struct launch *l);

/* As wait(2) gives it; valid after launch_poll() returned true. */
int launch_status(const struct launch *l);

/*
 * Let all threads of the program, or of the child @pid, stand in ptrace stops of this thread's, within @max_ns: 0, or
 * -ETIME, -ESRCH, -ENOMEM and they run on. Until launch_release() none of them goes on.
 */
int launch_hold(struct launch *l, pid_t pid, u64 max_ns) __must_check;
void launch_release(struct launch *l, pid_t pid);

/* Let all children run on without us. Blocks until each of their threads has stopped for that, 500 ms at most. */
void launch_leave_children(struct launch *l);

/*
 * Trace the program no longer, so that another process may; its end is still seen. Blocks as the function above. False
 * if somebody else traces it already, or it has ended.
 */
bool launch_leave(struct launch *l);

/* Pass @sig on to the program. */
void launch_signal(const struct launch *l, int sig);

/* Let go of a program that may still run. */
void launch_free(struct launch *l);
