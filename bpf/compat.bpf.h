/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The base of all BPF programs: fixed-width types, functions of the kernel, differences between kernels. */
#pragma once

#include <linux/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0

#include <bpf/bpf_helpers.h>
#include <regs.h>

#include "bpf/event.h"
#include "bpf/maps.h"
#include "call/note.h"
#include "call/probe.h"

/* On all CPUs but mips and alpha. */
enum { SIGNAL_ILL = 4, SIGNAL_TRAP = 5, SIGNAL_CHILD = 17, SIGNAL_CONTINUE = 18, SIGNAL_STOP = 19 };

extern const volatile struct source_config config;
extern struct source_state state;

/*
 * From Linux 6.13 on a program with 64 bytes of stack or more has one "private" stack per CPU. A program on a uprobe
 * can be preempted by another thread that runs the same program on the same CPU. Both would use one stack, and the
 * kernel would crash. A program with a tail call gets no private stack. This tail call is never reached, and the
 * verifier removes it.
 */
static __always_inline void keep_own_stack(void)
{
	asm volatile("r0 = 0\n"
		     "if r0 == 0 goto +1\n"
		     "call %0" /* bpf_tail_call */
		     :
		     : "i"(BPF_FUNC_tail_call)
		     : "r0");
}

/*
 * PID and TID in heaptap's own PID namespace, which may not be the first one. For processes of other namespaces: PID
 * and TID in the first namespace.
 */
static __always_inline u64 current_ids(void)
{
	struct bpf_pidns_info ids;

	if (!config.pid_ns_ino ||
	    bpf_get_ns_current_pid_tgid(config.pid_ns_dev, config.pid_ns_ino, &ids, sizeof(ids)))
		return bpf_get_current_pid_tgid();
	return (u64)ids.tgid << 32 | ids.pid;
}

/* The cookie of this probe. bpf_get_attach_cookie is new in 5.15; before, each probe has its own load of a program. */
static __always_inline u64 probe_cookie(void *ctx)
{
	keep_own_stack();
	return config.is_cookie_fixed ? config.fixed_cookie : bpf_get_attach_cookie(ctx);
}
