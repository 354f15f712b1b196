/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that heaptap starts, from exec to its end. */
#include "user/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch/tracee.h"
#include "user/caps.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source.h"

/* What the child was at when it failed. */
enum step { STEP_USER, STEP_CWD, STEP_EXEC };

struct failure {
	enum step step;
	int err; /* -errno */
};

struct launch {
	pid_t pid;
	struct launch_hooks hooks;
	struct source *source;		    /* borrowed, as tracer */
	const struct source_tracer *tracer; /* NULL = we are */
	taddr_t entry;			    /* AT_ENTRY: where the dynamic linker hands over */
	long entry_code;		    /* the word under the breakpoint there */
	bool is_starting;		    /* the dynamic linker is still at work */
	bool has_forked;		    /* meanwhile: the copy has our breakpoint, too */
	bool has_new_code;		    /* it mapped code that nobody was told about */
	bool has_ended;
	bool is_exit_told;
	u64 futile_until_ns; /* killed threads are not waited with: the process executes another program */
	int status;
};

enum {
	HOLD_POLL_NS = 50 * 1000,
	KILLER_NS = 500 * 1000 * 1000, /* how long to wait for a thread that ends the process */
	FUTILE_NS = 1000 * 1000 * 1000,
	EXIT_HOLD_NS = 1000 * 1000 * 1000, /* and for the others to come to their ends */
};

/* Threads are watched too: the one that ends the process need not be the first. */
static const long trace_options =
	PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD;

/* Become @user; in the child. 0 or -errno. */
static int become(const char *user)
{
	const struct passwd *pw = getpwnam(user);

	if (!pw)
		return -EINVAL;
	if (initgroups(pw->pw_name, pw->pw_gid) || setgid(pw->pw_gid) || setuid(pw->pw_uid))
		return -errno;
	return 0;
}

/* The child between fork and exec: wait for the parent's word, then become the program. */
static void child(const struct launch_options *o, int go, int report)
{
	sigset_t none;
	struct failure f = { .step = STEP_USER };
	char c;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(go, &c, 1) != 1)
		_exit(127);
	caps_restore_limits();
	if (o->user)
		f.err = become(o->user);
	if (!f.err && o->cwd && chdir(o->cwd))
		f = (struct failure){ STEP_CWD, -errno };
	if (!f.err) {
		execvp(o->argv[0], o->argv);
		f = (struct failure){ STEP_EXEC, -errno };
	}
	if (write(report, &f, sizeof(f)) < 0)
		_exit(126);
	_exit(127);
}

static void set_entry_code(const struct launch *l, pid_t pid, long code)
{
	if (ptrace(PTRACE_POKETEXT, pid, l->entry, code))
		warn("run: cannot watch the start of PID %d: %s", pid, strerror(errno));
}

/*
 * A new image stands at its first instruction. A static program is ready; in others the dynamic
 * linker comes first, and is followed to the program's entry point.
 */
static void new_image(struct launch *l)
{
	bool is_32bit = false;
	u64 interp = 0;
	taddr_t pc;

	l->is_starting = false;
	l->has_forked = false;
	l->is_exit_told = false;
	l->hooks.exec(l->hooks.ctx, l->pid);
	l->hooks.mapped(l->hooks.ctx, l->pid);
	if (proc_is_32bit(&is_32bit, l->pid) || proc_auxv(&interp, l->pid, is_32bit, AT_BASE) || !interp ||
	    proc_auxv(&l->entry, l->pid, is_32bit, AT_ENTRY) || tracee_get_pc(l->pid, &pc)) {
		/*
		 * Static, or 32-bit ARM, for which our breakpoint is none: nothing more to wait for. EXITKILL
		 * is only for the time a breakpoint is in it.
		 */
		ptrace(PTRACE_SETOPTIONS, l->pid, 0, trace_options);
		return;
	}
	ptrace(PTRACE_SETOPTIONS, l->pid, 0, trace_options | PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK);
	errno = 0;
	l->entry_code = ptrace(PTRACE_PEEKTEXT, l->pid, l->entry, 0);
	if (errno) {
		warn("run: cannot read the entry point of PID %d: %s", l->pid, strerror(errno));
		return;
	}
	l->is_starting = true;
	l->has_new_code = false;
	set_entry_code(l, l->pid, tracee_breakpoint(l->entry_code));
}

