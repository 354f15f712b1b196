/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a target may be changed, and how it is left. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "user/inject/code.h"
#include "user/inject/left.h"
#include "user/inject/pages.h"
#include "user/inject/piece_object.h"
#include "user/inject/process_private.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"

enum { MAX_STACK = 64 << 10 };

/* A tracer that is not us has the threads. */
static int refuse_tracer(struct injection *in, pid_t tracer)
{
	struct proc_stat stat;

	if (proc_read_stat(&stat, tracer))
		return 0; /* it has ended meanwhile */
	return inject_fail(in, -EOPNOTSUPP, "it is traced by %s (PID %d) already", stat.comm, (int)tracer);
}

int inject_refuse(struct injection *in)
{
	struct proc_status status;
	bool is_32bit = false;
	int err = proc_read_status(&status, in->pid);

	if (!piece_object_bytes())
		return inject_fail(in, -EOPNOTSUPP, "not on this CPU yet");
	if (sysconf(_SC_PAGESIZE) != PIECE_PAGE)
		return inject_fail(in, -EOPNOTSUPP, "the pages of this kernel are not of 4096 bytes");
	if (err)
		return inject_fail(in, err, "%s", strerror(-err));
	if (!proc_is_32bit(&is_32bit, in->pid) && is_32bit)
		return inject_fail(in, -EOPNOTSUPP, "it is a 32-bit program");
	if (status.tracer_pid && status.tracer_pid != getpid() && refuse_tracer(in, status.tracer_pid))
		return -EOPNOTSUPP;
	if (status.seccomp)
		return inject_fail(in, -EOPNOTSUPP, "it is under seccomp, which may forbid mmap");
	if (inject_has_shadow_stack(in->pid))
		return inject_fail(in, -EOPNOTSUPP,
				   "it has a shadow stack, so no return address can be replaced");
	return 0;
}

/* ---- threads ---- */

static bool is_in_patch(const struct inject_patch *patches, size_t nr, u64 word)
{
	for (size_t i = 0; i < nr; i++)
		if (word > patches[i].addr && word < patches[i].addr + patches[i].closed)
			return true;
	return false;
}

/* Words of the piece; not the address that replaces return addresses. */
static bool is_in_code(const struct injection *in, u64 word)
{
	return word != in->returned && word >= in->region && word < in->region + PIECE_CODE_BYTES;
}

static bool is_in_island(const struct inject_island *island, u64 word)
{
	return word >= island->start && word < island->start + island->bytes;
}

/* Words of code of ours. */
static bool is_in_piece(const struct injection *in, u64 word)
{
	if (is_in_code(in, word))
		return true;
	for (u32 i = 0; i < in->nr_islands; i++)
		if (is_in_island(&in->islands[i], word))
			return true;
	/* Only hops are left in the list of a target whose functions are as before. */
	for (u32 i = 0; i < in->nr_patches; i++)
		if (in->patches[i].is_hop && word >= in->patches[i].addr &&
		    word < in->patches[i].addr + in->patches[i].len)
			return true;
	return false;
}

bool inject_has_code_at(const struct injection *in, taddr_t addr)
{
	return addr == in->returned || is_in_piece(in, addr);
}

struct owned_pointer {
	u64 pointer;
	pid_t tid;
};

static int compare_pointers(const void *a, const void *b)
{
	const struct owned_pointer *x = a, *y = b;

	return (x->pointer > y->pointer) - (x->pointer < y->pointer);
}

static bool has_equal(const struct owned_pointer *sorted, size_t nr)
{
	for (size_t i = 1; i < nr; i++)
		if (sorted[i].pointer == sorted[i - 1].pointer)
			return true;
	return false;
}

/* Does @tid run the kernel's code only (io_uring)? Its thread pointer is that of the thread that has made it. */
static bool is_worker(pid_t tid)
{
	struct proc_stat stat;

	return !proc_read_stat(&stat, tid) && stat.is_kernel_worker;
}

bool inject_has_twins(const struct stopped *s)
{
	auto_free struct owned_pointer *all = calloc(s->all.nr + 1, sizeof(*all));
	size_t nr = 0, nr_kept = 0;

	for (size_t i = 0; i < s->all.nr && all; i++) {
		all[nr].tid = s->all.threads[i].tid;
		if (!inject_thread_pointer(&all[nr].pointer, s->all.threads[i].tid))
			nr++;
	}
	if (nr)
		qsort(all, nr, sizeof(*all), compare_pointers);
	if (!has_equal(all, nr))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!is_worker(all[i].tid))
			all[nr_kept++] = all[i];
	return has_equal(all, nr_kept);
}

