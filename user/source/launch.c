/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that heaptap starts, from exec to its end. */
#include "user/source/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/cpu.h"
#include "arch/tracee.h"
#include "fallback/code_memory.h"
#include "arch/stop.h"
#include "fallback/tracer.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/own_tracer.h"
#include "user/lib/proc.h"
#include "user/lib/yama.h"
#include "user/source/launch_child.h"
#include "user/source/launch_private.h"
#include "user/source/launch_threads.h"
#include "user/source/source_tracer.h"

enum {
	PERMIT_NS = 500 * 1000 * 1000,
	ROUND_MS = 200, /* of launch_poll() */
};

/* Threads are watched too: the one that ends the process need not be the first. */
static const long trace_options =
	PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD;
static const long child_options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
/* While our breakpoint is in it: whoever has a copy of it must not run on without us. */
static const long start_options = PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK;

static bool is_starting(const struct launched *p)
{
	return p->program.state == PROGRAM_STARTING;
}

long launch_ptrace_options(const struct launch *l)
{
	return trace_options | (l->max_children ? child_options : 0);
}

long launch_joined_options(void)
{
	return trace_options | child_options;
}

static void set_options(const struct launch *l, pid_t pid, long more)
{
	ptrace(PTRACE_SETOPTIONS, pid, 0, launch_ptrace_options(l) | more);
}

/* Is there a start to follow? Not in a static program, nor in 32-bit ARM code, which BPF cannot trace. */
static bool find_start(struct launched *p)
{
	const struct cpu *cpu;
	bool is_32bit = false;

	places_fini(&p->places);
	if (cpu_of_thread(&cpu, p->pid) || cpu->machine == EM_ARM || proc_is_32bit(&is_32bit, p->pid))
		return false;
	places_init(&p->places, cpu, code_by_ptrace(p->pid));
	return program_find_entry(&p->program, p->pid, is_32bit);
}

/* The kernel forgets that at the breakpoint at the entry point. */
static void launch_warn_of_trap(pid_t pid)
{
	struct proc_status status;

	if (!proc_read_status(&status, pid) && status.signals_ignored >> (SIGTRAP - 1) & 1)
		warn("run: PID %d: it begins with SIGTRAP ignored, and has the default action of that signal here",
		     pid);
}

/* A new image is stopped at its first instruction. If its dynamic linker runs first, follow that to the entry point. */
static void new_image(const struct launch *l, struct launched *p)
{
	int err;

	program_set_state(&p->program, p->pid, PROGRAM_RUNNING);
	p->has_forked = false;
	p->blocks_trap = !IS_AGENT && stop_blocks(p->pid, SIGTRAP);
	l->hooks.exec(l->hooks.ctx, p->pid);
	l->hooks.mapped(l->hooks.ctx, p->pid);
	/*
	 * A child of a process that has joined would not survive our death with a breakpoint in it. There the programs
	 * stop it at the end of the dynamic linker's work.
	 */
	if (!launch_has_program(l) || !find_start(p)) {
		set_options(l, p->pid, 0);
		return;
	}
	if (!IS_AGENT)
		launch_warn_of_trap(p->pid);
	set_options(l, p->pid, start_options);
	err = program_follow_start(&p->program, &p->places, p->pid);
	if (err) {
		warn("run: cannot watch the start of PID %d: %s", p->pid, strerror(-err));
		set_options(l, p->pid, 0);
	}
}

bool launch_reached_entry(const struct launch *l, struct launched *p, pid_t tid, int sig)
{
	struct cpu_regs regs;
	taddr_t addr;
	int err;

	if (sig != SIGTRAP || !is_starting(p) || tid != p->pid || cpu_regs_read(&regs, tid) ||
	    !places_hit(&p->places, &regs, &addr))
		return false;
	places_clean(&p->places, &p->places.memory);
	if (!IS_AGENT && p->blocks_trap)
		stop_block(tid, SIGTRAP);
	err = cpu_regs_write(&regs, p->pid);
	if (err)
		warn("run: cannot set the program counter of PID %d: %s", p->pid, strerror(-err));
	program_set_state(&p->program, p->pid, PROGRAM_RUNNING);
	set_options(l, p->pid, 0);
	l->hooks.mapped(l->hooks.ctx, p->pid);
	return true;
}

