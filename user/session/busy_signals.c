/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes the probes out and ends heaptap when the main thread does not answer signals. */
#include "user/session/busy_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/lib/thread.h"
#include "user/source/limits.h"

/* The system calls that the threads of heaptap are in, by /proc/self/task/TID/syscall. */

/* The descriptor that thread @tid waits to write to; -1 = it does something else. */
static int written_by(pid_t tid)
{
	char path[64], line[256], *to, *end;
	auto_close int fd = -1;
	unsigned long to_fd;
	ssize_t len;
	long nr;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (len <= 0)
		return -1;
	line[len] = '\0';
	/* The number of the call and its arguments, or "running". sscanf() would add 11 KiB to the agent. */
	nr = strtol(line, &to, 10);
	to_fd = strtoul(to, &end, 16);
	return end > to && (nr == SYS_write || nr == SYS_writev) ? (int)to_fd : -1;
}

static void name_descriptor(int fd, char *name, size_t size)
{
	char link[64];
	ssize_t len;

	if (fd == STDOUT_FILENO || fd == STDERR_FILENO) {
		snprintf(name, size, "standard %s", fd == STDOUT_FILENO ? "output" : "error");
		return;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, name, size - 1);
	name[len < 0 ? 0 : len] = '\0';
}

/*
 * Write the name of a file that a thread of this process waits to write to into @name of @size bytes. False: no thread
 * writes, or the kernel does not say. Never blocks.
 */
static bool stuck_output_find(char *name, size_t size)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	if (proc_threads(getpid(), &tids, &nr))
		return false;
	for (size_t i = 0; i < nr; i++) {
		int fd = written_by(tids[i]);

		if (fd < 0)
			continue;
		name_descriptor(fd, name, size);
		return true;
	}
	return false;
}

/*
 * The main thread has GRACE_MS for a signal, and EARLY_GRACE_MS before tracing has begun: it seldom looks then, and
 * there is no report to save. The holder of the probes has HANG_UP_MS to take them out.
 */
enum { GRACE_MS = 400, EARLY_GRACE_MS = 100, HANG_UP_MS = 5000, FOR_EVER = -1 };

static const u8 answered[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU };

/* The signal that the main thread shall stop by; 0 = none. Static, because signals belong to the process. */
static int stops_by;

struct busy_signals {
	const char *command; /* borrowed */
	int signals;	     /* owned; signalfd */
	int end;	     /* owned; eventfd: the thread shall end */
	pthread_t thread;
	bool has_thread;
	/* Shared with the thread, under the lock. */
	pthread_mutex_t lock;
	int *lifelines; /* owned, as the descriptors in it */
	size_t nr_lifelines, max_lifelines;
	int farewell_fd; /* owned; -1 = none */
	u8 farewell[BUSY_SIGNALS_FAREWELL];
	/* Shared with the thread. */
	u32 nr_looks; /* of the main thread */
	bool has_begun;
	bool is_cut;  /* before stops_by */
	int kept;     /* this signal breaks off a command; 0 = none */
	bool is_held; /* and is another program's now */
	pid_t program;
	const char *doing; /* borrowed */
	/* Of the thread alone. */
	bool has_missed; /* a signal was not taken, ... */
	u32 missed_at;	 /* ... when there had been so many looks */
};

static bool is_ending(const struct busy_signals *b, int timeout_ms)
{
	struct pollfd p = { .fd = b->end, .events = POLLIN };

	return poll(&p, 1, timeout_ms) > 0;
}

static bool has_hung_up(int lifeline, int timeout_ms)
{
	struct pollfd p = { .fd = lifeline, .events = 0 };

	while (poll(&p, 1, timeout_ms) < 0 && errno == EINTR)
		;
	return p.revents & POLLHUP;
}

/* Close the lifelines of processes that have ended. Under the lock. */
static void drop_ended(struct busy_signals *b)
{
	size_t nr = 0;

	for (size_t i = 0; i < b->nr_lifelines; i++)
		if (has_hung_up(b->lifelines[i], 0))
			cleanup_close(&b->lifelines[i]);
		else
			b->lifelines[nr++] = b->lifelines[i];
	b->nr_lifelines = nr;
}

/* End the processes that hold the probes, and wait. True: all probes are out. Under the lock. */
static bool hang_up(struct busy_signals *b)
{
	size_t nr_told = 0;
	bool is_out = true;

	for (size_t i = 0; i < b->nr_lifelines; i++)
		nr_told += !shutdown(b->lifelines[i], SHUT_WR);
	if (!nr_told)
		__atomic_store_n(&b->is_cut, false, __ATOMIC_RELEASE);
	for (size_t i = 0; nr_told && i < b->nr_lifelines; i++)
		is_out &= has_hung_up(b->lifelines[i], HANG_UP_MS);
	return nr_told && is_out;
}

/* Ask the other side of a connection to take its probes out. True if it was asked. Under the lock. */
static bool say_farewell(struct busy_signals *b)
{
	const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	bool is_said = b->farewell_fd >= 0 && send(b->farewell_fd, b->farewell, sizeof(b->farewell), flags) ==
						      (ssize_t)sizeof(b->farewell);

	cleanup_close(&b->farewell_fd);
	b->farewell_fd = -1;
	return is_said;
}

