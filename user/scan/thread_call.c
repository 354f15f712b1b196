/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Let a stopped thread of the target carry out a system call. */
#include "user/scan/thread_call.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc.h"
#include "user/lib/proc_memory.h"
#include "user/scan/snapshot.h"

/* Newer than some of the headers that heaptap builds with. */
#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21) /* Linux 4.3 */
#endif
#define GET_RSEQ_CONFIGURATION 0x420f /* Linux 5.13 */

enum {
	MAX_CODE = 64 << 10, /* bytes of a vDSO */
	MAX_STOPS = 64,	     /* of one call: entry, end, a new process, signals */
	CALL_STOP = SIGTRAP | 0x80,
	SECCOMP_NONE = 0,
};

/* struct ptrace_rseq_configuration and struct rseq_cs of the kernel. */
struct rseq_configuration {
	u64 addr;
	u32 size, signature, flags, pad;
};
struct rseq_section {
	u32 version, flags;
	u64 start, length, abort;
};

static int find_in(taddr_t *insn, const struct snapshot *s, const struct snapshot_map *map)
{
	struct proc_memory memory;
	u64 len = map->end - map->start < MAX_CODE ? map->end - map->start : MAX_CODE;
	auto_free u8 *code = malloc(len);
	ssize_t nr;
	size_t at;
	int err;

	if (!code)
		return -ENOMEM;
	err = proc_memory_open(&memory, s->mem_tid);
	if (err)
		return err;
	nr = proc_memory_read(&memory, map->start, code, len);
	proc_memory_close(&memory);
	err = nr > 0 ? inject_find(code, (size_t)nr, &at) : -ENOENT;
	if (!err)
		*insn = map->start + at;
	return err;
}

int thread_call_find(taddr_t *insn, const struct snapshot *s)
{
	for (size_t i = 0; i < s->nr_maps; i++)
		if (!strcmp(s->maps[i].path, "[vdso]"))
			return find_in(insn, s, &s->maps[i]);
	return -ENOENT;
}

/*
 * Is the thread inside a restartable sequence? Such code must begin again when it was interrupted, which the kernel
 * sees by the program counter: another one would hide the interruption.
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
	return !is_read || (addr && pc - section.start < section.length);
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

int thread_call_begin(struct thread_call *c, pid_t tid, taddr_t insn)
{
	u64 all = UINT64_MAX;
	enum inject_place place;
	int err;

	*c = (struct thread_call){ .tid = tid, .insn = insn };
	err = cpu_regs_read(&c->regs, tid);
	if (err)
		return err;
	place = inject_place(&c->regs);
	if (place == INJECT_NOWHERE)
		return -ENOTSUP;
	if (place == INJECT_IN_PROGRAM && is_in_sequence(tid, inject_pc(&c->regs)))
		return -EBUSY;
	err = is_call_insn(tid, insn) ? set_options(tid) : -ESRCH;
	if (err)
		return err;
	if (ptrace(PTRACE_GETSIGMASK, tid, sizeof(c->mask), &c->mask) ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all)) {
		err = -errno;
		ptrace(PTRACE_SETOPTIONS, tid, 0, 0);
	}
	return err;
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

/* Only SIGSTOP cannot be blocked. thread_call_end() sends it again. */
static void note_signal(struct thread_call *c, int status)
{
	if (status >> 16 == 0 && WSTOPSIG(status) == SIGSTOP)
		c->was_stop = true;
}

static int note_child(const struct thread_call *c, pid_t *child)
{
	unsigned long pid = 0;

	if (ptrace(PTRACE_GETEVENTMSG, c->tid, 0, &pid))
		return -ESRCH;
	*child = (pid_t)pid;
	return 0;
}

int thread_call_make(struct thread_call *c, u64 number, const u64 args[INJECT_ARGS], s64 *result,
		     pid_t *child)
{
	struct cpu_regs regs = c->regs;
	bool is_inside = false;
	pid_t ignored;
	int err, status;

	child = child ? child : &ignored;
	*child = 0;
	inject_call(&regs, c->insn, number, args);
	err = cpu_regs_write(&regs, c->tid);
	for (int i = 0; i < MAX_STOPS && !err; i++) {
		err = next_stop(c, PTRACE_SYSCALL, &status);
		if (err)
			break;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8)) {
			err = note_child(c, child);
		} else if (WSTOPSIG(status) != CALL_STOP) {
			note_signal(c, status);
		} else if (!is_inside) {
			is_inside = true;
		} else {
			err = cpu_regs_read(&regs, c->tid);
			*result = inject_result(&regs);
			return err;
		}
	}
	return err ? err : -EPROTO;
}

int thread_call_end(struct thread_call *c)
{
	int err = 0, status = 0;

	/* Only from a stop like the first one does the kernel restart the system call that was interrupted. */
	if (ptrace(PTRACE_INTERRUPT, c->tid, 0, 0))
		err = -ESRCH;
	for (int i = 0; i < MAX_STOPS && !err; i++) {
		err = next_stop(c, PTRACE_CONT, &status);
		if (!err && status >> 16 == PTRACE_EVENT_STOP)
			break;
		if (!err)
			note_signal(c, status);
	}
	if (err)
		return err;
	if (cpu_regs_write(&c->regs, c->tid) ||
	    ptrace(PTRACE_SETSIGMASK, c->tid, sizeof(c->mask), &c->mask) ||
	    ptrace(PTRACE_SETOPTIONS, c->tid, 0, 0))
		return -ESRCH;
	if (c->was_stop)
		syscall(SYS_tkill, c->tid, SIGSTOP);
	return 0;
}