/* The dynamic linker makes a system call: report new code before any of it can run. */
static void startup_syscall(const struct launch *l, struct launched *p)
{
	if (tracee_has_loaded(p->pid, &p->program.has_new_code))
		l->hooks.mapped(l->hooks.ctx, p->pid);
}

void launch_resume(const struct launched *p, pid_t tid, enum stop stop, int sig)
{
	stop_end(tid, stop, program_resume_request(&p->program, p->pid, tid), sig);
}

struct launched *launch_find(const struct launch *l, pid_t pid)
{
	for (size_t i = 0; i < l->nr; i++)
		if (l->processes[i]->pid == pid)
			return l->processes[i];
	return NULL;
}

bool launch_watches(const struct launch *l, pid_t pid)
{
	return launch_find(l, pid);
}

int launch_stop(struct launched *p, u64 max_ns)
{
	p->held = (struct stopped_threads){ .pid = p->pid, .by = STOP_BY_TRACER };
	return stop_all_begin(&p->held, clock_now_ns() + max_ns);
}

void launch_await_stops(const struct launched *p, enum stop_by by)
{
	struct stopped_threads s = { .pid = p->pid, .by = by };

	if (stop_all_begin(&s, clock_now_ns() + PROGRAM_EXIT_HOLD_NS) || stop_all_running(&s))
		debug("run: PID %d: not all threads are stopped", p->pid);
	stop_all_forget(&s);
}

/* Stopped threads stay so, because only launch_poll() handles their stops. */
int launch_hold(struct launch *l, pid_t pid, u64 max_ns)
{
	struct launched *p = launch_find(l, pid);
	int err;

	if (!p || launch_is_left(p))
		return p ? -EPERM : -ESRCH;
	if (p->held.nr)
		return 0;
	err = launch_stop(p, max_ns);
	if (!err && stop_all_running(&p->held)) {
		launch_release(l, pid);
		err = -ETIME;
	}
	return err;
}

/* launch_poll() handles all stops but those that launch_hold() has asked for. */
void launch_release(struct launch *l, pid_t pid)
{
	struct launched *p = launch_find(l, pid);

	if (!p || launch_is_left(p))
		return;
	p->held.first_request = program_resume_request(&p->program, pid, pid);
	stop_all_end(&p->held);
}

/*
 * A thread was killed, but not by a signal: another one ended the process, or executes a program. In the first case
 * wait for that one, so that all threads are stopped when the end is reported. Returns its TID, or 0. The tracer, which
 * has a list of its threads, handles other events meanwhile (WAIT_KILLER).
 */
static pid_t wait_for_exiting(struct launched *p)
{
	pid_t tid = launch_threads_exiting(p->pid, clock_now_ns() + PROGRAM_KILLER_NS);

	if (!tid)
		program_has_no_killer(&p->program);
	return tid;
}

