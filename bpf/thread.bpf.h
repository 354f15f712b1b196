/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread that runs a program: which process it belongs to, and its calls that have begun and not ended. */
#pragma once

#include "bpf/compat.bpf.h"
#include "bpf/event.h"
#include "bpf/maps.h"
#include "call/inflight.h"
#include "call/probe.h"

extern const volatile struct source_config config;
extern struct source_state state;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_THREADS);
	__type(key, u32);
	__type(value, struct inflight);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct process_state);
} processes SEC(".maps");

/* Processes that run in the memory of another one (vfork, posix_spawn): from their PID to the PID of the other. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u32);
} sharers SEC(".maps");

/* Processes whose calls are ignored for now. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u8);
} paused SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PROBES);
	__type(key, u32);
	__type(value, struct call_probe);
} probes SEC(".maps");

/* Zeroed data of a thread, which is too large for the stack of a program. */
static const struct inflight empty_thread;

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

static __always_inline struct process_state *process_of(u32 pid)
{
	return bpf_map_lookup_elem(&processes, &pid);
}

/* @nr more at @counter, which is of a process. */
static __always_inline void count_losses(u64 *counter, u32 nr)
{
	__sync_fetch_and_add(counter, nr);
	__sync_fetch_and_add(&state.nr_losses, nr);
}

static __always_inline void count_loss(u64 *counter)
{
	count_losses(counter, 1);
}

/* The process in whose memory @pid runs. */
static __always_inline u32 owner_of(u32 pid)
{
	u32 *owner = bpf_map_lookup_elem(&sharers, &pid);

	return owner ? *owner : pid;
}

/* A thread seen for the first time; NULL if its process is not traced. */
static __noinline struct inflight *thread_new(u32 tid, u32 pid, u32 filter_pid)
{
	struct process_state *process = process_of(pid);
	struct inflight *t;

	/* A vfork child runs in its parent's memory: its calls change the parent's heap. */
	if (!process) {
		pid = filter_pid ? filter_pid : owner_of(pid);
		process = process_of(pid);
	}
	if (!process)
		return NULL;
	bpf_map_update_elem(&threads, &tid, &empty_thread, BPF_NOEXIST);
	t = bpf_map_lookup_elem(&threads, &tid);
	if (t)
		t->pid = pid;
	else
		count_loss(&process->lost_other);
	return t;
}

/* The current thread, NULL if it is not traced. */
static __always_inline struct inflight *thread_any(u64 cookie)
{
	u64 both = current_ids();
	u32 tid = (u32)both;
	struct inflight *t;

	if (!state.is_on)
		return NULL;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t)
		t = thread_new(tid, both >> 32, cookie >> 32);
	return t;
}

static __always_inline bool thread_is_paused(const struct inflight *t)
{
	return state.nr_paused && bpf_map_lookup_elem(&paused, &t->pid);
}

/* @t, in which a program runs for a call, NULL if it is paused. */
static __always_inline struct inflight *thread_counted(struct inflight *t)
{
	if (thread_is_paused(t))
		return NULL;
	if (state.is_measured)
		__sync_fetch_and_add(&state.nr_own_runs, 1);
	return t;
}

/* The current thread, NULL if it is not traced or paused. */
static __always_inline struct inflight *thread_current(u64 cookie)
{
	struct inflight *t = thread_any(cookie);

	return t ? thread_counted(t) : NULL;
}

/*
 * The current thread when a call of it returns; NULL if the same link cannot have seen the beginning of the call. On
 * older kernels (5.10, 6.1) several links with PID filters may share a return probe, which then fires for all
 * processes.
 */
static __always_inline struct inflight *thread_returning(u64 cookie)
{
	u32 tid = (u32)current_ids(), pid = cookie >> 32;
	struct inflight *t;

	if (!state.is_on)
		return NULL;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t || (pid && pid != t->pid))
		return NULL;
	return thread_counted(t);
}
