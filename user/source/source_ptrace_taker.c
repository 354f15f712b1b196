/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ptrace source beside a taker (user/source/probe_taker.h), which sees the calls: what is left to breakpoints. And
 * without one: a call to wait for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fallback/guardian.h"
#include "inline/layout.h"
#include "user/inject/guard.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/source/inline_life.h"
#include "user/source/probe_taker.h"
#include "user/source/source_ptrace_private.h"

static struct ptrace_source *source_ptrace_taker_source_of(const struct source *s)
{
	return (struct ptrace_source *)(uintptr_t)s;
}

bool source_ptrace_wait_for(struct source *source, const struct call_wish *wish)
{
	return call_wish_set(guardian_wish(source_ptrace_taker_source_of(source)->guardian), wish);
}

/* ---- tables for walks: breakpoints need them, and most programs have none but those that report changes ---- */

static int grow_tables(struct ptrace_source *s, u32 id)
{
	size_t before = s->max_tables;
	int err = array_reserve(s->has_table, s->max_tables, (size_t)id + 1);

	if (!err && s->max_tables > before)
		memset(s->has_table + before, 0, (s->max_tables - before) * sizeof(*s->has_table));
	return err;
}

static int source_ptrace_taker_give_table(struct ptrace_source *s, const struct module *m, struct elf *elf)
{
	int err = grow_tables(s, m->id);

	if (err || s->has_table[m->id])
		return err;
	s->has_table[m->id] = true;
	return ptrace_place.new_file(s, m, elf);
}

static int source_ptrace_taker_new_file(void *ctx, const struct module *m, struct elf *elf)
{
	struct ptrace_source *s = ctx;

	return s->walks_stacks ? source_ptrace_taker_give_table(s, m, elf) : 0;
}

/* From now on the guardian walks stacks, through all that @t has mapped. */
static int source_ptrace_taker_begin_walks(struct ptrace_source *s, const struct target *t)
{
	int err = 0;

	s->walks_stacks = true;
	for (size_t i = 0; i < t->maps.nr && !err; i++) {
		const struct module *m = t->maps.maps[i].module;
		struct elf *elf;

		if (!m || m->fd < 0 || (m->id < s->max_tables && s->has_table[m->id]) ||
		    elf_open(&elf, m->fd))
			continue;
		err = source_ptrace_taker_give_table(s, m, elf);
		elf_close(elf);
	}
	return err;
}

/* ---- putting in ---- */

static int source_ptrace_taker_add_probes(void *ctx, u32 first, const struct call_probe *probes, u32 nr)
{
	return ptrace_place.add_probes(ctx, first, probes, nr);
}

static int source_ptrace_taker_add_notes(void *ctx, u32 first, const struct note_probe *notes, u32 nr)
{
	return ptrace_place.add_notes(ctx, first, notes, nr);
}

static u32 behind_calls(const struct probed_file *f)
{
	u32 at = 0;

	while (at < f->nr_points && f->points[at].kind < POINT_NOTE)
		at++;
	return at;
}

/* Put in what is left to breakpoints: not what would go with a page of the taker's. */
static int put_in_rest(const struct ptrace_source *s, const struct target *t, const struct mapping *map,
		       const struct probed_file *f, u32 first)
{
	const struct probe_taker *taker = s->options.taker;
	auto_free struct probe_point *points = calloc(f->nr_points + 1, sizeof(*points));
	struct probed_file rest = *f;

	if (!points)
		return -ENOMEM;
	rest.points = points;
	rest.nr_points = 0;
	for (u32 i = first; i < f->nr_points; i++)
		if (!probe_point_is_spare(f->points[i].kind) ||
		    !taker->is_in_copy(taker->ctx, t->pid, map->bias + f->points[i].vaddr))
			points[rest.nr_points++] = f->points[i];
	return rest.nr_points ? source_ptrace_put_in(s, t, map, &rest, 0) : 0;
}