/* Detach from a copy that the program made of itself. vfork and posix_spawn make no copy, and do not get here. */
static void detach_copy(const struct launched *p, pid_t pid)
{
	const struct cpu_memory memory = code_by_ptrace(pid);

	places_clean(&p->places, &memory);
	ptrace(PTRACE_SETOPTIONS, pid, 0, 0);
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

/* Thread @tid is about to end; does the whole process end with it, its memory still there? */
static void thread_ends(const struct launch *l, struct launched *p, pid_t tid)
{
	enum program_exit kind;
	int status;

	if (!program_is_alive(&p->program) || !launch_threads_have(p->pid, tid) ||
	    program_exit_status(tid, &status))
		return;
	kind = program_exit_kind(&p->program, tid, status, launch_threads_count(p->pid) <= 1);
	if (kind == PROGRAM_EXIT_KILLED)
		tid = wait_for_exiting(p);
	if (kind == PROGRAM_EXIT_THREAD || !tid || program_exit_status(tid, &status))
		return;
	program_set_state(&p->program, p->pid, PROGRAM_AT_END);
	/* The other threads are on their way to their ends. */
	launch_await_stops(p, STOP_BY_ITSELF);
	l->hooks.exiting(l->hooks.ctx, p->pid, status);
	program_set_state(&p->program, p->pid, PROGRAM_ENDING);
}

/*
 * The programs stop a thread that has changed the mappings by a SIGCHLD or a SIGSTOP of the kernel's
 * (bpf/heaptap.bpf.c, maps_changed). Real ones have another si_code: that of the child, or of their sender.
 */
bool launch_is_from_probe(pid_t tid, int sig)
{
	return (sig == SIGCHLD || sig == SIGSTOP) && stop_code(tid) == SI_KERNEL;
}

bool launch_mends_copy(const struct launch *l, const struct launched *p, pid_t tid, int sig)
{
	return sig == SIGTRAP && l->hooks.trapped && stop_code(tid) > 0 &&
	       l->hooks.trapped(l->hooks.ctx, p->pid, tid);
}

int launch_add(struct launch *l, pid_t pid, struct launched **out)
{
	struct launched *p = array_extend(l->processes, l->nr) ? NULL : calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	l->processes[l->nr++] = p;
	p->pid = pid;
	places_init(&p->places, NULL, code_by_ptrace(pid));
	*out = p;
	return 0;
}

static void free_process(struct launched *p)
{
	places_fini(&p->places);
	stop_all_forget(&p->held);
	free(p);
}

void launch_forget_last(struct launch *l)
{
	free_process(l->processes[--l->nr]);
}

/* Watch child @pid of @parent (NULL = not known), too. It may have a copy of the breakpoint. */
static int launch_add_child(struct launch *l, pid_t pid, const struct launched *parent, struct launched **out)
{
	struct launched *p;
	int err = l->nr > l->max_children ? -ENOSPC : launch_add(l, pid, &p);

	if (err)
		return err;
	*out = p;
	if (!parent)
		return 0;
	p->places.cpu = parent->places.cpu;
	err = program_copy(&p->program, &p->places, pid, &parent->program, &parent->places);
	if (err)
		launch_forget_last(l);
	return err;
}

/*
 * A child that @parent (NULL = not known) has made is stopped before its first instruction. The tracer adopts a child
 * when the parent reports it, because that record must come before those of the child. Here BPF records the birth.
 */
static struct launched *launch_adopt(struct launch *l, pid_t pid, const struct launched *parent)
{
	struct launched *p;

	l->nr_unborn--;
	if (!launch_add_child(l, pid, parent, &p)) {
		p->is_newborn = true;
		return p;
	}
	if (parent && (is_starting(parent) || parent->has_forked))
		detach_copy(parent, pid);
	else
		ptrace(PTRACE_DETACH, pid, 0, 0);
	return NULL;
}

/* The process of thread @tid, which is stopped; NULL if it was detached. */
static struct launched *launch_process_of(struct launch *l, pid_t tid)
{
	struct proc_status status;
	struct launched *p;

	if (!l->max_children)
		return l->processes[0];
	p = launch_find(l, tid);
	if (p || proc_read_status(&status, tid))
		return p ? p : launch_program(l);
	p = launch_find(l, status.tgid);
	return p || status.tgid != tid ? p : launch_adopt(l, tid, launch_find(l, status.ppid));
}

static void handle_signal(struct launch *l, struct launched *p, pid_t tid, int sig)
{
	struct thread_stop why = { .why = THREAD_STOP_LOOK };

	if (launch_reached_entry(l, p, tid, sig) || launch_mends_copy(l, p, tid, sig)) {
		/* One of the program's own that waited, because it is blocked, waits again. */
		sig = IS_AGENT || !p->blocks_trap || stop_code(tid) > 0 ? 0 : sig;
	} else if (launch_is_from_probe(tid, sig)) {
		if (l->hooks.reason)
			why = l->hooks.reason(l->hooks.ctx, tid);
		if (why.why != THREAD_STOP_LOOK) {
			launch_stopped_for(l, p, tid, &why);
			return;
		}
		l->hooks.mapped(l->hooks.ctx, p->pid);
		/* The dynamic linker has a probe, which stops it again when all is mapped, before any of that runs. */
		p->program.is_told = true;
		sig = 0;
	}
	launch_resume(p, tid, STOP_SIGNAL, sig);
}

void launch_note_birth(struct launch *l, pid_t tid)
{
	struct proc_status status;
	unsigned long pid;

	if (l->max_children && !ptrace(PTRACE_GETEVENTMSG, tid, 0, &pid) &&
	    !proc_read_status(&status, (pid_t)pid) && status.tgid == (pid_t)pid)
		l->nr_unborn++;
}

/* One ptrace stop of thread @tid. */
static void handle_stop(struct launch *l, pid_t tid, int status)
{
	struct launched *p = launch_process_of(l, tid);

	if (!p)
		return;
	switch (stop_of(status)) {
	case STOP_EXEC:
		if (tid != p->pid) { /* a clone that is no thread */
			ptrace(PTRACE_DETACH, tid, 0, 0);
			return;
		}
		new_image(l, p);
		break;
	case STOP_CHILD:
		/* Threads, and processes that share the memory, are reported as clones. */
		p->has_forked |= status >> 16 == PTRACE_EVENT_FORK && is_starting(p);
		launch_note_birth(l, tid);
		break;
	case STOP_VFORK:
		launch_note_birth(l, tid);
		break;
	case STOP_EXIT:
		thread_ends(l, p, tid);
		break;
	case STOP_GROUP:
		ptrace(PTRACE_LISTEN, tid, 0, 0);
		return;
	case STOP_ASKED:
		if ((is_starting(p) || p->has_forked) && !launch_threads_have(p->pid, tid)) {
			detach_copy(p, tid);
			return;
		}
		if (p->is_newborn && l->hooks.born)
			l->hooks.born(l->hooks.ctx, p->pid);
		p->is_newborn = false;
		break;
	case STOP_SYSCALL:
		startup_syscall(l, p);
		break;
	case STOP_TRAP:
	case STOP_SIGNAL:
		handle_signal(l, p, tid, stop_signal(status));
		return;
	default:
		break;
	}
	launch_resume(p, tid, stop_of(status), 0);
}

/* The child has ended before its exec: why. */
static int read_failure(struct launch *l, int status, int report, struct launch_failure *f)
{
	l->has_ended = true;
	l->status = status;
	return read(report, f, sizeof(*f)) == sizeof(*f) ? f->err : -ECHILD;
}

/* Like wait_for_exec(), for a program that the source traces. */
static int wait_for_tracer(struct launch *l, int report, struct launch_failure *f)
{
	int status, is_launched;

	while (!(is_launched = l->tracer->is_launched(l->source, l->pid))) {
		if (waitpid(l->pid, &status, __WALL | WNOHANG) == l->pid)
			return read_failure(l, status, report, f);
		clock_pause(LAUNCH_POLL_NS, UINT64_MAX);
	}
	if (is_launched < 0)
		return is_launched;
	l->hooks.exec(l->hooks.ctx, l->pid);
	l->hooks.mapped(l->hooks.ctx, l->pid);
	return 0;
}

/* Wait for the exec of the child, handling what comes before. 0, or @f says what went wrong. */
static int wait_for_exec(struct launch *l, int report, struct launch_failure *f)
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
			new_image(l, l->processes[0]);
			return 0;
		}
		handle_stop(l, l->pid, status);
	}
}

