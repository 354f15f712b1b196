/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fills the tables that walks read: the rows of each file once, the mappings of processes at each change. */
#include "user/unwind/unwind_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/maps.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/unwind/cfi_ahead.h"
#include "user/unwind/pages.h"

/* Rows in one shard: of a file, or unused ones. */
struct unwind_piece {
	u64 start, end; /* of a file: ELF virtual addresses */
	u32 shard, first, nr;
};

/* The rows of a file. */
struct unwind_file {
	bool is_known;
	u64 text_base;		     /* ELF virtual address of pc 0 */
	struct unwind_piece *pieces; /* owned; by address; NULL without information */
	size_t nr_pieces;
	bool is_cut; /* the rest of its rows did not fit */
};

/* The pieces of the code of a process, by address, without a limit. */
struct map_list {
	struct unwind_map *maps; /* owned */
	size_t nr, max;
};

/* The mappings of a process, in memory that walks read, and that the process itself may write to. */
struct process_entry {
	pid_t pid;
	struct unwind_maps *maps; /* owned; those published last */
};

struct unwind_tables {
	struct unwind_memory memory;
	struct unwind_file *files; /* owned; by module id */
	size_t nr_files, max_files;
	struct process_entry *processes; /* owned */
	size_t nr_processes;
	struct shard *shard;	    /* number shard_at, the one being filled; NULL = none yet */
	struct unwind_piece *spare; /* owned; by place, and no two are neighbours */
	size_t nr_spare, max_spare;
	u32 shard_at, nr_shards;
	bool has_resting; /* walks of before may still read rows of spare pieces */
	u32 seq;	  /* of the mappings published last, of any process: each publication has its own */
	struct unwind_stats stats;
};

int unwind_tables_new_in(struct unwind_tables **out, const struct unwind_memory *memory)
{
	struct unwind_tables *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->memory = *memory;
	*out = u;
	return 0;
}

void unwind_tables_free(struct unwind_tables *u)
{
	if (!u)
		return;
	if (u->shard)
		u->memory.close_shard(u->memory.ctx, u->shard);
	for (size_t i = 0; i < u->nr_files; i++)
		free(u->files[i].pieces);
	free(u->files);
	free(u->spare);
	free(u->processes);
	u->memory.end(u->memory.ctx);
	free(u);
}

/* ---- unused rows ---- */

/* A piece with fewer rows than that is only for a file that needs no more: each piece makes walks longer. */
enum { FEW_ROWS = SHARD_ROWS / 64 };

static u64 place_of(const struct unwind_piece *p)
{
	return (u64)p->shard * SHARD_ROWS + p->first;
}

/* Does @b begin where @a ends? */
static bool unwind_tables_join(const struct unwind_piece *a, const struct unwind_piece *b)
{
	return a->shard == b->shard && a->first + a->nr == b->first;
}

static void unwind_tables_drop_spare(struct unwind_tables *u, size_t at)
{
	u->nr_spare--;
	memmove(&u->spare[at], &u->spare[at + 1], (u->nr_spare - at) * sizeof(*u->spare));
}

/* The rows @p are unused. Without memory they stay so for good. */
static void unwind_tables_add_spare(struct unwind_tables *u, const struct unwind_piece *p)
{
	size_t at = array_search(i, 0, u->nr_spare, place_of(&u->spare[i]) < place_of(p));

	if (at && unwind_tables_join(&u->spare[at - 1], p)) {
		u->spare[--at].nr += p->nr;
	} else if (!array_reserve(u->spare, u->max_spare, u->nr_spare + 1)) {
		memmove(&u->spare[at + 1], &u->spare[at], (u->nr_spare - at) * sizeof(*u->spare));
		u->spare[at] = *p;
		u->nr_spare++;
	} else {
		return;
	}
	if (at + 1 < u->nr_spare && unwind_tables_join(&u->spare[at], &u->spare[at + 1])) {
		u->spare[at].nr += u->spare[at + 1].nr;
		unwind_tables_drop_spare(u, at + 1);
	}
}

