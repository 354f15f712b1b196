/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls that have begun and not ended, per thread. One request by the program is one event: allocator
 * functions that call each other must not be counted twice, and calls that never return (longjmp,
 * exceptions, cancellation) must leave nothing wrong behind.
 */
#pragma once

#include "bpf/compat.bpf.h"

enum { MAX_LEVELS = 4 /* a power of two */, MAX_INNER = 8, SAME_STACK_BYTES = 1 << 20 };

enum level_state {
	LEVEL_BUSY = 1, /* inside the call */
	LEVEL_TOLD,	/* a release inside its call: its event is sent already */
	LEVEL_INTERNAL, /* a free that the C library is about to call for itself */
	LEVEL_FAILED,	/* operator new: the malloc inside failed; a new_handler may let it try again */
	LEVEL_RETRIED,	/* it does */
};

/* An allocator call inside a request. */
struct inner_call {
	u64 ip, ret;
	u32 depth; /* bytes of stack from the request's sp down to its own */
	u32 probe;
};

/* One request by the program that is under way. */
struct level {
	u64 sp;	   /* at entry: with the thread, the call's identity */
	u64 ip;	   /* of the probe */
	u64 ret;   /* return address; 0 = not read */
	u64 size;  /* bytes asked for */
	u64 old;   /* block or range handed in */
	u64 out;   /* where the result will be stored (posix_memalign) */
	u64 stack; /* id */
	u32 probe; /* index */
	u32 nr_inner;
	struct inner_call inner[MAX_INNER]; /* that it is in, outermost first */
	u8 state;			    /* enum level_state; 0 = unused */
	u8 flags;			    /* of the probe, enum probe_flag */
	u8 reserved[6];
};

/* One thread of a traced process. Made at its first call, deleted when it ends. */
struct thread {
	u32 pid;	/* whose books its events belong to */
	u32 nr;		/* levels in use */
	u64 last_alloc; /* block of its latest allocation, 0 after a free of it */
	struct level levels[MAX_LEVELS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_THREADS);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct process_state);
} processes SEC(".maps");

/* Processes in another one's memory (vfork, posix_spawn), by their number: to whose books their calls belong. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u32);
} sharers SEC(".maps");

/* Processes whose calls are not to be seen for now. */
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
	__type(value, struct probe_info);
} probes SEC(".maps");

/* A zeroed thread is too large for the program's stack. */
static const struct thread empty_thread;

static __always_inline struct process_state *process_of(u32 pid)
{
	return bpf_map_lookup_elem(&processes, &pid);
}

/* The process in whose memory @pid runs. */
static __always_inline u32 owner_of(u32 pid)
{
	u32 *owner = bpf_map_lookup_elem(&sharers, &pid);

	return owner ? *owner : pid;
}

/* Level @i, which the caller has checked; the mask is for the verifier, out of the compiler's sight. */
static __always_inline struct level *level_at(struct thread *t, u64 i)
{
	asm volatile("%0 &= %1" : "+r"(i) : "i"(MAX_LEVELS - 1));
	return &t->levels[i];
}

/* A thread seen for the first time; NULL if its process is not traced. */
static __noinline struct thread *thread_new(u32 tid, u32 pid, u32 filter_pid)
{
	struct process_state *process = process_of(pid);
	struct thread *t;

	/* A vfork child runs in its parent's memory: what it does belongs to the parent's books. */
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
		__sync_fetch_and_add(&process->lost_other, 1);
	return t;
}

/* The current thread, NULL if nothing of it is to be seen. */
static __always_inline struct thread *thread_current(u64 cookie)
{
	u64 both = current_ids();
	u32 tid = (u32)both;
	struct thread *t;

	if (!state.is_on)
		return NULL;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t)
		t = thread_new(tid, both >> 32, cookie >> 32);
	if (t && state.nr_paused && bpf_map_lookup_elem(&paused, &t->pid))
		return NULL;
	return t;
}

/*
 * The current thread when a call of it returns; NULL if its beginning cannot have been seen by the same link. The
 * pid filters of older kernels (5.10, 6.1) let all processes into a return probe that is in several.
 */
static __always_inline struct thread *thread_returning(u64 cookie)
{
	u32 tid = (u32)current_ids(), pid = cookie >> 32;
	struct thread *t;

	if (!state.is_on)
		return NULL;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t || (pid && pid != t->pid))
		return NULL;
	return state.nr_paused && bpf_map_lookup_elem(&paused, &t->pid) ? NULL : t;
}

static __always_inline u64 word_bytes(const struct probe_info *info)
{
	return info->flags & PROBE_32BIT ? 4 : 8;
}

