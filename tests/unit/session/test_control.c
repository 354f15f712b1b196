/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of what the outside asks of a running heaptap. Each in a process of its own: signals end what they hit. */
#include "user/session/control.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/source/limits.h"

/* In place of libc's function: seconds pass at once. */
static time_t passed_s;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = (int)syscall(SYS_clock_gettime, clock, now);

	now->tv_sec += passed_s;
	return err;
}

enum { HANG_S = 20, NO_WAIT = 0, FOR_EVER = -1 };

static const u64 an_hour_ns = 3600ULL * 1000000000;

/* In the child: end with a word if @is_true is not. */
#define NEED(is_true)                                                                                        \
	do {                                                                                                 \
		if (!(is_true)) {                                                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #is_true);                        \
			_exit(1);                                                                            \
		}                                                                                            \
	} while (0)

/* Status of a child that runs @what. */
static int in_child(void (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(HANG_S);
		what();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static struct control *started(bool passes_on, u64 interval_ns, u64 duration_ns)
{
	const struct control_times times = { .interval_ns = interval_ns, .duration_ns = duration_ns };
	struct control *c;

	NEED(control_new(&c, &times, passes_on) == 0);
	control_start_clocks(c);
	return c;
}

/* Send the signal @sent and return the event that it leads to. */
static enum control_event event_of(struct control *c, int sent, int *sig)
{
	NEED(kill(getpid(), sent) == 0);
	return control_wait(c, -1, FOR_EVER, sig);
}

static void attach_signals(void)
{
	static const struct {
		int sig;
		enum control_event event;
	} cases[] = {
		{ SIGINT, CONTROL_STOP },   { SIGTERM, CONTROL_STOP },	 { SIGHUP, CONTROL_STOP },
		{ SIGQUIT, CONTROL_STOP },  { SIGUSR1, CONTROL_REPORT }, { SIGUSR2, CONTROL_NONE },
		{ SIGCHLD, CONTROL_CHILD },
	};
	struct control *c = started(false, 0, 0);
	int sig;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		NEED(event_of(c, cases[i].sig, &sig) == cases[i].event);
	NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_NONE);
	control_free(c);
}

/* A stop that nobody has looked at yet can be seen without being taken. */
static void pending_stop(void)
{
	static const int stops[] = { SIGINT, SIGTERM };
	struct control *c = started(false, 0, 0);
	int sig;

	for (size_t i = 0; i < ARRAY_SIZE(stops); i++) {
		NEED(!control_is_stop_pending());
		NEED(kill(getpid(), SIGUSR1) == 0);
		NEED(!control_is_stop_pending());
		NEED(control_wait(c, -1, FOR_EVER, &sig) == CONTROL_REPORT);
		NEED(kill(getpid(), stops[i]) == 0);
		NEED(control_is_stop_pending());
		NEED(control_is_stop_pending());
		NEED(control_wait(c, -1, FOR_EVER, &sig) == CONTROL_STOP);
	}
	NEED(!control_is_stop_pending());
	control_free(c);
}

/* Signals that somebody sent are the program's; SIGUSR1 alone is ours. */
static void run_signals(void)
{
	static const int passed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2 };
	struct control *c = started(true, 0, 0);
	int sig;

	for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
		NEED(event_of(c, passed[i], &sig) == CONTROL_SIGNAL);
		NEED(sig == passed[i]);
	}
	NEED(event_of(c, SIGUSR1, &sig) == CONTROL_REPORT);
	NEED(event_of(c, SIGCHLD, &sig) == CONTROL_CHILD);
	control_free(c);
}

/* The kernel repeats it each second; the first one stops tracing, also that of run, whose program does not get it. */
static void cpu_limit(void)
{
	struct control *c = started(true, 0, 0);
	int sig;

	NEED(event_of(c, SIGXCPU, &sig) == CONTROL_STOP);
	NEED(limits_is_out_of_cpu_time());
	NEED(event_of(c, SIGXCPU, &sig) == CONTROL_NONE);
	control_free(c);
}

/* The soft limit is below the hard one, and programs that heaptap starts get the former one. */
static void cpu_limit_is_hard(void)
{
	static const struct {
		rlim_t hard, soft;
	} cases[] = { { 1000, 990 }, { 20, 16 }, { 2, 1 }, { 1, 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rlimit limit = { cases[i].hard, cases[i].hard };

		NEED(setrlimit(RLIMIT_CPU, &limit) == 0);
		control_free(started(false, 0, 0));
		NEED(getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur == cases[i].soft);
		limits_restore_all();
		NEED(getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur == cases[i].hard);
	}
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) > 0;
}