/*
 * Tell the main thread to stop, and take the probes out. What was done, for a message. While the main thread waits for
 * who reads its output, @is_stuck, it does not write to a connection, too.
 */
static const char *busy_signals_cut(struct busy_signals *b, int sig, bool is_stuck)
{
	bool is_out, is_told;

	pthread_mutex_lock(&b->lock);
	/* Both are set first: the main thread may see the end of the probes before this one. */
	__atomic_store_n(&b->is_cut, b->nr_lifelines > 0, __ATOMIC_RELEASE);
	__atomic_store_n(&stops_by, sig, __ATOMIC_RELEASE);
	is_out = hang_up(b);
	is_told = is_stuck && say_farewell(b);
	pthread_mutex_unlock(&b->lock);
	if (is_told)
		return "the other side is taking the probes out; ";
	return is_out ? "the probes are out; " : "";
}

/*
 * End heaptap by @sig, as if it had never been handled. For SIGQUIT and SIGXCPU no memory is dumped: that may block,
 * too.
 */
static void busy_signals_die(int sig)
{
	int by = sig == SIGQUIT || sig == SIGXCPU ? SIGTERM : sig;
	sigset_t set;

	signal(by, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, by);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	kill(getpid(), by);
}

/* Why the main thread does not look for signals. True: nobody takes its output. */
static bool find_reason(const struct busy_signals *b, char *out, size_t size)
{
	char name[256];

	if (stuck_output_find(name, sizeof(name))) {
		snprintf(out, size, "because nobody takes its output (%s)", name);
		return true;
	}
	snprintf(out, size, "%s", __atomic_load_n(&b->doing, __ATOMIC_ACQUIRE));
	return false;
}

void busy_signals_say_limit(void)
{
	if (limits_note_out_of_cpu_time())
		log_now("the limit of CPU time (ulimit -t) is near: tracing ends while there is time for the report");
}

/* Little CPU time is left. This signal is for heaptap alone, and the kernel repeats it each second. */
static void answer_cpu_limit(struct busy_signals *b, bool is_stuck, bool is_first)
{
	if (!__atomic_load_n(&b->has_begun, __ATOMIC_ACQUIRE)) {
		log_now("%s: the limit of CPU time (ulimit -t) is near: heaptap ends before tracing has begun",
			b->command);
		busy_signals_die(SIGXCPU);
	} else if (is_first) {
		busy_signals_say_limit();
		busy_signals_cut(b, SIGXCPU, is_stuck);
	}
}

bool busy_signals_is_shared(const struct signalfd_siginfo *si)
{
	return si->ssi_code == SI_KERNEL && (si->ssi_signo != SIGHUP || getsid(0) != getpid());
}

/* The main thread has not taken this signal. */
static void busy_signals_answer(struct busy_signals *b, const struct signalfd_siginfo *si)
{
	pid_t program = __atomic_load_n(&b->program, __ATOMIC_ACQUIRE);
	int sig = (int)si->ssi_signo;
	u32 nr_looks = __atomic_load_n(&b->nr_looks, __ATOMIC_ACQUIRE);
	bool is_repeated = b->has_missed && b->missed_at == nr_looks;
	bool is_first = !is_repeated && __atomic_load_n(&b->has_begun, __ATOMIC_ACQUIRE);
	char reason[320];
	const char *done;
	bool is_stuck;

	b->has_missed = true;
	b->missed_at = nr_looks;
	is_stuck = find_reason(b, reason, sizeof(reason));
	if (sig == SIGXCPU) {
		answer_cpu_limit(b, is_stuck, is_first);
		return;
	}
	if (program && !busy_signals_is_shared(si))
		kill(program, sig);
	if (is_first && program) {
		log_now("%s: heaptap is busy %s: the program has got the signal; another one ends heaptap",
			b->command, reason);
		return;
	}
	if (is_first && sig == __atomic_load_n(&b->kept, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&stops_by, sig, __ATOMIC_RELEASE);
		log_now("%s: heaptap is busy %s: another signal ends heaptap", b->command, reason);
		return;
	}
	done = busy_signals_cut(b, sig, is_stuck);
	/* Tracing may have begun since. */
	is_first = !is_repeated && __atomic_load_n(&b->has_begun, __ATOMIC_ACQUIRE);
	if (!is_first) {
		if (!IS_AGENT && !is_repeated)
			log_now("%s: a signal ends heaptap before tracing has begun", b->command);
		busy_signals_die(sig);
		return;
	}
	log_now("%s: heaptap is busy %s: %sanother signal ends heaptap", b->command, reason, done);
}

/* Is a signal pending that the main thread should have taken? */
static bool is_overdue(const struct busy_signals *b)
{
	int kept = __atomic_load_n(&b->is_held, __ATOMIC_ACQUIRE) ? b->kept : 0;
	sigset_t pending;

	if (!kept)
		return true;
	if (sigpending(&pending))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(answered); i++)
		if (answered[i] != kept && sigismember(&pending, answered[i]) == 1)
			return true;
	return false;
}

