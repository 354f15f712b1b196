/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions of a console to a running session, beside session_tune() and session_show(). */
#pragma once

#include "bpf/thread_stop.h"
#include "user/report/report.h"

struct control;
struct heap_event;
struct session;

/* Drop the verdicts of @s; the names of functions, which are read anew as the options say now. */
void session_forget_verdicts(struct session *s);
void session_forget_names(struct session *s);

/* Is there, or was there, such a process? */
bool session_knows(const struct session *s, pid_t pid);

/* Has session_pause() paused process @pid, or every one that runs (0)? */
bool session_is_paused(const struct session *s, pid_t pid);

/* Events of all processes so far. */
u64 session_events(const struct session *s);

/*
 * The cost of this heaptap so far, and of its breakpoints where BPF has them. Not known of a recording, and by ptrace,
 * where another process does the work.
 */
struct report_cost session_cost(const struct session *s);

/* Breakpoints of BPF in the process with most calls, since heaptap has looked at it. */
struct session_probes {
	const struct target *process; /* NULL: there is none; borrowed until the next poll */
	u64 calls;
	u64 ns, cpu_ns; /* of its CPU time, that they took; that time */
	bool is_sure;	/* what a call costs was measured */
};

/* Within some tens of milliseconds. */
struct session_probes session_probes(const struct session *s);

/* Look at the CPU time of all processes; does nothing if the last look was just before. */
void session_look_at_load(struct session *s);

const char *session_backend(const struct session *s); /* the name of the source */

/* Sums over the processes that run. Once none runs: over all. */
struct session_totals {
	u64 live_bytes, live_blocks;
	u64 events, lost; /* of all processes, also of those that have ended */
	size_t nr_running;
	bool is_sampled; /* bytes and blocks are estimates */
};

/* The sums now. Asks the source for losses; costs little. */
struct session_totals session_totals(struct session *s);

/* Gets each event of heaps after it was entered, also those of a scan or a report that runs aside, later. */
struct session_listener {
	void (*event)(struct session_listener *l,
		      const struct heap_event *ev); /* must not wait, nor use the session */
	struct session_listener *next;		    /* of the session */
};

/* Give events to @l, which is borrowed, from now on; and no more. */
void session_listen(struct session *s, struct session_listener *l);
void session_unlisten(struct session *s, const struct session_listener *l);

/* Sums over processes. A peak is the sum of the peaks, which need not have been at one time. */
struct session_sums {
	u64 live_bytes, live_blocks, peak_bytes, allocs, frees;
};

/* The sums of process @pid with all its programs, or of all processes (0). */
struct session_sums session_sums(const struct session *s, pid_t pid);

/* The price of a call in its processes by breakpoints; measured while it is polled. */
const struct call_price *session_call_price(const struct session *s);

/*
 * Forget the heap of process @pid, or of all that run (0), as if heaptap had attached now. Processes that have ended
 * keep theirs. 0; -EBUSY while events are recorded; -ENOMEM: only some heaps were forgotten.
 */
int session_reset(struct session *s, pid_t pid) __must_check;

/*
 * Name this moment @text in the recording, after all earlier events; waits for the other machine as session_tune()
 * does. 0; -ENOTCONN: nothing is recorded; or another -errno.
 */
int session_set_marker(struct session *s, const char *text) __must_check;

/* Count the allocations of all processes whose programs have paused that. True if there was one. */
bool session_note_resume_all(struct session *s);

/* Record from now on, into the file of the options. 0; -EBUSY: it records already; or another -errno, logged. */
int session_record(struct session *s) __must_check;
bool session_is_recording(const struct session *s);
/* End the recording. 0; -ENOENT: nothing is recorded; -EIO: some events could not be written. */
int session_record_end(struct session *s) __must_check;

/*
 * The targets were traced before, with gaps between: this is time @number (from 2), and the first began at @first_ns,
 * CLOCK_MONOTONIC. Reports and profiles say so.
 */
void session_set_window(struct session *s, u32 number, u64 first_ns);

/* Why the source has stopped thread @tid: stop_reason() of the source. */
struct thread_stop session_stop_reason(const struct session *s, pid_t tid);

/* As trapped() of the source. */
bool session_trapped(const struct session *s, pid_t pid, pid_t tid);

/*
 * The caller has detached @pid because another process is to trace it by ptrace: itself, after session_scan_exiting(),
 * or a debugger.
 */
void session_left(struct session *s, pid_t pid, enum thread_stop_why why);
/* Why @t was left so; THREAD_STOP_LOOK: it was not. */
enum thread_stop_why session_why_left(const struct session *s, const struct target *t);

/* The processes that have not ended; *@pids is the caller's. 0 or -ENOMEM. */
int session_pids(const struct session *s, pid_t **pids, size_t *nr) __must_check;

/* As follow of struct source_ops. */
void session_follow(struct session *s, bool is_on);

/* @nr processes will be attached: before the first one. */
void session_expect(struct session *s, size_t nr);

/* @nr processes were asked for and cannot be traced: session_status() is STATUS_UNTRUSTED from now on. */
void session_leave_out(struct session *s, size_t nr);

/*
 * Forget the processes that ended first, until @keep processes that have ended are left, and keep sums of them for
 * their parents. @keeps_targets: only children are forgotten. Returns how many that reports had. Pointers to processes
 * are invalid after it.
 */
size_t session_drop_ended(struct session *s, size_t keep, bool keeps_targets);

/* Of the children that have ended, keep as many as may run at a time: a run of many short ones stays small. */
void session_bound_ended(struct session *s);

/*
 * When a signal is not answered, @c takes the probes of @s out, and can say that heaptap is busy with a verdict. While
 * @c has heaptap stopped, no process waits for it. Behind control_guard(); @c may be NULL, and lives longer than @s.
 */
void session_guard(struct session *s, struct control *c);

/* Were as many allocations counted as session_options.stop_after says? Later ones are not counted any more. */
bool session_is_enough(const struct session *s);
