/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The probes: allocator calls of the traced processes become events. */
#include "bpf/children.bpf.h"

enum { SIGNAL_CHILD = 17 }; /* SIGCHLD, on all CPUs but mips and alpha */

const volatile struct source_config config SEC(".rodata.config") = {};
struct source_state state = {};

/*
 * A call whose end was never seen: an operator new has thrown, others were jumped out of. A failed one has
 * told all there is to tell.
 */
static __noinline void abandon(const struct thread *t, const struct level *l)
{
	const struct probe_info *info;
	struct process_state *process;
	struct heap_event ev = {};

	if (!t || !l || l->state != LEVEL_BUSY)
		return;
	info = bpf_map_lookup_elem(&probes, &l->probe);
	if (info && info->flags & PROBE_THROWS) {
		ev.h.kind = EVENT_ALLOC;
		ev.h.fn = info->fn;
		ev.size = l->size;
		ev.stack = l->stack;
		send(t, &ev);
		return;
	}
	process = process_of(t->pid);
	if (process)
		__sync_fetch_and_add(&process->abandoned, 1);
}

/*
 * Forget calls that cannot be under way any more: their frame lies below the stack pointer. Frames far
 * away may belong to another stack of the thread (signal stack, coroutine) and are kept while there is room.
 */
static __always_inline void drop_stale(struct thread *t, u64 sp)
{
	for (int i = 0; i < MAX_LEVELS; i++) {
		u32 top = t->nr - 1;
		struct level *l;

		if (top >= MAX_LEVELS)
			return;
		l = level_at(t, top);
		if (l->sp >= sp || sp - l->sp > SAME_STACK_BYTES)
			return;
		abandon(t, l);
		t->nr = top;
	}
}

static __always_inline struct level *top_level(struct thread *t)
{
	u32 top = t->nr - 1;

	return top < MAX_LEVELS ? level_at(t, top) : NULL;
}

/* A new request at the top. So many under way in one thread are nearly all leftovers of jumps: then all go. */
static __always_inline struct level *push_level(struct pt_regs *ctx, struct thread *t, u32 probe, u8 flags,
						u64 ret)
{
	struct level *l;
	u32 nr = t->nr;

	if (nr >= MAX_LEVELS) {
		for (u32 i = 0; i < MAX_LEVELS; i++)
			abandon(t, &t->levels[i]);
		nr = 0;
	}
	l = level_at(t, nr);
	t->nr = nr + 1;
	l->sp = REGS_SP(ctx);
	l->ip = REGS_IP(ctx);
	l->ret = ret;
	l->nr_inner = 0;
	l->probe = probe;
	l->state = LEVEL_BUSY;
	l->flags = flags;
	return l;
}

/*
 * The request that made this call, if an allocator made it and not the program: remembered there as
 * its inner call. Requests that this call proves to be over are forgotten.
 */
static __noinline struct level *outer_level(struct pt_regs *ctx, struct thread *t, u32 probe, u64 ret)
{
	u64 sp = REGS_SP(ctx);
	struct level *l;

	drop_stale(t, sp);
	l = top_level(t);
	if (!l)
		return NULL;
	if (is_nested(l, sp, ret, probe)) {
		if (l->state == LEVEL_FAILED)
			l->state = LEVEL_RETRIED;
		note_inner(l, sp, REGS_IP(ctx), ret, probe);
		return l;
	}
	if (l->sp == sp) {
		abandon(t, l);
		t->nr--;
	}
	return NULL;
}