/* If the program stands at our breakpoint, take it out. */
static bool reached_entry(struct launch *l)
{
	taddr_t pc;

	if (tracee_get_pc(l->pid, &pc) || pc != tracee_after_breakpoint(l->entry))
		return false;
	set_entry_code(l, l->pid, l->entry_code);
	if (tracee_set_pc(l->pid, l->entry))
		warn("run: cannot set the program counter of PID %d: %s", l->pid, strerror(errno));
	l->is_starting = false;
	ptrace(PTRACE_SETOPTIONS, l->pid, 0, trace_options);
	l->hooks.mapped(l->hooks.ctx, l->pid);
	return true;
}

/* The dynamic linker makes a system call: tell about new code before any of it can run. */
static void startup_syscall(struct launch *l)
{
	switch (tracee_call(l->pid)) {
	case TRACEE_CALL_MAPS_CODE:
		l->has_new_code = true;
		return;
	case TRACEE_CALL_LOADING:
		return;
	default:
		if (!l->has_new_code)
			return;
	}
	l->has_new_code = false;
	l->hooks.mapped(l->hooks.ctx, l->pid);
}

static void go_on(const struct launch *l, pid_t tid, int sig)
{
	int request = l->is_starting && tid == l->pid ? PTRACE_SYSCALL : PTRACE_CONT;

	ptrace(request, tid, 0, sig);
}

static u32 thread_count(pid_t pid)
{
	struct proc_stat stat;

	return proc_read_stat(&stat, pid) ? 0 : stat.nr_threads;
}

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Thread @tid stands in a stop, whether we have been told or not; EINVAL: a group stop has no siginfo. */
static bool stands(pid_t tid)
{
	siginfo_t si;

	return !ptrace(PTRACE_GETSIGINFO, tid, 0, &si) || errno == EINVAL;
}

static bool is_dead(pid_t tid)
{
	struct proc_stat stat;

	return proc_read_stat(&stat, tid) || stat.state == 'Z' || stat.state == 'X';
}

/* Threads of the program that do not stand; asked to stop if @is_asking. -errno. */
static int count_running(const struct launch *l, bool is_asking)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;
	int running = 0;
	int err = proc_threads(l->pid, &tids, &nr);

	for (size_t i = 0; !err && i < nr; i++) {
		if (stands(tids[i]) || is_dead(tids[i]))
			continue;
		running++;
		if (is_asking)
			ptrace(PTRACE_INTERRUPT, tids[i], 0, 0);
	}
	return err ? err : running;
}

/* Until all stand or @end_ns has come. 0, -ETIME or -errno. */
static int wait_until_all_stand(const struct launch *l, u64 end_ns, bool is_asking)
{
	const struct timespec pause = { .tv_nsec = HOLD_POLL_NS };
	int running;

	while ((running = count_running(l, is_asking)) > 0) {
		if (now_ns() >= end_ns)
			return -ETIME;
		nanosleep(&pause, NULL);
	}
	return running;
}

/* What stands stays so until launch_poll() takes note of it. */
int launch_hold(struct launch *l, u64 max_ns)
{
	int err = wait_until_all_stand(l, now_ns() + max_ns, true);

	if (err)
		launch_release(l);
	return err;
}

/* Those that only stood because they were asked to go on; what else happened to others is for launch_poll(). */
void launch_release(struct launch *l)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	if (proc_threads(l->pid, &tids, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		siginfo_t si = { .si_pid = 0 };
		int status;

		if (waitid(P_PID, tids[i], &si, WSTOPPED | WNOHANG | WNOWAIT | __WALL) || !si.si_pid ||
		    si.si_status != (PTRACE_EVENT_STOP << 8 | SIGTRAP))
			continue;
		if (waitpid(tids[i], &status, WNOHANG | __WALL) == tids[i])
			go_on(l, tids[i], 0);
	}
}

/* A thread that stands where it ends the whole process, or 0. */
static pid_t find_exiting(const struct launch *l)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	if (proc_threads(l->pid, &tids, &nr))
		return 0;
	for (size_t i = 0; i < nr; i++)
		if (stands(tids[i]) && tracee_call(tids[i]) == TRACEE_CALL_EXITS_ALL)
			return tids[i];
	return 0;
}

/*
 * A thread was killed though no signal did it: another one ended the process, or executes another program. In the first
 * case wait for that one, so that all of them still stand when the end is told. Its number, or 0.
 */