static int launch_seize(const struct launch *l)
{
	u64 end_ns = clock_now_ns() + PERMIT_NS;
	int err;

	/* The child may not have permitted it yet. */
	while (l->tracer) {
		err = l->tracer->launch(l->source, l->pid);
		if (err != -EPERM || !clock_pause(LAUNCH_POLL_NS, end_ns))
			return err;
	}
	return ptrace(PTRACE_SEIZE, l->pid, 0, trace_options | PTRACE_O_EXITKILL) ? -errno : 0;
}

static int fork_child(struct launch *l, const struct launch_options *options)
{
	struct launched *p;

	if (pipe2(l->go, O_CLOEXEC) || pipe2(l->report, O_CLOEXEC))
		return -errno;
	l->pid = fork();
	if (l->pid < 0)
		return -errno;
	if (!l->pid) {
		/* With a copy of our end of the pipe the child would wait for ever after our death. */
		close(l->go[1]);
		launch_child(options, l->go[0], l->report[1]);
	}
	close(l->report[1]);
	l->report[1] = -1;
	if (launch_add(l, l->pid, &p))
		return -ENOMEM;
	/* The end of the child before its exec is not reported. */
	program_set_state(&p->program, p->pid, PROGRAM_WAITING);
	return 0;
}

static void close_pair(int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	fds[0] = fds[1] = -1;
}