static __always_inline int begin_alloc(struct pt_regs *ctx, bool has_loop)
{
	u64 cookie = probe_cookie(ctx);
	u32 probe = (u32)cookie;
	struct thread *t = thread_current(cookie);
	const struct probe_info *info = bpf_map_lookup_elem(&probes, &probe);
	struct heap_event ev = {};
	struct level *l;
	u64 ret = 0;

	if (!t || !info)
		return 0;
	if (t->nr || info->flags & PROBE_DELEGATES)
		ret = call_ret(ctx, info);
	if (t->nr && outer_level(ctx, t, probe, ret))
		return 0;
	l = push_level(ctx, t, probe, info->flags, ret);
	l->size = call_size(ctx, info);
	l->old = info->old_arg ? call_arg(ctx, info, info->old_arg) : 0;
	l->out = info->out_arg ? call_arg(ctx, info, info->out_arg) : 0;
	l->stack = stack_take(ctx, t, info, has_loop);
	if (l->old) {
		ev.h.kind = EVENT_REALLOC_BEGIN;
		ev.h.fn = info->fn;
		ev.old_addr = l->old;
		ev.size = l->size;
		ev.stack = l->stack;
		send(t, &ev);
	}
	return 0;
}

SEC("uprobe")
int enter_alloc(struct pt_regs *ctx)
{
	return begin_alloc(ctx, true);
}

/* Before Linux 5.17 there is no bpf_loop(). */
SEC("uprobe")
int enter_alloc_unrolled(struct pt_regs *ctx)
{
	return begin_alloc(ctx, false);
}

/* The block that a finished call gave, 0 if it failed. */
static __always_inline u64 call_result(const struct pt_regs *ctx, const struct probe_info *info,
				       const struct level *l)
{
	u64 result = REGS_RESULT(ctx);

	if (info->flags & PROBE_32BIT)
		result = (u32)result;
	if (info->kind == KIND_OUT)
		return (u32)result == 0 ? read_word(info, l->out) : 0;
	if (info->kind == KIND_MMAP || info->kind == KIND_MREMAP) {
		u64 failed = info->flags & PROBE_32BIT ? 0xffffffffULL : ~0ULL;

		return result == failed ? 0 : result;
	}
	return result;
}

/* The request @l has its result: tell, and forget it unless it may try again. */
static __always_inline void finish(struct thread *t, struct level *l, const struct probe_info *info, u64 addr)
{
	struct heap_event ev = {};

	ev.h.kind = info->kind == KIND_REALLOC || info->kind == KIND_MREMAP ? EVENT_REALLOC_END : EVENT_ALLOC;
	ev.h.flags = l->state == LEVEL_RETRIED ? EVENT_RETRY : 0;
	ev.h.fn = info->fn;
	ev.addr = addr;
	ev.old_addr = l->old;
	ev.size = l->size;
	ev.stack = l->stack;
	if (addr)
		t->last_alloc = addr;
	/* Of a failure that was told before nothing more is to be told. */
	if ((addr || l->state != LEVEL_RETRIED) && !send(t, &ev) && l->old && (addr || !l->size))
		count_lost(t->pid, EVENT_FREE);
	if (!addr && info->flags & PROBE_DELEGATES)
		l->state = LEVEL_FAILED;
}

/*
 * A call whose stack pointer at entry was @sp returns: the end of a request, or of the malloc inside
 * an operator new, or of nothing that concerns us.
 */
static __always_inline int leave(struct pt_regs *ctx, u64 cookie, u64 sp)
{
	u32 probe = (u32)cookie;
	struct thread *t = thread_returning(cookie);
	const struct probe_info *info = bpf_map_lookup_elem(&probes, &probe);
	const struct probe_info *outer;
	u64 result;

	if (!t || !info)
		return 0;
	for (int i = MAX_LEVELS - 1; i >= 0; i--) {
		/* Plain &levels[i] may become a pointer and a negative number; Linux 7.2 refuses that. */
		struct level *l = level_at(t, i);

		if (i >= t->nr)
			continue;
		if (l->sp == sp && l->probe == probe) {
			t->nr = i;
			if (info->kind != KIND_FREE && info->kind != KIND_MUNMAP)
				finish(t, l, info, call_result(ctx, info, l));
			return 0;
		}
		if (!(l->flags & PROBE_DELEGATES) || !is_inner(l, sp, probe))
			continue;
		outer = bpf_map_lookup_elem(&probes, &l->probe);
		if (!outer)
			return 0;
		if (outer->kind == KIND_FREE) {
			t->nr = i;
			return 0;
		}
		result = call_result(ctx, info, l);
		finish(t, l, outer, result);
		t->nr = result ? i : i + 1;
		return 0;
	}
	return 0;
}

