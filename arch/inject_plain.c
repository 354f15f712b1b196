/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs on which no thread carries out system calls for heaptap. */
#include "arch/inject.h"

#include <errno.h>

#if !defined(__x86_64__) && !defined(__aarch64__)

enum inject_place inject_place(const struct cpu_regs *regs)
{
	(void)regs;
	return INJECT_NOWHERE;
}

taddr_t inject_pc(const struct cpu_regs *regs)
{
	(void)regs;
	return 0;
}

void inject_rewind(struct cpu_regs *regs)
{
	(void)regs;
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
	(void)code;
	(void)len;
	(void)at;
	return -ENOTSUP;
}

void inject_call(struct cpu_regs *regs, taddr_t insn, u64 number, const u64 args[INJECT_ARGS])
{
	(void)regs;
	(void)insn;
	(void)number;
	(void)args;
}

s64 inject_result(const struct cpu_regs *regs)
{
	(void)regs;
	return -ENOTSUP;
}

bool inject_find_way_back(struct inject_way_back *w, taddr_t start, const u8 *code, size_t len)
{
	(void)w;
	(void)start;
	(void)code;
	(void)len;
	return false;
}

int inject_read_state(pid_t tid, u8 state[INJECT_MAX_FRAME], size_t *nr)
{
	(void)tid;
	(void)state;
	*nr = 0;
	return -ENOTSUP;
}

int inject_frame(u8 frame[INJECT_MAX_FRAME], taddr_t *sp, taddr_t top, const struct inject_way_back *w,
		 const struct cpu_regs *regs, const u8 *state, size_t nr_state, u64 mask)
{
	(void)frame;
	(void)sp;
	(void)top;
	(void)w;
	(void)regs;
	(void)state;
	(void)nr_state;
	(void)mask;
	return -ENOTSUP;
}

taddr_t inject_sp(const struct cpu_regs *regs)
{
	(void)regs;
	return 0;
}

void inject_set_sp(struct cpu_regs *regs, const struct inject_way_back *w, taddr_t sp)
{
	(void)regs;
	(void)w;
	(void)sp;
}

void inject_go_back(struct cpu_regs *regs, const struct inject_way_back *w, taddr_t sp)
{
	(void)regs;
	(void)w;
	(void)sp;
}

int inject_thread_pointer(u64 *out, pid_t tid)
{
	(void)tid;
	*out = 0;
	return -ENOTSUP;
}

bool inject_has_shadow_stack(pid_t pid)
{
	(void)pid;
	return true;
}

#endif
