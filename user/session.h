/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One run of heaptap: a source, the processes it traces, their books, and the reports on them. */
#pragma once

#include "user/options.h"
#include "user/source.h"

struct ask_server;
struct outputs;
struct report;
struct session;
struct tuning;

/*
 * Choose a source by @o, and prepare everything but targets; @is_launch: they are started by us
 * (user/launch.h). Logs why not: -EPERM, -EOPNOTSUPP (no source
 * works here), -ENOMEM or another -errno. @o and @outs are borrowed for the life of *@out.
 */
int session_new(struct session **out, const struct options *o, struct outputs *outs,
		bool is_launch) __must_check;

/* Makes the source of session_new_told(); 0 or -errno, logged. Modules that it names go into @modules. */
typedef int (*session_open_fn)(void *ctx, struct source **out, struct module_table *modules);

/* The same on a source of @ops that alone knows its processes. They join as records name them. */
int session_new_told(struct session **out, const struct options *o, struct outputs *outs,
		     const struct source_ops *ops, session_open_fn open, void *ctx) __must_check;

/*
 * The same on the file @path: a recording or a text list of events (user/source_replay.h), all of them entered; "-"
 * is standard input. What precedes the damage of a recording is entered too: session_status() says so then. -EINVAL or
 * another -errno for a file of which nothing can be understood; logged. Shows progress on a terminal.
 */
int session_new_replay(struct session **out, const struct options *o, struct outputs *outs,
		       const char *path) __must_check;
/* The exit status for its error. */
int session_replay_status(int err);
void session_free(struct session *s);

/* Who traces the targets by ptrace, NULL if the source does not; *@source is what its functions want. Borrowed. */
const struct source_tracer *session_tracer(const struct session *s, struct source **source);

/* Trace @pid. 0, or -errno, logged: -ENOENT no allocator in it, -ESRCH, -EINVAL, -EPERM. */
int session_attach(struct session *s, pid_t pid, bool is_started) __must_check;

/* Its mappings may have changed: probes go into what is new. */
void session_update(struct session *s, pid_t pid);

/* Say so, once for each process, if no allocator has been found in it. True if none was found in any. */
bool session_has_no_allocator(const struct session *s);

/* An allocator of this kind ("glibc") was found in a process. */
bool session_has_kind(const struct session *s, const char *kind);

/* Readable when there is something to do; -1 = do not wait. */
int session_wait_fd(const struct session *s);

/* Enter what has come in. 0 or -errno (logged) when the source is at its end or broken: -ENODATA, others. */
int session_poll(struct session *s) __must_check;

/* How many traced processes still run. Notices ends. */
size_t session_running(struct session *s);

/* A process's end as wait(2) gives it. */
void session_ended(struct session *s, pid_t pid, int status);

/* Stop seeing calls, take all probes out, enter the rest. The targets are as before. Twice is harmless. */
void session_stop(struct session *s);

/*
 * What the session sees now (user/tuning.h), and from now on, here or on the machine that is asked. What was seen
 * before is in the books when session_tune() returns; it waits for the other machine, 10 s if nothing comes. While
 * it is paused frees go unseen: what is alive then is unsure. Reports say how long, and how much was left out by a
 * filter. 0, or -errno, logged: -EINVAL, -EOPNOTSUPP (a file; tracing is over; begun without stacks), -ETIMEDOUT,
 * -ENOTCONN.
 */
struct tuning session_tuning(const struct session *s);
/* What one of @o begins with. */
struct tuning session_tuning_of(const struct options *o);
int session_tune(struct session *s, const struct tuning *t) __must_check;

/*
 * Another machine is asked to end its targets, and may log that it does not allow it. 0, -EOPNOTSUPP: they run here, or
 * in a file; or -errno.
 */
int session_kill(struct session *s) __must_check;

/* Stops processes that the calling thread traces already. */
struct session_stopper {
	void *ctx;
	int (*stop)(void *ctx, pid_t pid,
		    u64 max_ns); /* all threads stand in ptrace stops when it returns 0 */
	void (*release)(void *ctx, pid_t pid);
};

/*
 * Find leak verdicts on every process that runs, for the next report: each is stopped for a moment, by @stopper
 * (NULL = by itself). @is_last: nothing of them is traced from that moment on. Why there is no verdict on a
 * process stands in the report.
 */
void session_scan(struct session *s, const struct session_stopper *stopper, bool is_last);

/* The same on one process that is about to end and whose threads all stand in stops of this thread's. */
void session_scan_exiting(struct session *s, pid_t pid);

/*
 * Answer another heaptap that asks @questions (user/ask.h): a verdict on the process that it names, as session_scan()
 * with @stopper (NULL = by itself), and reports on it alone; or a marker, also where it names us. @s may be NULL:
 * nothing is traced. Waits for the machine that is told, as session_tune() does.
 */
void session_answer(struct session *s, const struct session_stopper *stopper, struct ask_server *questions);

/* Write a report on everything so far to the outputs. 0 or -errno, logged. */
int session_report(struct session *s) __must_check;

/*
 * The same, but only for @write, which gets it with @ctx, and of process @pid only (0 = all); nothing is used up.
 * Processes of @r are valid during the call. @write may run in another thread, which the caller waits for.
 * 0, -ENOMEM, logged, or what @write returned.
 */
int session_show(struct session *s, pid_t pid, int (*write)(void *ctx, const struct report *r),
		 void *ctx) __must_check;

/* A report has been made: verdicts are used up, growth counts from here. session_report() does it. */
void session_reported(struct session *s);

/* @work(@arg), while somebody reads the ring of @ctx, a session: else it would overflow if that takes long. */
int session_aside(void *ctx, int (*work)(void *arg), void *arg);

/*
 * What the last report found of what --fail-on asks for: 1 = something, 0 = nothing (or no rule was given), -ENODATA =
 * no verdict on a process, logged.
 */
int session_findings(const struct session *s);

/* The list of events that was asked for in place of reports is complete. 0 or -errno, logged. */
int session_finish_events(struct session *s) __must_check;

/* An exit status: STATUS_UNTRUSTED if a process lost events, else STATUS_DONE. */
int session_status(struct session *s);
