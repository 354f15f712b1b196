/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fills the tables that the piece of code in a target reads. The target may write to settings, and not to tables. */
#include "user/source/inline_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/maps.h"
#include "user/lib/proc.h"
#include "user/unwind/cfi_ahead.h"
#include "user/unwind/unwind_tables.h"

enum { LOOK_SHARE = 20 }; /* a look takes one part of so many of the time */

struct inline_stacks {
	pid_t pid;
	struct piece_shared *shared; /* borrowed */
	struct piece_tables *tables; /* borrowed */
	struct unwind_tables *unwind;
	struct piece_region *regions; /* owned; of the look under way */
	u32 nr_asked;		      /* of shared->nr_unknown_stacks, when they were looked for last */
	u64 next_look_ns;
	u32 seq;
};

/* ---- unwind tables ---- */

/* The memory of unwind tables. */
struct table_memory {
	pid_t pid;
	struct piece_tables *tables; /* borrowed */
	struct inline_room room;
	bool has_told;
};

static int inline_stacks_open_shard(void *ctx, u32 nr, struct shard **out)
{
	struct table_memory *m = ctx;

	if (nr >= PIECE_MAX_SHARDS)
		return -ENOSPC;
	*out = &m->tables->shards[nr];
	return 0;
}

static void inline_stacks_close_shard(void *ctx, struct shard *shard)
{
	(void)ctx;
	(void)shard;
}

static bool has_shard(const struct unwind_map *map)
{
	return map->shard < PIECE_MAX_SHARDS;
}

/* The number of shards that the target must be able to read. */
static u32 shards_needed(const struct unwind_maps *maps)
{
	u32 nr = 0;

	for (u32 i = 0; i < maps->nr; i++)
		if (has_shard(&maps->maps[i]) && maps->maps[i].shard >= nr)
			nr = maps->maps[i].shard + 1;
	return nr;
}

/* Walks must not read shards @nr and on. */
static void leave_out_shards(struct table_memory *m, struct unwind_maps *maps, u32 nr)
{
	if (!m->has_told)
		warn("inline: PID %d: no memory can be mapped in it for all unwind tables: some stacks end early",
		     m->pid);
	m->has_told = true;
	for (u32 i = 0; i < maps->nr; i++)
		if (has_shard(&maps->maps[i]) && maps->maps[i].shard >= nr)
			maps->maps[i].shard = LIMIT_SHARD;
}

/* Of the two places, walks do not use the other one, unless they began before the last change. */
static int inline_stacks_publish(void *ctx, pid_t pid, const struct unwind_maps *maps,
				 struct unwind_maps **out)
{
	struct table_memory *m = ctx;
	struct piece_tables *t = m->tables;
	u32 other = !t->maps_at, needed = shards_needed(maps);
	struct unwind_maps *to = &t->maps[other];
	int nr = m->room.reach(m->room.ctx, needed);

	(void)pid;
	if (nr < 0)
		return nr;
	__atomic_store_n(&to->seq, maps->seq - 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy((u8 *)to + sizeof(to->seq), (const u8 *)maps + sizeof(to->seq), sizeof(*to) - sizeof(to->seq));
	if ((u32)nr < needed)
		leave_out_shards(m, to, (u32)nr);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&to->seq, maps->seq, __ATOMIC_SEQ_CST);
	__atomic_store_n(&t->maps_at, other, __ATOMIC_SEQ_CST);
	*out = to;
	return 0;
}

static void inline_stacks_drop_maps(void *ctx, pid_t pid, struct unwind_maps *maps)
{
	(void)ctx;
	(void)pid;
	(void)maps;
}

int inline_stacks_new(struct inline_stacks **out, pid_t pid, struct piece_shared *shared,
		      struct piece_tables *tables, const struct inline_room *room)
{
	struct inline_stacks *s = calloc(1, sizeof(*s));
	struct table_memory *ctx = malloc(sizeof(*ctx));
	const struct unwind_memory memory = { .ctx = ctx,
					      .open_shard = inline_stacks_open_shard,
					      .close_shard = inline_stacks_close_shard,
					      .publish = inline_stacks_publish,
					      .drop_maps = inline_stacks_drop_maps,
					      .end = free };
	int err = s && ctx ? unwind_tables_new_in(&s->unwind, &memory) : -ENOMEM;

