/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Let a stopped thread of the target carry out a system call. */
#include "arch/thread_call.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/regs.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/maps.h"
#include "user/lib/proc.h"
#include "user/lib/proc_memory.h"

/* Newer than some of the headers that heaptap builds with. */
#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21) /* Linux 4.3 */
#endif
#define GET_SYSCALL_INFO       0x420e /* Linux 5.3 */
#define GET_RSEQ_CONFIGURATION 0x420f /* Linux 5.13 */

enum {
	MAX_CODE = 1 << 20,    /* bytes that are searched; a vDSO has less */
	MAX_STOPS = 64,	       /* of one call: entry, end, a new process, signals */
	CALL_STOP_FLAG = 0x80, /* of PTRACE_O_TRACESYSGOOD */
	SECCOMP_NONE = 0,
	NO_CALL = -1,
	LOOK_NS = 1000 * 1000,
	NR_QUICK_LOOKS = 1000,
};

/* For a thread to come to its call: on a busy machine it waits for a CPU. */
#define ENTRY_NS (3 * 1000 * 1000 * 1000ULL)

/* struct ptrace_rseq_configuration and struct rseq_cs of the kernel. */
struct rseq_configuration {
	u64 addr;
	u32 size, signature, flags, pad;
};
struct rseq_section {
	u32 version, flags;
	u64 start, length, abort;
};

/* Read the code of @tid in [start, end), owned by the caller. Its length, -ENOENT, or -errno. */
static ssize_t read_code(u8 **out, pid_t tid, taddr_t start, taddr_t end)
{
	u64 len = end - start < MAX_CODE ? end - start : MAX_CODE;
	auto_free u8 *code = malloc(len);
	struct proc_memory memory;
	ssize_t nr;
	int err;

	if (!code)
		return -ENOMEM;
	err = proc_memory_open(&memory, tid);
	if (err)
		return err;
	nr = proc_memory_read(&memory, start, code, len);
	proc_memory_close(&memory);
	if (nr <= 0)
		return -ENOENT;
	*out = take_ptr(code);
	return nr;
}

int thread_call_find_in(taddr_t *insn, pid_t tid, taddr_t start, taddr_t end)
{
	auto_free u8 *code = NULL;
	ssize_t nr = read_code(&code, tid, start, end);
	size_t at;
	int err = nr < 0 ? (int)nr : inject_find(code, (size_t)nr, &at);

	if (!err)
		*insn = start + at;
	return err;
}

int thread_call_find_way_back(struct inject_way_back *back, pid_t tid, taddr_t start, taddr_t end)
{
	auto_free u8 *code = NULL;
	ssize_t nr = read_code(&code, tid, start, end);

	if (nr < 0)
		return (int)nr;
	return inject_find_way_back(back, start, code, (size_t)nr) ? 0 : -ENOENT;
}

/*
 * Is the thread inside a restartable sequence? Such code must begin again when it was interrupted, which the kernel
 * sees by the program counter: another one would hide the interruption. A thread whose sequences the kernel cannot look
 * up gets SIGSEGV, so memory that is not there is that of the program before an exec which has not ended yet.
 */
static bool is_in_sequence(pid_t tid, taddr_t pc)
{
	struct rseq_configuration rseq = { 0 };
	struct rseq_section section = { 0 };
	struct proc_memory memory;
	u64 addr = 0;
	bool is_read;

	if (ptrace(GET_RSEQ_CONFIGURATION, tid, sizeof(rseq), &rseq) < 0 || !rseq.addr)
		return false;
	if (proc_memory_open(&memory, tid))
		return true;
	/* The second word is the address of the section, 0 outside of all. */
	is_read = proc_memory_read(&memory, rseq.addr + 8, &addr, sizeof(addr)) == sizeof(addr) &&
		  (!addr || proc_memory_read(&memory, addr, &section, sizeof(section)) == sizeof(section));
	proc_memory_close(&memory);
	return is_read && addr && pc - section.start < section.length;
}

