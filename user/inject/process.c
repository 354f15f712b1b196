/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Brings the piece of code into a target, and leads functions to it. */
#include "user/inject/process.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/thread_call.h"
#include "inline/shape.h"
#include "user/inject/left.h"
#include "user/inject/pages.h"
#include "user/inject/plan.h"
#include "user/inject/process_private.h"
#include "user/lib/cgroup_dir.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/maps.h"

int inject_fail(struct injection *in, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(in->why, sizeof(in->why), fmt, args);
	va_end(args);
	return err;
}

const char *inject_reason(const struct injection *in, int err)
{
	if (err != -ETIME)
		return thread_call_reason(err);
	return cgroup_dir_is_frozen(in->pid) ? "its control group is frozen" : "one does not run";
}

/* ---- islands ---- */

/* A hole of @bytes in the address space, near @near. 0 = none. */
static taddr_t find_hole(pid_t pid, taddr_t near, u64 bytes)
{
	taddr_t end = 65536, best = 0;
	struct maps_reader *maps;
	struct map_line line;
	u64 nearest = code_native()->reach;

	if (maps_open(&maps, pid))
		return 0;
	while (maps_next(maps, &line) == 1) {
		/* One page on either side stays free: a stack may grow, a guard may be meant. */
		u64 size = line.start > end ? line.start - end : 0;
		taddr_t low = end + PIECE_PAGE, high = line.start - PIECE_PAGE - bytes;
		taddr_t at = high < near ? high : low;
		u64 away = at < near ? near - at : at - near;

		end = line.end;
		if (size < bytes + 2 * PIECE_PAGE || away >= nearest)
			continue;
		best = at;
		nearest = away;
	}
	maps_close(maps);
	return best;
}

static int make_island(struct injection *in, struct stopped *s, size_t nr, taddr_t near,
		       struct inject_island *out)
{
	u64 bytes = inject_plan_bytes(nr);
	int err;

	out->start = find_hole(s->all.pid, near, bytes);
	out->bytes = bytes;
	if (!out->start || in->nr_islands == INJECT_MAX_ISLANDS)
		return -ENOSPC;
	err = inject_map(s, out->start, bytes, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (u64)-1, 0);
	if (err)
		return err;
	/* Before the first jump: whoever takes the code out if we die must know where a thread may be. */
	in->islands[in->nr_islands] = *out;
	__atomic_store_n(&in->nr_islands, in->nr_islands + 1, __ATOMIC_RELEASE);
	return 0;
}

/* ---- functions ---- */

static int write_probe(const struct injection *in, int mem, const struct inject_site *site)
{
	const struct piece_probe probe = { .call = site->call,
					   .ip = site->addr,
					   .shape = piece_shape_of(&site->call) };

	if (site->kind >= PIECE_INTERNAL_CALL)
		return 0;
	return inject_write(mem,
			    in->region + PIECE_SHARED_OFFSET + offsetof(struct piece_shared, probes) +
				    site->index * sizeof(probe),
			    &probe, sizeof(probe));
}

/* The putting in of the functions of a file. */
struct putting {
	struct injection *in;
	struct stopped *s;
	int mem;
	const struct inject_site *sites;
	size_t nr;
	const struct inject_file *file;
	struct inject_plan plan;
	struct inject_island island;
};

static int process_read_code(void *ctx, taddr_t addr, void *bytes, size_t len)
{
	const struct putting *p = ctx;
	int err = inject_read(p->mem, addr, bytes, len);

	if (!err)
		inject_hide_own(p->file, addr, bytes, len);
	return err;
}

/*
 * Write all jumps, where the code is still that of the plan, or a copy that has them: a tracer may have written a
 * breakpoint meanwhile.
 */
static int write_jumps(const struct putting *p)
{
	const struct inject_plan *plan = &p->plan;
	int err = 0;

	for (size_t i = 0; i < plan->nr && !err; i++) {
		const struct inject_patch *patch = &plan->patches[i];
		u8 now[CODE_MAX_JUMP];

		err = inject_read(p->mem, patch->addr, now, patch->len);
		if (!err && memcmp(now, patch->old, patch->len) && memcmp(now, patch->new, patch->len))
			err = -EAGAIN;
	}
	for (size_t i = 0; i < plan->nr && !err; i++)
		err = inject_write(p->mem, plan->patches[i].addr, plan->patches[i].new, plan->patches[i].len);
	return err;
}

/* Take back what process_carry_out() has begun, which failed with @err. */
static int process_undo(const struct putting *p, u32 first_patch, u32 first_copy, int err)
{
	struct injection *in = p->in;

	if (inject_restore_code(in, p->mem, first_patch) || inject_restore_hops(in, p->mem, first_patch))
		return inject_fail(in, err == -EAGAIN ? -EIO : err,
				   "its code cannot be written, and jumps of ours stay: %s", strerror(-err));
	if (inject_pages_return(in, p->s, first_copy))
		return inject_fail(in, err == -EAGAIN ? -EIO : err,
				   "its code cannot be written, and copies of it stay: %s", strerror(-err));
	if (err == -EAGAIN || err == -EOPNOTSUPP)
		return err;
	return inject_fail(in, err, "its code cannot be written: %s", strerror(-err));
}

/*
 * Write the plan to the target. The list of patches is complete before the first one is in. After an error patches stay
 * in the list if their jumps cannot be taken back.
 */