/* A look at the program counters and stacks of all threads, for addresses that matter. */
struct stack_look {
	const struct injection *in; /* NULL = look at patches */
	const struct inject_patch *patches;
	size_t nr;
};

/* Is @word, a program counter, where a call returns to the piece? On a stack it is the address that calls return to. */
static bool is_returning(const struct stack_look *l, u64 word)
{
	return l->in && l->in->returned && word == l->in->returned;
}

static bool process_leave_matters(const struct stack_look *l, u64 word)
{
	return l->in ? is_in_piece(l->in, word) : is_in_patch(l->patches, l->nr, word);
}

/*
 * Read the stack of @t at @sp. Returns the number of words. By process_vm_readv(2) it ends at the guard page: memory of
 * the target can be read through /proc/PID/mem beyond that, up into the next thread's stack.
 */
static size_t process_leave_read_stack(const struct stopped_thread *t, int mem, taddr_t sp, u64 *stack)
{
	size_t len = MAX_STACK + PIECE_PAGE - sp % PIECE_PAGE, nr = 0;
	const struct iovec to = { .iov_base = stack, .iov_len = len };
	const struct iovec from = { .iov_base = (void *)(uintptr_t)sp, .iov_len = len };
	ssize_t got = process_vm_readv(t->tid, &to, 1, &from, 1, 0);

	if (got > 0)
		return (size_t)got / sizeof(*stack);
	/* The stack may end earlier. */
	while (nr < MAX_STACK / sizeof(*stack) && !inject_read(mem, sp + nr * sizeof(*stack), stack + nr,
							       PIECE_PAGE - (sp + nr * 8) % PIECE_PAGE))
		nr += (PIECE_PAGE - (sp + nr * 8) % PIECE_PAGE) / sizeof(*stack);
	return nr;
}

/* Is there all of the signal frame behind word @i by which a program counter is known? */
static bool is_whole(size_t i, size_t nr)
{
	return i + code_native()->nr_pc_words < nr;
}

/* May word @i of a stack be the program counter to which a signal handler returns? */
static bool process_leave_is_saved_pc(const u64 *stack, size_t i, size_t nr)
{
	return !is_whole(i, nr) || code_native()->is_saved_pc(stack + i);
}

/*
 * Does the program counter of @t, or a word on its stack, matter? A signal handler returns to such a word. Code of ours
 * calls nothing outside, so a thread is in it only by these two: calls inside it leave words on the stack that stay in
 * frames of the program.
 */
static bool process_leave_sees(const struct stack_look *l, const struct stopped *s,
			       const struct stopped_thread *t, int mem, u64 *stack)
{
	taddr_t pc = 0, sp = 0;
	size_t nr;

	if (threads_regs(s, t, &pc, &sp))
		return true;
	if (process_leave_matters(l, pc) || is_returning(l, pc))
		return true;
	nr = process_leave_read_stack(t, mem, sp & ~7ULL, stack);
	for (size_t i = 0; i < nr; i++) {
		if (process_leave_matters(l, stack[i]) && (!l->in || process_leave_is_saved_pc(stack, i, nr)))
			return true;
		if (is_returning(l, stack[i]) && is_whole(i, nr) && process_leave_is_saved_pc(stack, i, nr))
			return true;
	}
	return false;
}

static bool any_sees(const struct stack_look *l, const struct stopped *s, int mem)
{
	auto_free u64 *stack = malloc(MAX_STACK + PIECE_PAGE);

	for (size_t i = 0; stack && i < s->all.nr; i++)
		if (process_leave_sees(l, s, &s->all.threads[i], mem, stack))
			return true;
	return !stack;
}

bool inject_is_inside(const struct stopped *s, int mem, const struct inject_patch *patches, size_t nr)
{
	const struct stack_look l = { .patches = patches, .nr = nr };

	return any_sees(&l, s, mem);
}

/* ---- islands ---- */

/* Islands of libraries that are gone. */
struct dead_islands {
	struct inject_island islands[INJECT_MAX_ISLANDS];
	u32 nr;
};

/* Does a listed jump lead to @island? A short one leads there by a hop, which is listed, too. */
static bool is_led_to(const struct injection *in, const struct inject_island *island)
{
	const struct code_cpu *cpu = code_native();

	for (u32 i = 0; i < in->nr_patches; i++) {
		const struct inject_patch *p = &in->patches[i];

		if (p->len == cpu->jump_bytes && is_in_island(island, cpu->jump_target(p->addr, p->new)))
			return true;
	}
	return false;
}