static int set_options(pid_t tid)
{
	unsigned long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
	struct proc_status status;
	int err = proc_read_status(&status, tid);

	if (err)
		return err;
	if (status.seccomp != SECCOMP_NONE)
		options |= PTRACE_O_SUSPEND_SECCOMP;
	if (ptrace(PTRACE_SETOPTIONS, tid, 0, options) == 0)
		return 0;
	return errno == ESRCH ? -ESRCH : -EPERM;
}

/* The vDSO is elsewhere after an exec. */
static bool is_call_insn(pid_t tid, taddr_t insn)
{
	long word;
	size_t at;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, tid, insn, 0);
	return !errno && !inject_find((const u8 *)&word, sizeof(word), &at) && at == 0;
}

/* The place of a stop with regard to system calls. Numbers as in struct ptrace_syscall_info of the kernel. */
enum call_stop { STOP_ELSEWHERE, STOP_AT_ENTRY, STOP_AT_EXIT };

/* Ask the kernel for the place where @tid has stopped. False before Linux 5.3. */
static bool ask_place(pid_t tid, enum call_stop *out)
{
	u64 info[16] = { 0 };

	if (ptrace((int)GET_SYSCALL_INFO, tid, sizeof(info), info) <= 0)
		return false;
	*out = (enum call_stop) * (const u8 *)info;
	return true;
}

/* A kernel answers by EIO to requests that it does not know. */
static int get_mask(struct thread_call *c)
{
	if (!ptrace(PTRACE_GETSIGMASK, c->tid, sizeof(c->mask), &c->mask))
		return 0;
	return errno == EIO ? -ENOTTY : -errno;
}

const char *thread_call_reason(int err)
{
	return err == -ENOTTY ? NO_SIGNAL_MASK : strerror(-err);
}

static int block_signals(struct thread_call *c)
{
	u64 all = UINT64_MAX;
	int err = get_mask(c);

	return !err && ptrace(PTRACE_SETSIGMASK, c->tid, sizeof(all), &all) ? -errno : err;
}

/* Let the thread run until its next stop. 0 and its status, or -ESRCH. */
static int next_stop(const struct thread_call *c, long request, int *status)
{
	pid_t pid;

	if (ptrace((int)request, c->tid, 0, 0))
		return -ESRCH;
	do
		pid = waitpid(c->tid, status, __WALL);
	while (pid < 0 && errno == EINTR);
	return pid == c->tid && WIFSTOPPED(*status) ? 0 : -ESRCH;
}

/*
 * Let the thread run by @request up to its next stop, which comes soon. -ETIME: it does not run (a frozen control
 * group), has stopped where it was, and will make no call.
 */
static int early_stop(const struct thread_call *c, long request, int *status)
{
	u64 end_ns = clock_now_ns() + ENTRY_NS;
	pid_t pid;

	if (ptrace((int)request, c->tid, 0, 0))
		return -ESRCH;
	for (u32 i = 0; !(pid = waitpid(c->tid, status, __WALL | WNOHANG)); i++) {
		if (i < NR_QUICK_LOOKS)
			sched_yield();
		else if (!clock_pause(LOOK_NS, end_ns))
			break;
	}
	if (pid)
		return pid == c->tid && WIFSTOPPED(*status) ? 0 : -ESRCH;
	if (ptrace(PTRACE_INTERRUPT, c->tid, 0, 0))
		return -ESRCH;
	do
		pid = waitpid(c->tid, status, __WALL);
	while (pid < 0 && errno == EINTR);
	if (pid != c->tid || !WIFSTOPPED(*status))
		return -ESRCH;
	return *status >> 16 == PTRACE_EVENT_STOP ? -ETIME : 0;
}

/* Only SIGSTOP cannot be blocked. thread_call_end() sends it again. */
static void note_signal(struct thread_call *c, int status)
{
	if (status >> 16 == 0 && WSTOPSIG(status) == SIGSTOP)
		c->was_stop = true;
}

