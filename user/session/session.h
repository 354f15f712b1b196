/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One run of heaptap: a source, the processes that it traces, their heaps, and the reports on them. In this order:
 * opening, processes, records, leak verdicts, reports, the result.
 */
#pragma once

#include "user/session/session_options.h"
#include "user/source/source.h"

struct ask_server;
struct outputs;
struct report;
struct session;

/*
 * Choose a source by @o, and prepare everything but targets. @is_launch: heaptap starts the targets
 * (user/source/launch.h). 0; or, logged, -EPERM, -EOPNOTSUPP (no source works here), -ENOMEM or another -errno.
 * @o and @outs are borrowed for the life of *@out.
 */
int session_new(struct session **out, const struct session_options *o, struct outputs *outs,
		bool is_launch) __must_check;

/* Makes the source of session_new_told(); 0 or -errno, logged. Its modules and functions go into @modules and @fns. */
typedef int (*session_open_fn)(void *ctx, struct source **out, struct module_table *modules,
			       struct alloc_table *fns);

/* A session on a source of @ops that alone knows its processes. A process joins when a record names it. */
int session_new_told(struct session **out, const struct session_options *o, struct outputs *outs,
		     const struct source_ops *ops, session_open_fn open, void *ctx) __must_check;

void session_free(struct session *s);

/* The functions of a source that traces by ptrace, NULL for other sources; *@source is their argument. Borrowed. */
const struct source_tracer *session_tracer(const struct session *s, struct source **source);

/*
 * Trace @pid. @is_started: heaptap has started it and it has not run yet, so all of its blocks will be seen. 0, or
 * -errno, logged: -ENOENT no allocator in it, -ESRCH, -EINVAL, -EPERM.
 */
int session_attach(struct session *s, pid_t pid, bool is_started) __must_check;
/* The mappings of @pid may have changed: place probes in new ones. */
void session_update(struct session *s, pid_t pid);

/* @pid, a new child, is stopped before its first instruction. */
void session_born(struct session *s, pid_t pid);

/* Log each process in which no allocator was found. True if no process has one. */
bool session_has_no_allocator(const struct session *s);
/* An allocator of this kind ("glibc") was found in a process. */
bool session_has_kind(const struct session *s, const char *kind);

/* How many traced processes still run. Those that have ended untold are noticed at the second call. */
size_t session_running(struct session *s);
/* @pid has ended with @status, as wait(2) gives it. */
void session_ended(struct session *s, pid_t pid, int status);

/*
 * Ask the other machine to end the targets. A refusal is logged when it arrives. 0; -EOPNOTSUPP: the targets run here,
 * or come from a file; or another -errno.
 */
int session_kill(struct session *s) __must_check;

/* The default of session_options.max_memory: half of what the machine or the cgroup has left, at most 2 GiB. */
u64 session_default_memory(void);

/* A descriptor that is readable when there is something to do; -1 = do not wait. */
int session_wait_fd(const struct session *s);
/* Enter the records that have arrived. 0; -ENODATA at the end of the source; or another -errno, logged. */
int session_poll(struct session *s) __must_check;

/*
 * The events that the session takes (user/source/tuning.h), and a change of them, here or on the machine where the
 * processes run. session_tune() returns when all earlier events are in the heaps; it waits up to 10 s for the other
 * machine. During a pause frees are not seen, so blocks that are live then become unsure. Reports say how long the
 * pauses were, and how much a filter left out. 0; or, logged, -EINVAL, -EOPNOTSUPP (a file; tracing is over or began
 * without stacks), -ETIMEDOUT, -ENOTCONN.
 */
struct tuning session_tuning(const struct session *s);
int session_tune(struct session *s, const struct tuning *t) __must_check;
/*
 * Pause process @pid alone, or all and those that come (0); or end that. As session_tune(), and -EALREADY: it is so
 * already, or no such process runs; over a connection one process alone is -EOPNOTSUPP.
 */
int session_pause(struct session *s, pid_t pid, bool is_paused) __must_check;

/* Run @work(@arg), which may take long. Records of @ctx, a session, are put aside meanwhile for session_poll(). */
int session_aside(void *ctx, int (*work)(void *arg), void *arg);

/* Remove all probes and enter the last records. The targets are as before. Calling it twice is harmless. */
void session_stop(struct session *s);

struct session_stopper; /* user/session/session_stopper.h */

/*
 * Find leak verdicts on every running process, for the next report. @stopper stops each of them for a moment; without
 * one the session does. @is_last: events of a process are not seen after its scan; none is found where a signal had the
 * probes taken out before. The report says why a process has no verdict.
 */
void session_scan(struct session *s, const struct session_stopper *stopper, bool is_last);
/* As session_scan() while tracing goes on, of process @pid alone. */
void session_scan_one(struct session *s, pid_t pid);

/*
 * If a program has asked for a leak check since the last call: a report with verdicts, as far as the options want them.
 * @stopper as in session_scan(). With stops_at_checks a thread may wait for this.
 */
void session_check(struct session *s, const struct session_stopper *stopper);

/* Find a verdict on one process that is about to end, and whose threads the calling thread has stopped. */
void session_scan_exiting(struct session *s, pid_t pid);

/*
 * Answer another heaptap that asks at @questions (user/session/ask.h) for a verdict and reports on one process, or for
 * a marker, which may also name heaptap itself. @stopper is as in session_scan(). @s may be NULL: nothing is traced.
 * Waits for the other machine as session_tune() does.
 */
void session_answer(struct session *s, const struct session_stopper *stopper, struct ask_server *questions);

/* Write a report on everything so far to the outputs. 0 or -errno, logged. */
int session_report(struct session *s) __must_check;

/*
 * Make a report on process @pid (0 = all) and give it to @write with @ctx. Verdicts stay for the next report. The
 * processes of @r are valid during the call. @write may run in another thread, which the caller waits for.
 * 0; -ENOMEM, logged; or the result of @write.
 */
int session_show(struct session *s, pid_t pid, int (*write)(void *ctx, const struct report *r),
		 void *ctx) __must_check;

/* A report has been made: drop the verdicts, and count growth from now on. session_report() calls it. */
void session_reported(struct session *s);

/* Complete the list of events (--events). 0 or -errno, logged. */
int session_finish_events(struct session *s) __must_check;

/*
 * Did the last report meet a rule of --fail-on? 1 = yes; 0 = no, or there are no rules. Logged: -ENODATA, not measured,
 * because a process has no verdict, nothing in it could be watched, or no file has a function of --alloc; -EIO, events
 * were lost.
 */
int session_findings(struct session *s);
/* True after session_stop() if no mapped file has a function that --alloc names, which was logged. */
bool session_lacks_functions(const struct session *s);

/* Events of a process were lost, or could not be read. */
bool session_has_losses(struct session *s);
/* An exit status: STATUS_UNTRUSTED if events were lost, or a recording is not complete, else STATUS_DONE. */
int session_status(struct session *s);
