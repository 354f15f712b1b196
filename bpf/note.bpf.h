/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread at a marker of its program: what the marker asks for becomes a record. */
#pragma once

#include "bpf/call.bpf.h"
#include "bpf/stop.bpf.h"
#include "call/note.h"

/* Markers of programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PROBES);
	__type(key, u32);
	__type(value, struct note_probe);
} notes SEC(".maps");

/* Word @i of the registers. An offset that is not known beforehand is allowed to helpers only. */
static __always_inline u64 note_reg(const struct pt_regs *ctx, u8 i)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const void *)ctx + 8 * (u64)i);
	return word;
}

/* The argument @a, 0 if it cannot be read. */
static __always_inline u64 note_arg(const struct pt_regs *ctx, const struct note_arg *a)
{
	u32 bits = 64 - 8 * (a->size & 7);
	u64 value = a->value;

	if (a->kind == NOTE_ARG_UNKNOWN)
		return 0;
	if (a->kind != NOTE_ARG_CONST)
		value = note_reg(ctx, a->reg);
	if (a->kind == NOTE_ARG_MEMORY) {
		u64 addr = value + a->value;
		u32 size = a->size & 15;

		/* For the verifier: reading notes lets no larger ones through. */
		if (size > sizeof(value))
			return 0;
		value = 0;
		/* Little-endian, as all CPUs that have BPF programs here. */
		bpf_probe_read_user(&value, size, (void *)addr);
	}
	if (a->size > 7)
		return value;
	return a->is_signed ? (u64)((s64)(value << bits) >> bits) : value << bits >> bits;
}

/* A block of a pool, or one that the program has sampled: the third argument is its weight. */
static __always_inline void note_block(struct pt_regs *ctx, struct inflight *t, const struct note_probe *n,
				       bool has_loop)
{
	struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .fn = n->fn } };
	bool is_free = n->what == NOTE_FREE;

	ev.addr = note_arg(ctx, &n->args[0]);
	if (!ev.addr)
		return;
	ev.size = note_arg(ctx, &n->args[1]);
	ev.weight = note_arg(ctx, &n->args[2]);
	if (is_free) {
		ev.h.kind = EVENT_FREE;
		ev.h.flags = ev.addr == t->last_alloc ? EVENT_TEMPORARY : 0;
		ev.size = ev.weight = 0;
	}
	t->last_alloc = is_free ? 0 : ev.addr;
	if (!is_free || config.has_free_stacks)
		ev.stack = stack_take(ctx, t, n->flags & PROBE_32BIT ? 4 : 8, has_loop, STACK_AT);
	life_send((const struct call *)ctx, t, &ev);
}

static __always_inline void note_send(struct pt_regs *ctx, const struct inflight *t,
				      const struct note_probe *n, bool has_loop)
{
	bool is_check = note_waits(n->what), waits;
	struct note_event *out = bpf_ringbuf_reserve(&ring, sizeof(*out), 0);
	struct process_state *process;

	if (!out) {
		process = process_of(t->pid);
		if (process)
			count_loss(&process->lost_other);
		return;
	}
	__builtin_memcpy(out->name, n->name, sizeof(out->name));
	if ((n->what == NOTE_MARK || n->what == NOTE_EXEC) && !n->name[0] &&
	    bpf_probe_read_user_str(out->name, sizeof(out->name), (void *)note_arg(ctx, &n->args[0])) < 0)
		out->name[0] = '\0';
	if (n->what == NOTE_IGNORE)
		out->addr = note_arg(ctx, &n->args[0]);
	__builtin_memset(&out->h, 0, sizeof(out->h));
	out->h.kind = EVENT_NOTE;
	out->h.pid = t->pid;
	out->h.tid = (u32)current_ids();
	out->time_ns = bpf_ktime_get_ns();
	out->what = n->what;
	waits = has_loop && n->what == NOTE_EXEC && exec_wait_begin();
	out->h.flags = waits ? EVENT_STOPS : 0;
	out->h.call_number = number_of_call(t->pid);
	bpf_ringbuf_submit(out, is_check ? BPF_RB_FORCE_WAKEUP : wake_flag());
	/* As in maps_changed(): the thread waits for the verdict. */
	if (is_check && config.stops_at_maps)
		stop_thread();
	if (waits)
		exec_wait();
}

/* A child in the memory of the process, or a copy of its parent that has executed nothing yet, gets no verdict. */
static __always_inline bool note_is_wanted(const struct inflight *t, const struct note_probe *n)
{
	const struct process_state *process;

	if (n->what != NOTE_EXEC)
		return true;
	process = process_of(t->pid);
	return process && t->pid == (u32)(current_ids() >> 32) && (!process->is_followed || process->comm[0]);
}

static __always_inline int note_at(struct pt_regs *ctx, bool has_loop)
{
	u64 cookie = probe_cookie(ctx);
	u32 index = (u32)cookie;
	struct inflight *t = thread_any(cookie);
	const struct note_probe *n = bpf_map_lookup_elem(&notes, &index);

	if (!t || !n || !note_is_wanted(t, n))
		return 0;
	if (n->what != NOTE_ALLOC && n->what != NOTE_FREE)
		note_send(ctx, t, n, has_loop);
	else if (!thread_is_paused(t))
		note_block(ctx, t, n, has_loop);
	return 0;
}