/* Bring the thread from any stop to one like that of PTRACE_INTERRUPT, before anything of the program runs. */
static int interrupt(struct thread_call *c)
{
	int err = 0, status = 0;

	if (ptrace(PTRACE_INTERRUPT, c->tid, 0, 0))
		err = -ESRCH;
	for (int i = 0; i < MAX_STOPS && !err; i++) {
		err = next_stop(c, PTRACE_CONT, &status);
		if (!err && status >> 16 == PTRACE_EVENT_STOP)
			break;
		if (!err)
			note_signal(c, status);
	}
	return err;
}

/*
 * The thread is held at the entry or the exit of a system call. At the entry, the call begins again afterwards. Should
 * the tracer die in between, the thread goes on likewise.
 */
static int leave_call(struct thread_call *c, enum call_stop place)
{
	int err = 0;

	if (place == STOP_AT_ENTRY)
		inject_rewind(&c->regs);
	if (!INJECT_HIDES_REGISTER)
		return 0;
	if (place == STOP_AT_ENTRY)
		err = cpu_regs_write(&c->regs, c->tid);
	if (!err && place == STOP_AT_ENTRY)
		err = inject_set_number(c->tid, NO_CALL);
	if (!err)
		err = interrupt(c);
	return err ? err : cpu_regs_read(&c->regs, c->tid);
}

static int read_regs(struct thread_call *c)
{
	enum call_stop place = STOP_ELSEWHERE;
	int err = cpu_regs_read(&c->regs, c->tid);

	if (err)
		return err;
	if (inject_place(&c->regs) == INJECT_NOWHERE)
		return -ENOTSUP;
	if (inject_place(&c->regs) == INJECT_IN_PROGRAM && is_in_sequence(c->tid, inject_pc(&c->regs)))
		return -EBUSY;
	if (c->insn && !is_call_insn(c->tid, c->insn))
		return -ESRCH;
	if (c->is_held && ask_place(c->tid, &place) && (place == STOP_AT_ENTRY || place == STOP_AT_EXIT))
		return leave_call(c, place);
	if (INJECT_IS_REWOUND && is_call_insn(c->tid, inject_pc(&c->regs)))
		inject_restart_sleep(&c->regs);
	return 0;
}

int thread_call_begin_held(struct thread_call *c, pid_t tid, taddr_t insn)
{
	int err;

	*c = (struct thread_call){ .tid = tid, .insn = insn, .is_held = true };
	err = read_regs(c);
	return err ? err : block_signals(c);
}

int thread_call_find_stack(taddr_t *out, pid_t tid)
{
	auto_free struct arch_regs *regs = malloc(sizeof(*regs));
	auto_fclose FILE *f = NULL;
	auto_free char *text = NULL;
	struct map_line line;
	char path[40];
	size_t size = 0;
	int err = regs ? arch_regs_read(regs, tid) : -ENOMEM;

	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tid);
	f = fopen(path, "re");
	while (f && getline(&text, &size, f) > 0) {
		text[strcspn(text, "\n")] = '\0';
		if (maps_parse_line(text, strlen(text), &line) || regs->sp < line.start ||
		    regs->sp >= line.end)
			continue;
		*out = line.start;
		return !strcmp(line.path, "[stack]") || (regs->tp >= line.start && regs->tp < line.end)
			       ? 0
			       : -EBUSY;
	}
	return -EBUSY;
}

/* Write to the memory of a thread at once, where the rights of this process allow that. */
static bool has_written(pid_t tid, taddr_t at, const u8 *bytes, size_t len)
{
	auto_close int mem = -1;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	mem = open(path, O_WRONLY | O_CLOEXEC);
	return mem >= 0 && pwrite(mem, bytes, len, (off_t)at) == (ssize_t)len;
}