/* The least piece that has room for @nr rows, or the largest one. NULL: there is none. */
static const struct unwind_piece *unwind_tables_find_spare(const struct unwind_tables *u, size_t nr)
{
	const struct unwind_piece *best = NULL;

	for (size_t i = 0; i < u->nr_spare; i++) {
		const struct unwind_piece *p = &u->spare[i];

		if (!best || (best->nr < nr ? p->nr > best->nr : p->nr >= nr && p->nr < best->nr))
			best = p;
	}
	return best;
}

/* Have shard @nr mapped: it is made if it is new. -ENOSPC: their number is limited. */
static int unwind_tables_reach(struct unwind_tables *u, u32 nr)
{
	struct shard *shard;
	int err;

	if (u->shard && u->shard_at == nr)
		return 0;
	err = u->memory.open_shard(u->memory.ctx, nr, &shard);
	if (err)
		return err;
	if (u->shard)
		u->memory.close_shard(u->memory.ctx, u->shard);
	u->shard = shard;
	u->shard_at = nr;
	return 0;
}

static int unwind_tables_add_shard(struct unwind_tables *u)
{
	const struct unwind_piece all = { .shard = u->nr_shards, .nr = SHARD_ROWS };
	int err = array_reserve(u->spare, u->max_spare, u->nr_spare + 1);

	err = err ? err : unwind_tables_reach(u, u->nr_shards);
	if (err)
		return err;
	u->nr_shards++;
	u->stats.kernel_bytes += sizeof(struct shard);
	unwind_tables_add_spare(u, &all);
	return 0;
}

/* Take unused rows, @nr or fewer, and have their shard mapped. -ENOSPC: there are none. */
static int unwind_tables_take(struct unwind_tables *u, size_t nr, struct unwind_piece *out)
{
	const struct unwind_piece *found = unwind_tables_find_spare(u, nr);
	struct unwind_piece *from;
	int err = 0;

	if (!found || (found->nr < nr && found->nr < FEW_ROWS)) {
		err = unwind_tables_add_shard(u);
		found = unwind_tables_find_spare(u, nr);
	}
	if (err && (err != -ENOSPC || !found))
		return err;
	err = u->has_resting ? u->memory.settle(u->memory.ctx) : 0;
	err = err ? err : unwind_tables_reach(u, found->shard);
	if (err)
		return err;
	u->has_resting = false;
	from = &u->spare[found - u->spare];
	*out = (struct unwind_piece){ .shard = from->shard,
				      .first = from->first,
				      .nr = nr < from->nr ? (u32)nr : from->nr };
	from->first += out->nr;
	from->nr -= out->nr;
	if (!from->nr)
		unwind_tables_drop_spare(u, (size_t)(from - u->spare));
	return 0;
}

/* ---- files ---- */

static int add_piece(struct unwind_file *f, const struct unwind_piece *p)
{
	if (array_extend(f->pieces, f->nr_pieces))
		return -ENOMEM;
	f->pieces[f->nr_pieces++] = *p;
	return 0;
}

/* Copy the rows of @table to shards. Each shard that gets some of them gives a piece. */
static int store_rows(struct unwind_tables *u, struct unwind_file *f, const struct cfi_table *table)
{
	size_t done = 0;
	int err = 0;

	f->text_base = table->text_base;
	while (done < table->nr_rows) {
		struct unwind_piece p;

		err = unwind_tables_take(u, table->nr_rows - done, &p);
		if (err)
			break;
		p.start = table->text_base + table->rows[done].pc;
		p.end = done + p.nr < table->nr_rows ? table->text_base + table->rows[done + p.nr].pc
						     : UINT64_MAX;
		pages_make(&u->shard->rows[p.first], p.nr * sizeof(*table->rows));
		memcpy(&u->shard->rows[p.first], &table->rows[done], p.nr * sizeof(*table->rows));
		u->stats.nr_rows += p.nr;
		done += p.nr;
		err = add_piece(f, &p);
		if (err)
			break;
	}
	u->stats.nr_skipped_rows += table->nr_rows - done;
	f->is_cut = done < table->nr_rows;
	return err == -ENOSPC ? 0 : err;
}

static int load_file(struct unwind_tables *u, struct unwind_file *f, const struct module *m,
		     struct cfi_ahead *ahead)
{
	struct cfi_table *table = NULL;
	int err = cfi_ahead_load(ahead, m, &table);