	if (err) {
		free(ctx);
		free(s);
		return err;
	}
	*ctx = (struct table_memory){ .pid = pid, .tables = tables, .room = *room };
	s->pid = pid;
	s->shared = shared;
	s->tables = tables;
	s->regions = calloc(PIECE_MAX_STACKS, sizeof(*s->regions));
	if (!s->regions) {
		inline_stacks_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void inline_stacks_free(struct inline_stacks *s)
{
	if (!s)
		return;
	unwind_tables_free(s->unwind);
	free(s->regions);
	free(s);
}

void inline_stacks_renew(const struct inline_stacks *s)
{
	__atomic_fetch_add(&s->shared->generation, 1, __ATOMIC_SEQ_CST);
}

/* ---- places of stacks ---- */

/* The memory of a program's own, in which a stack may lie. A file may shrink, and then cannot be read. */
static bool may_hold_stack(const struct map_line *line)
{
	return line->is_readable && line->is_writable && !line->is_shared && !line->inode;
}

struct stack_places {
	taddr_t low, top; /* of the first thread's stack */
	u32 nr;
};

static int read_places(const struct inline_stacks *s, struct stack_places *out)
{
	struct maps_reader *maps;
	struct map_line line;
	taddr_t end = 0;
	int err = maps_open(&maps, s->pid);

	*out = (struct stack_places){ 0 };
	if (err)
		return err;
	while ((err = maps_next(maps, &line)) == 1) {
		if (!strcmp(line.path, "[stack]")) {
			out->low = end;
			out->top = line.end;
		} else if (may_hold_stack(&line) && out->nr < PIECE_MAX_STACKS) {
			s->regions[out->nr++] = (struct piece_region){ line.start, line.end };
		}
		end = line.end;
	}
	maps_close(maps);
	return err;
}

static int source_inline_stacks_look(struct inline_stacks *s)
{
	struct piece_tables *t = s->tables;
	u64 begin = clock_now_ns();
	struct stack_places places;
	int err;

	s->nr_asked = __atomic_load_n(&s->shared->nr_unknown_stacks, __ATOMIC_ACQUIRE);
	err = read_places(s, &places);
	s->next_look_ns = begin + LOOK_SHARE * (clock_now_ns() - begin);
	if (err)
		return err;
	s->seq += 2;
	__atomic_store_n(&t->seq, s->seq - 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	t->stack_low = places.low;
	t->stack_top = places.top;
	memcpy(t->regions, s->regions, places.nr * sizeof(*s->regions));
	t->nr_regions = places.nr;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&t->seq, s->seq, __ATOMIC_SEQ_CST);
	return 0;
}

bool inline_stacks_wants_look(const struct inline_stacks *s, const struct piece_shared *shared)
{
	return __atomic_load_n(&shared->nr_unknown_stacks, __ATOMIC_RELAXED) != s->nr_asked &&
	       clock_now_ns() >= s->next_look_ns;
}

void inline_stacks_look(struct inline_stacks *s)
{
	int err = inline_stacks_wants_look(s, s->shared) ? source_inline_stacks_look(s) : 0;

	if (err && err != -ESRCH)
		debug("inline: PID %d: its mappings cannot be read: %s", s->pid, strerror(-err));
}

static bool is_known(const void *ctx, const struct module *m)
{
	const struct inline_stacks *s = ctx;

	return s && unwind_tables_know(s->unwind, m);
}

struct cfi_ahead *inline_stacks_ahead(const struct inline_stacks *s, const struct target *t)
{
	return cfi_ahead_start(&t->maps, is_known, s);
}

int inline_stacks_set(struct inline_stacks *s, const struct target *t, struct cfi_ahead *ahead)
{
	struct proc_stat stat;
	const struct unwind_mappings maps = { .list = &t->maps,
					      .start_sp = proc_read_stat(&stat, t->pid) ? 0 : stat.start_sp,
					      .word = 8,
					      .ahead = ahead };
	int err = unwind_tables_set(s->unwind, t->pid, &maps);

	if (err == -EINPROGRESS)
		return err;
	if (!err)
		err = source_inline_stacks_look(s);
	s->shared->epoch = t->maps.epoch;
	inline_stacks_renew(s);
	if (err)
		error("unwind: PID %d: %s", t->pid, strerror(-err));
	return err;
}

void inline_stacks_keep(struct inline_stacks *s, const bool *is_used)
{
	unwind_tables_keep(s->unwind, is_used);
}

u64 inline_stacks_bytes(const struct inline_stacks *s)
{
	return unwind_tables_stats(s->unwind).nr_rows * sizeof(struct cfi_row) + sizeof(struct unwind_maps) +
	       s->tables->nr_regions * sizeof(struct piece_region) + sizeof(s->shared->seen);
}