static int source_ptrace_taker_put_in(void *ctx, const struct target *t, const struct mapping *map,
				      const struct probed_file *f, struct elf *elf)
{
	struct ptrace_source *s = ctx;
	const struct probe_taker *taker = s->options.taker;
	struct attached *a = source_ptrace_find(s, t->pid);
	int err = taker->put_in(taker->ctx, t, map, f, elf);
	bool is_taken = err != PROBE_TAKER_DECLINES;

	if (is_taken && err)
		return err;
	if (!is_taken && a)
		a->is_declined = true;
	err = 0;
	if (!s->walks_stacks && (!is_taken || f->nr_notes))
		err = source_ptrace_taker_begin_walks(s, t);
	if (err)
		return err;
	return is_taken ? put_in_rest(s, t, map, f, behind_calls(f)) : source_ptrace_put_in(s, t, map, f, 0);
}

static int source_ptrace_taker_forget_range(void *ctx, pid_t pid, taddr_t start, taddr_t end)
{
	const struct ptrace_source *s = ctx;

	s->options.taker->forget_range(s->options.taker->ctx, pid, start, end);
	return ptrace_place.forget_range(ctx, pid, start, end);
}

static bool source_ptrace_taker_is_intact(void *ctx, pid_t pid, taddr_t start, taddr_t end)
{
	const struct ptrace_source *s = ctx;

	return s->options.taker->is_intact(s->options.taker->ctx, pid, start, end);
}

const struct placing_ops ptrace_place_for_taker = {
	.is_per_mapping = true,
	.max_probes = PIECE_MAX_PROBES,
	.add_probes = source_ptrace_taker_add_probes,
	.add_notes = source_ptrace_taker_add_notes,
	.new_file = source_ptrace_taker_new_file,
	.put_in = source_ptrace_taker_put_in,
	.forget_range = source_ptrace_taker_forget_range,
	.is_intact = source_ptrace_taker_is_intact,
};

/* ---- for the taker ---- */

static void place_again(const struct source *source, pid_t pid)
{
	struct ptrace_source *s = source_ptrace_taker_source_of(source);

	if (guardian_do(s->guardian, COMMAND_REMOVE, pid, 0, UINT64_MAX))
		debug("ptrace: PID %d: has gone", pid);
	placing_forget(&s->placing, pid);
}

static void source_ptrace_taker_number(const struct source *source, pid_t pid, taddr_t addr)
{
	const struct ptrace_source *s = source_ptrace_taker_source_of(source);

	if (!s->is_detached && guardian_do(s->guardian, COMMAND_NUMBER, pid, addr, 0))
		debug("ptrace: PID %d: has gone", pid);
}

static void source_ptrace_taker_leave(const struct source *source, pid_t pid)
{
	source_ptrace_leave(source_ptrace_taker_source_of(source), pid);
}

static bool source_ptrace_taker_unchanged(const struct source *source, pid_t pid)
{
	return placing_is_intact(&source_ptrace_taker_source_of(source)->placing, pid);
}

static int source_ptrace_taker_hold(void *ctx, pid_t pid, u64 max_ns)
{
	const struct ptrace_source *s = ctx;

	return s->is_detached ? -ESRCH : guardian_do(s->guardian, COMMAND_HOLD, pid, max_ns, 0);
}

static void source_ptrace_taker_release(void *ctx, pid_t pid)
{
	const struct ptrace_source *s = ctx;

	if (guardian_do(s->guardian, COMMAND_RELEASE, pid, 0, 0))
		debug("ptrace: PID %d: has gone", pid);
}

static int source_ptrace_taker_change(void *ctx, pid_t pid, int fd)
{
	const struct ptrace_source *s = ctx;

	return guardian_change(s->guardian, pid, fd);
}

static void have_changed(const struct source *source, struct guard_tracer *out)
{
	*out = (struct guard_tracer){ source_ptrace_taker_source_of(source), source_ptrace_taker_hold,
				      source_ptrace_taker_release, source_ptrace_taker_change };
}

const struct inline_life inline_life_ptrace = {
	.ops = &source_ptrace,
	.advice = "--backend ptrace",
	.place_again = place_again,
	.number = source_ptrace_taker_number,
	.leave = source_ptrace_taker_leave,
	.unchanged = source_ptrace_taker_unchanged,
	.have_changed = have_changed,
};
