/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops a thread of a program that heaptap started, until heaptap has done what the thread waits for. */
#pragma once

#include "bpf/thread.bpf.h"

/* SIGCHLD and SIGSTOP, on all CPUs but mips and alpha. */
enum { SIGNAL_CHILD = 17, SIGNAL_STOP = 19 };

/* The current thread is ptraced and blocks SIGCHLD. False if that cannot be found out. */
static __always_inline bool wants_sigstop(void)
{
	const char *task = (const char *)bpf_get_current_task();
	u64 blocked = 0;
	u32 ptraced = 0;

	return state.task_blocked_at &&
	       !bpf_probe_read_kernel(&blocked, sizeof(blocked), task + state.task_blocked_at) &&
	       !bpf_probe_read_kernel(&ptraced, sizeof(ptraced), task + state.task_ptrace_at) &&
	       blocked & 1ULL << (SIGNAL_CHILD - 1) && ptraced;
}

/*
 * By a signal, which user/source/launch.c discards. SIGCHLD does nothing by default, should the ptracer have died. A
 * thread that blocks it, and may read it from a signalfd, gets a SIGSTOP.
 */
static __always_inline void stop_thread(void)
{
	if (wants_sigstop()) {
		__sync_fetch_and_add(&state.nr_sigstops, 1);
		bpf_send_signal_thread(SIGNAL_STOP);
	} else {
		bpf_send_signal_thread(SIGNAL_CHILD);
	}
}