	f->is_known = true;
	if (err) {
		debug("unwind: %s: no call frame information: %s", m->path, strerror(-err));
		u->stats.nr_without++;
		return err == -ENOMEM ? err : 0;
	}
	err = store_rows(u, f, table);
	if (!err)
		u->stats.nr_files++;
	if (f->is_cut)
		warn("unwind: %s: no room for its call frame information: stacks through it end early",
		     m->path);
	cfi_free(table);
	return err;
}

static int unwind_tables_file_of(struct unwind_tables *u, const struct module *m, struct cfi_ahead *ahead,
				 struct unwind_file **out)
{
	if (m->id >= u->nr_files) {
		size_t nr = (size_t)m->id + 1;

		if (array_reserve(u->files, u->max_files, nr))
			return -ENOMEM;
		memset(u->files + u->nr_files, 0, (nr - u->nr_files) * sizeof(*u->files));
		u->nr_files = nr;
	}
	*out = &u->files[m->id];
	return (*out)->is_known ? 0 : load_file(u, *out, m, ahead);
}

static int unwind_tables_add_map(struct map_list *list, const struct unwind_map *map)
{
	if (array_reserve(list->maps, list->max, list->nr + 1))
		return -ENOMEM;
	list->maps[list->nr++] = *map;
	return 0;
}

/* Add one mapping: a piece for each shard with rows of its file, and for the parts between them, without rows. */
static int unwind_tables_add_mapping(struct unwind_tables *u, struct map_list *list, const struct mapping *m,
				     struct cfi_ahead *ahead)
{
	struct unwind_map map = { .start = m->start, .end = m->end, .shard = NO_SHARD };
	struct unwind_file *f = NULL;
	int err;

	/* The vsyscall page lies in the kernel's half of the addresses, where the comparisons of the programs end. */
	if (m->start > INT64_MAX)
		return 0;
	err = m->module ? unwind_tables_file_of(u, m->module, ahead, &f) : 0;
	for (size_t i = 0; !err && f && i < f->nr_pieces; i++) {
		const struct unwind_piece *p = &f->pieces[i];
		u64 start = p->start + m->bias, end = p->end == UINT64_MAX ? m->end : p->end + m->bias;

		if (end <= map.start || start >= m->end)
			continue;
		if (start > map.start) {
			map.end = start;
			err = unwind_tables_add_map(list, &map);
			map.start = start;
		}
		map.end = end < m->end ? end : m->end;
		map.base = f->text_base + m->bias;
		map.shard = p->shard;
		map.first = p->first;
		map.nr = p->nr;
		if (!err)
			err = unwind_tables_add_map(list, &map);
		map = (struct unwind_map){ .start = map.end, .shard = NO_SHARD };
	}
	map.end = m->end;
	if (f && f->is_cut)
		map.shard = LIMIT_SHARD;
	return !err && map.start < map.end ? unwind_tables_add_map(list, &map) : err;
}

/*
 * Copy all pieces of @list, or as many as fit. If too many, the middle ones become one: libraries that were loaded
 * late lie there. The program is at the beginning, the C library and the linker are at the end.
 */
static void fill_maps(struct unwind_tables *u, struct unwind_maps *maps, const struct map_list *list)
{
	const size_t first = MAX_UNWIND_MAPS / 2 - 1, last = MAX_UNWIND_MAPS / 2;
	size_t nr = list->nr;

	if (nr <= MAX_UNWIND_MAPS) {
		if (nr)
			memcpy(maps->maps, list->maps, nr * sizeof(*list->maps));
		maps->nr = nr;
		return;
	}
	memcpy(maps->maps, list->maps, first * sizeof(*list->maps));
	maps->maps[first] = (struct unwind_map){ .start = list->maps[first].start,
						 .end = list->maps[nr - last - 1].end,
						 .shard = LIMIT_SHARD };
	memcpy(&maps->maps[first + 1], &list->maps[nr - last], last * sizeof(*list->maps));
	maps->nr = MAX_UNWIND_MAPS;
	u->stats.nr_skipped_maps += nr - first - last;
}

/* Let walks of @pid use @maps from now on. */
static int unwind_tables_publish(struct unwind_tables *u, pid_t pid, struct unwind_maps *maps,
				 struct unwind_maps **out)
{
	u->seq += 2;
	maps->seq = u->seq;
	return u->memory.publish(u->memory.ctx, pid, maps, out);
}