/* The program was not found in $PATH. @command is what was typed for it. */
static void complain_of_name(const char *command)
{
	if (!access(command, X_OK))
		error("run: %s: no such program in PATH; did you mean ./%s", command, command);
	else if (strchr(command, ' '))
		error("run: %s: no program has this name: type program and arguments without quotes",
		      command);
	else if (strchr(command, '='))
		error("run: %s: no such program in PATH; to set a variable, type: heaptap run env %s ...",
		      command, command);
	else
		error("run: %s: no such program in PATH; a file needs its path, such as ./program", command);
}

static void launch_complain(const struct launch_options *o, enum launch_step step, int err)
{
	const char *what[] = { [LAUNCH_USER] = o->user,
			       [LAUNCH_CWD] = o->cwd,
			       [LAUNCH_EXEC] = o->argv[0],
			       [LAUNCH_TRACE] = o->argv[0] };

	struct stat st;
	const char *why = strerror(-err);
	char text[192];

	if (step == LAUNCH_USER && err == -EINVAL)
		why = "unknown user";
	else if (step == LAUNCH_TRACE && err == -EPERM && yama_reason())
		why = yama_reason();
	else if (!IS_AGENT && step == LAUNCH_TRACE && err == -EPERM && own_tracer_reason(text, sizeof(text)))
		why = text;
	else if (step == LAUNCH_EXEC && err == -EACCES && !stat(o->argv[0], &st))
		why = S_ISDIR(st.st_mode) ? "is a directory"
					  : "Permission denied: is it executable (chmod +x)";
	else if (!IS_AGENT && step == LAUNCH_EXEC && err == -ENOENT && !strchr(o->argv[0], '/')) {
		complain_of_name(o->argv[0]);
		return;
	}
	error("run: %s: %s", what[step], why);
}

int launch_prepare(struct launch **out, const struct launch_options *options)
{
	struct launch *l = calloc(1, sizeof(*l));
	int err = -ENOMEM;

	if (l) {
		*l = (struct launch){ .go = { -1, -1 }, .report = { -1, -1 } };
		l->source = options->source;
		l->tracer = options->tracer;
		l->max_children = options->tracer ? 0 : options->max_children;
		err = fork_child(l, options);
	}
	if (err) {
		launch_complain(options, LAUNCH_EXEC, err);
		launch_free(l);
		return err;
	}
	*out = l;
	return 0;
}

