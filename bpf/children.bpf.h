/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Children of traced processes. A child is traced before it runs; one in its parent's memory counts as the parent. */
#pragma once

#include "bpf/sampled.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/stop.bpf.h"

/* CLONE_VM, CLONE_VFORK, CLONE_THREAD, CLONE_SETTLS, CLONE_UNTRACED. */
enum {
	SHARES_MEMORY = 0x100,
	PARENT_WAITS = 0x4000,
	IS_THREAD = 0x10000,
	HAS_POINTER = 0x80000,
	IS_UNTRACED = 0x800000
};

/* The beginning of a task_struct, in which user space finds the offset of the PID (user/source/task_layout.c). */
struct task_copy {
	u8 bytes[TASK_COPY_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct task_copy);
} task_copies SEC(".maps");

/* By PID. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct watched_code);
} watched_codes SEC(".maps");

/*
 * A thread of @pid ends, or executes a program. Where the process dropped pages of its code (MADV_DONTNEED), or another
 * program wrote there, the breakpoints are gone without a word of the kernel. A page that nobody has used since is not
 * in memory and cannot be read: no call is missing there. Before Linux 6.16 the memory is gone when the last thread
 * comes here.
 */
static __always_inline void code_check(u32 pid)
{
	const struct watched_code *watched = bpf_map_lookup_elem(&watched_codes, &pid);
	struct process_state *process = watched && state.is_on ? process_of(pid) : NULL;
	u64 nr = 0;

	if (!process)
		return;
	_Pragma("unroll") for (int i = 0; i < MAX_WATCHED_CODE; i++)
	{
		u32 code = 0;

		if (watched->at[i].addr &&
		    !bpf_probe_read_user(&code, sizeof(code), (const void *)watched->at[i].addr))
			nr += code == watched->at[i].code;
	}
	if (nr <= process->overwritten)
		return;
	process->overwritten = nr;
	__sync_fetch_and_add(&state.nr_losses, 1);
	send_process(EVENT_LOSSES, 0, pid, 0, 0);
}

/* Trace the child and send its birth, before all other records of it. A child that cannot be traced is counted. */
static __noinline bool child_take(u32 parent, u32 child, u8 flags)
{
	struct process_state *process = process_of(parent);
	const struct watched_code *watched;
	const struct unwind_maps *maps;
	struct process_state own = {};

	if (!process)
		return false;
	own.epoch = process->epoch;
	own.removals = process->removals;
	own.linker_state = process->linker_state;
	own.brk = flags & EVENT_NO_COPY ? 0 : process->brk;
	if (flags & EVENT_NO_COPY)
		bpf_get_current_comm(own.comm, sizeof(own.comm));
	own.maps_pid = parent;
	own.is_followed = 1;
	maps = published_maps(parent);
	if (maps ? maps->execs != process->execs : process->execs)
		own.maps_pid = NO_MAPS_PID;
	else if (!maps)
		own.maps_pid = process->maps_pid;
	if (state.nr_followed >= config.max_followed ||
	    bpf_map_update_elem(&processes, &child, &own, BPF_ANY)) {
		count_loss(&process->unfollowed);
		return false;
	}
	if (!send_process(EVENT_FORK, flags, parent, child, 0)) {
		bpf_map_delete_elem(&processes, &child);
		count_loss(&process->unfollowed);
		return false;
	}
	__sync_fetch_and_add(&state.nr_followed, 1);
	watched = flags & EVENT_NO_COPY ? NULL : bpf_map_lookup_elem(&watched_codes, &parent);
	if (watched)
		bpf_map_update_elem(&watched_codes, &child, watched, BPF_ANY);
	return true;
}

/* The current process executes a program. If it ran in another one's memory, it now becomes a child with its own. */
static __always_inline bool child_has_own_memory(u32 pid)
{
	u32 owner = owner_of(pid);

	if (owner == pid)
		return false;
	bpf_map_delete_elem(&sharers, &pid);
	__sync_fetch_and_add(&state.generation, 1);
	if (config.max_followed)
		child_take(owner, pid, EVENT_NO_COPY);
	return true;
}

