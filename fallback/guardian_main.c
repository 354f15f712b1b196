/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process of the guardian: events of the targets, commands of heaptap, and the end of heaptap. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "arch/regs.h"
#include "arch/thread_call.h"
#include "fallback/cfi_table.h"
#include "fallback/guardian_private.h"
#include "fallback/ring.h"
#include "fallback/tracer_change.h"
#include "user/lib/array.h"
#include "user/lib/helper_process.h"
#include "user/lib/passed_fds.h"
#include "user/lib/privileges.h"

enum { RETRY_US = 10000 };

struct guarded {
	struct guardian_start start;
	struct tracer *tracer;
	struct tracer_map *maps; /* owned; a list that is not complete yet */
	u32 nr_maps, max_maps;
	bool is_over;
	/* The message that is being handled: */
	struct guardian_command command;
	_Alignas(8) u8 data[COMMAND_MAX_DATA];
	size_t len; /* of its data */
	int fd;	    /* that came with the message, -1 = none */
	struct arch_regs regs;
	struct thread_request request;
	struct iovec more;	   /* of the answer, borrowed; length 0 = nothing */
	struct call_losses beyond; /* of processes beyond those of the state; nobody reads them */
};

/* Static, because signal handlers set it. */
static volatile sig_atomic_t has_mail;
static volatile sig_atomic_t is_out_of_time;

/*
 * A message has come, or heaptap has ended. A signal between the look at has_mail and the wait would be lost: so the
 * timer repeats it until the message is taken.
 */
static void on_mail(int sig)
{
	const struct itimerval again = { { 0, RETRY_US }, { 0, RETRY_US } };

	(void)sig;
	has_mail = 1;
	setitimer(ITIMER_REAL, &again, NULL);
}

static void on_timer(int sig)
{
	(void)sig;
	has_mail = 1;
}

static void on_cpu_limit(int sig)
{
	is_out_of_time = 1;
	on_mail(sig);
}

static bool guardian_main_record(void *ctx, const void *rec, size_t len, bool is_urgent)
{
	struct guarded *g = ctx;

	return ring_put(g->start.ring, rec, len, is_urgent);
}

static struct call_losses *guardian_main_losses(void *ctx, pid_t pid)
{
	struct guarded *g = ctx;
	struct guardian_state *s = g->start.state;
	u32 nr = s->nr_processes;

	for (u32 i = 0; i < nr; i++) {
		if (s->processes[i].pid != pid)
			continue;
		/* The PID was reused. */
		memset(&s->processes[i].losses, 0, sizeof(s->processes[i].losses));
		return &s->processes[i].losses;
	}
	if (nr == GUARDIAN_MAX_PROCESSES)
		return &g->beyond;
	s->processes[nr].pid = pid;
	__atomic_store_n(&s->nr_processes, nr + 1, __ATOMIC_RELEASE);
	return &s->processes[nr].losses;
}

/* Change the state that heaptap looks at now and then. */
static void set_state(s32 *field, s32 value)
{
	__atomic_store_n(field, value, __ATOMIC_RELEASE);
}

static void guardian_main_launched(void *ctx, pid_t pid)
{
	struct guarded *g = ctx;

	set_state(&g->start.state->launched_pid, pid);
}

static bool guardian_main_exiting(void *ctx, pid_t pid, int status)
{
	struct guarded *g = ctx;
	struct guardian_state *s = g->start.state;

	for (u32 i = 0; i < s->nr_processes; i++) {
		if (s->processes[i].pid != pid)
			continue;
		s->processes[i].exit_status = status;
		__atomic_store_n(&s->processes[i].is_exiting, 1, __ATOMIC_RELEASE);
		__atomic_add_fetch(&s->nr_exiting, 1, __ATOMIC_RELEASE);
		ring_wake(g->start.ring);
		return true;
	}
	return false;
}