static pid_t wait_for_exiting(struct launch *l)
{
	const struct timespec pause = { .tv_nsec = HOLD_POLL_NS };
	u64 now = now_ns(), end_ns = now + KILLER_NS;
	pid_t tid = 0;

	if (now < l->futile_until_ns)
		return 0;
	while (!tid && now_ns() < end_ns) {
		tid = find_exiting(l);
		nanosleep(&pause, NULL);
	}
	if (!tid)
		l->futile_until_ns = now_ns() + FUTILE_NS;
	return tid;
}

/* Is it a thread of the program? Clones that are processes of their own are traced, too. */
static bool is_own_thread(const struct launch *l, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", l->pid, tid);
	return tid == l->pid || !access(path, F_OK);
}

/* Let go of a copy that the program made of itself. vfork and posix_spawn make none, and do not get here. */
static void let_go(const struct launch *l, pid_t pid)
{
	set_entry_code(l, pid, l->entry_code);
	ptrace(PTRACE_SETOPTIONS, pid, 0, 0);
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

/* Thread @tid is about to end; does the whole process end with it, its memory still there? */
static void thread_ends(struct launch *l, pid_t tid)
{
	enum tracee_call call = tracee_call(tid);
	unsigned long status = 0;

	if (l->is_exit_told || !is_own_thread(l, tid) || ptrace(PTRACE_GETEVENTMSG, tid, 0, &status))
		return;
	if (!WIFSIGNALED((int)status) && call != TRACEE_CALL_EXITS_ALL && thread_count(l->pid) > 1) {
		if (call == TRACEE_CALL_EXITS)
			return;
		tid = wait_for_exiting(l);
		if (!tid || ptrace(PTRACE_GETEVENTMSG, tid, 0, &status))
			return;
	}
	l->is_exit_told = true;
	/* The others are on their way to their ends. */
	if (wait_until_all_stand(l, now_ns() + EXIT_HOLD_NS, false))
		debug("run: PID %d: not all threads stand at its end", l->pid);
	l->hooks.exiting(l->hooks.ctx, l->pid, (int)status);
}

/*
 * The programs stop a thread that has changed the mappings by a SIGCHLD of the kernel's (bpf/heaptap.bpf.c,
 * maps_changed); real ones say what became of the child.
 */
static bool is_from_probe(pid_t tid)
{
	siginfo_t si;

	return !ptrace(PTRACE_GETSIGINFO, tid, 0, &si) && si.si_code == SI_KERNEL;
}

/* One ptrace stop of thread @tid. */
static void handle_stop(struct launch *l, pid_t tid, int status)
{
	int event = status >> 16;
	int sig = WSTOPSIG(status);

	switch (event) {
	case PTRACE_EVENT_EXEC:
		if (tid != l->pid) { /* a clone that is no thread */
			ptrace(PTRACE_DETACH, tid, 0, 0);
			return;
		}
		new_image(l);
		break;
	case PTRACE_EVENT_FORK:
		l->has_forked = true;
		break;
	case PTRACE_EVENT_EXIT:
		thread_ends(l, tid);
		break;
	case PTRACE_EVENT_STOP:
		if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU) {
			ptrace(PTRACE_LISTEN, tid, 0, 0);
			return;
		}
		if ((l->is_starting || l->has_forked) && !is_own_thread(l, tid)) {
			let_go(l, tid);
			return;
		}
		break;
	case 0:
		if (sig == (SIGTRAP | 0x80)) {
			startup_syscall(l);
			break;
		}
		if (sig == SIGTRAP && l->is_starting && tid == l->pid && reached_entry(l))
			break;
		if (sig == SIGCHLD && is_from_probe(tid)) {
			l->hooks.mapped(l->hooks.ctx, l->pid);
			break;
		}
		go_on(l, tid, sig);
		return;
	default:
		break;
	}
	go_on(l, tid, 0);
}

/* The child has ended before its exec: why. */
static int read_failure(struct launch *l, int status, int report, struct failure *f)
{
	l->has_ended = true;
	l->status = status;
	return read(report, f, sizeof(*f)) == sizeof(*f) ? f->err : -ECHILD;
}

/* The same when somebody else traces it. */
static int wait_for_tracer(struct launch *l, int report, struct failure *f)
{
	const struct timespec pause = { .tv_nsec = HOLD_POLL_NS };
	int status, is_launched;

	while (!(is_launched = l->tracer->is_launched(l->source, l->pid))) {
		if (waitpid(l->pid, &status, __WALL | WNOHANG) == l->pid)
			return read_failure(l, status, report, f);
		nanosleep(&pause, NULL);
	}
	if (is_launched < 0)
		return is_launched;
	l->hooks.exec(l->hooks.ctx, l->pid);
	l->hooks.mapped(l->hooks.ctx, l->pid);
	return 0;
}

