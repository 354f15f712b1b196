/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals and clocks of a running heaptap, and requests of other heaptaps. */
#pragma once

#include "user/lib/types.h"

enum control_event {
	CONTROL_NONE,	/* look at the source */
	CONTROL_REPORT, /* SIGUSR1, or --interval has passed */
	CONTROL_STOP,	/* Ctrl-C, SIGTERM (not for run), --duration has passed, SIGXCPU: once */
	CONTROL_SIGNAL, /* a signal to pass on to the program of run */
	CONTROL_SHARED, /* one that this program has got, too, from its terminal */
	CONTROL_CHILD,	/* something happened to the program */
	CONTROL_ASKED,	/* by another heaptap: control_listen() */
	CONTROL_INPUT,	/* input has arrived: control_watch() */
};

struct control;

struct control_times {
	u64 interval_ns; /* between reports; 0 = none */
	u64 duration_ns; /* of tracing; 0 = no limit */
};

/*
 * Take signals from now on. @passes_on: signals belong to the program of run. Signals of the terminal reach
 * the program by themselves, so they are not passed on. SIGXCPU, which is for heaptap, comes while there is CPU time
 * for a report (limits_leave_cpu_time()). 0 or -errno. The clocks of @times stand still until control_start_clocks().
 */
int control_new(struct control **out, const struct control_times *times, bool passes_on) __must_check;
/*
 * Ctrl-Z (SIGTSTP) stops heaptap within control_wait() only, where it holds no process. @sleep is called before that,
 * and when heaptap goes on.
 */
void control_at_sleep(struct control *c, void (*sleep)(void *ctx, bool is_asleep), void *ctx);
/* Probes are in: --interval and --duration count from the first of these calls on. */
void control_start_clocks(struct control *c);
/* Let control_wait() return CONTROL_STOP soon, as at the end of --duration. */
void control_stop_soon(struct control *c);
void control_free(struct control *c);

/*
 * Answer signals also while this thread is busy, until control_finish(): user/session/busy_signals.h. Without memory
 * for that, signals wait: no error. @command as there.
 */
void control_guard(struct control *c, const char *command);
/* A process that holds probes: busy_signals_add(). Its lifeline is taken over. @c may be NULL. */
void control_guard_probes(struct control *c, int lifeline);
/* The probes are at the other side of a connection: busy_signals_farewell(). @fd is taken over. */
void control_guard_connection(struct control *c, int fd, const u8 *bytes);
/* Tracing has begun. @program: the child that signals are passed on to; 0 = none. */
void control_begin(struct control *c, pid_t program);
/* As busy_signals_keep() and busy_signals_hold(). */
void control_keep(struct control *c, int sig);
void control_hold(struct control *c, bool is_held);
/* The probes were taken out by a signal while this thread was busy. @c may be NULL. */
bool control_is_cut(const struct control *c);

/* As busy_signals_doing(), until the next control_wait(); nothing in the agent. @c may be NULL. */
const char *control_doing(struct control *c, const char *what);

/* Has a Ctrl-C or SIGTERM come that control_wait() has not returned yet? For any thread. */
bool control_is_stop_pending(void);

/* Let other heaptaps ask (CONTROL_ASKED). Without a socket for it nobody can ask: no error. */
void control_listen(struct control *c);
/* The socket for session_answer() after CONTROL_ASKED. */
struct ask_server *control_questions(const struct control *c);

/* Wait for input on @fd too; -1 = no more. All other events come before CONTROL_INPUT. */
void control_watch(struct control *c, int fd);

/* Wait for an event, or for @fd to become readable, at most @timeout_ms. *@sig is that of CONTROL_SIGNAL. */
enum control_event control_wait(struct control *c, int fd, int timeout_ms, int *sig);

/* The program of run has ended: from now on signals are for heaptap. */
void control_keep_signals(struct control *c);

/*
 * heaptap is about to finish: a second Ctrl-C or SIGTERM ends it at once from now on. The signal that the last
 * control_wait() returned is the same wish, if it comes again within a second.
 */
void control_finish(struct control *c);
