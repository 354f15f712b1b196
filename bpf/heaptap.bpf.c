/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The probes: allocator calls of the traced processes become events. */
#include "bpf/call.bpf.h"
#include "bpf/children.bpf.h"
#include "bpf/chosen.bpf.h"
#include "bpf/mapping.bpf.h"
#include "bpf/note.bpf.h"

const volatile struct source_config config SEC(".rodata.config") = {};
struct source_state state = {};

/* In more the thread has slept, others have run, or the function itself took long: page faults, zeros. */
enum { MOST_INSIDE_NS = 16 * 1024 };

/* A call returns: how long has it taken since the program at its entry, if no other one has run since? */
static __always_inline void measure_inside(struct inflight *t, bool is_return)
{
	u64 from_ns = t->entered_ns, ns = bpf_ktime_get_ns() - from_ns;

	t->entered_ns = 0;
	if (!is_return || !from_ns || ns > MOST_INSIDE_NS)
		return;
	__sync_fetch_and_add(&state.inside_ns, ns);
	__sync_fetch_and_add(&state.nr_inside, 1);
	if (!state.least_inside_ns || ns < state.least_inside_ns)
		state.least_inside_ns = ns;
}

/* Part of measuring: a program runs at the entry of a function. */
static __always_inline void count_step(const struct call_probe *p)
{
	if (state.is_measured && p->flags & PROBE_STEPPED)
		__sync_fetch_and_add(&state.nr_own_steps, 1);
}