/* Begin with a lifeline. The other end becomes readable when it is cut. */
static struct control *guarded(bool passes_on, int *other)
{
	struct control *c = started(passes_on, 0, 0);
	int fds[2];

	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	control_guard(c, "test");
	control_guard_probes(c, fds[0]);
	*other = fds[1];
	return c;
}

/* A signal that is not taken cuts the lifeline, and is a stop later. */
static void busy_attach(void)
{
	int other, sig;
	struct control *c = guarded(false, &other);

	control_begin(c, 0);
	NEED(!control_is_cut(c));
	NEED(kill(getpid(), SIGINT) == 0);
	NEED(is_readable(other, FOR_EVER));
	NEED(read(other, &sig, sizeof(sig)) == 0);
	close(other);
	NEED(control_is_cut(c));
	NEED(control_wait(c, -1, FOR_EVER, &sig) == CONTROL_STOP);
	NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_NONE);
	control_finish(c);
	NEED(control_is_cut(c));
	control_free(c);
}

/* Text that a child writes to its standard error. *@fd: its other end. */
static void catch_messages(int *fd)
{
	int fds[2];

	NEED(pipe2(fds, O_CLOEXEC) == 0);
	NEED(dup2(fds[1], STDERR_FILENO) == STDERR_FILENO);
	close(fds[1]);
	*fd = fds[0];
}

/* Begin, let a signal be missed, and read in @text what is said of it. */
static struct control *missed(int lifeline, char *text, size_t size)
{
	struct control *c = started(false, 0, 0);
	ssize_t len;
	int messages, sig;

	catch_messages(&messages);
	control_guard(c, "test");
	if (lifeline >= 0)
		control_guard_probes(c, lifeline);
	control_begin(c, 0);
	NEED(kill(getpid(), SIGINT) == 0);
	len = read(messages, text, size - 1);
	NEED(len > 0);
	text[len] = '\0';
	NEED(strstr(text, "another signal ends heaptap"));
	NEED(control_wait(c, -1, FOR_EVER, &sig) == CONTROL_STOP);
	NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_NONE);
	return c;
}

/* Let a signal be missed after the event that @sent leads to (0: none), and look for @what in the message. */
static void missed_after(int sent, enum control_event event, const char *what)
{
	struct control *c = started(false, 0, 0);
	char text[512];
	int messages, sig;
	ssize_t len;

	catch_messages(&messages);
	control_guard(c, "test");
	control_begin(c, 0);
	NEED((sent ? event_of(c, sent, &sig) : control_wait(c, -1, NO_WAIT, &sig)) == event);
	NEED(kill(getpid(), SIGINT) == 0);
	len = read(messages, text, sizeof(text) - 1);
	NEED(len > 0);
	text[len] = '\0';
	NEED(strstr(text, what));
	control_free(c);
}

static void busy_with_events(void)
{
	missed_after(0, CONTROL_NONE, "heaptap is busy with events that have piled up: another signal");
}

static void busy_with_report(void)
{
	missed_after(SIGUSR1, CONTROL_REPORT, "heaptap is busy with a report: another signal");
}

/* No process holds the probes: none is out, and nothing is cut. */
static void busy_without_lifeline(void)
{
	char text[512];
	struct control *c = missed(-1, text, sizeof(text));

	NEED(!strstr(text, "the probes are out"));
	NEED(!control_is_cut(c));
	control_finish(c);
	NEED(!control_is_cut(c));
	control_free(c);
}

/* A descriptor that cannot be shut down is not cut. */
static void busy_without_shutdown(void)
{
	char text[512];
	struct control *c = missed(open("/dev/null", O_RDONLY | O_CLOEXEC), text, sizeof(text));

	NEED(!strstr(text, "the probes are out"));
	NEED(!control_is_cut(c));
	control_free(c);
}

/* The other end has been told, and does not close. */
static void busy_without_answer(void)
{
	char text[512];
	int fds[2];
	struct control *c;

	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	c = missed(fds[0], text, sizeof(text));
	NEED(!strstr(text, "the probes are out"));
	NEED(control_is_cut(c));
	control_free(c);
	close(fds[1]);
}

