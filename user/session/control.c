/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals and clocks of a running heaptap. */
#include "user/session/control.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "user/session/ask.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/session/busy_signals.h"
#include "user/source/limits.h"

struct control {
	int fd;			      /* owned; signalfd */
	int input;		      /* borrowed; -1 = none */
	struct ask_server *questions; /* owned; NULL = nobody can ask */
	struct busy_signals *busy;    /* owned; NULL = signals wait for control_wait() */
	bool passes_on;
	bool is_cut;				  /* known when busy has gone */
	void (*sleep)(void *ctx, bool is_asleep); /* NULL = nobody is told */
	void *sleep_ctx;
	struct control_times times;
	bool has_clocks;    /* control_start_clocks() */
	u64 next_report_ns; /* 0 = never */
	u64 end_ns;	    /* 0 = never */
};

/* The signal that ends this trace, and when it was taken. Static, because signals belong to the process. */
static struct {
	volatile sig_atomic_t sig;
	u64 taken_ns;
} wish;

/* timeout(1) and others send a signal to their child, and to the group that the child is in. */
static const u64 same_wish_ns = 1000000000;

static const u8 handled[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD, SIGXCPU, SIGTSTP };

static void handled_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_SIZE(handled); i++)
		sigaddset(set, handled[i]);
}

void control_at_sleep(struct control *c, void (*sleep)(void *ctx, bool is_asleep), void *ctx)
{
	c->sleep = sleep;
	c->sleep_ctx = ctx;
}

void control_start_clocks(struct control *c)
{
	u64 now = clock_now_ns();

	if (c->has_clocks)
		return;
	c->has_clocks = true;
	c->next_report_ns = c->times.interval_ns ? now + c->times.interval_ns : 0;
	c->end_ns = c->times.duration_ns ? now + c->times.duration_ns : 0;
}

void control_stop_soon(struct control *c)
{
	c->end_ns = 1;
}

int control_new(struct control **out, const struct control_times *times, bool passes_on)
{
	struct control *c = calloc(1, sizeof(*c));
	sigset_t set;
	int err;

	if (!c)
		return -ENOMEM;
	handled_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
		err = -errno;
		goto undo_control;
	}
	c->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->fd < 0) {
		err = -errno;
		goto undo_control;
	}
	limits_leave_cpu_time();
	c->passes_on = passes_on;
	c->input = -1;
	c->times = *times;
	*out = c;
	return 0;
undo_control:
	free(c);
	return err;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	busy_signals_free(c->busy);
	if (!IS_AGENT)
		ask_close(c->questions);
	close(c->fd);
	free(c);
}

void control_guard(struct control *c, const char *command)
{
	int err = busy_signals_new(&c->busy, command);

	if (err)
		debug("%s: signals wait while heaptap is busy: %s", command, strerror(-err));
}

void control_guard_probes(struct control *c, int lifeline)
{
	busy_signals_add(c ? c->busy : NULL, lifeline);
}

void control_guard_connection(struct control *c, int fd, const u8 *bytes)
{
	busy_signals_farewell(c->busy, fd, bytes);
}

void control_begin(struct control *c, pid_t program)
{
	busy_signals_pass_to(c->busy, program);
	busy_signals_begin(c->busy);
	log_never_wait(true);
}

void control_keep(struct control *c, int sig)
{
	busy_signals_keep(c->busy, sig);
}

void control_hold(struct control *c, bool is_held)
{
	busy_signals_hold(c->busy, is_held);
}

bool control_is_cut(const struct control *c)
{
	return c && (c->is_cut || busy_signals_is_cut(c->busy));
}

const char *control_doing(struct control *c, const char *what)
{
	return c && !IS_AGENT ? busy_signals_doing(c->busy, what) : NULL;
}

/* Signals that are blocked stay pending until the descriptor is read. */
bool control_is_stop_pending(void)
{
	sigset_t set;

	if (busy_signals_has_stop())
		return true;
	return !sigpending(&set) && (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1);
}

void control_listen(struct control *c)
{
	int err = IS_AGENT ? 0 : ask_open(&c->questions);

	if (err)
		debug("scan: other heaptaps cannot ask for a verdict: %s", strerror(-err));
}

void control_watch(struct control *c, int fd)
{
	c->input = fd;
}

struct ask_server *control_questions(const struct control *c)
{
	return c->questions;
}

/* Be stopped until SIGCONT by the default of SIGTSTP: where no shell can continue heaptap it does not stop. */
static void control_sleep(const struct control *c)
{
	sigset_t set;

	if (!IS_AGENT && c->sleep)
		c->sleep(c->sleep_ctx, true);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (!IS_AGENT && c->sleep)
		c->sleep(c->sleep_ctx, false);
}

