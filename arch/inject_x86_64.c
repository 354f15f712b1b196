/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64: a system call that a stopped thread carries out. */
#include "arch/inject.h"

#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "user/lib/cleanup.h"

enum { CS_64BIT = 0x33, NO_CALL = -1, CALL_BYTES = 2 };

static void get(struct user_regs_struct *out, const struct cpu_regs *regs)
{
	memcpy(out, regs->bytes, sizeof(*out));
}

enum inject_place inject_place(const struct cpu_regs *regs)
{
	struct user_regs_struct r;

	if (regs->size < sizeof(r))
		return INJECT_NOWHERE;
	get(&r, regs);
	if (r.cs != CS_64BIT)
		return INJECT_NOWHERE;
	return (s64)r.orig_rax >= 0 ? INJECT_IN_CALL : INJECT_IN_PROGRAM;
}

taddr_t inject_pc(const struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	return r.rip;
}

void inject_rewind(struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	r.rip -= CALL_BYTES;
	r.rax = r.orig_rax;
	r.orig_rax = (unsigned long long)NO_CALL;
	memcpy(regs->bytes, &r, sizeof(r));
}

void inject_restart_sleep(struct cpu_regs *regs)
{
	(void)regs;
}

int inject_set_number(pid_t tid, s32 number)
{
	(void)tid;
	(void)number;
	return -ENOTSUP;
}

int inject_find(const u8 *code, size_t len, size_t *at)
{
	for (size_t i = 0; i + 1 < len; i++) {
		if (code[i] != 0x0f || code[i + 1] != 0x05)
			continue;
		*at = i;
		return 0;
	}
	return -ENOENT;
}

void inject_call(struct cpu_regs *regs, taddr_t insn, u64 number, const u64 args[INJECT_ARGS])
{
	struct user_regs_struct r;

	get(&r, regs);
	r.rip = insn;
	r.rax = number;
	r.orig_rax = (unsigned long long)NO_CALL;
	r.rdi = args[0];
	r.rsi = args[1];
	r.rdx = args[2];
	r.r10 = args[3];
	r.r8 = args[4];
	r.r9 = args[5];
	memcpy(regs->bytes, &r, sizeof(r));
}

s64 inject_result(const struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	return (s64)r.rax;
}

/* "syscall; ret", and the restorer of C libraries: "mov $15,%rax; syscall". */
static const u8 leaf_code[] = { 0x0f, 0x05, 0xc3 };
static const u8 restorer_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 };

static taddr_t find_code(taddr_t start, const u8 *code, size_t len, const u8 *wanted, size_t nr)
{
	const u8 *at = memmem(code, len, wanted, nr);

	return at ? start + (taddr_t)(at - code) : 0;
}

bool inject_find_way_back(struct inject_way_back *w, taddr_t start, const u8 *code, size_t len)
{
	if (!w->insn)
		w->insn = find_code(start, code, len, leaf_code, sizeof(leaf_code));
	if (!w->restorer)
		w->restorer = find_code(start, code, len, restorer_code, sizeof(restorer_code));
	return w->insn && w->restorer;
}

/* The frame of a signal as the kernel lays it out (struct rt_sigframe, struct ucontext, struct sigcontext_64). */
struct back_frame {
	u64 restorer;
	u64 flags, link;
	u64 stack_sp;
	u32 stack_flags, stack_pad;
	u64 stack_size;
	u64 r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
	u16 cs, gs, fs, ss;
	u64 err, trapno, oldmask, cr2, fpstate, reserved[8];
	u64 mask;
};

enum {
	HAS_STATE = 1,	     /* UC_FP_XSTATE */
	HAS_SEGMENT = 2 | 4, /* UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */
	/* No valid flags of a signal stack: the kernel then leaves that of the thread as it is. */
	KEEP_SIGNAL_STACK = 0x7fffffff,
	STATE_ALIGN = 64,
	STATE_NOTES = 464,  /* position of struct _fpx_sw_bytes; ptrace has the mask of features there */
	STATE_IN_USE = 512, /* position of the mask of features that are not as at the start of a thread */
	MIN_STATE = 512 + 64,
	LEAF_STATE = 0xd,   /* of cpuid: place and size of each feature */
	REGS_STATE = 0x202, /* NT_X86_XSTATE */
	FIRST_EXTENDED = 2,
	NR_FEATURES = 63,
	MAGIC_FIRST = 0x46505853,
	MAGIC_LAST = 0x46505845,
	RED_ZONE = 128,
	CALL_RESTART = 219, /* restart_syscall(2) */
};
/* Tiles of AMX. A thread has no room for them in a frame until it has asked the kernel for that. */
static const u64 tile_features = 3ULL << 17;

/* Errors by which the kernel says how a system call that was interrupted is restarted; the last one by a call. */
static const s64 first_restart = -514, last_restart = -512, restart_by_call = -516;

/* How the kernel changes the registers of an interrupted system call when the thread goes on. */
static void restart(struct user_regs_struct *r)
{
	s64 result = (s64)r->rax;

	if ((s64)r->orig_rax < 0)
		return;
	if (result == restart_by_call)
		r->rax = CALL_RESTART;
	else if (result >= first_restart && result <= last_restart)
		r->rax = r->orig_rax;
	else
		return;
	r->rip -= CALL_BYTES;
}