/* The other end is closed already. */
static void busy_with_answer(void)
{
	char text[512];
	int fds[2];
	struct control *c;

	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	close(fds[1]);
	c = missed(fds[0], text, sizeof(text));
	NEED(strstr(text, "the probes are out"));
	NEED(control_is_cut(c));
	control_free(c);
}

/* The second one ends the process. */
static void busy_twice(void)
{
	int other;
	struct control *c = guarded(false, &other);

	control_begin(c, 0);
	NEED(kill(getpid(), SIGINT) == 0);
	NEED(is_readable(other, FOR_EVER));
	close(other);
	NEED(kill(getpid(), SIGINT) == 0);
	pause();
	control_free(c);
}

/* Tracing begins while the probes are being taken out: there is a report. */
static void busy_begins_meanwhile(void)
{
	int other, sig;
	struct control *c = guarded(false, &other);

	NEED(kill(getpid(), SIGINT) == 0);
	NEED(is_readable(other, FOR_EVER));
	control_begin(c, 0);
	close(other);
	NEED(control_wait(c, -1, FOR_EVER, &sig) == CONTROL_STOP);
	control_free(c);
}

/* The signal that ends heaptap before tracing has begun is named. */
static void busy_before_says(void)
{
	char text[512] = "";
	int fds[2];

	NEED(pipe2(fds, O_CLOEXEC) == 0);
	if (!fork()) {
		NEED(dup2(fds[1], STDERR_FILENO) == STDERR_FILENO);
		control_guard(started(false, 0, 0), "test");
		NEED(kill(getpid(), SIGINT) == 0);
		pause();
	}
	close(fds[1]);
	NEED(read(fds[0], text, sizeof(text) - 1) > 0);
	NEED(strstr(text, "test: a signal ends heaptap before tracing has begun"));
}

/* Nothing is traced yet: there is nothing to report. */
static void busy_before(void)
{
	int other;
	struct control *c = guarded(false, &other);

	close(other);
	NEED(kill(getpid(), SIGHUP) == 0);
	pause();
	control_free(c);
}

/* A signal that is taken is nothing for the thread beside. */
static void not_busy(void)
{
	int other, sig;
	struct control *c = guarded(false, &other);

	control_begin(c, 0);
	NEED(event_of(c, SIGINT, &sig) == CONTROL_STOP);
	NEED(!is_readable(other, 1000));
	NEED(!control_is_cut(c));
	control_free(c);
	NEED(is_readable(other, NO_WAIT));
}

/* A program that any signal ends. */
static pid_t fork_program(void)
{
	pid_t pid = fork();
	sigset_t none;

	if (pid)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	pause();
	_exit(0);
}

/* The program gets the first signal, and nothing is cut. */
static void busy_run(void)
{
	int other, status;
	struct control *c = guarded(true, &other);
	pid_t pid = fork_program();

	control_begin(c, pid);
	NEED(kill(getpid(), SIGTERM) == 0);
	NEED(waitpid(pid, &status, 0) == pid);
	NEED(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	NEED(!control_is_cut(c));
	control_begin(c, 0);
	close(other);
	NEED(kill(getpid(), SIGTERM) == 0);
	pause();
	control_free(c);
}

/* The kernel repeats it, so that a second one ends nothing; the program does not get it. */
static void busy_cpu_limit(void)
{
	int other, sig;
	struct control *c = guarded(true, &other);
	pid_t pid = fork_program();

	control_begin(c, pid);
	NEED(kill(getpid(), SIGXCPU) == 0);
	NEED(is_readable(other, FOR_EVER));
	close(other);
	NEED(kill(getpid(), SIGXCPU) == 0);
	usleep(1000000);
	NEED(control_wait(c, -1, FOR_EVER, &sig) == CONTROL_STOP && sig == SIGXCPU);
	NEED(waitpid(pid, NULL, WNOHANG) == 0);
	kill(pid, SIGKILL);
	control_free(c);
}

static void busy_cpu_limit_before(void)
{
	int other;
	struct control *c = guarded(false, &other);

	close(other);
	NEED(kill(getpid(), SIGXCPU) == 0);
	pause();
	control_free(c);
}

static void test_busy(void **state)
{
	(void)state;
	assert_int_equal(in_child(busy_attach), 0);
	assert_int_equal(in_child(busy_without_lifeline), 0);
	assert_int_equal(in_child(busy_without_shutdown), 0);
	assert_int_equal(in_child(busy_without_answer), 0);
	assert_int_equal(in_child(busy_with_answer), 0);
	assert_int_equal(in_child(busy_with_events), 0);
	assert_int_equal(in_child(busy_with_report), 0);
	assert_int_equal(in_child(not_busy), 0);
	assert_int_equal(in_child(busy_twice), SIGINT);
	assert_int_equal(in_child(busy_before), SIGHUP);
	assert_int_equal(in_child(busy_begins_meanwhile), 0);
	assert_int_equal(in_child(busy_before_says), 0);
	assert_int_equal(in_child(busy_run), SIGTERM);
	assert_int_equal(in_child(busy_cpu_limit), 0);
	assert_int_equal(in_child(busy_cpu_limit_before), SIGTERM);
}

/* A terminal of our own; its keys reach this process as they reach a shell's job. */
static int own_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	NEED(master >= 0 && !grantpt(master) && !unlockpt(master));
	NEED(setsid() >= 0);
	slave = open(ptsname(master), O_RDWR | O_CLOEXEC); /* becomes the controlling terminal */
	NEED(slave >= 0 && !ioctl(slave, TIOCSCTTY, 0));
	return master;
}