static int process_carry_out(const struct putting *p)
{
	const struct inject_plan *plan = &p->plan;
	struct injection *in = p->in;
	u32 first = in->nr_patches, first_copy;
	int err = inject_write(p->mem, p->island.start, plan->stubs, p->island.bytes);

	for (size_t i = 0; i < p->nr && !err; i++)
		err = write_probe(in, p->mem, &p->sites[i]);
	if (plan->nr > INJECT_MAX_PATCHES - first)
		err = inject_fail(in, -ENOSPC, "it has too many allocator functions");
	if (err)
		return err;
	first_copy = in->nr_copies;
	memcpy(&in->patches[first], plan->patches, plan->nr * sizeof(*plan->patches));
	__atomic_store_n(&in->nr_patches, first + (u32)plan->nr, __ATOMIC_RELEASE);
	err = inject_save(in, p->mem);
	if (!err)
		err = inject_pages_copy(in, p->s, p->mem, plan->patches, plan->nr, p->file);
	if (!err)
		err = write_jumps(p);
	return err ? process_undo(p, first, first_copy, err) : 0;
}

/* Where the island should be: where the file begins, or in a large one amid its functions, which must reach it. */
static taddr_t island_place(const struct putting *p)
{
	taddr_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < p->nr; i++) {
		low = p->sites[i].addr < low ? p->sites[i].addr : low;
		high = p->sites[i].addr > high ? p->sites[i].addr : high;
	}
	if (high < p->file->near || high - p->file->near < code_native()->reach / 4)
		return p->file->near;
	return low + (high - low) / 2;
}

static int process_put_in(struct putting *p)
{
	struct injection *in = p->in;
	u32 nr_before = in->nr_patches;
	int err;

	if (!in->region && inject_has_twins(p->s))
		return inject_fail(in, -EOPNOTSUPP, "two of its threads have the same thread pointer");
	err = in->region ? inject_check_region(in) : inject_make_region(in, p->s, p->mem);
	if (err == -ESRCH || err == -EINPROGRESS)
		return err;
	in->state = INJECT_IN;
	if (err)
		return err == -EOPNOTSUPP ? err
					  : inject_fail(in, err, "memory cannot be mapped in it: %s",
							inject_reason(in, err));
	err = inject_drop_islands(in, p->s, p->mem);
	if (!err)
		err = make_island(in, p->s, p->nr, island_place(p), &p->island);
	if (err == -EINPROGRESS)
		return err;
	if (err)
		return inject_fail(in, err, "no memory can be mapped near its code: %s", strerror(-err));
	err = inject_plan_make(&p->plan, p->sites, p->nr, &p->island, &in->ways, process_read_code, p,
			       in->why);
	if (!err && inject_is_inside(p->s, p->mem, p->plan.patches, p->plan.nr))
		err = -EAGAIN;
	if (!err)
		err = process_carry_out(p);
	/* Jumps that cannot be taken back need their island, which is the last one. */
	if (err && in->nr_patches == nr_before && !inject_unmap(p->s, p->island.start, p->island.bytes))
		in->nr_islands--;
	inject_plan_fini(&p->plan);
	return err;
}

static int try_put_in(struct injection *in, const struct inject_site *sites, size_t nr,
		      const struct inject_file *f)
{
	u64 begin = clock_now_ns(), took;
	auto_close int mem = inject_open_memory(in->pid);
	struct stopped s;
	struct putting p = { .in = in, .s = &s, .mem = mem, .sites = sites, .nr = nr, .file = f };
	int err = mem < 0 ? mem : threads_stop(&s, in->pid, begin + INJECT_STOP_NS);

	if (err)
		return inject_fail(in, err, "its threads cannot be stopped: %s", inject_reason(in, err));
	err = process_put_in(&p);
	threads_resume(&s);
	took = clock_now_ns() - begin;
	in->put_in_ns = took > in->put_in_ns ? took : in->put_in_ns;
	return err;
}

int inject_try_put_in(struct injection *in, const struct inject_site *sites, size_t nr,
		      const struct inject_file *f)
{
	int err = inject_refuse(in);

	if (!err && !in->region)
		err = inject_take_left(in);
	if (err)
		return err;
	if (nr > INJECT_MAX_PATCHES - in->nr_patches)
		return inject_fail(in, -ENOSPC, "it has too many allocator functions");
	in->nr_in_place = 0;
	return try_put_in(in, sites, nr, f);
}

int inject_stays_inside(struct injection *in)
{
	return inject_fail(in, -EBUSY, "a thread stays inside the code that is to be changed");
}

int inject_put_in(struct injection *in, const struct inject_site *sites, size_t nr,
		  const struct inject_file *f)
{
	u64 end_ns = clock_now_ns() + INJECT_LEAVE_NS, pause_ns = INJECT_PAUSE_NS;
	int err = inject_try_put_in(in, sites, nr, f);

	while (err == -EAGAIN && inject_pause(&pause_ns, end_ns))
		err = try_put_in(in, sites, nr, f);
	return err == -EAGAIN ? inject_stays_inside(in) : err;
}

bool inject_is_there(const struct injection *in)
{
	return in->region && !inject_check_region(in);
}

int inject_set_on(struct injection *in, bool is_on)
{
	/* Opened before the look: if the process executes a program in between, this is the memory that it had. */
	auto_close int mem = in->region ? inject_open_memory(in->pid) : -1;
	u64 value = is_on ? piece_is_on : 0;
	int err;

	if (!in->region)
		return 0;
	err = mem < 0 ? mem : inject_check_region(in);
	return err ? err
		   : inject_write(mem,
				  in->region + PIECE_CONTROL_OFFSET + offsetof(struct piece_control, is_on),
				  &value, sizeof(value));
}

void inject_forget_range(struct injection *in, taddr_t start, taddr_t end)
{
	u32 nr = 0;

	for (u32 i = 0; i < in->nr_patches; i++)
		if (in->patches[i].addr < start || in->patches[i].addr >= end)
			in->patches[nr++] = in->patches[i];
	in->nr_patches = nr;
	inject_forget_copies(in, start, end);
}