/* A thread that may be in an island. */
struct island_look {
	taddr_t pc, held[ARRAY_SIZE(((struct code_cpu *)0)->scratch)]; /* held: in registers */
	const u64 *stack; /* with words below the stack pointer, through which the piece jumps */
	size_t nr;
};

/* May a thread be in @island? In the piece, it may go there. A signal handler may have interrupted it. */
static bool is_used_by(const struct injection *in, const struct inject_island *island,
		       const struct island_look *l)
{
	bool is_inside = is_in_island(island, l->pc), is_in_call = is_in_code(in, l->pc), has_word = false;
	const u64 *stack = l->stack;
	const size_t nr = l->nr;

	for (size_t i = 0; i < ARRAY_SIZE(l->held); i++)
		has_word |= is_in_island(island, l->held[i]);

	for (size_t i = 0; i < nr; i++) {
		bool is_pc = process_leave_is_saved_pc(stack, i, nr);

		is_in_call |= is_pc && is_in_code(in, stack[i]);
		is_inside |= is_pc && is_in_island(island, stack[i]);
		has_word |= is_in_island(island, stack[i]);
	}
	return is_inside || (is_in_call && has_word);
}

/* Leave islands in @dead in which @t may be. */
static void spare_islands(struct dead_islands *dead, const struct injection *in, const struct stopped *s,
			  const struct stopped_thread *t, int mem, u64 *stack)
{
	const struct code_cpu *code = code_native();
	struct island_look l = { .stack = stack };
	const struct cpu *cpu;
	struct cpu_regs regs;
	u32 kept = 0;
	taddr_t sp;

	if (threads_all_regs(s, t, &cpu, &regs)) {
		dead->nr = 0;
		return;
	}
	l.pc = cpu_get(cpu, &regs, CPU_PC);
	sp = cpu_get(cpu, &regs, CPU_SP) & ~7ULL;
	for (size_t i = 0; i < ARRAY_SIZE(l.held) && code->scratch[i]; i++)
		l.held[i] = cpu_get_word(cpu, &regs, code->scratch[i]);
	/* The piece has used the words below, so they are mapped. */
	l.nr = process_leave_read_stack(t, mem, sp - (is_in_code(in, l.pc) ? code->below_stack : 0), stack);
	for (u32 i = 0; i < dead->nr; i++)
		if (!is_used_by(in, &dead->islands[i], &l))
			dead->islands[kept++] = dead->islands[i];
	dead->nr = kept;
}

static void find_dead_islands(struct dead_islands *dead, const struct injection *in, const struct stopped *s,
			      int mem)
{
	auto_free u64 *stack = NULL;

	dead->nr = 0;
	for (u32 i = 0; i < in->nr_islands; i++)
		if (!is_led_to(in, &in->islands[i]))
			dead->islands[dead->nr++] = in->islands[i];
	if (!dead->nr)
		return;
	stack = malloc(MAX_STACK + PIECE_PAGE);
	for (size_t i = 0; stack && i < s->all.nr && dead->nr; i++)
		spare_islands(dead, in, s, &s->all.threads[i], mem, stack);
	if (!stack)
		dead->nr = 0;
}

static void unlist_island(struct injection *in, const struct inject_island *island)
{
	u32 at = 0;

	while (in->islands[at].start != island->start)
		at++;
	/* If heaptap is killed in between, its guard finds one island twice. */
	in->islands[at] = in->islands[in->nr_islands - 1];
	__atomic_store_n(&in->nr_islands, in->nr_islands - 1, __ATOMIC_RELEASE);
}

int inject_drop_islands(struct injection *in, struct stopped *s, int mem)
{
	struct dead_islands dead;
	int err = 0;

	find_dead_islands(&dead, in, s, mem);
	for (u32 i = 0; i < dead.nr && !err; i++) {
		const struct inject_island *island = &dead.islands[i];

		/* Off the list first: later the program may have mapped other memory there. */
		unlist_island(in, island);
		err = inject_save(in, mem);
		if (!err)
			err = inject_unmap(s, island->start, island->bytes);
		if (err)
			in->islands[in->nr_islands++] = *island;
	}
	return err;
}

/* ---- leaving ---- */

/* Write the bytes of @p as they were. False: it still leads to us. */
static bool restore_patch(int mem, const struct inject_patch *p)
{
	u8 now[CODE_MAX_JUMP];

	if (inject_read(mem, p->addr, now, p->len))
		return true;
	if (!memcmp(now, p->new, p->len))
		return !inject_write(mem, p->addr, p->old, p->len);
	if (!memcmp(now, p->old, p->len))
		return true;
	/* A debugger that has its breakpoint on our jump will write it back. Else the code is not ours. */
	return !code_native()->is_under_breakpoint(now, p->new, p->len);
}

