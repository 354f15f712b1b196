/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64: a system call that a stopped thread carries out. */
#include "arch/inject.h"

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>

#include "user/lib/cleanup.h"

/* Newer than some of the headers that heaptap builds with. */
#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif
#ifndef NT_ARM_TLS
#define NT_ARM_TLS 0x401
#endif
#ifndef NT_ARM_SVE
#define NT_ARM_SVE 0x405
#endif
#define NT_ARM_SSVE_SET 0x40b /* Linux 5.19 */
#define NT_ARM_ZA_SET	0x40c

enum { CALL_BYTES = 4, NUMBER = 8, LINK = 30 };

static const u32 call_insn = 0xd4000001, return_insn = 0xd65f03c0, sigreturn_insn = 0xd2801168;

static void get(struct user_regs_struct *out, const struct cpu_regs *regs)
{
	memcpy(out, regs->bytes, sizeof(*out));
}

static void set(struct cpu_regs *regs, const struct user_regs_struct *r)
{
	memcpy(regs->bytes, r, sizeof(*r));
}

/* The kernel has taken a call that was interrupted back to its instruction before the thread stops. */
enum inject_place inject_place(const struct cpu_regs *regs)
{
	return regs->size == sizeof(struct user_regs_struct) ? INJECT_IN_PROGRAM : INJECT_NOWHERE;
}

taddr_t inject_pc(const struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	return r.pc;
}

void inject_rewind(struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	r.pc -= CALL_BYTES;
	set(regs, &r);
}

int inject_set_number(pid_t tid, s32 number)
{
	struct iovec iov = { &number, sizeof(number) };

	return ptrace(PTRACE_SETREGSET, tid, (void *)NT_ARM_SYSTEM_CALL, &iov) ? -errno : 0;
}

