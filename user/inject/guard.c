/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts the guard, and the processes that change targets. */
#include "user/inject/guard_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/inject/process_private.h"
#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/helper_process.h"
#include "user/lib/privileges.h"
#include "user/lib/proc.h"

#define GUARD_COMM "guard-of-heapta" /* the kernel keeps 15 bytes */

/* When heaptap has died nobody waits for its guard. */
#define LEAVE_ALONE_NS (10 * INJECT_LEAVE_NS)

/* For one target, where a user waits for all. */
#define ROUND_NS (INJECT_LEAVE_NS / 10)

enum { FROZEN_NS = 1000 * 1000 * 1000 }; /* between looks whether a frozen target runs */

enum { TAKE_OUT_HELPERS = 4 }; /* a target waits most of the time: for its threads to stop */

enum { LOOK_NS = 1000 * 1000 }; /* at a heaptap that ends, and at a target that is traced */

static bool is_same_process(const struct injection *in)
{
	struct proc_stat stat;

	return !proc_read_stat(&stat, in->pid) && stat.start_time == in->start_time;
}

/*
 * Take the code out of @in, by a process that ends: the kernel lets go of threads that it has asked to stop, and that
 * cannot stop now. 0 or -errno.
 */
static int take_out_by_child(struct injection *in, u64 time_ns)
{
	pid_t pid = fork();
	int status;

	/* There cannot be so many processes, or there is no memory. */
	if (pid < 0)
		return inject_take_out(in, time_ns);
	if (!pid)
		_exit(-inject_take_out(in, time_ns));
	return helper_process_wait(pid, &status) && WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/*
 * Take the code out of all targets in which it still is. What heaptap could not take out itself, it has told. Nobody
 * hears us any more: heaptap doctor finds what is left. True: the threads of one do not run.
 */
static bool take_out_all(struct guard_memory *shared, u64 time_ns)
{
	bool is_frozen = false;

	for (u32 i = 0; i < shared->nr_used; i++) {
		struct injection *in = &shared->targets[i];

		if (in->state == INJECT_LEFT && !shared->is_over)
			in->state = INJECT_IN;
		if (in->state == INJECT_IN && is_same_process(in))
			is_frozen |= take_out_by_child(in, time_ns) == -ETIME;
	}
	return is_frozen;
}

/*
 * Wait until @heaptap, which was killed, has let go of the processes that it traced (run --follow): before, nobody else
 * can stop them. A process that ends closes its files first, and lets go of those later, together with its children
 * (kernel/exit.c: exit_files before exit_notify).
 */
static void await_end_of(pid_t heaptap)
{
	u64 end_ns = clock_now_ns() + LEAVE_ALONE_NS;

	while (getppid() == heaptap && clock_pause(LOOK_NS, end_ns))
		;
}

/* Wait until nobody else changes targets. False: @end_ns has passed. */
static bool guard_take_turn(struct guard_memory *shared, u64 end_ns)
{
	while (__atomic_exchange_n(&shared->is_changing, 1, __ATOMIC_SEQ_CST))
		if (!clock_pause(LOOK_NS, end_ns))
			return false;
	return true;
}

static void end_turn(struct guard_memory *shared)
{
	__atomic_store_n(&shared->is_changing, 0, __ATOMIC_SEQ_CST);
}

static bool is_traced(pid_t pid)
{
	struct proc_status status;

	return !proc_read_status(&status, pid) && status.tracer_pid;
}

/*
 * Take the code out of all targets that nobody traces, of @nr parts of the list that number @part. False: one still has
 * it. Heaptap will try again, and tell.
 */
static bool take_out_untraced(struct guard_memory *shared, u32 part, u32 nr, u64 time_ns)
{
	bool is_out = true;

	for (u32 i = part; i < shared->nr_used; i += nr) {
		struct injection *in = &shared->targets[i];

		if (in->state != INJECT_IN || !is_same_process(in) ||
		    (!is_traced(in->pid) && !inject_take_out(in, time_ns)))
			continue;
		in->state = INJECT_IN;
		is_out = false;
	}
	return is_out;
}

/* A user waits. True: no target has the code any more. */
static bool answer_lifeline(struct guard_memory *shared)
{
	u64 end_ns = clock_now_ns() + INJECT_LEAVE_NS;
	bool is_out;

	if (!guard_take_turn(shared, end_ns))
		return false;
	/* A target that keeps a thread in our code does not keep the others waiting. */
	is_out = take_out_untraced(shared, 0, 1, 0);
	while (!is_out && clock_pause(LOOK_NS, end_ns))
		is_out = take_out_untraced(shared, 0, 1, ROUND_NS);
	end_turn(shared);
	return is_out;
}

/* Has a target that was not dropped the code still? */
static bool has_code_left(const struct guard_memory *shared)
{
	for (u32 i = 0; i < shared->nr_used; i++)
		if (shared->targets[i].state == INJECT_IN)
			return true;
	return false;
}

/* The pipe @end has its end, and so has heaptap; or that much time has passed. */
static bool is_end(int end, int timeout_ms)
{
	struct pollfd p = { .fd = end };

	while (poll(&p, 1, timeout_ms) < 0)
		;
	return p.revents;
}

static void guard_outlive(void *memory, int end, int lifeline, bool is_brief)
{
	struct guard_memory *shared = memory;
	int fds[] = { end, lifeline };

	if (is_brief) {
		take_out_all(shared, 0);
		return;
	}
	helper_process_keep(fds, ARRAY_SIZE(fds), false);
	privileges_drop(PRIVILEGES_GUARDING, 0);
	if (shared->is_over && !has_code_left(shared))
		_exit(0);
	if (!shared->is_over && !is_end(fds[0], 0) && answer_lifeline(shared))
		close(fds[1]);
	is_end(fds[0], -1);
	if (!shared->is_over)
		await_end_of(shared->heaptap);
	/* A target that keeps a thread in our code does not keep the others waiting. */
	take_out_all(shared, 0);
	while (take_out_all(shared, LEAVE_ALONE_NS))
		clock_pause(FROZEN_NS, UINT64_MAX);
	_exit(0);
}

static int guard_start(struct guard *g)
{
	void *mem = mmap(NULL, sizeof(*g->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED)
		return -errno;
	g->shared = mem;
	g->shared->heaptap = getpid();
	return pipe2(g->fds, O_CLOEXEC) ? -errno : 0;
}

int guard_new(struct guard **out)
{
	struct guard *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	g->fds[0] = g->fds[1] = g->file = -1;
	err = guard_start(g);
	if (err) {
		guard_free(g);
		return err;
	}
	*out = g;
	return 0;
}

void guard_end(struct guard *g)
{
	__atomic_store_n(&g->shared->is_over, true, __ATOMIC_SEQ_CST);
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	if (g->shared)
		guard_end(g);
	for (int i = 0; i < 2; i++)
		if (g->fds[i] >= 0)
			close(g->fds[i]);
	if (g->file >= 0)
		close(g->file);
	if (g->shared && !has_code_left(g->shared))
		helper_process_wait(g->shared->pid, NULL);
	if (g->shared)
		munmap(g->shared, sizeof(*g->shared));
	free(g);
}

struct injection *guard_add(struct guard *g, pid_t pid, u64 start_time)
{
	struct proc_stat stat = { 0 };

	if (proc_read_stat(&stat, getpid()))
		return NULL;
	for (u32 i = 0; i < GUARD_MAX_TARGETS; i++) {
		struct injection *in = &g->shared->targets[i];

		if (in->state != INJECT_FREE)
			continue;
		if (i == g->shared->nr_used)
			g->shared->nr_used++;
		memset(in, 0, sizeof(*in));
		in->owner = getpid();
		in->owner_start = stat.start_time;
		in->pid = pid;
		in->start_time = start_time;
		in->state = INJECT_NOTHING;
		in->keeps_file = g->tracer;
		in->file = -1;
		return in;
	}
	return NULL;
}

struct injection *guard_copy(struct guard *g, const struct injection *of, pid_t pid, u64 start_time)
{
	struct injection *in = guard_add(g, pid, start_time);

	if (!in)
		return NULL;
	in->region = of->region;
	in->nr_places = of->nr_places;
	in->nr_shards = of->nr_shards;
	in->nr_buckets = of->nr_buckets;
	in->has_no_counter = of->has_no_counter;
	in->ways = of->ways;
	in->returned = of->returned;
	in->nr_patches = of->nr_patches;
	in->nr_islands = of->nr_islands;
	in->nr_copies = of->nr_copies;
	memcpy(in->patches, of->patches, sizeof(in->patches));
	memcpy(in->islands, of->islands, sizeof(in->islands));
	memcpy(in->copies, of->copies, sizeof(in->copies));
	__atomic_store_n(&in->state, of->state, __ATOMIC_RELEASE);
	return in;
}

const struct tracer_changer *guard_changer(struct guard *g)
{
	g->changer = (struct tracer_changer){ .ctx = g->shared,
					      .change = guard_obey,
					      .leave = guard_leave,
					      .outlive = guard_outlive,
					      .end = g->fds[0],
					      .pid = &g->shared->pid };
	return &g->changer;
}

void guard_set_tracer(struct guard *g, const struct guard_tracer *t)
{
	g->tracer = t;
}

int guard_take_file(struct guard *g)
{
	int fd = g->file;

	g->file = -1;
	return fd;
}

void guard_drop(struct injection *in)
{
	in->state = INJECT_FREE;
}

static int inject_guard_put_in(const struct change *c)
{
	return inject_put_in(c->in, c->sites, c->nr, c->file);
}

static int inject_guard_grow(const struct change *c)
{
	return inject_grow(c->in, c->nr_places, c->nr_shards);
}

static int inject_guard_take_out(const struct change *c)
{
	return inject_take_out(c->in, INJECT_LEAVE_NS);
}

static int inject_guard_renew(const struct change *c)
{
	return inject_renew(c->in);
}

static int (*const makers[NR_CHANGES])(const struct change *c) = {
	[CHANGE_PUT_IN] = inject_guard_put_in,
	[CHANGE_GROW] = inject_guard_grow,
	[CHANGE_TAKE_OUT] = inject_guard_take_out,
	[CHANGE_RENEW] = inject_guard_renew,
};

/* The tracer of a program that heaptap has started is heaptap itself. */
static bool is_traced_by_us(pid_t pid)
{
	struct proc_status status;

	return !proc_read_status(&status, pid) && status.tracer_pid == getpid();
}

/* As fork(). The child changes targets. */
static pid_t fork_helper(void)
{
	struct courtesy_hurry hurry;
	pid_t pid = helper_process_fork();

	if (pid)
		return pid;
	helper_process_settle(GUARD_COMM);
	/* The target is stopped for most of this, and the process ends with it. */
	courtesy_at_once(&hurry);
	privileges_drop(PRIVILEGES_GUARDING, 0);
	return 0;
}

static int change_in_helper(struct guard *g, const struct change *c)
{
	int status;
	pid_t pid;

	g->shared->result = -EIO;
	pid = fork_helper();
	if (pid < 0)
		return -errno;
	if (!pid) {
		g->shared->result = makers[c->kind](c);
		_exit(0);
	}
	if (helper_process_wait(pid, &status) && WIFSIGNALED(status))
		return inject_fail(c->in, -EIO, "the process that changes it was ended by signal %d",
				   WTERMSIG(status));
	return g->shared->result;
}

static int guard_change(struct guard *g, const struct change *c)
{
	bool is_ours = false;
	int err;

	/* A guard that was killed in its turn does not keep us waiting. */
	guard_take_turn(g->shared, clock_now_ns() + 2 * INJECT_LEAVE_NS);
	*c->in->why = '\0';
	err = g->tracer ? guard_order(g, c, &is_ours) : 0;
	if (!is_ours) {
		*c->in->why = '\0';
		err = is_traced_by_us(c->in->pid) ? makers[c->kind](c) : change_in_helper(g, c);
	}
	end_turn(g->shared);
	return err;
}

int guard_put_in(struct guard *g, struct injection *in, const struct inject_site *sites, size_t nr,
		 const struct inject_file *f)
{
	const struct change c = { .kind = CHANGE_PUT_IN, .in = in, .sites = sites, .nr = nr, .file = f };

	return guard_change(g, &c);
}

int guard_grow(struct guard *g, struct injection *in, u32 nr_places, u32 nr_shards)
{
	const struct change c = {
		.kind = CHANGE_GROW, .in = in, .nr_places = nr_places, .nr_shards = nr_shards
	};

	return guard_change(g, &c);
}

int guard_take_out(struct guard *g, struct injection *in)
{
	const struct change c = { .kind = CHANGE_TAKE_OUT, .in = in };

	return in->state == INJECT_IN ? guard_change(g, &c) : 0;
}

void guard_take_out_many(struct guard *g)
{
	pid_t pids[TAKE_OUT_HELPERS];

	guard_take_turn(g->shared, clock_now_ns() + 2 * INJECT_LEAVE_NS);
	for (u32 i = 0; i < TAKE_OUT_HELPERS; i++) {
		pids[i] = fork_helper();
		if (!pids[i]) {
			take_out_untraced(g->shared, i, TAKE_OUT_HELPERS, 0);
			_exit(0);
		}
	}
	for (u32 i = 0; i < TAKE_OUT_HELPERS; i++)
		helper_process_wait(pids[i], NULL);
	end_turn(g->shared);
}

int guard_renew(struct guard *g, struct injection *in)
{
	const struct change c = { .kind = CHANGE_RENEW, .in = in };

	return g->tracer ? guard_change(g, &c) : inject_renew(in);
}