static __always_inline u64 task_word(const void *task, u32 at)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), task + at);
	return word;
}

/*
 * The current task executes a program, or ends, and still has its memory. If it is a child for which its parent waits
 * (vfork), in the memory of the parent, a link with a PID filter saw none of its calls. The kernel has given it a
 * struct uprobe_task if it has come to any probe.
 */
static __always_inline void sharer_ends(void)
{
	const void *task = (const void *)bpf_get_current_task(), *parent;
	struct process_state *process;
	u32 owner;

	if (!state.task.mm || config.max_followed || !state.is_on ||
	    !task_word(task, state.task.vfork_done) || !task_word(task, state.task.utask))
		return;
	parent = (const void *)task_word(task, state.task.real_parent);
	owner = (u32)task_word(parent, state.task.tgid);
	process = process_of(owner);
	if (!process || task_word(task, state.task.mm) != task_word(parent, state.task.mm))
		return;
	count_loss(&process->sharers);
	send_process(EVENT_LOSSES, 0, owner, 0, 0);
}

static __always_inline void copy_layout(const void *task)
{
	struct task_copy *copy;
	u32 zero = 0;

	copy = bpf_map_lookup_elem(&task_copies, &zero);
	if (copy && !bpf_probe_read_kernel(copy, sizeof(*copy), task))
		state.layout_pid = 0;
}

/*
 * LeakSanitizer makes such a task at the end of its program, and others do in a crash: to trace the program by ptrace.
 * The task does not touch its heap. It waits for the current thread, so this one may stop first.
 */
static __always_inline bool is_observer(u64 flags)
{
	return flags & IS_UNTRACED && !(flags & PARENT_WAITS);
}

/*
 * The process @pid makes a thread by clone(@flags). Code inside it (--backend inline) tells threads by their pointers.
 * The kernel's own threads in it never come to that code.
 */
static __always_inline void thread_begins(u32 pid, u64 flags)
{
	if (!(flags & (HAS_POINTER | IS_UNTRACED)) && process_of(pid))
		send_process(EVENT_LOSSES, EVENT_TWIN, pid, 0, 0);
}

/* The current process makes @task by clone(@flags). */
static __always_inline int child_begins(const void *task, u64 flags, bool has_samples)
{
	u32 pid = current_ids() >> 32, owner, child;
	struct process_state *process;

	if (state.layout_pid == pid)
		copy_layout(task);
	if (!state.is_on)
		return 0;
	if (flags & IS_THREAD) {
		thread_begins(pid, flags);
		return 0;
	}
	owner = owner_of(pid);
	process = process_of(owner);
	if (process && is_observer(flags)) {
		const struct thread_stop why = { .why = THREAD_STOP_UNTRACED };

		stop_thread_for(&why, pid);
		if (flags & SHARES_MEMORY && !config.max_followed)
			return 0;
	}
	if (!config.max_followed) {
		if (process && flags & SHARES_MEMORY && !(flags & PARENT_WAITS))
			count_loss(&process->sharers);
		/* A copy for a snapshot never runs, and to take probes out of it would hold its parent up. */
		if (process && !(flags & SHARES_MEMORY) && state.copied_pid != pid)
			__sync_fetch_and_add(&state.nr_copies, 1);
		return 0;
	}
	if (!state.task_pid_at || bpf_probe_read_kernel(&child, sizeof(child), task + state.task_pid_at))
		return 0;
	/* An earlier process with this PID has ended. */
	bpf_map_delete_elem(&processes, &child);
	bpf_map_delete_elem(&watched_codes, &child);
	bpf_map_delete_elem(&sharers, &child);
	bpf_map_delete_elem(&left, &child);
	if (!process || state.copied_pid == pid)
		return 0;
	if (flags & SHARES_MEMORY)
		bpf_map_update_elem(&sharers, &child, &owner, BPF_ANY);
	else if (child_take(owner, child, 0) && has_samples)
		sampled_copy_all(owner, child);
	return 0;
}