/* The program has had them from the terminal already. */
static void run_terminal_signals(void)
{
	int master = own_terminal(), sig;
	struct control *c = started(true, 0, 0);

	NEED(write(master, "\003\034", 2) == 2); /* Ctrl-C, Ctrl-\ */
	NEED(control_wait(c, -1, FOR_EVER, &sig) == CONTROL_SHARED && sig == SIGINT);
	NEED(control_wait(c, -1, FOR_EVER, &sig) == CONTROL_SHARED && sig == SIGQUIT);
	control_free(c);
}

static void attach_terminal_signals(void)
{
	int master = own_terminal(), sig;
	struct control *c = started(false, 0, 0);

	NEED(write(master, "\003", 1) == 1);
	NEED(control_wait(c, -1, FOR_EVER, &sig) == CONTROL_STOP);
	control_free(c);
}

static void clocks(void)
{
	struct control *c = started(false, an_hour_ns, 2 * an_hour_ns);
	int sig;

	NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_NONE);
	control_free(c);
	c = started(false, 1, 0);
	for (int i = 0; i < 3; i++)
		NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_REPORT);
	control_free(c);
	/* The end of the time is told once, and before reports that are due. */
	c = started(false, 1, 1);
	NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_STOP);
	NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_REPORT);
	control_free(c);
}

/* However long it takes until the probes are in: the whole time is for what comes then. */
static void clocks_before_tracing(void)
{
	const struct control_times times = { .interval_ns = 1, .duration_ns = 1 };
	struct control *c;
	int sig;

	NEED(control_new(&c, &times, false) == 0);
	NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_NONE);
	NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_NONE);
	control_start_clocks(c);
	NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_STOP);
	/* A second start is none: the time has passed already. */
	control_start_clocks(c);
	NEED(control_wait(c, -1, NO_WAIT, &sig) == CONTROL_REPORT);
	control_free(c);
}

/* A program whose threads come and go all the time must not keep heaptap from looking at the clock. */
static void clock_under_signals(void)
{
	struct control *c = started(true, 0, 1);
	int sig;

	NEED(event_of(c, SIGCHLD, &sig) == CONTROL_STOP);
	control_free(c);
	c = started(true, 0, 1);
	/* But a signal that asks for something comes first, and the clock is not forgotten. */
	NEED(event_of(c, SIGTERM, &sig) == CONTROL_SIGNAL);
	NEED(event_of(c, SIGCHLD, &sig) == CONTROL_STOP);
	control_free(c);
}

static void source_wakes(void)
{
	struct control *c = started(false, 0, 0);
	int fds[2], sig;

	NEED(pipe(fds) == 0);
	NEED(write(fds[1], "x", 1) == 1);
	NEED(control_wait(c, fds[0], FOR_EVER, &sig) == CONTROL_NONE);
	control_free(c);
}

static void second_interrupt(void)
{
	struct control *c = started(false, 0, 0);
	int sig;

	NEED(event_of(c, SIGINT, &sig) == CONTROL_STOP);
	control_finish(c);
	kill(getpid(), SIGINT);
	passed_s = 1;
	kill(getpid(), SIGINT);
	_exit(2);
}

/* SIGINT after SIGTERM is another wish. */
static void interrupt_after_another_signal(void)
{
	struct control *c = started(false, 0, 0);
	int sig;

	NEED(event_of(c, SIGTERM, &sig) == CONTROL_STOP);
	control_finish(c);
	kill(getpid(), SIGINT);
	_exit(2);
}