/* A word of the target's memory; 0 when it cannot be read. */
static __always_inline u64 read_word(const struct probe_info *info, u64 addr)
{
	u64 word = 0;

	if (info->flags & PROBE_32BIT)
		bpf_probe_read_user(&word, 4, (void *)addr);
	else
		bpf_probe_read_user(&word, 8, (void *)addr);
	return word;
}

/* Where the call returns to whose first instructions run. */
static __always_inline u64 call_ret(const struct pt_regs *ctx, const struct probe_info *info)
{
	return HAS_LINK ? CODE_ADDRESS(REGS_LINK(ctx)) : read_word(info, REGS_SP(ctx));
}

/* Argument @n, from 1. */
static __always_inline u64 call_arg(const struct pt_regs *ctx, const struct probe_info *info, u8 n)
{
	if (info->flags & PROBE_32BIT)
		return read_word(info, REGS_SP(ctx) + 4 * n);
	if (n == 1)
		return REGS_ARG1(ctx);
	if (n == 2)
		return REGS_ARG2(ctx);
	return n == 3 ? REGS_ARG3(ctx) : REGS_ARG4(ctx);
}

/* Bytes asked for; all ones when nmemb * size overflows: such a call fails. */
static __always_inline u64 call_size(const struct pt_regs *ctx, const struct probe_info *info)
{
	u64 size = info->size_arg ? call_arg(ctx, info, info->size_arg) : 0;
	u64 count, most;

	if (!info->count_arg)
		return size;
	count = call_arg(ctx, info, info->count_arg);
	if (!((size | count) >> 32))
		return size * count;
	most = size ? ~0ULL / size : ~0ULL;
	/* Else clang makes it a 128-bit multiplication, which BPF has not. */
	asm volatile("" : "+r"(most));
	return count > most ? ~0ULL : size * count;
}

/* Is the return address @ret inside the code that belongs to the call at @ip? */
static __always_inline bool is_own_code(u32 probe, u64 ip, u64 ret)
{
	const struct probe_info *info = bpf_map_lookup_elem(&probes, &probe);

	return info && ret - (ip - info->own_before) < (u64)info->own_before + info->own_after;
}

/*
 * Was the call at @sp with return address @ret made by the request @l, rather than by the program?
 * A jump leaves sp as it is; if the outer call has a return probe, the return address is then the
 * kernel's trampoline, the first byte of a page.
 */
static __always_inline bool is_nested(const struct level *l, u64 sp, u64 ret, u32 probe)
{
	u32 depth;

	if (sp == l->sp) {
		if (l->state == LEVEL_INTERNAL)
			return true;
		if (probe == l->probe || l->state == LEVEL_FAILED)
			return false;
		if (!(l->flags & PROBE_DELEGATES) || (l->nr_inner && !l->inner[0].depth && ret != l->ret))
			return !(ret & 4095);
		return ret == l->ret;
	}
	if (l->sp < sp || l->sp - sp > SAME_STACK_BYTES)
		return false;
	if (l->state != LEVEL_FAILED && is_own_code(l->probe, l->ip, ret))
		return true;
	depth = l->sp - sp;
#pragma unroll
	for (u32 i = 0; i < MAX_INNER; i++) {
		const struct inner_call *c = &l->inner[i];

		if (i >= l->nr_inner || c->depth > depth)
			break;
		if (l->state == LEVEL_FAILED) {
			if (depth == c->depth && ret == c->ret && probe == c->probe)
				return true;
			continue;
		}
		/* A jump out of a call that it made, such as glibc's realloc(NULL, n) into malloc. */
		if (depth == c->depth && probe != c->probe && !(ret & 4095))
			return true;
		if (is_own_code(c->probe, c->ip, ret))
			return true;
	}
	return false;
}

/* The request is now in this call: those below its frame have ended. */
static __always_inline void note_inner(struct level *l, u64 sp, u64 ip, u64 ret, u32 probe)
{
	u32 depth = l->sp - sp;
	struct inner_call *c;
	u64 nr = 0;

#pragma unroll
	for (u32 i = 0; i < MAX_INNER; i++) {
		if (i >= l->nr_inner || l->inner[i].depth > depth ||
		    (l->inner[i].depth == depth && l->inner[i].probe == probe))
			break;
		nr = i + 1;
	}
	if (nr >= MAX_INNER)
		return;
	c = &l->inner[nr];
	c->depth = depth;
	c->ip = ip;
	c->ret = ret;
	c->probe = probe;
	l->nr_inner = nr + 1;
}

/* Is it in a call that was entered at @sp by @probe? */
static __always_inline bool is_inner(const struct level *l, u64 sp, u32 probe)
{
#pragma unroll
	for (u32 i = 0; i < MAX_INNER; i++)
		if (i < l->nr_inner && l->sp - sp == l->inner[i].depth && l->inner[i].probe == probe)
			return true;
	return false;
}