/* Until its mappings are published, walks of a process use those of its parent. */
static int unwind_tables_add_process(struct unwind_tables *u, pid_t pid, struct unwind_maps *maps)
{
	struct process_entry new = { .pid = pid };
	int err;

	if (array_extend(u->processes, u->nr_processes))
		return -ENOMEM;
	err = unwind_tables_publish(u, pid, maps, &new.maps);
	if (!err)
		u->processes[u->nr_processes++] = new;
	return err;
}

static bool is_published(const struct unwind_maps *now, const struct unwind_maps *maps)
{
	return now->word == maps->word && now->nr == maps->nr && now->removals == maps->removals &&
	       now->execs == maps->execs && now->start_sp == maps->start_sp &&
	       !memcmp(now->maps, maps->maps, maps->nr * sizeof(*maps->maps));
}

static int unwind_tables_set_process(struct unwind_tables *u, pid_t pid, struct unwind_maps *maps)
{
	for (size_t i = 0; i < u->nr_processes; i++) {
		struct process_entry *p = &u->processes[i];

		if (p->pid == pid)
			return is_published(p->maps, maps) ? 0
							   : unwind_tables_publish(u, pid, maps, &p->maps);
	}
	return unwind_tables_add_process(u, pid, maps);
}

int unwind_tables_set(struct unwind_tables *u, pid_t pid, const struct unwind_mappings *from)
{
	auto_free struct unwind_maps *maps = calloc(1, sizeof(*maps));
	struct map_list pieces = { 0 };
	int err = maps ? 0 : -ENOMEM;

	for (size_t i = 0; i < from->list->nr && !err; i++)
		err = unwind_tables_add_mapping(u, &pieces, &from->list->maps[i], from->ahead);
	if (!err) {
		fill_maps(u, maps, &pieces);
		if (pieces.nr > MAX_UNWIND_MAPS)
			warn("unwind: PID %d: %zu pieces of code, more than %d: stacks through the others "
			     "end early",
			     pid, pieces.nr, MAX_UNWIND_MAPS);
		maps->word = from->word;
		maps->removals = from->removals;
		maps->execs = from->execs;
		maps->start_sp = from->start_sp;
		for (u32 i = maps->nr; i < MAX_UNWIND_MAPS; i++)
			maps->maps[i].start = maps->maps[i].end = INT64_MAX;
		err = unwind_tables_set_process(u, pid, maps);
	}
	free(pieces.maps);
	return err;
}

bool unwind_tables_know(const struct unwind_tables *u, const struct module *m)
{
	return m->id < u->nr_files && u->files[m->id].is_known;
}

static void unwind_tables_drop_file(struct unwind_tables *u, struct unwind_file *f)
{
	for (size_t i = 0; i < f->nr_pieces && u->memory.settle; i++) {
		u->has_resting = true;
		u->stats.nr_rows -= f->pieces[i].nr;
		unwind_tables_add_spare(u, &f->pieces[i]);
	}
	free(f->pieces);
	*f = (struct unwind_file){ 0 };
}

void unwind_tables_keep(struct unwind_tables *u, const bool *is_used)
{
	for (size_t id = 0; id < u->nr_files; id++)
		if (!is_used[id])
			unwind_tables_drop_file(u, &u->files[id]);
}

bool unwind_tables_confirm(struct unwind_tables *u, pid_t pid, u32 removals)
{
	for (size_t i = 0; i < u->nr_processes; i++) {
		if (u->processes[i].pid != pid || u->processes[i].maps->removals == removals)
			continue;
		__atomic_store_n(&u->processes[i].maps->removals, removals, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

void unwind_tables_forget(struct unwind_tables *u, pid_t pid)
{
	for (size_t i = 0; i < u->nr_processes; i++) {
		if (u->processes[i].pid != pid)
			continue;
		u->memory.drop_maps(u->memory.ctx, pid, u->processes[i].maps);
		u->processes[i] = u->processes[--u->nr_processes];
		return;
	}
}

struct unwind_stats unwind_tables_stats(const struct unwind_tables *u)
{
	return u->stats;
}