static enum control_event on_signal(const struct control *c, const struct signalfd_siginfo *si, int *sig)
{
	*sig = si->ssi_signo;
	switch (*sig) {
	case SIGCHLD:
		return CONTROL_CHILD;
	case SIGUSR1:
		return CONTROL_REPORT;
	case SIGTSTP:
		control_sleep(c);
		return CONTROL_NONE;
	case SIGXCPU:
		/* The kernel sends it again after each further second. */
		return limits_is_out_of_cpu_time() ? CONTROL_NONE : CONTROL_STOP;
	case SIGUSR2:
		return c->passes_on ? CONTROL_SIGNAL : CONTROL_NONE;
	default:
		break;
	}
	if (!c->passes_on)
		return CONTROL_STOP;
	return busy_signals_is_shared(si) ? CONTROL_SHARED : CONTROL_SIGNAL;
}

static void note_wish(int sig)
{
	wish.sig = sig;
	wish.taken_ns = clock_now_ns();
}

/* A second signal ends heaptap, as if it had never been handled. */
static void on_second_signal(int sig)
{
	int was = errno;

	if (sig != wish.sig || clock_now_ns() - wish.taken_ns >= same_wish_ns) {
		signal(sig, SIG_DFL);
		kill(getpid(), sig);
	}
	errno = was;
}

static enum control_event on_clock(struct control *c)
{
	u64 now = clock_now_ns();

	if (c->end_ns && now >= c->end_ns) {
		c->end_ns = 0;
		return CONTROL_STOP;
	}
	if (!c->next_report_ns || now < c->next_report_ns)
		return CONTROL_NONE;
	/* Reports that were missed, because of a long report or a stopped heaptap, are skipped. */
	c->next_report_ns += c->times.interval_ns * ((now - c->next_report_ns) / c->times.interval_ns + 1);
	return CONTROL_REPORT;
}

static enum control_event next_event(struct control *c, int fd, int timeout_ms, int *sig)
{
	struct pollfd fds[] = { { .fd = c->fd, .events = POLLIN },
				{ .fd = !IS_AGENT && c->questions ? ask_fd(c->questions) : -1,
				  .events = POLLIN },
				{ .fd = c->input, .events = POLLIN },
				{ .fd = fd, .events = POLLIN } };
	struct signalfd_siginfo si;

	enum control_event event = CONTROL_NONE, clock;

	busy_signals_look(c->busy);
	*sig = busy_signals_take_stop(c->busy);
	if (*sig) {
		note_wish(*sig);
		return CONTROL_STOP;
	}
	if (poll(fds, ARRAY_SIZE(fds), timeout_ms) > 0) {
		if (fds[0].revents && read(c->fd, &si, sizeof(si)) == sizeof(si))
			event = on_signal(c, &si, sig);
		if (event == CONTROL_STOP || event == CONTROL_SIGNAL)
			note_wish(*sig);
		if (event == CONTROL_NONE && fds[1].revents)
			event = CONTROL_ASKED;
		if (event == CONTROL_NONE && fds[2].revents)
			event = CONTROL_INPUT;
	}
	if (event != CONTROL_NONE && event != CONTROL_CHILD && event != CONTROL_INPUT)
		return event;
	/* SIGCHLD may come all the time: it must not keep the clock from being looked at. */
	clock = on_clock(c);
	return clock == CONTROL_NONE ? event : clock;
}

enum control_event control_wait(struct control *c, int fd, int timeout_ms, int *sig)
{
	/* Work that follows each event; nothing else takes long. */
	static const char *const doing[] = {
		[CONTROL_REPORT] = "with a report",
		[CONTROL_STOP] = "with the end of the trace",
		[CONTROL_ASKED] = "with the request of another heaptap",
		[CONTROL_INPUT] = "with a command",
	};
	enum control_event event = next_event(c, fd, timeout_ms, sig);
	const char *what = (size_t)event < ARRAY_SIZE(doing) ? doing[event] : NULL;

	if (event == CONTROL_STOP && *sig == SIGXCPU)
		busy_signals_say_limit();
	busy_signals_doing(c->busy, what ? what : "with events that have piled up");
	return event;
}

/* Signals for the program that came before its end was known must not end heaptap. */
static void forget_signals(const struct control *c)
{
	struct signalfd_siginfo si;

	while (read(c->fd, &si, sizeof(si)) == sizeof(si))
		note_wish((int)si.ssi_signo);
}

void control_keep_signals(struct control *c)
{
	forget_signals(c);
	c->passes_on = false;
}

void control_finish(struct control *c)
{
	const struct sigaction action = { .sa_handler = on_second_signal, .sa_flags = SA_RESTART };
	sigset_t set;

	log_never_wait(false);
	c->is_cut |= busy_signals_free(c->busy);
	c->busy = NULL;
	if (c->passes_on)
		forget_signals(c);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGTSTP);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