/* Wait for the exec of the child, handling what comes before. 0, or @f says what went wrong. */
static int wait_for_exec(struct launch *l, int report, struct failure *f)
{
	int status;

	for (;;) {
		if (waitpid(l->pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (WIFEXITED(status) || WIFSIGNALED(status))
			return read_failure(l, status, report, f);
		if (status >> 16 == PTRACE_EVENT_EXEC) {
			new_image(l);
			return 0;
		}
		handle_stop(l, l->pid, status);
	}
}

static int seize(const struct launch *l)
{
	if (l->tracer)
		return l->tracer->launch(l->source, l->pid);
	return ptrace(PTRACE_SEIZE, l->pid, 0, trace_options | PTRACE_O_EXITKILL) ? -errno : 0;
}

static int fork_child(struct launch *l, const struct launch_options *options, int go[2], int report[2])
{
	int err;

	if (pipe2(go, O_CLOEXEC) || pipe2(report, O_CLOEXEC))
		return -errno;
	l->pid = fork();
	if (l->pid < 0)
		return -errno;
	if (!l->pid) {
		/* Its copy of our end would keep it waiting for ever if we went away. */
		close(go[1]);
		child(options, go[0], report[1]);
	}
	close(report[1]);
	report[1] = -1;
	err = seize(l);
	if (err)
		return err;
	return write(go[1], "", 1) == 1 ? 0 : -errno;
}

static void close_pair(int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void complain(const struct launch_options *o, enum step step, int err)
{
	const char *what[] = { [STEP_USER] = o->user, [STEP_CWD] = o->cwd, [STEP_EXEC] = o->argv[0] };

	error("run: %s: %s", what[step],
	      step == STEP_USER && err == -EINVAL ? "unknown user" : strerror(-err));
}

int launch_new(struct launch **out, const struct launch_options *options, const struct launch_hooks *hooks)
{
	struct launch *l = calloc(1, sizeof(*l));
	int go[2] = { -1, -1 }, report[2] = { -1, -1 };
	struct failure f = { .step = STEP_EXEC };
	int err = -ENOMEM;

	if (!l)
		goto undo_fds;
	l->hooks = *hooks;
	l->source = options->source;
	l->tracer = options->tracer;
	/* What ends before it is the program is nobody's business. */
	l->is_exit_told = true;
	err = fork_child(l, options, go, report);
	if (!err)
		err = l->tracer ? wait_for_tracer(l, report[0], &f) : wait_for_exec(l, report[0], &f);
	if (err) {
		complain(options, f.step, err);
		launch_free(l);
		goto undo_fds;
	}
	*out = l;
undo_fds:
	close_pair(go);
	close_pair(report);
	return err;
}

void launch_start(struct launch *l)
{
	if (l->tracer)
		l->tracer->start(l->source, l->pid);
	else
		go_on(l, l->pid, 0);
}

pid_t launch_pid(const struct launch *l)
{
	return l->pid;
}

/* Its tracer tells of its end, the kernel of what became of it. */
static bool poll_tracer(struct launch *l)
{
	int status;

	if (l->tracer->is_exiting(l->source, l->pid, &status)) {
		l->hooks.exiting(l->hooks.ctx, l->pid, status);
		l->tracer->let_end(l->source, l->pid);
	}
	if (!l->has_ended && waitpid(l->pid, &status, __WALL | WNOHANG) == l->pid) {
		l->has_ended = true;
		l->status = status;
	}
	return l->has_ended;
}

bool launch_poll(struct launch *l)
{
	int status;
	pid_t tid;

	if (l->tracer)
		return poll_tracer(l);

	while (!l->has_ended && (tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		if (WIFSTOPPED(status)) {
			handle_stop(l, tid, status);
		} else if (tid == l->pid) {
			l->has_ended = true;
			l->status = status;
		}
	}
	return l->has_ended;
}

int launch_status(const struct launch *l)
{
	return l->status;
}

void launch_signal(const struct launch *l, int sig)
{
	if (!l->has_ended)
		kill(l->pid, sig);
}

void launch_free(struct launch *l)
{
	if (!l)
		return;
	/* Not even started: nobody else would end it. */
	if (!l->has_ended && l->is_starting && l->pid > 0) {
		kill(l->pid, SIGKILL);
		waitpid(l->pid, NULL, __WALL);
	}
	free(l);
}
