/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers signals while the main thread cannot, because its output blocks, a file server does not answer, or there is
 * much to do. A thread of its own looks whether the main thread takes a signal within half a second.
 *
 * If not: a signal for the program of run is passed on. Else the probes are taken out, by ending the connection to
 * the process that holds them, if there is one. The next signal that is not taken in time ends heaptap. Before
 * tracing has begun, the first one does. SIGXCPU is never passed on, and only the first one counts.
 */
#pragma once

#include "user/lib/types.h"

enum { BUSY_SIGNALS_FAREWELL = 8 };

struct busy_signals;
struct signalfd_siginfo;

/*
 * Has the program of run got signal @si as well, from its terminal? That sends Ctrl-C to the whole process group, but
 * SIGHUP, when it is closed, only to the leader of the session.
 */
bool busy_signals_is_shared(const struct signalfd_siginfo *si);

/* @command: for messages. SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU must be blocked. 0 or -errno. */
int busy_signals_new(struct busy_signals **out, const char *command) __must_check;

/*
 * A process that holds probes. @lifeline is a socket to it, taken over: when it is shut down, the process takes the
 * probes out, and closes its end when that is done. Lifelines of processes that have ended are closed here. Blocks for
 * seconds at most, if the probes are being taken out. Without memory its probes stay in until heaptap ends. NULL is
 * fine.
 */
void busy_signals_add(struct busy_signals *b, int lifeline);

/*
 * The probes are at the other side of a connection: its socket @fd, taken over, and the BUSY_SIGNALS_FAREWELL @bytes
 * that ask for their removal. Sent where nobody takes the output of heaptap. In place of those of an earlier call.
 */
void busy_signals_farewell(struct busy_signals *b, int fd, const u8 *bytes);

/* The main thread looks for signals now. For each look. */
void busy_signals_look(struct busy_signals *b);

/*
 * Until the next call the main thread is busy @what, as "with a report": for messages. @what is borrowed for ever.
 * Returns the former one; NULL without @b.
 */
const char *busy_signals_doing(struct busy_signals *b, const char *what);

/* Tracing has begun: from now on the first signal does not end heaptap. */
void busy_signals_begin(struct busy_signals *b);

/*
 * Signals are passed on to the child @pid of heaptap, 0 = no more. Those of the terminal reach the program by
 * themselves.
 */
void busy_signals_pass_to(struct busy_signals *b, pid_t pid);

/*
 * The first @sig that is not taken in time leaves the probes in, because it breaks off a command: the next one ends
 * heaptap. While it is held, @sig is for another program at the terminal, and heaptap takes it later.
 */
void busy_signals_keep(struct busy_signals *b, int sig);
void busy_signals_hold(struct busy_signals *b, bool is_held);

/* The signal that was taken for the main thread, which shall stop; 0 = none. Returns each signal once. */
int busy_signals_take_stop(struct busy_signals *b);
/* Will that function return one? For any thread. */
bool busy_signals_has_stop(void);
/* The process that holds the probes was told to end. False without a lifeline: the probes stay. */
bool busy_signals_is_cut(const struct busy_signals *b);

/* Say, once in the life of heaptap, that tracing ends because of the limit of CPU time. For any thread. */
void busy_signals_say_limit(void);

/*
 * From now on signals are as if there were no such thread. Blocks while it answers the last one. Returns
 * busy_signals_is_cut() of then; false for NULL, which is fine.
 */
bool busy_signals_free(struct busy_signals *b);
