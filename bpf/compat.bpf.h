/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every program includes: fixed-width names, helpers, and the differences between kernels. */
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

extern const volatile struct source_config config;
extern struct source_state state;

/*
 * From Linux 6.13 on a program with 64 bytes of stack has one "private" stack per CPU. Programs on uprobes can be
 * preempted there by another thread that runs the same one: both would use it, and the kernel would crash. A program
 * with a tail call gets no private stack; this one is never reached, and the verifier takes it out again.
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
 * Process and thread as heaptap numbers them: in its own PID namespace, which may not be the first one. Processes of
 * other namespaces keep their numbers in the first one.
 */
static __always_inline u64 current_ids(void)
{
	struct bpf_pidns_info ids;

	if (!config.pid_ns_ino ||
	    bpf_get_ns_current_pid_tgid(config.pid_ns_dev, config.pid_ns_ino, &ids, sizeof(ids)))
		return bpf_get_current_pid_tgid();
	return (u64)ids.tgid << 32 | ids.pid;
}

/* Which probe is this? bpf_get_attach_cookie is new in 5.15; without it each probe has its own programs. */
static __always_inline u64 probe_cookie(void *ctx)
{
	keep_own_stack();
	return config.is_cookie_fixed ? config.fixed_cookie : bpf_get_attach_cookie(ctx);
}
