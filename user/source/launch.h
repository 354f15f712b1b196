/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that heaptap starts: stopped before its first instruction and after each library that the
 * dynamic linker maps, so that no allocation is missed; watched by ptrace (no breakpoints stay in it)
 * until it ends, so that its end and its exec can be looked at while its memory is still there.
 */
#pragma once

#include "bpf/thread_stop.h"
#include "user/lib/types.h"

struct launch;
struct thread_request;

struct launch_options {
	char *const *argv; /* program and arguments, NULL-terminated */
	const char *user; /* run as this user, with HOME, USER, LOGNAME and SHELL of them; NULL = as we are */
	const char *cwd;  /* NULL = here */
	char *const *env; /* NULL = ours */
	bool leaves_stdout; /* its standard output is its standard error: ours is for something else */
	/* The source that traces it, if that is not this thread: then launch_hold() must not be used. */
	struct source *source;		    /* borrowed */
	const struct source_tracer *tracer; /* NULL = this thread */
	u32 max_children; /* most at a time, theirs included, that are watched too; 0 = none */
};

/* Reports to the owner of a launch. The process is stopped during each call. */
struct launch_hooks {
	void *ctx;
	/* A new image, of which no code has run. */
	void (*exec)(void *ctx, pid_t pid);
	/* Perhaps new mappings, none of whose code has run. */
	void (*mapped)(void *ctx, pid_t pid);
	/* The process is about to end; its memory is still there. @status as wait(2) gives it. */
	void (*exiting)(void *ctx, pid_t pid, int status);
	/* A child, or a child's child, has ended; not needed without max_children. */
	void (*ended)(void *ctx, pid_t pid, int status);
	/* Why has a probe stopped thread @tid? NULL: always THREAD_STOP_LOOK. */
	struct thread_stop (*reason)(void *ctx, pid_t tid);
	/*
	 * The kernel sends SIGTRAP to thread @tid of @pid. True: it had copied code with a breakpoint of the source in
	 * it, which was taken out, and it can go on. NULL: there are no such breakpoints.
	 */
	bool (*trapped)(void *ctx, pid_t pid, pid_t tid);
	/* Another process is about to trace this one: nothing of it is reported from now on. */
	void (*leaving)(void *ctx, pid_t pid, enum thread_stop_why why);
	/* A new child, of which no code has run: a copy, or in the memory of its parent (vfork). NULL: no need. */
	void (*born)(void *ctx, pid_t pid);
};

/*
 * Make the process of the program, which waits for launch_begin(): it keeps the rights that heaptap has now. @options
 * are those of launch_begin(), too. 0 or -errno, logged.
 */
int launch_prepare(struct launch **out, const struct launch_options *options) __must_check;

/*
 * Start the program. When this returns 0, the program is stopped at its first instruction, and hooks->exec and
 * hooks->mapped were called. Errors, with one logged line: -errno of the exec or the change of directory (-ENOENT,
 * -EACCES, ...), -EINVAL for an unknown user, -EPERM if heaptap may not become that user.
 */
int launch_begin(struct launch *l, const struct launch_options *options,
		 const struct launch_hooks *hooks) __must_check;

/* launch_prepare() and launch_begin() in one. */
int launch_new(struct launch **out, const struct launch_options *options,
	       const struct launch_hooks *hooks) __must_check;

/*
 * A launch without a program: running processes join it, and are children for all that is said here. Children of theirs
 * are watched, too. 0 or -ENOMEM.
 */
int launch_new_joined(struct launch **out, const struct launch_hooks *hooks) __must_check;

/*
 * Trace all threads of @pid by ptrace, and stop them; after 0 they are stopped until launch_release(), but for those
 * that do not stop within a second. -ESRCH, -EPERM (another process traces it) or another -errno: it is as before.
 */
int launch_join(struct launch *l, pid_t pid) __must_check;

/*
 * @pid waits at its end until heaptap traces it: it joins *@l, which is made if it is NULL, and goes on to its exit,
 * where hooks->exiting is called. It ends in any case.
 */
void launch_await_end(struct launch **l, const struct launch_hooks *hooks, pid_t pid);

/* The ptrace options of processes that have joined. */
long launch_joined_options(void);

/*
 * End to trace @pid, if it has joined or is a child: as if it had never been traced. 0; -EAGAIN: a thread does not stop
 * now, and it is traced as before; or -ENOMEM.
 */
int launch_part(struct launch *l, pid_t pid) __must_check;

/* Let it run. */
void launch_start(struct launch *l);

pid_t launch_pid(const struct launch *l);

/*
 * Handle what happened to the program and its children, without waiting. After 200 ms the rest is left to the next
 * call, so that a program with a child each moment does not keep signals and connections from the caller. True once the
 * program has ended; without one, once all processes have.
 */
bool launch_poll(struct launch *l);

/*
 * While nobody has time for hooks: resume threads that stopped for signals or births, or end. All else waits for
 * launch_poll().
 */
void launch_attend(struct launch *l);

/* As wait(2) gives it; valid after launch_poll() returned true. */
int launch_status(const struct launch *l);

/*
 * Stop all threads of the program, or of the child @pid, by ptrace within @max_ns. 0: they stay stopped until
 * launch_release(). -ETIME, -ESRCH, -ENOMEM, -EPERM (another process traces it): they run on.
 */
int launch_hold(struct launch *l, pid_t pid, u64 max_ns) __must_check;
void launch_release(struct launch *l, pid_t pid);

/* Is @pid the program, or a child that is watched, so that launch_hold() is the way to stop it? */
bool launch_watches(const struct launch *l, pid_t pid);

/* All threads of @pid are held: let one of them carry out a call, as snapshot_holder.call. */
int launch_call(struct launch *l, pid_t pid, struct thread_request *r) __must_check;

/*
 * Detach from all children, and from those that have joined. Blocks until each of their threads has stopped for that,
 * 500 ms at most.
 */
void launch_leave_children(struct launch *l);

/*
 * Detach from the program, so that another process may trace it. The end is still seen. Blocks like
 * launch_leave_children(). False if another process traces it already, or it has ended.
 */
bool launch_leave(struct launch *l);

/* Pass @sig on to the program. */
void launch_signal(const struct launch *l, int sig);

/* Detach from a program that may still run, and free @l. */
void launch_free(struct launch *l);