static void fill_frame(struct back_frame *f, const struct user_regs_struct *r)
{
	f->flags = HAS_STATE | HAS_SEGMENT;
	f->stack_flags = KEEP_SIGNAL_STACK;
	f->r8 = r->r8;
	f->r9 = r->r9;
	f->r10 = r->r10;
	f->r11 = r->r11;
	f->r12 = r->r12;
	f->r13 = r->r13;
	f->r14 = r->r14;
	f->r15 = r->r15;
	f->di = r->rdi;
	f->si = r->rsi;
	f->bp = r->rbp;
	f->bx = r->rbx;
	f->dx = r->rdx;
	f->ax = r->rax;
	f->cx = r->rcx;
	f->sp = r->rsp;
	f->ip = r->rip;
	f->eflags = r->eflags;
	f->cs = (u16)r->cs;
	f->ss = (u16)r->ss;
}

/* Bytes of a state up to the end of the last of @features. Each has a place of its own, whichever are in use. */
static size_t state_size(u64 features)
{
	size_t size = MIN_STATE;

	for (u32 i = FIRST_EXTENDED; i < NR_FEATURES; i++) {
		u32 len, at, flags, unused;

		if (!(features >> i & 1))
			continue;
		__cpuid_count(LEAF_STATE, i, len, at, flags, unused);
		size = at + len > size ? at + len : size;
	}
	return size;
}

/*
 * Make @to, @nr bytes of ptrace, what a frame of a signal has. The kernel restores nothing but the floating point from
 * a frame that is longer than the thread may have (Linux, arch/x86/kernel/fpu/signal.c), so tiles that are not in use
 * are left out.
 */
static int fill_state(u8 *to, const u8 *state, size_t nr)
{
	const u32 last = MAGIC_LAST;
	struct {
		u32 magic, size_with_last;
		u64 features;
		u32 size, pad[7];
	} notes = { .magic = MAGIC_FIRST };
	u64 in_use;

	memcpy(&notes.features, state + STATE_NOTES, sizeof(notes.features));
	memcpy(&in_use, state + STATE_IN_USE, sizeof(in_use));
	if (in_use & tile_features)
		return -ENOTSUP;
	if (notes.features & tile_features) {
		notes.features &= ~tile_features;
		nr = nr < state_size(notes.features) ? nr : state_size(notes.features);
	}
	notes.size = (u32)nr;
	notes.size_with_last = (u32)(nr + sizeof(last));
	memcpy(to, state, nr);
	memcpy(to + STATE_NOTES, &notes, sizeof(notes));
	memcpy(to + nr, &last, sizeof(last));
	return 0;
}

int inject_read_state(pid_t tid, u8 state[INJECT_MAX_FRAME], size_t *nr)
{
	struct iovec iov = { state, INJECT_MAX_FRAME };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)REGS_STATE, &iov))
		return -ENOTSUP;
	*nr = iov.iov_len;
	return 0;
}

static size_t round_up(size_t len)
{
	return (len + STATE_ALIGN - 1) / STATE_ALIGN * STATE_ALIGN;
}

int inject_frame(u8 frame[INJECT_MAX_FRAME], taddr_t *sp, taddr_t top, const struct inject_way_back *w,
		 const struct cpu_regs *regs, const u8 *state, size_t nr_state, u64 mask)
{
	struct back_frame f = { .restorer = w->restorer, .mask = mask };
	size_t at = round_up(sizeof(f)), len = round_up(at + nr_state + sizeof(u32));
	struct user_regs_struct r;

	if (nr_state < MIN_STATE || len > INJECT_MAX_FRAME)
		return -ENOTSUP;
	get(&r, regs);
	restart(&r);
	fill_frame(&f, &r);
	*sp = (top - len) / STATE_ALIGN * STATE_ALIGN;
	f.fpstate = *sp + at;
	memset(frame, 0, len);
	memcpy(frame, &f, sizeof(f));
	return fill_state(frame + at, state, nr_state) ? -ENOTSUP : (int)len;
}

taddr_t inject_sp(const struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	return r.rsp - RED_ZONE;
}

void inject_set_sp(struct cpu_regs *regs, const struct inject_way_back *w, taddr_t sp)
{
	struct user_regs_struct r;

	(void)w;
	get(&r, regs);
	r.rsp = sp;
	memcpy(regs->bytes, &r, sizeof(r));
}

void inject_go_back(struct cpu_regs *regs, const struct inject_way_back *w, taddr_t sp)
{
	struct user_regs_struct r;

	get(&r, regs);
	r.rip = w->restorer;
	/* Behind the return, which has taken the address of the restorer. */
	r.rsp = sp + sizeof(u64);
	r.orig_rax = (unsigned long long)NO_CALL;
	memcpy(regs->bytes, &r, sizeof(r));
}

int inject_thread_pointer(u64 *out, pid_t tid)
{
	struct user_regs_struct r;
	struct cpu_regs regs;
	int err = cpu_regs_read(&regs, tid);

	if (!err && inject_place(&regs) == INJECT_NOWHERE)
		err = -ENOTSUP;
	if (err)
		return err;
	get(&r, &regs);
	*out = r.fs_base;
	return 0;
}

bool inject_has_shadow_stack(pid_t pid)
{
	auto_fclose FILE *f = NULL;
	char path[40], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "x86_Thread_features:", 20))
			return strstr(line, "shstk") != NULL;
	return !f;
}