/* Write the frame by which the thread goes on. */
static int write_frame(struct thread_call *c, taddr_t stack)
{
	auto_free u8 *frame = malloc(INJECT_MAX_FRAME), *state = malloc(INJECT_MAX_FRAME);
	taddr_t top = inject_sp(&c->regs), at;
	size_t nr_state;
	int len;

	if (!frame || !state)
		return -ENOMEM;
	len = inject_read_state(c->tid, state, &nr_state);
	if (len)
		return len;
	len = inject_frame(frame, &at, top, &c->back, &c->regs, state, nr_state, c->mask);
	if (len < 0 || at > top || at < stack)
		return -ENOTSUP;
	c->frame = at;
	if (!IS_AGENT && has_written(c->tid, at, frame, (size_t)len))
		return 0;
	/* The tracer may write by ptrace(2) whatever its other rights are. */
	for (size_t i = 0; i < (size_t)len; i += sizeof(long)) {
		long word;

		memcpy(&word, frame + i, sizeof(word));
		if (ptrace(PTRACE_POKEDATA, c->tid, at + i, word))
			return -errno;
	}
	return 0;
}

/* From here on the thread goes back to where it was, with the mask that it has. */
static int enter_frame(struct thread_call *c)
{
	struct cpu_regs regs = c->regs;
	u64 all = UINT64_MAX;
	int err;

	inject_go_back(&regs, &c->back, c->frame);
	err = cpu_regs_write(&regs, c->tid);
	if (!err && ptrace(PTRACE_SETSIGMASK, c->tid, sizeof(all), &all))
		err = -errno;
	return err;
}

static int check_safe(pid_t tid, const struct inject_way_back *back)
{
	struct proc_status status;
	int err = proc_read_status(&status, tid);

	if (!err && status.seccomp != SECCOMP_NONE)
		err = -EPERM;
	if (!err && inject_has_shadow_stack(tid))
		err = -ENOTSUP;
	if (!err && (!back->insn || !back->restorer))
		err = -ENOTSUP;
	return err;
}

/* Prepare a way back for @c, whose registers are read. After an error it has none. */
static int make_way_back(struct thread_call *c, const struct inject_way_back *back, taddr_t stack)
{
	int err;

	c->back = *back;
	err = get_mask(c);
	if (!err)
		err = write_frame(c, stack);
	if (!err)
		err = enter_frame(c);
	if (err)
		c->frame = 0;
	return err;
}

/* Have the thread that stopped go on by itself should we die, if that is possible. */
static bool can_go_back(struct thread_call *c, const struct inject_way_back *back)
{
	taddr_t stack;

	return !check_safe(c->tid, back) && !thread_call_find_stack(&stack, c->tid) &&
	       !make_way_back(c, back, stack);
}

int thread_call_begin(struct thread_call *c, pid_t tid, taddr_t insn, const struct inject_way_back *back)
{
	int err;

	*c = (struct thread_call){ .tid = tid, .insn = insn };
	err = read_regs(c);
	if (!err)
		err = set_options(tid);
	if (err)
		return err;
	if (can_go_back(c, back)) {
		c->insn = back->insn;
		return 0;
	}
	err = block_signals(c);
	if (err)
		ptrace(PTRACE_SETOPTIONS, tid, 0, 0);
	return err;
}

int thread_call_begin_safe(struct thread_call *c, pid_t tid, const struct inject_way_back *back,
			   taddr_t stack)
{
	int err = check_safe(tid, back);

	*c = (struct thread_call){ .tid = tid, .insn = back->insn, .is_held = true };
	if (!err)
		err = read_regs(c);
	return err ? err : make_way_back(c, back, stack);
}

static int note_child(const struct thread_call *c, pid_t *child)
{
	unsigned long pid = 0;

	if (ptrace(PTRACE_GETEVENTMSG, c->tid, 0, &pid))
		return -ESRCH;
	*child = (pid_t)pid;
	return 0;
}

/* The place of the stop with @status; @is_inside: of a thread that is in its call. */
static enum call_stop call_stop(const struct thread_call *c, int status, bool is_inside)
{
	enum call_stop place;