static bool guardian_main_is_unseen(void *ctx, pid_t pid)
{
	struct guarded *g = ctx;
	struct guardian_state *s = g->start.state;
	u32 told = 1;

	for (u32 i = 0; i < s->nr_processes; i++) {
		if (s->processes[i].pid != pid ||
		    !__atomic_compare_exchange_n(&s->processes[i].is_exiting, &told, 0, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		__atomic_sub_fetch(&s->nr_exiting, 1, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

static void guardian_main_ended(void *ctx, pid_t pid, int status)
{
	struct guarded *g = ctx;

	(void)status;
	set_state(&g->start.state->ended_pid, pid);
}

static int do_attach(struct guarded *g)
{
	return tracer_attach(g->tracer, g->command.pid);
}

static int do_launch(struct guarded *g)
{
	return tracer_launch(g->tracer, g->command.pid);
}

static int do_start(struct guarded *g)
{
	tracer_start(g->tracer, g->command.pid);
	return 0;
}

static int do_probes(struct guarded *g)
{
	return tracer_set_probes(g->tracer, g->command.first, (const void *)g->data,
				 (u32)(g->len / sizeof(struct call_probe)));
}

static int do_notes(struct guarded *g)
{
	return tracer_set_notes(g->tracer, g->command.first, (const void *)g->data,
				(u32)(g->len / sizeof(struct note_probe)));
}

static int do_places(struct guarded *g)
{
	return tracer_add_places(g->tracer, g->command.pid, (const void *)g->data,
				 (u32)(g->len / sizeof(struct place)), &g->command.first);
}

static int do_remove(struct guarded *g)
{
	tracer_remove_places(g->tracer, g->command.pid, g->command.start, g->command.end);
	return 0;
}

/* Tables stay for as long as the guardian lives. */
static int do_table(struct guarded *g)
{
	struct command_table table;
	size_t bytes;
	void *rows;

	if (g->len != sizeof(table) || g->fd < 0)
		return -EPROTO;
	memcpy(&table, g->data, sizeof(table));
	bytes = table.nr_rows * sizeof(struct cfi_row);
	rows = mmap(NULL, bytes, PROT_READ, MAP_SHARED, g->fd, 0);
	if (rows == MAP_FAILED)
		return -errno;
	return tracer_set_table(g->tracer, table.id, table.machine, table.word_size, table.text_base, rows,
				table.nr_rows);
}

static int do_maps(struct guarded *g)
{
	u32 nr = (u32)(g->len / sizeof(*g->maps));
	int err;

	if (!g->command.first)
		g->nr_maps = 0;
	err = array_reserve(g->maps, g->max_maps, g->nr_maps + nr);
	if (err)
		return err;
	if (nr)
		memcpy(g->maps + g->nr_maps, g->data, nr * sizeof(*g->maps));
	g->nr_maps += nr;
	return g->command.is_last ? tracer_set_maps(g->tracer, g->command.pid, g->maps, g->nr_maps) : 0;
}

static int do_open(struct guarded *g)
{
	tracer_open(g->tracer, g->command.pid);
	return 0;
}

static int do_pause(struct guarded *g)
{
	tracer_pause(g->tracer, g->command.pid, g->command.start != 0);
	return 0;
}

static int do_answered(struct guarded *g)
{
	tracer_answered(g->tracer, g->command.pid);
	return 0;
}

static int do_let_end(struct guarded *g)
{
	struct guardian_state *s = g->start.state;

	for (u32 i = 0; i < s->nr_processes; i++) {
		if (s->processes[i].pid != g->command.pid || !s->processes[i].is_exiting)
			continue;
		__atomic_store_n(&s->processes[i].is_exiting, 0, __ATOMIC_RELEASE);
		__atomic_sub_fetch(&s->nr_exiting, 1, __ATOMIC_RELEASE);
	}
	tracer_let_end(g->tracer, g->command.pid);
	return 0;
}

static int do_hold(struct guarded *g)
{
	return tracer_hold(g->tracer, g->command.pid, g->command.start);
}

static int do_release(struct guarded *g)
{
	tracer_release(g->tracer, g->command.pid);
	return 0;
}

static int do_regs(struct guarded *g)
{
	int err = tracer_regs(g->tracer, g->command.pid, &g->regs);

	if (!err)
		g->more = (struct iovec){ &g->regs, sizeof(g->regs) };
	return err;
}

static int do_call(struct guarded *g)
{
	int err = -EPROTO;

	if (g->len != sizeof(g->request))
		return err;
	memcpy(&g->request, g->data, sizeof(g->request));
	err = tracer_call(g->tracer, g->command.pid, &g->request);
	if (!err)
		g->more = (struct iovec){ &g->request, sizeof(g->request) };
	return err;
}

static int do_check(struct guarded *g)
{
	tracer_check(g->tracer, g->command.pid);
	return 0;
}

static int do_try(struct guarded *g)
{
	return tracer_try(g->tracer, g->command.pid, g->command.start, g->command.end);
}

static int do_change(struct guarded *g)
{
	return tracer_change(g->tracer, g->command.pid, g->fd);
}

static int do_number(struct guarded *g)
{
	tracer_number(g->tracer, g->command.pid, g->command.start);
	return 0;
}

static int do_forget_stacks(struct guarded *g)
{
	tracer_forget_stacks(g->tracer);
	return 0;
}

static int do_depth(struct guarded *g)
{
	tracer_set_depth(g->tracer, (u32)g->command.start);
	return 0;
}

static int do_sample(struct guarded *g)
{
	tracer_set_sample(g->tracer, g->command.start);
	return 0;
}

static int do_detach(struct guarded *g)
{
	tracer_detach(g->tracer, g->command.pid);
	return 0;
}

static int (*const commands[NR_COMMANDS])(struct guarded *g) = {
	[COMMAND_ATTACH] = do_attach,
	[COMMAND_LAUNCH] = do_launch,
	[COMMAND_START] = do_start,
	[COMMAND_PROBES] = do_probes,
	[COMMAND_NOTES] = do_notes,
	[COMMAND_PLACES] = do_places,
	[COMMAND_REMOVE] = do_remove,
	[COMMAND_TABLE] = do_table,
	[COMMAND_MAPS] = do_maps,
	[COMMAND_OPEN] = do_open,
	[COMMAND_PAUSE] = do_pause,
	[COMMAND_ANSWERED] = do_answered,
	[COMMAND_LET_END] = do_let_end,
	[COMMAND_HOLD] = do_hold,
	[COMMAND_RELEASE] = do_release,
	[COMMAND_REGS] = do_regs,
	[COMMAND_DETACH] = do_detach,
	[COMMAND_FORGET_STACKS] = do_forget_stacks,
	[COMMAND_DEPTH] = do_depth,
	[COMMAND_CHECK] = do_check,
	[COMMAND_CALL] = do_call,
	[COMMAND_TRY] = IS_AGENT ? NULL : do_try,
	[COMMAND_CHANGE] = IS_AGENT ? NULL : do_change,
	[COMMAND_NUMBER] = IS_AGENT ? NULL : do_number,
	[COMMAND_SAMPLE] = IS_AGENT ? NULL : do_sample,
};

/* Take the next message: 1, 0 if no message has come, -EPIPE when heaptap has ended. */
static int guardian_main_take_message(struct guarded *g)
{
	struct iovec iov[2] = { { &g->command, sizeof(g->command) }, { g->data, sizeof(g->data) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	union passed_fds room;
	ssize_t nr;

	passed_fds_expect(&msg, &room);
	nr = recvmsg(g->start.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (nr < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (nr < (ssize_t)sizeof(g->command))
		return -EPIPE;
	g->len = (size_t)nr - sizeof(g->command);
	passed_fds_take(&msg, &g->fd, 1);
	return 1;
}

static void guardian_main_answer(struct guarded *g)
{
	struct iovec iov[2] = { { &g->command, sizeof(g->command) }, g->more };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = g->more.iov_len ? 2 : 1 };

	/* If heaptap has ended, the next look at the socket shows that. */
	if (sendmsg(g->start.fd, &msg, MSG_NOSIGNAL) < 0)
		return;
}

static void read_mail(struct guarded *g)
{
	const struct itimerval never = { 0 };
	int nr = 1;

	has_mail = 0;
	setitimer(ITIMER_REAL, &never, NULL);
	while ((nr = guardian_main_take_message(g)) == 1) {
		g->more.iov_len = 0;
		g->command.result = g->command.op < NR_COMMANDS ? commands[g->command.op](g) : -EPROTO;
		if (g->fd >= 0)
			close(g->fd);
		guardian_main_answer(g);
	}
	g->is_over = nr < 0 || is_out_of_time;
	/* The timer may be the tracer's, too. */
	tracer_rearm(g->tracer);
}

/*
 * At the limit of CPU time the kernel kills the guardian, and then its targets end at their breakpoints. Where the
 * limit cannot be lifted, stop tracing a second before.
 */
static void lift_cpu_limit(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct sigaction out_of_time = { .sa_handler = on_cpu_limit };

	if (!setrlimit(RLIMIT_CPU, &limit) || getrlimit(RLIMIT_CPU, &limit) ||
	    limit.rlim_max == RLIM_INFINITY)
		return;
	sigaction(SIGXCPU, &out_of_time, NULL);
	limit.rlim_cur = limit.rlim_max > 2 ? limit.rlim_max - 1 : 1;
	setrlimit(RLIMIT_CPU, &limit);
}

/* Keep the guardian in memory, and away from the OOM killer. A refusal is no reason to give up. */
static void guardian_main_protect(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!(write(fd, "-1000", 5) < 0 && write(fd, "0", 1));
		close(fd);
	}
	/* MCL_FUTURE makes new mappings fail at the limit of locked memory, which root does not have. */
	mlockall(MCL_CURRENT | MCL_ONFAULT | (geteuid() ? 0 : MCL_FUTURE));
	setpriority(PRIO_PROCESS, 0, -5);
}

/* Take a session of its own, and no signals but those of messages and the timer. */
static void guardian_main_settle(int fd)
{
	const u32 usual = 1U << SIGCHLD | 1U << SIGSEGV | 1U << SIGBUS | 1U << SIGABRT;
	struct sigaction mail = { .sa_handler = on_mail }, timer = { .sa_handler = on_timer };
	sigset_t mask;

	setsid();
	helper_process_name("tracer-of-heapt");
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, sig < 32 && usual >> sig & 1 ? SIG_DFL : SIG_IGN);
	sigaction(SIGIO, &mail, NULL);
	sigaction(SIGALRM, &timer, NULL);
	prctl(PR_SET_PDEATHSIG, SIGIO);
	fcntl(fd, F_SETOWN, getpid());
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC);
	sigemptyset(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* Wait while no process is traced: only messages can come. */
static void wait_for_mail(const struct guarded *g)
{
	struct pollfd p = { .fd = g->start.fd, .events = POLLIN };

	if (poll(&p, 1, -1) >= 0 || errno == EINTR)
		has_mail = 1;
}

/* No process is traced any more, and the changer is next. */
static void guardian_main_outlive(const struct guardian_start *s)
{
	const struct tracer_changer *c = s->options.changer;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	*c->pid = getpid();
	__atomic_store_n(&s->state->outlives, 1, __ATOMIC_RELEASE);
	(void)!send(s->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	c->outlive(c->ctx, s->end, s->fd, false);
}

void guardian_main(const struct guardian_start *start)
{
	int fds[] = { ring_fd(start->ring), start->fd,
		      !IS_AGENT && start->options.changer ? start->options.changer->end : -1 };
	struct guarded *g = calloc(1, sizeof(*g));
	const struct tracer_host host = { g,
					  guardian_main_record,
					  guardian_main_losses,
					  guardian_main_launched,
					  guardian_main_exiting,
					  IS_AGENT ? NULL : guardian_main_is_unseen,
					  guardian_main_ended };

	if (!g)
		_exit(1);
	g->start = *start;
	helper_process_keep(fds, ARRAY_SIZE(fds) - IS_AGENT, true);
	ring_set_fd(start->ring, fds[0]);
	g->start.fd = fds[1];
	g->start.end = fds[2];
	guardian_main_settle(g->start.fd);
	if (tracer_new(&g->tracer, &start->options, &host))
		_exit(1);
	guardian_main_protect();
	lift_cpu_limit();
	privileges_drop(PRIVILEGES_GUARDING, 0);
	g->start.state->is_ready = 1;
	has_mail = 1;
	while (!g->is_over) {
		if (has_mail)
			read_mail(g);
		else if (tracer_wait(g->tracer) == -ECHILD)
			wait_for_mail(g);
	}
	if (!IS_AGENT)
		tracer_leave_changed(g->tracer);
	tracer_free(g->tracer);
	g->start.state->is_out_of_time = is_out_of_time;
	if (is_out_of_time)
		fprintf(stderr, "heaptap: the limit of CPU time (ulimit -t) is reached: tracing has ended\n");
	if (!IS_AGENT && g->start.options.changer)
		guardian_main_outlive(&g->start);
	_exit(0);
}