/* timeout(1) sends a signal to its child and to the group of the child: before and after heaptap has looked. (T10) */
static void same_signal_again(void)
{
	static const int stops[] = { SIGINT, SIGTERM };

	for (size_t i = 0; i < ARRAY_SIZE(stops); i++) {
		struct control *c = started(false, 0, 0);
		int sig;

		NEED(event_of(c, stops[i], &sig) == CONTROL_STOP);
		kill(getpid(), stops[i]);
		control_finish(c);
		kill(getpid(), stops[i]);
		kill(getpid(), stops[i]);
		control_free(c);
	}
}

/* The program of run was ended by both, and heaptap had looked at one. (T10) */
static void same_signal_again_of_run(void)
{
	struct control *c = started(true, 0, 0);
	int sig;

	NEED(event_of(c, SIGINT, &sig) == CONTROL_SIGNAL);
	control_finish(c);
	kill(getpid(), SIGINT);
	control_free(c);
	c = started(true, 0, 0);
	kill(getpid(), SIGTERM);
	control_finish(c);
	kill(getpid(), SIGTERM);
	control_free(c);
}

/* Ctrl-C has ended the program before heaptap looked at its own signals: the report must still come. */
static void interrupt_that_was_the_programs(void)
{
	int master = own_terminal();
	struct control *c = started(true, 0, 0);
	sigset_t pending;

	NEED(write(master, "\003", 1) == 1);
	do
		NEED(sigpending(&pending) == 0);
	while (!sigismember(&pending, SIGINT));
	control_finish(c);
	control_free(c);
}

static void interrupt_during_report_of_run(void)
{
	struct control *c = started(true, 0, 0);

	control_finish(c);
	kill(getpid(), SIGINT);
	_exit(2);
}

/* The calls of tell_sleep(), in memory that processes share. */
static struct {
	u32 nr_asleep, nr_awake;
} * told_sleep;

static void tell_sleep(void *ctx, bool is_asleep)
{
	NEED(ctx == told_sleep);
	told_sleep->nr_asleep += is_asleep;
	told_sleep->nr_awake += !is_asleep;
}

/* A process group of its own, whose parent is in another one of its session: there the kernel stops by SIGTSTP. */
static void be_stopped(void)
{
	struct control *c = started(false, 0, 0);
	int sig;

	NEED(!setpgid(0, 0));
	control_at_sleep(c, tell_sleep, told_sleep);
	NEED(event_of(c, SIGTSTP, &sig) == CONTROL_NONE);
	NEED(event_of(c, SIGTERM, &sig) == CONTROL_STOP);
	control_finish(c);
	NEED(raise(SIGTSTP) == 0);
	control_free(c);
}

/* Ctrl-Z stops heaptap, and processes that it traces know it before: also with its own signals blocked. */
static void test_sleep(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	told_sleep =
		mmap(NULL, sizeof(*told_sleep), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(told_sleep != MAP_FAILED);
	pid = fork();
	if (!pid) {
		alarm(HANG_S);
		be_stopped();
		_exit(0);
	}
	for (u32 i = 0; i < 2; i++) { /* the second time while it finishes */
		assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
		assert_true(WIFSTOPPED(status));
		assert_int_equal(WSTOPSIG(status), SIGTSTP);
		assert_int_equal(told_sleep->nr_asleep, 1);
		assert_int_equal(told_sleep->nr_awake, i);
		assert_int_equal(kill(pid, SIGCONT), 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(munmap(told_sleep, sizeof(*told_sleep)), 0);
}

static void test_events(void **state)
{
	static void (*const all[])(void) = {
		attach_signals,
		pending_stop,
		run_signals,
		cpu_limit,
		cpu_limit_is_hard,
		run_terminal_signals,
		attach_terminal_signals,
		clocks,
		clocks_before_tracing,
		clock_under_signals,
		source_wakes,
		interrupt_that_was_the_programs,
		same_signal_again,
		same_signal_again_of_run,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_int_equal(in_child(all[i]), 0);
}

static void test_leaves_at_once(void **state)
{
	static void (*const all[])(void) = { second_interrupt, interrupt_after_another_signal,
					     interrupt_during_report_of_run };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		int status = in_child(all[i]);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGINT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_sleep),
		cmocka_unit_test(test_leaves_at_once),
		cmocka_unit_test(test_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