	if (status >> 16 || (WSTOPSIG(status) & ~CALL_STOP_FLAG) != SIGTRAP)
		return STOP_ELSEWHERE;
	if (ask_place(c->tid, &place))
		return place;
	if (!(WSTOPSIG(status) & CALL_STOP_FLAG))
		return STOP_ELSEWHERE;
	return is_inside ? STOP_AT_EXIT : STOP_AT_ENTRY;
}

int thread_call_make(struct thread_call *c, u64 number, const u64 args[INJECT_ARGS], s64 *result,
		     pid_t *child)
{
	struct cpu_regs regs = c->regs, now;
	bool is_inside = false;
	pid_t ignored;
	int err = 0, status;

	child = child ? child : &ignored;
	*child = 0;
	inject_call(&regs, c->insn, number, args);
	if (c->frame)
		inject_set_sp(&regs, &c->back, c->frame);
	for (int i = 0; i < MAX_STOPS && !err; i++) {
		enum call_stop place;

		/* A thread that is held in a system call ends that one first, and the kernel writes its result. */
		if (!is_inside)
			err = cpu_regs_write(&regs, c->tid);
		if (!err)
			err = is_inside ? next_stop(c, PTRACE_SYSCALL, &status)
					: early_stop(c, PTRACE_SYSCALL, &status);
		if (err)
			break;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8)) {
			err = note_child(c, child);
			continue;
		}
		place = call_stop(c, status, is_inside);
		if (place == STOP_ELSEWHERE) {
			note_signal(c, status);
		} else if (place == STOP_AT_ENTRY) {
			is_inside = true;
			/* The kernel may have made another call of it, to go on with one at the same instruction. */
			if (INJECT_IS_REWOUND)
				err = inject_set_number(c->tid, (s32)number);
		} else if (is_inside) {
			err = cpu_regs_read(&now, c->tid);
			*result = inject_result(&now);
			return err;
		}
	}
	return err ? err : -EPROTO;
}

int thread_call_do(struct thread_call *c, struct thread_request *r)
{
	pid_t child = 0;
	int status, err = thread_call_make(c, r->number, r->args, &r->result, &child);

	r->child = 0;
	if (child && waitpid(child, &status, __WALL) == child && WIFSTOPPED(status) &&
	    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL) == 0)
		r->child = child;
	return err;
}

int thread_call_step(struct thread_call *c, const struct cpu_regs *regs, siginfo_t *si)
{
	u64 mask = ~(1ULL << (SIGTRAP - 1));
	int err = cpu_regs_write(regs, c->tid), status = 0;

	/* The kernel would reset the handler of a SIGTRAP that is blocked. */
	if (!err && ptrace(PTRACE_SETSIGMASK, c->tid, sizeof(mask), &mask))
		err = -errno;
	for (int i = 0; i < MAX_STOPS && !err; i++) {
		err = early_stop(c, PTRACE_SINGLESTEP, &status);
		/* An interrupt may come first, and a SIGTRAP of the instruction stays pending behind it. */
		err = err == -ETIME ? 0 : err;
		if (!err && status >> 16 == 0 && WSTOPSIG(status) != SIGSTOP)
			return ptrace(PTRACE_GETSIGINFO, c->tid, 0, si) ? -errno : 0;
		if (!err)
			note_signal(c, status);
	}
	return err ? err : -EBUSY;
}

int thread_call_end(struct thread_call *c)
{
	/* Only from a stop like the first one does the kernel restart the system call that was interrupted. */
	int err = interrupt(c);

	if (err)
		return err;
	/* The mask first: with the registers of a frame both come back. */
	if (ptrace(PTRACE_SETSIGMASK, c->tid, sizeof(c->mask), &c->mask) ||
	    cpu_regs_write(&c->regs, c->tid) || (!c->is_held && ptrace(PTRACE_SETOPTIONS, c->tid, 0, 0)))
		return -ESRCH;
	if (c->was_stop)
		syscall(SYS_tkill, c->tid, SIGSTOP);
	return 0;
}