static __always_inline int begin_alloc(struct pt_regs *ctx, enum stack_how how)
{
	u64 cookie = probe_cookie(ctx);
	u32 probe = (u32)cookie;
	struct inflight *t = thread_current(cookie);
	const struct call_probe *p = bpf_map_lookup_elem(&probes, &probe);

	if (t && p) {
		count_step(p);
		life_enter_alloc(call_at(ctx), t, probe, p, how);
	}
	if (t && state.is_measured)
		t->entered_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("uprobe")
int enter_alloc(struct pt_regs *ctx)
{
	return begin_alloc(ctx, STACK_BY_LOOP);
}

/* Before Linux 5.17 there is no bpf_loop(). */
SEC("uprobe")
int enter_alloc_unrolled(struct pt_regs *ctx)
{
	return begin_alloc(ctx, STACK_UNROLLED);
}

/* A call ends whose stack pointer at entry was @sp. */
static __always_inline int leave_at(struct pt_regs *ctx, u64 cookie, u64 sp, bool is_return)
{
	u32 probe = (u32)cookie;
	struct inflight *t = thread_returning(cookie);
	const struct call_probe *p = bpf_map_lookup_elem(&probes, &probe);

	if (t && state.is_measured)
		measure_inside(t, is_return);
	if (t && p && (t->nr || !config.max_sampled))
		life_leave(call_at(ctx), t, probe, p, sp);
	/* Heaptap traces the thread by ptrace meanwhile, and discards the signal. */
	if (t && state.leaving_pid && t->pid == state.leaving_pid && !t->nr && thread_is_ptraced(false))
		bpf_send_signal_thread(SIGNAL_CHILD);
	return 0;
}

SEC("uretprobe")
int leave_call(struct pt_regs *ctx)
{
	u64 cookie = probe_cookie(ctx);
	u32 probe = (u32)cookie;
	const struct call_probe *p = bpf_map_lookup_elem(&probes, &probe);

	return p ? leave_at(ctx, cookie, call_sp_inside(call_at(ctx), p), true) : 0;
}

/* On the ret instructions of a function, where a uretprobe would do harm: the return address is not popped yet. */
SEC("uprobe")
int at_ret(struct pt_regs *ctx)
{
	return leave_at(ctx, probe_cookie(ctx), REGS_SP(ctx), false);
}

/* @how: 0 = without a stack. */
static __always_inline int begin_free(struct pt_regs *ctx, u32 how)
{
	u64 cookie = probe_cookie(ctx);
	u32 probe = (u32)cookie;
	struct inflight *t = thread_current(cookie);
	const struct call_probe *p = bpf_map_lookup_elem(&probes, &probe);

	if (t && p) {
		count_step(p);
		life_enter_free(call_at(ctx), t, probe, p, how);
	}
	if (t)
		t->entered_ns = 0;
	return 0;
}

SEC("uprobe")
int enter_free(struct pt_regs *ctx)
{
	return begin_free(ctx, 0);
}

/* Like enter_free(), and records the stack of the release (--check). */
SEC("uprobe")
int enter_free_stack(struct pt_regs *ctx)
{
	return begin_free(ctx, STACK_BY_LOOP);
}

SEC("uprobe")
int enter_free_stack_unrolled(struct pt_regs *ctx)
{
	return begin_free(ctx, STACK_UNROLLED);
}

/* On a call of free that the C library makes for itself: the cookie is that of the free. */
SEC("uprobe")
int internal_call(struct pt_regs *ctx)
{
	u64 cookie = probe_cookie(ctx);
	u32 probe = (u32)cookie;
	struct inflight *t = thread_current(cookie);
	const struct call_probe *p = bpf_map_lookup_elem(&probes, &probe);

	if (t && p)
		life_internal_call(call_at(ctx), t, probe, p);
	return 0;
}

/* At the entry of each function for a moment, before anything else is put in: how often are they called? */
SEC("uprobe")
int count_call(void *ctx)
{
	(void)ctx;
	__sync_fetch_and_add(&state.nr_counted, 1);
	return 0;
}

enum { SIGINFO_CODE_AT = 8, SIGINFO_KERNEL = 0x80 }; /* in struct siginfo, but for mips; one of its values */

enum { LINKER_IS_DONE, LINKER_ADDS, LINKER_REMOVES }; /* enum r_state of <link.h> */

/* May known mappings be wrong now? New ones harm none. r_state of the linker, @at bytes from the hook, says more. */
static __always_inline bool may_remove(const struct pt_regs *ctx, struct process_state *process, s32 at)
{
	u32 before = process->linker_state, now;

	if (!at || bpf_probe_read_user(&now, sizeof(now), (void *)(REGS_IP(ctx) + at)))
		return true;
	process->linker_state = now;
	return now == LINKER_REMOVES || (now != LINKER_ADDS && before != LINKER_ADDS);
}

/* The dynamic linker is changing the list of loaded objects, or has done so (r_debug, _dl_debug_state). */
SEC("uprobe")
int maps_changed(struct pt_regs *ctx)
{
	u32 pid = current_ids() >> 32;
	struct process_state *process = process_of(pid);
	u64 cookie = probe_cookie(ctx);
	bool stops;

	if (!state.is_on || !process)
		return 0;
	if (may_remove(ctx, process, (u32)cookie))
		__sync_fetch_and_add(&process->removals, 1);
	__sync_fetch_and_add(&process->epoch, 1);
	__sync_fetch_and_add(&state.generation, 1);
	stops = config.stops_at_maps && stop_thread();
	send_process(EVENT_MAPS, stops ? EVENT_STOPS : 0, pid, process->epoch, process->execs);
	return 0;
}

SEC("uprobe")
int at_note(struct pt_regs *ctx)
{
	return note_at(ctx, true);
}

SEC("uprobe")
int at_note_unrolled(struct pt_regs *ctx)
{
	return note_at(ctx, false);
}

/* A followed process calls ptrace() of the C library, which fails as long as heaptap is the tracer. */
SEC("uprobe")
int before_ptrace(struct pt_regs *ctx)
{
	u64 cookie = probe_cookie(ctx);
	u32 pid = current_ids() >> 32;
	struct thread_stop why = { .why = THREAD_STOP_TRACER };

	(void)cookie;
	why.request = (u32)REGS_ARG1(ctx);
	why.pid = (s32)REGS_ARG2(ctx);
	if (state.is_on && process_of(owner_of(pid)) &&
	    (why.request == THREAD_STOP_TRACEME || why.request == THREAD_STOP_ATTACH ||
	     why.request == THREAD_STOP_SEIZE))
		stop_thread_for(&why, why.request == THREAD_STOP_TRACEME ? pid : (u32)why.pid);
	return 0;
}

/* 1: somebody traces the thread, or it has waited until *@end_ns. */
static long look_for_tracer(u32 nr, void *end_ns)
{
	(void)nr;
	return thread_is_ptraced(true) || bpf_ktime_get_ns() > *(const u64 *)end_ns;
}

/*
 * The process ends, and its memory is still there. The first thread that gets here waits, half a second at most, until
 * heaptap traces it by ptrace: whatever becomes of heaptap, it goes on then. Needs bpf_loop() (Linux 5.17) and another
 * CPU for heaptap.
 */
static __always_inline int wait_at_end(void)
{
	u32 pid = current_ids() >> 32;
	struct process_state *process = process_of(pid);
	u64 end_ns = bpf_ktime_get_ns() + TRACER_WAIT_NS;

	/* Children may be many and short: they do not wait. */
	if (!state.is_on || !process || process->is_ending || process->is_followed || thread_is_ptraced(true))
		return 0;
	process->is_ending = 1;
	if (send_process(EVENT_MAPS, EVENT_ENDING, pid, process->epoch, process->execs))
		if (bpf_loop(TRACER_LOOKS, look_for_tracer, &end_ns, 0) == TRACER_LOOKS)
			bpf_loop(TRACER_LOOKS, look_for_tracer, &end_ns, 0);
	return 0;
}

/* The process calls _exit(). */
SEC("uprobe")
int before_exit(struct pt_regs *ctx)
{
	u64 cookie = probe_cookie(ctx);

	(void)cookie;
	return wait_at_end();
}

/* Where the kernel ends all threads of a process: by a signal, or by a system call. */
SEC("kprobe")
int group_exit(void *ctx)
{
	(void)ctx;
	return wait_at_end();
}

SEC("raw_tracepoint/sched_process_exit")
int thread_exit(void *ctx)
{
	u64 ids = current_ids();
	u32 tid = (u32)ids;
	struct inflight *t = bpf_map_lookup_elem(&threads, &tid);

	if (config.max_followed)
		bpf_map_delete_elem(&sharers, &tid);
	sharer_ends();
	code_check(ids >> 32);
	if (!t)
		return 0;
	life_end(ctx, t);
	bpf_map_delete_elem(&threads, &tid);
	bpf_map_delete_elem(&walks, &tid);
	return 0;
}

/* Before the task leaves its memory (Linux 6.10). */
SEC("raw_tracepoint/sched_prepare_exec")
int prepare_exec(void *ctx)
{
	sharer_ends();
	code_check(current_ids() >> 32);
	return 0;
}

/*
 * A process that is not traced has executed a program, which may have been chosen. An emulator (memcheck-amd64-linux,
 * qemu-arm) would take probes for code of its program: user space warns of it.
 */
static __always_inline int untraced_exec(u32 pid)
{
	char comm[16];

	if ((!state.is_shared && !config.has_chosen) || bpf_get_current_comm(comm, sizeof(comm)))
		return 0;
	chosen_take(pid, comm);
	if (!state.is_shared)
		return 0;
	_Pragma("unroll") for (int i = 0; i < 15; i++) if (comm[i] == '-') state.hyphen_pid = pid;
	return 0;
}

SEC("raw_tracepoint/sched_process_exec")
int process_exec(const u64 *args /* the task, the PID that it had before, the program */)
{
	u32 pid = current_ids() >> 32, caller = args[1];
	struct process_state *process;

	/* The kernel gives the PID of the first PID namespace. */
	if (config.pid_ns_ino && caller == bpf_get_current_pid_tgid() >> 32)
		caller = pid;

	if (child_has_own_memory(pid)) {
		bpf_map_delete_elem(&threads, &pid);
		bpf_map_delete_elem(&walks, &pid);
		return 0;
	}
	process = process_of(pid);
	if (!process)
		return untraced_exec(pid);
	bpf_map_delete_elem(&watched_codes, &pid);
	process->execs++;
	process->brk = 0;
	bpf_get_current_comm(process->comm, sizeof(process->comm));
	__sync_fetch_and_add(&state.generation, 1);
	bpf_map_delete_elem(&threads, &pid);
	bpf_map_delete_elem(&walks, &pid);
	/* A thread that is not the first one takes over the PID. user/source/source_bpf.c needs its former TID. */
	bpf_map_delete_elem(&threads, &caller);
	bpf_map_delete_elem(&walks, &caller);
	send_process(EVENT_EXEC, 0, pid, caller, process->execs);
	return 0;
}

/* The kernel forces a SIGILL without a cause in the code where a return probe is not that of the last call. */
static __always_inline bool is_bad_return(u32 sig, s32 code)
{
	return sig == SIGNAL_ILL && code == SIGINFO_KERNEL;
}

/*
 * A signal takes effect. By SIGTRAP the kernel ends a process that has copied code with breakpoints in it, and runs the
 * copy, and by SIGILL one whose calls return in another order than they began: nobody else would say why.
 */
SEC("raw_tracepoint/signal_deliver")
int signal_deliver(void *ctx)
{
	const u64 *args = ctx; /* the signal, its siginfo, the sigaction, which begins with the handler */
	u32 pid = current_ids() >> 32, sig = args[0];
	struct process_state *process;
	u64 handler = 1, pc = 0;
	s32 code = 0;

	if ((sig != SIGNAL_TRAP && sig != SIGNAL_ILL) || !state.is_on)
		return 0;
	process = process_of(owner_of(pid));
	if (!process || process->trap_pc || process->has_bad_return ||
	    bpf_probe_read_kernel(&code, sizeof(code), (const char *)args[1] + SIGINFO_CODE_AT))
		return 0;
	if (is_bad_return(sig, code)) {
		process->has_bad_return = 1;
		send_process(EVENT_LOSSES, 0, owner_of(pid), 0, 0);
		return 0;
	}
	if (sig != SIGNAL_TRAP || code <= 0 ||
	    bpf_probe_read_kernel(&handler, sizeof(handler), (const void *)args[2]) || handler ||
	    bpf_get_stack(ctx, &pc, sizeof(pc), BPF_F_USER_STACK) < 0)
		return 0;
	pc -= TRAP_SKIP;
	if (bpf_probe_read_user(process->trap_code, sizeof(process->trap_code), (const void *)pc))
		return 0;
	process->trap_pc = pc;
	send_process(EVENT_LOSSES, 0, owner_of(pid), 0, 0);
	return 0;
}

/* In the parent, before the new task runs. */
SEC("raw_tracepoint/task_newtask")
int task_new(struct bpf_raw_tracepoint_args *ctx)
{
	return child_begins((const void *)ctx->args[0], ctx->args[1], false);
}

/* Where blocks are sampled, and children followed. */
SEC("raw_tracepoint/task_newtask")
int task_new_sampled(struct bpf_raw_tracepoint_args *ctx)
{
	return child_begins((const void *)ctx->args[0], ctx->args[1], true);
}

SEC("raw_tracepoint/sys_enter")
int system_call(const u64 *args /* the registers, the number */)
{
	return mapping_begins((const void *)args[0], args[1]);
}

SEC("raw_tracepoint/sys_exit")
int system_call_done(const u64 *args /* the registers, the result */)
{
	return mapping_ends((const void *)args[0], (s64)args[1], true);
}

SEC("raw_tracepoint/sys_exit")
int system_call_done_unrolled(const u64 *args)
{
	return mapping_ends((const void *)args[0], (s64)args[1], false);
}

char LICENSE[] SEC("license") = "GPL";