SEC("uretprobe")
int leave_call(struct pt_regs *ctx)
{
	u64 cookie = probe_cookie(ctx);
	u32 probe = (u32)cookie;
	const struct probe_info *info = bpf_map_lookup_elem(&probes, &probe);

	return info ? leave(ctx, cookie, REGS_CALL_SP(ctx, word_bytes(info))) : 0;
}

/* On the ret instructions of an operator new that calls no malloc: the return address is not popped yet. */
SEC("uprobe")
int at_ret(struct pt_regs *ctx)
{
	return leave(ctx, probe_cookie(ctx), REGS_SP(ctx));
}

/* What a release says of itself besides its block. */
enum release { RELEASE_BARE, RELEASE_STACK, RELEASE_STACK_UNROLLED };

static __always_inline int begin_free(struct pt_regs *ctx, enum release what)
{
	u64 cookie = probe_cookie(ctx);
	u32 probe = (u32)cookie;
	struct thread *t = thread_current(cookie);
	const struct probe_info *info = bpf_map_lookup_elem(&probes, &probe);
	struct heap_event ev = {};
	struct level *l;
	u64 ret = 0;

	if (!t || !info)
		return 0;
	ev.addr = call_arg(ctx, info, info->old_arg);
	if (!ev.addr)
		return 0;
	if (t->nr || info->flags & PROBE_DELEGATES)
		ret = call_ret(ctx, info);
	l = t->nr ? outer_level(ctx, t, probe, ret) : NULL;
	if (l) {
		/*
		 * The free that a delete hands its block to is the end of the delete, unless its own end is still
		 * to come: it may jump on into another one.
		 */
		if (l->state == LEVEL_INTERNAL || (l->flags & PROBE_DELEGATES && l->old == ev.addr &&
						   !(info->flags & (PROBE_DELEGATES | PROBE_RETURNS))))
			t->nr--;
		return 0;
	}
	ev.h.kind = EVENT_FREE;
	ev.h.fn = info->fn;
	if (info->kind == KIND_MUNMAP) {
		ev.h.flags = EVENT_UNMAP;
		ev.size = call_arg(ctx, info, info->size_arg);
	} else if (ev.addr == t->last_alloc) {
		ev.h.flags = EVENT_TEMPORARY;
	}
	t->last_alloc = 0;
	if (what != RELEASE_BARE)
		ev.stack = stack_take(ctx, t, info, what == RELEASE_STACK);
	send(t, &ev);
	if (info->flags & (PROBE_DELEGATES | PROBE_RETURNS)) {
		l = push_level(ctx, t, probe, info->flags, ret);
		l->old = ev.addr;
		l->state = LEVEL_TOLD;
	}
	return 0;
}

SEC("uprobe")
int enter_free(struct pt_regs *ctx)
{
	return begin_free(ctx, RELEASE_BARE);
}

/* The same with the stack of the release (--check). */
SEC("uprobe")
int enter_free_stack(struct pt_regs *ctx)
{
	return begin_free(ctx, RELEASE_STACK);
}

SEC("uprobe")
int enter_free_stack_unrolled(struct pt_regs *ctx)
{
	return begin_free(ctx, RELEASE_STACK_UNROLLED);
}