/* Restore patches @first and on that are hops, or that are none. Returns how many of them still lead to us. */
static u32 process_leave_restore(struct injection *in, int mem, u32 first, u8 is_hop)
{
	u32 nr = first, nr_bad = 0;

	for (u32 i = first; i < in->nr_patches; i++) {
		bool is_meant = in->patches[i].is_hop == is_hop;

		if (is_meant && restore_patch(mem, &in->patches[i]))
			continue;
		nr_bad += is_meant;
		in->patches[nr++] = in->patches[i];
	}
	in->nr_patches = nr;
	return nr_bad;
}

int inject_restore_code(struct injection *in, int mem, u32 first)
{
	return process_leave_restore(in, mem, first, 0) ? -EBUSY : 0;
}

int inject_restore_hops(struct injection *in, int mem, u32 first)
{
	return process_leave_restore(in, mem, first, 1) ? -EBUSY : 0;
}

static int unmap_all(const struct injection *in, struct stopped *s)
{
	int err = inject_unmap_region(s, in->region);

	for (u32 i = 0; i < in->nr_islands && !err; i++)
		err = inject_unmap(s, in->islands[i].start, in->islands[i].bytes);
	return err;
}

/*
 * All threads are stopped. -EAGAIN: the functions are as before, but the memory must stay for now. -EBUSY: the memory
 * must stay for ever.
 */
static int process_leave_take_out(struct injection *in, struct stopped *s, int mem)
{
	const struct stack_look l = { .in = in };
	int err = inject_restore_code(in, mem, 0);

	if (err)
		return inject_fail(in, err, "%s", "a jump of ours, or a change of it, cannot be taken back");
	/* A hook that is under way reads its list of calls. */
	if (inject_restore_returns(in, s, mem, true) || any_sees(&l, s, mem))
		return -EAGAIN;
	err = inject_restore_returns(in, s, mem, false);
	if (!err)
		err = inject_restore_hops(in, mem, 0);
	if (!err)
		err = inject_pages_return(in, s, 0);
	if (err == -EPERM)
		return inject_fail(in, -EBUSY, "%s", "seccomp may forbid it to unmap memory by now");
	if (err)
		return err == -EINPROGRESS || err == -ETIME ? err : -EBUSY;
	return unmap_all(in, s) ? -EBUSY : 0;
}

static int try_take_out(struct injection *in)
{
	u64 begin = clock_now_ns(), took;
	auto_close int mem = inject_open_memory(in->pid);
	struct stopped s;
	int err = mem < 0 ? mem : threads_stop(&s, in->pid, begin + INJECT_STOP_NS);

	*in->why = '\0';
	if (err && err != -ETIME)
		return inject_fail(in, err, "its threads cannot be stopped: %s", inject_reason(in, err));
	if (!err)
		err = inject_check_region(in);
	if (!err)
		err = process_leave_take_out(in, &s, mem);
	threads_resume(&s);
	if (err == -ETIME)
		err = inject_fail(in, err, "its threads do not run: %s", inject_reason(in, err));
	took = clock_now_ns() - begin;
	in->take_out_ns = took > in->take_out_ns ? took : in->take_out_ns;
	return err;
}

bool inject_pause(u64 *ns, u64 end_ns)
{
	bool is_time = clock_pause(*ns, end_ns);

	if (*ns < INJECT_PAUSE_MAX_NS)
		*ns += *ns / 4;
	return is_time;
}

int inject_take_out(struct injection *in, u64 time_ns)
{
	u64 end_ns = clock_now_ns() + time_ns, pause_ns = INJECT_PAUSE_NS;
	int err;

	if (in->state != INJECT_IN)
		return 0;
	if (!in->region) {
		in->state = INJECT_NOTHING;
		return 0;
	}
	err = inject_set_on(in, false);
	if (err && err != -ESRCH)
		return inject_fail(in, err, "%s", strerror(-err));
	if (!err) {
		do
			err = try_take_out(in);
		while ((err == -EAGAIN || err == -ETIME) && inject_pause(&pause_ns, end_ns));
	}
	/* The process has executed another program, or ended. */
	if (err == -ESRCH)
		err = 0;
	if (!err)
		in->state = INJECT_NOTHING;
	else if (err == -EAGAIN || err == -EBUSY)
		in->state = INJECT_LEFT;
	return err == -EAGAIN ? -EBUSY : err;
}