static void *busy_signals_watch(void *arg)
{
	struct busy_signals *b = arg;
	struct pollfd fds[] = { { .fd = b->signals, .events = POLLIN }, { .fd = b->end, .events = POLLIN } };
	struct signalfd_siginfo si;

	for (;;) {
		u32 nr_looks;
		int grace_ms;

		if (poll(fds, ARRAY_SIZE(fds), FOR_EVER) < 0 && errno != EINTR)
			return NULL;
		nr_looks = __atomic_load_n(&b->nr_looks, __ATOMIC_ACQUIRE);
		grace_ms = __atomic_load_n(&b->has_begun, __ATOMIC_ACQUIRE) ? GRACE_MS : EARLY_GRACE_MS;
		if (is_ending(b, fds[0].revents ? grace_ms : 0))
			return NULL;
		if (fds[0].revents && nr_looks == __atomic_load_n(&b->nr_looks, __ATOMIC_ACQUIRE) &&
		    is_overdue(b) && read(b->signals, &si, sizeof(si)) == sizeof(si))
			busy_signals_answer(b, &si);
	}
}

static int busy_signals_start(struct busy_signals *b)
{
	sigset_t set;
	int err;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(answered); i++)
		sigaddset(&set, answered[i]);
	b->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (b->signals < 0)
		return -errno;
	b->end = eventfd(0, EFD_CLOEXEC);
	if (b->end < 0)
		return -errno;
	err = thread_start(&b->thread, "heaptap-signals", busy_signals_watch, b);
	b->has_thread = !err;
	return err;
}

int busy_signals_new(struct busy_signals **out, const char *command)
{
	struct busy_signals *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->command = command;
	b->doing = "with its start";
	b->signals = b->end = b->farewell_fd = -1;
	pthread_mutex_init(&b->lock, NULL);
	err = busy_signals_start(b);
	if (err) {
		busy_signals_free(b);
		return err;
	}
	*out = b;
	return 0;
}

void busy_signals_add(struct busy_signals *b, int lifeline)
{
	if (!b) {
		cleanup_close(&lifeline);
		return;
	}
	pthread_mutex_lock(&b->lock);
	drop_ended(b);
	if (!array_reserve(b->lifelines, b->max_lifelines, b->nr_lifelines + 1))
		b->lifelines[b->nr_lifelines++] = lifeline;
	else
		cleanup_close(&lifeline);
	pthread_mutex_unlock(&b->lock);
}

void busy_signals_farewell(struct busy_signals *b, int fd, const u8 *bytes)
{
	if (!b) {
		cleanup_close(&fd);
		return;
	}
	pthread_mutex_lock(&b->lock);
	cleanup_close(&b->farewell_fd);
	b->farewell_fd = fd;
	memcpy(b->farewell, bytes, sizeof(b->farewell));
	pthread_mutex_unlock(&b->lock);
}

void busy_signals_look(struct busy_signals *b)
{
	if (b)
		__atomic_fetch_add(&b->nr_looks, 1, __ATOMIC_ACQ_REL);
}

const char *busy_signals_doing(struct busy_signals *b, const char *what)
{
	return b ? __atomic_exchange_n(&b->doing, what, __ATOMIC_ACQ_REL) : NULL;
}

void busy_signals_begin(struct busy_signals *b)
{
	if (b)
		__atomic_store_n(&b->has_begun, true, __ATOMIC_RELEASE);
}

void busy_signals_pass_to(struct busy_signals *b, pid_t pid)
{
	if (b)
		__atomic_store_n(&b->program, pid, __ATOMIC_RELEASE);
}

void busy_signals_keep(struct busy_signals *b, int sig)
{
	if (b)
		__atomic_store_n(&b->kept, sig, __ATOMIC_RELEASE);
}

void busy_signals_hold(struct busy_signals *b, bool is_held)
{
	if (b)
		__atomic_store_n(&b->is_held, is_held, __ATOMIC_RELEASE);
}

int busy_signals_take_stop(struct busy_signals *b)
{
	return b ? __atomic_exchange_n(&stops_by, 0, __ATOMIC_ACQ_REL) : 0;
}

bool busy_signals_has_stop(void)
{
	return __atomic_load_n(&stops_by, __ATOMIC_ACQUIRE) != 0;
}

bool busy_signals_is_cut(const struct busy_signals *b)
{
	return b && __atomic_load_n(&b->is_cut, __ATOMIC_ACQUIRE);
}

bool busy_signals_free(struct busy_signals *b)
{
	const u64 one = 1;
	bool is_cut;

	if (!b)
		return false;
	if (b->has_thread && write(b->end, &one, sizeof(one)) == sizeof(one))
		pthread_join(b->thread, NULL);
	is_cut = b->is_cut;
	for (size_t i = 0; i < b->nr_lifelines; i++)
		cleanup_close(&b->lifelines[i]);
	free(b->lifelines);
	pthread_mutex_destroy(&b->lock);
	cleanup_close(&b->farewell_fd);
	cleanup_close(&b->signals);
	cleanup_close(&b->end);
	free(b);
	return is_cut;
}