/* On a call of free that the C library makes for itself: probe is the free's. */
SEC("uprobe")
int internal_call(struct pt_regs *ctx)
{
	u64 cookie = probe_cookie(ctx);
	u32 probe = (u32)cookie;
	struct thread *t = thread_current(cookie);
	const struct probe_info *info = bpf_map_lookup_elem(&probes, &probe);
	struct level *l;

	if (!t || !info)
		return 0;
	drop_stale(t, REGS_SP(ctx));
	l = push_level(ctx, t, probe, 0, 0);
	l->sp = REGS_CALL_SP(ctx, word_bytes(info));
	l->state = LEVEL_INTERNAL;
	return 0;
}

enum { LINKER_IS_DONE, LINKER_ADDS, LINKER_REMOVES }; /* enum r_state of <link.h> */

/* Mappings that come make no known one wrong; what the linker does is in its r_state, @at bytes from the hook. */
static __always_inline bool may_remove(const struct pt_regs *ctx, struct process_state *process, s32 at)
{
	u32 before = process->linker_state, now;

	if (!at || bpf_probe_read_user(&now, sizeof(now), (void *)(REGS_IP(ctx) + at)))
		return true;
	process->linker_state = now;
	return now == LINKER_REMOVES || (now != LINKER_ADDS && before != LINKER_ADDS);
}

/* The dynamic linker has changed the list of loaded objects (r_debug, _dl_debug_state). */
SEC("uprobe")
int maps_changed(struct pt_regs *ctx)
{
	u32 pid = current_ids() >> 32;
	struct process_state *process = process_of(pid);
	u64 cookie = probe_cookie(ctx);

	if (!state.is_on || !process)
		return 0;
	if (may_remove(ctx, process, (u32)cookie))
		__sync_fetch_and_add(&process->removals, 1);
	__sync_fetch_and_add(&process->epoch, 1);
	__sync_fetch_and_add(&state.generation, 1);
	send_process(EVENT_MAPS, 0, pid, 0);
	/* user/launch.c swallows it; to a program whose ptracer has died it does nothing by default. */
	if (config.stops_at_maps)
		bpf_send_signal_thread(SIGNAL_CHILD);
	return 0;
}

SEC("raw_tracepoint/sched_process_exit")
int thread_exit(void *ctx)
{
	u32 tid = (u32)current_ids();
	struct thread *t = bpf_map_lookup_elem(&threads, &tid);

	if (config.max_followed)
		bpf_map_delete_elem(&sharers, &tid);
	if (!t)
		return 0;
	for (u32 i = 0; i < MAX_LEVELS; i++)
		if (i < t->nr)
			abandon(t, &t->levels[i]);
	bpf_map_delete_elem(&threads, &tid);
	bpf_map_delete_elem(&walks, &tid);
	return 0;
}

SEC("raw_tracepoint/sched_process_exec")
int process_exec(const u64 *args /* the task, the number it had before, what it executes */)
{
	u32 pid = current_ids() >> 32, caller = args[1];
	struct process_state *process;

	/* It is a number of the first PID namespace. */
	if (config.pid_ns_ino && caller == bpf_get_current_pid_tgid() >> 32)
		caller = pid;

	if (child_has_own_memory(pid)) {
		bpf_map_delete_elem(&threads, &pid);
		bpf_map_delete_elem(&walks, &pid);
		return 0;
	}
	process = process_of(pid);
	if (!process)
		return 0;
	process->execs++;
	bpf_get_current_comm(process->comm, sizeof(process->comm));
	__sync_fetch_and_add(&state.generation, 1);
	bpf_map_delete_elem(&threads, &pid);
	bpf_map_delete_elem(&walks, &pid);
	/* A thread that is not the first one takes its number over; source_bpf.c wants to know. */
	bpf_map_delete_elem(&threads, &caller);
	bpf_map_delete_elem(&walks, &caller);
	send_process(EVENT_EXEC, 0, pid, caller);
	return 0;
}

/* In the parent, before the new task runs. */
SEC("raw_tracepoint/task_newtask")
int task_new(struct bpf_raw_tracepoint_args *ctx)
{
	return child_begins((const void *)ctx->args[0], ctx->args[1]);
}

char LICENSE[] SEC("license") = "GPL";
