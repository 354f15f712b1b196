/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops a thread of a program that heaptap started, until heaptap has done what the thread waits for. */
#pragma once

#include "bpf/thread.bpf.h"
#include "bpf/thread_stop.h"

/* Threads that are stopped for another reason than THREAD_STOP_LOOK, until user space has read the reason. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct thread_stop);
} stops SEC(".maps");

/* Processes whose ptracer is not heaptap any more, by PID. They are not stopped. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u8);
} left SEC(".maps");

/* All looks that bpf_loop() allows take 0.35 to 0.45 s. */
enum { TRACER_WAIT_NS = 500 * 1000 * 1000, TRACER_LOOKS = 1 << 23 };

/* Is the current thread ptraced? @or_else: if that cannot be found out. */
static __always_inline bool thread_is_ptraced(bool or_else)
{
	const char *task = (const char *)bpf_get_current_task();
	u32 ptraced = 0;

	if (!state.task_ptrace_at ||
	    bpf_probe_read_kernel(&ptraced, sizeof(ptraced), task + state.task_ptrace_at))
		return or_else;
	return ptraced;
}

/* The current thread blocks SIGCHLD. False if that cannot be found out. */
static __always_inline bool wants_sigstop(void)
{
	const char *task = (const char *)bpf_get_current_task();
	u64 blocked = 0;

	return state.task_blocked_at &&
	       !bpf_probe_read_kernel(&blocked, sizeof(blocked), task + state.task_blocked_at) &&
	       blocked & 1ULL << (SIGNAL_CHILD - 1);
}

/* Does the set of signals at @set have SIGCONT? */
static __always_inline bool has_continue(const char *set)
{
	u64 signals = 0;

	return !bpf_probe_read_kernel(&signals, sizeof(signals), set) &&
	       signals & 1ULL << (SIGNAL_CONTINUE - 1);
}

/*
 * Send a SIGSTOP to the current thread, which cannot be blocked. False: a SIGCONT is pending, which the kernel would
 * drop.
 */
static __always_inline bool send_stop(void)
{
	const char *task = (const char *)bpf_get_current_task(), *shared = NULL;
	const struct pending_fields *at = &state.pending;

	if (at->shared && !bpf_probe_read_kernel(&shared, sizeof(shared), task + at->shared) &&
	    (has_continue(task + at->of_thread) || has_continue(shared + at->of_process)))
		return false;
	__sync_fetch_and_add(&state.nr_sigstops, 1);
	bpf_send_signal_thread(SIGNAL_STOP);
	return true;
}

/*
 * By a signal, which user/source/launch.c discards. SIGCHLD does nothing by default, should the ptracer have died. A
 * thread that blocks it, and may read it from a signalfd, gets a SIGSTOP, or runs on if that would do harm. A thread
 * that launch.c has detached from gets no signal, because nobody would discard that. Returns if it stops for certain.
 */
static __always_inline bool stop_thread(void)
{
	u32 pid = current_ids() >> 32;
	struct process_state *process = process_of(pid);

	if (!thread_is_ptraced(true) || bpf_map_lookup_elem(&left, &pid))
		return false;
	if (!wants_sigstop() || !thread_is_ptraced(false))
		return !bpf_send_signal_thread(SIGNAL_CHILD) && state.task_blocked_at &&
		       thread_is_ptraced(false);
	if (send_stop())
		return true;
	if (process)
		count_loss(&process->lost_other);
	return false;
}

/*
 * Stop it for the reason @why: heaptap will detach from process @pid. SIGSTOP cannot be blocked, so the thread stops
 * before it returns to its program.
 */
static __always_inline void stop_thread_for(const struct thread_stop *why, u32 pid)
{
	u64 both = current_ids();
	u32 tid = (u32)both, own = both >> 32;
	u8 yes = 1;

	if (!config.stops_at_maps || !thread_is_ptraced(false) || bpf_map_lookup_elem(&left, &own) ||
	    bpf_map_update_elem(&stops, &tid, why, BPF_ANY))
		return;
	if (send_stop())
		bpf_map_update_elem(&left, &pid, &yes, BPF_ANY);
	else
		bpf_map_delete_elem(&stops, &tid);
}

/* A tracer attaches first, and asks for the stop in its next system call. */
enum { STOP_ASKED_NS = 2 * 1000 * 1000, EXEC_ROUNDS = 4 };

struct exec_wait {
	u64 end_ns;
	u32 tid;
};

/* 1: somebody has stopped the thread, or lets it go on, or it has waited for long enough. */
static long look_for_answer(u32 nr, void *ctx)
{
	struct exec_wait *w = ctx;
	u64 now_ns = bpf_ktime_get_ns();

	(void)nr;
	if (thread_is_ptraced(true) && now_ns + STOP_ASKED_NS < w->end_ns)
		w->end_ns = now_ns + STOP_ASKED_NS;
	return now_ns > w->end_ns || !bpf_map_lookup_elem(&stops, &w->tid);
}

/* The current thread, which nobody traces, will wait at execve(). False: it cannot. */
static __always_inline bool exec_wait_begin(void)
{
	const struct thread_stop why = { .why = THREAD_STOP_EXEC };
	u32 tid = (u32)current_ids();

	return config.waits_at_end && !thread_is_ptraced(true) &&
	       !bpf_map_update_elem(&stops, &tid, &why, BPF_ANY);
}

/* As wait_at_end(). Who finds no reason in the table comes too late. */
static __always_inline void exec_wait(void)
{
	struct exec_wait w = { bpf_ktime_get_ns() + TRACER_WAIT_NS, (u32)current_ids() };

	for (int i = 0; i < EXEC_ROUNDS; i++)
		if (bpf_loop(TRACER_LOOKS, look_for_answer, &w, 0) != TRACER_LOOKS)
			break;
	if (!thread_is_ptraced(true))
		bpf_map_delete_elem(&stops, &w.tid);
}