static bool is_relative_sleep(const struct user_regs_struct *r)
{
	switch (r->regs[NUMBER]) {
	case SYS_nanosleep:
		return true;
	case SYS_clock_nanosleep:
		return !(r->regs[1] & TIMER_ABSTIME);
	case SYS_futex:
		return (r->regs[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && r->regs[3];
	default:
		return false;
	}
}

void inject_restart_sleep(struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	if (is_relative_sleep(&r))
		r.regs[NUMBER] = SYS_restart_syscall;
	set(regs, &r);
}

/* Find @first and, if it is not 0, @second behind it. The offset, or -1. */
static ssize_t find_pair(const u8 *code, size_t len, u32 first, u32 second)
{
	const size_t nr = second ? 2 : 1;
	u32 words[2];

	for (size_t i = 0; i + nr * sizeof(u32) <= len; i += sizeof(u32)) {
		memcpy(words, code + i, nr * sizeof(u32));
		if (words[0] == first && (nr == 1 || words[1] == second))
			return (ssize_t)i;
	}
	return -1;
}

int inject_find(const u8 *code, size_t len, size_t *at)
{
	ssize_t found = find_pair(code, len, call_insn, 0);

	if (found < 0)
		return -ENOENT;
	*at = (size_t)found;
	return 0;
}

void inject_call(struct cpu_regs *regs, taddr_t insn, u64 number, const u64 args[INJECT_ARGS])
{
	struct user_regs_struct r;

	get(&r, regs);
	r.pc = insn;
	r.regs[NUMBER] = number;
	for (size_t i = 0; i < INJECT_ARGS; i++)
		r.regs[i] = args[i];
	/* A copy of the process that nobody stops (doc/leak-scan.md) must end behind the call. */
	r.regs[LINK] = 0;
	set(regs, &r);
}

s64 inject_result(const struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	return (s64)r.regs[0];
}

bool inject_find_way_back(struct inject_way_back *w, taddr_t start, const u8 *code, size_t len)
{
	ssize_t at;

	if (!w->insn) {
		at = find_pair(code, len, call_insn, return_insn);
		w->insn = at < 0 ? 0 : start + (taddr_t)at;
	}
	if (!w->restorer) {
		at = find_pair(code, len, sigreturn_insn, call_insn);
		w->restorer = at < 0 ? 0 : start + (taddr_t)at;
	}
	return w->insn && w->restorer;
}

/* The frame of a signal as the kernel lays it out (struct rt_sigframe, struct ucontext, struct sigcontext). */
struct back_frame {
	u8 info[128];
	u64 flags, link;
	u64 stack_sp;
	u32 stack_flags, stack_pad;
	u64 stack_size;
	u64 mask;
	u8 unused[120 + 8];
	u64 fault_address;
	u64 regs[31];
	u64 sp, pc, pstate;
	u64 pad;
	/* The first record, of 4096 bytes for all of them: vector registers. One with the number 0 ends the list. */
	u32 magic, size;
	u32 fpsr, fpcr;
	u8 vectors[512];
	u8 last[4096 - 528];
};

_Static_assert(offsetof(struct back_frame, magic) == 592, "behind struct sigcontext");
_Static_assert(sizeof(struct back_frame) == 4688, "as the kernel reads it");

enum {
	/* No valid flags of a signal stack: the kernel then leaves that of the thread as it is. */
	KEEP_SIGNAL_STACK = 0x7fffffff,
	MAGIC_VECTORS = 0x46508001,
	SIZE_VECTORS = 528,
	VECTORS = 512, /* bytes, and behind them fpsr and fpcr, in the set of ptrace */
	STACK_ALIGN = 16,
};

/* struct user_sve_header, and of ZA: whether there is more than a header tells whether it is in use. */
struct set_header {
	u32 size, max_size;
	u16 vl, max_vl, flags, reserved;
};

static bool get_header(struct set_header *h, pid_t tid, uintptr_t set)
{
	struct iovec iov = { h, sizeof(*h) };

	return !ptrace(PTRACE_GETREGSET, tid, (void *)set, &iov) && iov.iov_len == sizeof(*h);
}

/* Vector registers longer than those in the frame, or a matrix. */
static bool has_more_state(pid_t tid)
{
	enum { IS_LONG = 1 };
	struct set_header h;

	return (get_header(&h, tid, NT_ARM_SVE) && h.flags & IS_LONG) ||
	       (get_header(&h, tid, NT_ARM_SSVE_SET) && h.flags & IS_LONG) ||
	       (get_header(&h, tid, NT_ARM_ZA_SET) && h.size > sizeof(h));
}

/* Kernels with permission overlays take the thread's from the frame, whose record is not written here. */
static bool has_overlays(void)
{
	return getauxval(AT_HWCAP2) >> 63;
}

int inject_read_state(pid_t tid, u8 state[INJECT_MAX_FRAME], size_t *nr)
{
	struct iovec iov = { state, INJECT_MAX_FRAME };

	if (has_overlays() || has_more_state(tid) || ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRFPREG, &iov))
		return -ENOTSUP;
	*nr = iov.iov_len;
	return 0;
}

int inject_frame(u8 frame[INJECT_MAX_FRAME], taddr_t *sp, taddr_t top, const struct inject_way_back *w,
		 const struct cpu_regs *regs, const u8 *state, size_t nr_state, u64 mask)
{
	struct back_frame *f = (struct back_frame *)(void *)frame;
	struct user_regs_struct r;

	(void)w;
	if (nr_state < VECTORS + 2 * sizeof(u32))
		return -ENOTSUP;
	get(&r, regs);
	memset(f, 0, sizeof(*f));
	f->stack_flags = KEEP_SIGNAL_STACK;
	f->mask = mask;
	memcpy(f->regs, r.regs, sizeof(f->regs));
	f->sp = r.sp;
	f->pc = r.pc;
	f->pstate = r.pstate;
	f->magic = MAGIC_VECTORS;
	f->size = SIZE_VECTORS;
	memcpy(f->vectors, state, VECTORS);
	memcpy(&f->fpsr, state + VECTORS, sizeof(u32));
	memcpy(&f->fpcr, state + VECTORS + sizeof(u32), sizeof(u32));
	*sp = (top - sizeof(*f)) / STACK_ALIGN * STACK_ALIGN;
	return sizeof(*f);
}

taddr_t inject_sp(const struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	return r.sp;
}

void inject_set_sp(struct cpu_regs *regs, const struct inject_way_back *w, taddr_t sp)
{
	struct user_regs_struct r;

	get(&r, regs);
	r.sp = sp;
	r.regs[LINK] = w->restorer;
	set(regs, &r);
}

void inject_go_back(struct cpu_regs *regs, const struct inject_way_back *w, taddr_t sp)
{
	struct user_regs_struct r;

	get(&r, regs);
	r.pc = w->restorer;
	r.sp = sp;
	set(regs, &r);
}

int inject_thread_pointer(u64 *out, pid_t tid)
{
	struct iovec iov = { out, sizeof(*out) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_TLS, &iov))
		return -errno;
	return iov.iov_len == sizeof(*out) ? 0 : -ENOTSUP;
}

bool inject_has_shadow_stack(pid_t pid)
{
	enum { HAS_SHADOW_STACKS = 32 /* bit of HWCAP_GCS */ };
	auto_fclose FILE *f = NULL;
	char path[40], line[512];

	if (!(getauxval(AT_HWCAP) >> HAS_SHADOW_STACKS & 1))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmFlags:", 8) && strstr(line, " ss"))
			return true;
	return !f;
}