int launch_begin(struct launch *l, const struct launch_options *options, const struct launch_hooks *hooks)
{
	struct launch_failure f;
	int err;

	l->hooks = *hooks;
	err = launch_seize(l);
	f = (struct launch_failure){ .step = err ? LAUNCH_TRACE : LAUNCH_EXEC };
	if (!err && write(l->go[1], "", 1) != 1)
		err = -errno;
	if (!err)
		err = l->tracer ? wait_for_tracer(l, l->report[0], &f) : wait_for_exec(l, l->report[0], &f);
	if (err)
		launch_complain(options, f.step, err);
	close_pair(l->go);
	close_pair(l->report);
	return err;
}

int launch_new(struct launch **out, const struct launch_options *options, const struct launch_hooks *hooks)
{
	int err = launch_prepare(out, options);

	if (err)
		return err;
	err = launch_begin(*out, options, hooks);
	if (err)
		launch_free(take_ptr(*out));
	return err;
}

void launch_start(struct launch *l)
{
	if (l->tracer)
		l->tracer->start(l->source, l->pid);
	else
		launch_resume(l->processes[0], l->pid, STOP_EXEC, 0);
}

pid_t launch_pid(const struct launch *l)
{
	return l->pid;
}

/* Take the status of the program, as its parent. */
static bool poll_end(struct launch *l)
{
	int status;

	if (!l->has_ended && waitpid(l->pid, &status, __WALL | WNOHANG) == l->pid) {
		l->has_ended = true;
		l->status = status;
	}
	return l->has_ended;
}

/* The source reports that the program is about to end, the kernel that it has ended. */
static bool poll_tracer(struct launch *l)
{
	int status;
	pid_t pid;

	while ((pid = l->tracer->exiting(l->source, &status))) {
		if (status == TRACER_LEAVES)
			l->hooks.leaving(l->hooks.ctx, pid, THREAD_STOP_UNTRACED);
		else
			l->hooks.exiting(l->hooks.ctx, pid, status);
		l->tracer->let_end(l->source, pid);
	}
	return poll_end(l);
}

/* A thread has ended: was it the last one of a child? */
static void child_ended(struct launch *l, pid_t pid, int status)
{
	for (size_t i = launch_first_child(l); i < l->nr; i++) {
		if (l->processes[i]->pid != pid)
			continue;
		free_process(l->processes[i]);
		l->processes[i] = l->processes[--l->nr];
		l->hooks.ended(l->hooks.ctx, pid, status);
		return;
	}
}

void launch_handle_status(struct launch *l, pid_t tid, int status)
{
	if (WIFSTOPPED(status)) {
		handle_stop(l, tid, status);
	} else if (tid == l->pid) {
		l->has_ended = true;
		l->status = status;
	} else {
		child_ended(l, tid, status);
	}
}

bool launch_poll(struct launch *l)
{
	u64 begun_ms = clock_now_ms();
	int status;
	pid_t tid;

	if (l->tracer)
		return poll_tracer(l);
	/* Stops of a program that was left belong to its new tracer, which may be our child. */
	if (launch_has_program(l) && l->nr == 1 && launch_is_left(l->processes[0]))
		return poll_end(l);
	launch_attend_later(l);
	while (clock_now_ms() - begun_ms < ROUND_MS && (tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
		launch_handle_status(l, tid, status);
	return launch_has_program(l) ? l->has_ended : !l->nr;
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
	/* A program that was not even started must be ended here. */
	if (launch_has_program(l) && !l->has_ended && l->nr &&
	    (is_starting(l->processes[0]) || l->go[1] >= 0)) {
		kill(l->pid, SIGKILL);
		waitpid(l->pid, NULL, __WALL);
	}
	launch_leave_children(l);
	while (l->nr)
		launch_forget_last(l);
	close_pair(l->go);
	close_pair(l->report);
	free(l->processes);
	free(l->later);
	free(l);
}
