/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of a census: stop, walk, read, resume, judge. */
#include "user/census/census.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/census/census_join.h"
#include "user/census/census_walk.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/progress.h"
#include "user/scan/leaks_books.h"
#include "user/scan/scan_reason.h"
#include "user/scan/snapshot_plan.h"
#include "user/scan/snapshot_running.h"

enum {
	SLACK_WORDS = 3,  /* at most so much more than the program asked for has a block */
	MAX_WALK_S = 600, /* of a copy or a core, which nothing waits for */
	MAX_BOOKS = 4,	  /* of one allocator */
	MAX_TRIES = 4,	  /* a thread may be in the middle of a change of the books */
};

static void census_freep(struct census **c)
{
	census_free(*c);
}

#define auto_census __attribute__((cleanup(census_freep)))

void census_free(struct census *c)
{
	if (!c)
		return;
	scan_free(c->scan);
	snapshot_free(c->snap);
	census_blocks_fini(&c->blocks);
	residence_fini(&c->resident);
	free(c);
}

static int for_each_live(const void *ctx, int (*visit)(void *visit_ctx, const struct heap_block *block),
			 void *visit_ctx)
{
	const struct census_blocks *b = ctx;
	int err = 0;

	for (size_t i = 0; i < b->nr && !err; i++) {
		const struct heap_block block = { .addr = b->blocks[i].addr, .size = b->blocks[i].size };

		if (b->blocks[i].state == CENSUS_LIVE)
			err = visit(visit_ctx, &block);
	}
	return err;
}

static bool find_live(const void *ctx, taddr_t addr, struct heap_block *out)
{
	const struct census_block *block = census_find(ctx, addr);

	if (!block || block->state != CENSUS_LIVE)
		return false;
	*out = (struct heap_block){ .addr = block->addr, .size = block->size };
	return true;
}

static bool may_begin_within(const void *ctx, taddr_t addr)
{
	const struct census_block *block = census_find(ctx, addr);

	return block && block->may_begin_within;
}

/* Memory that holds blocks of the allocator, or is free in its books. Blocks with a mapping of their own are known. */
static int for_each_own(const void *ctx, int (*visit)(void *visit_ctx, taddr_t start, taddr_t end),
			void *visit_ctx)
{
	const struct census_blocks *b = ctx;
	int err = 0;

	for (size_t i = 0; i < b->nr_segments && !err; i++)
		if (!b->segments[i].is_mapped)
			err = visit(visit_ctx, b->segments[i].start, b->segments[i].end);
	return err;
}

int census_look(const char **name, pid_t pid, u8 word_size)
{
	struct census_blocks blocks = { 0 };
	struct snapshot *snap = NULL;
	const char *stranger;
	int err = snapshot_running_new(&snap, pid, word_size);

	if (err)
		return err;
	err = -ENOENT;
	for (const struct census_walker *walker = census_walkers; walker->name && err == -ENOENT; walker++) {
		struct census_walk w;

		err = census_walk_init(&w, snap, &blocks, 0);
		if (!err)
			err = walker->find(&w);
		census_walk_fini(&w);
		census_blocks_fini(&blocks);
		*name = walker->name;
	}
	/* Whether it has any blocks is seen when its books are walked. */
	stranger = census_stranger(snap, name, !err);
	if (err || (stranger && !strcmp(*name, "glibc"))) {
		*name = stranger;
		err = err ? err : -ENOENT;
	}
	snapshot_free(snap);
	return err;
}

/* List what is in the @nth books of @walker. @out is empty after an error. */
static int walk_books(struct census *c, const struct census_walker *walker, u32 nth, u64 deadline_ns,
		      struct census_blocks *out)
{
	struct census_walk w;
	int err;

	*out = (struct census_blocks){ .walker = walker };
	err = census_walk_init(&w, c->snap, out, deadline_ns);
	w.nth = nth;
	if (!err)
		err = walker->walk(&w);
	census_walk_fini(&w);
	if (err)
		census_blocks_fini(out);
	return err;
}

/* Try all walkers: a program may have several allocators, and some of these several times. */
static int walk_all_books(struct census *c, u64 deadline_ns, struct census_blocks *found, u32 *nr)
{
	int err = 0;

	for (const struct census_walker *walker = census_walkers; walker->name && !err; walker++) {
		for (u32 nth = 0;
		     !err && nth < (walker->is_many ? MAX_BOOKS : 1U) && *nr < CENSUS_MAX_ALLOCATORS; nth++) {
			err = walk_books(c, walker, nth, deadline_ns, &found[*nr]);
			*nr += !err;
		}
		err = err == -ENOENT ? 0 : err;
	}
	return err;
}

/*
 * List the blocks of @found, too, those with most live blocks first. An allocator that has never had memory is none
 * that the program uses, and is left out. One without a live block has an empty or a damaged heap, where no other
 * allocator is.
 */
static int list_books(struct census *c, struct census_blocks *found, u64 *nr_nested)
{
	struct census_allocator allocator = { .name = found->walker->name, .live = census_count_live(found) };

	*nr_nested = 0;
	if (!allocator.live.blocks &&
	    (c->nr_allocators || c->stranger || (!found->nr_segments && !found->nr_notes)))
		return 0;
	memcpy(allocator.version, found->version, sizeof(allocator.version));
	c->allocators[c->nr_allocators++] = allocator;
	if (c->nr_allocators > 1)
		return census_join(&c->blocks, found, nr_nested);
	c->blocks = *found;
	*found = (struct census_blocks){ 0 };
	return 0;
}

/* List the @nr books in @found, the one with most live blocks first. */
static int list_all_books(struct census *c, struct census_blocks *found, u32 nr)
{
	u64 nested[CENSUS_MAX_ALLOCATORS] = { 0 };
	u32 most = 0;
	int err = 0;

	for (u32 i = 1; i < nr; i++) {
		u64 live = census_count_live(&found[i]).blocks,
		    before = census_count_live(&found[most]).blocks;

		if (live > before || (!before && !found[most].nr_segments && found[i].nr_segments))
			most = i;
	}
	c->nr_allocators = 0;
	for (u32 i = 0; i < nr && !err; i++)
		err = list_books(c, &found[i ? i - (i <= most) : most], &nested[i]);
	c->is_damaged = c->blocks.nr_notes;
	for (u32 i = 0; i < nr && !err; i++)
		if (nested[i])
			census_note(&c->blocks, 0, "blocks in memory of another allocator are not listed: %s",
				    human_count(nested[i]).text);
	return err;
}

static int census_walk_allocators(struct census *c, u64 deadline_ns)
{
	auto_free struct census_blocks *found = calloc(CENSUS_MAX_ALLOCATORS, sizeof(*found));
	const char *known[CENSUS_MAX_ALLOCATORS];
	u32 nr = 0;
	int err = found ? 0 : -ENOMEM;

	progress_phase("reading the books of its allocator");
	if (!err)
		err = walk_all_books(c, deadline_ns, found, &nr);
	for (u32 i = 0; i < nr; i++)
		known[i] = found[i].walker->name;
	c->stranger = census_stranger(c->snap, known, nr);
	if (!err)
		err = list_all_books(c, found, nr);
	for (u32 i = 0; i < nr; i++)
		census_blocks_fini(&found[i]);
	if (!err && !c->nr_allocators)
		err = -ENOENT;
	if (err)
		return err;
	census_add_up(&c->blocks);
	if (c->stranger)
		census_note(&c->blocks, 0,
			    "the blocks of %s are not listed, because heaptap cannot read its books",
			    c->stranger);
	c->has_others = c->nr_allocators > 1 || c->stranger;
	return 0;
}

/* Walk memory that no process waits for. Damaged books end it, too. */
static int walk_calmly(struct census *c)
{
	int err = census_walk_allocators(c, clock_now_ns() + MAX_WALK_S * 1000000000ULL);

	return err == -ETIME ? -ETIMEDOUT : err;
}

/* The blocks of @c. Blocks that are not known may hold pointers: then memory outside blocks is a root. */
static struct leaks_listed census_listed(const struct census *c)
{
	return (struct leaks_listed){
		.books = { .ctx = &c->blocks,
			   .nr_blocks = c->blocks.nr,
			   .for_each = for_each_live,
			   .find = find_live,
			   .may_begin_within = c->blocks.may_begin_within ? may_begin_within : NULL,
			   .for_each_own = for_each_own },
		.allocator = c->blocks.walker->name,
		.slack = SLACK_WORDS * (u32)c->word_size,
		.is_partial = c->is_damaged,
		.has_others = c->has_others,
	};
}

/* Read the memory for verdicts. Without them the blocks are still worth showing. */
static int census_read_memory(struct census *c, const struct census_options *o)
{
	const struct leaks_listed listed = census_listed(c);
	const struct scan_options so = { .pointer_mask = o->pointer_mask,
					 .want_unaligned = o->want_unaligned,
					 .slack = listed.slack,
					 .is_partial = listed.is_partial,
					 .has_others = listed.has_others };
	int err = scan_new(&c->scan, &listed.books, &so);

	return err ? err : scan_read(c->scan, c->snap);
}

static void drop_verdicts(struct census *c, int err, u64 max_pause_ns)
{
	scan_free(c->scan);
	c->scan = NULL;
	snprintf(c->why, sizeof(c->why), "%s", scan_reason(err, c->pid, max_pause_ns).text);
}

/* A core does not say which mapping is the heap of brk. The walk does. */
static int name_heap(struct census *c)
{
	const struct census_blocks *b = &c->blocks;

	for (size_t i = 0; i < b->nr_segments; i++) {
		const struct census_segment *s = &b->segments[i];
		const struct snapshot_map *found = snapshot_map_find(c->snap, s->start);
		struct snapshot_map *map = found ? &c->snap->maps[found - c->snap->maps] : NULL;

		if (s->is_mapped || s->arena || !map || map->ino || map->path[0])
			continue;
		free(map->path);
		map->path = strdup("[heap]");
		c->snap->heap_start = s->start;
		if (!map->path)
			return -ENOMEM;
	}
	return 0;
}

/* Nothing changes in a core, so there is one try, and no hurry. */
static int take_core(struct census *c, const struct census_options *o)
{
	int err = walk_calmly(c), read_err;

	if (!err)
		err = name_heap(c);
	if (err)
		return err;
	read_err = census_read_memory(c, o);
	if (!read_err)
		read_err = scan_judge(c->scan);
	if (read_err)
		drop_verdicts(c, read_err, 0);
	return read_err == -ENOMEM ? read_err : 0;
}

int census_of_core(struct census **out, int fd, const struct census_options *options)
{
	auto_census struct census *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->is_core = true;
	err = snapshot_core_new(&c->snap, fd, options->sysroot, &c->core);
	if (err)
		return err;
	c->pid = c->snap->pid;
	c->word_size = c->snap->word_size;
	err = take_core(c, options);
	if (err && err != -ENOENT)
		return err;
	*out = take_ptr(c);
	return err;
}

/* The tries so far, and what the last one noted. */
struct tries {
	u32 nr;
	bool is_over;
	size_t nr_notes;
	struct census_note notes[CENSUS_MAX_NOTES];
};

/* Is the walk that filled @b the last one? Notes that come again are of damage, and stay. */
static bool is_over(struct tries *t, const struct census_blocks *b)
{
	bool is_same = t->nr && t->nr_notes == b->nr_notes && !memcmp(t->notes, b->notes, sizeof(t->notes));

	t->nr++;
	t->nr_notes = b->nr_notes;
	memcpy(t->notes, b->notes, sizeof(t->notes));
	t->is_over = !b->nr_notes || is_same || t->nr == MAX_TRIES;
	return t->is_over;
}

/* One try. The books are consistent unless a thread was stopped while it changed them. */
static int census_try_once(struct census *c, const struct census_options *o, u64 max_pause_ns,
			   struct tries *tries)
{
	const struct snapshot_plan_options po = { .pid = c->pid,
						  .way = o->way,
						  .max_copy = o->max_copy,
						  .max_pause_ns = max_pause_ns,
						  .nr_jobs = o->nr_jobs,
						  .walks_books = true,
						  .is_price_known = tries->nr };
	struct snapshot_options so = { .max_pause_ns = max_pause_ns,
				       .nr_jobs = o->nr_jobs,
				       .kernel = o->kernel };
	struct courtesy_hurry hurry;
	struct snapshot_plan plan;
	u64 deadline_ns;
	int err, read_err = 0;

	snapshot_plan_make(&plan, &po);
	if (!tries->nr && snapshot_plan_check(&plan, &po, plan.way)) {
		snapshot_plan_free(&plan);
		return -EAGAIN;
	}
	so.way = plan.way;
	so.precopy = plan.precopy;
	courtesy_at_once(&hurry);
	deadline_ns = clock_now_ns() + max_pause_ns;
	err = snapshot_stop_new(&c->snap, c->pid, &so);
	if (err) {
		courtesy_hurry_end(&hurry);
		snapshot_plan_free(&plan);
		return err;
	}
	c->word_size = c->snap->word_size;
	err = snapshot_copy(c->snap);
	c->is_copied = !err;
	if (c->is_copied)
		courtesy_hurry_end(&hurry);
	if (snapshot_plan_check_uncopied(&plan, &po, err)) {
		snapshot_resume(c->snap);
		courtesy_hurry_end(&hurry);
		snapshot_plan_free(&plan);
		return -EAGAIN;
	}
	c->pause_ns += snapshot_plan_pause(&plan);
	snapshot_plan_free(&plan);
	/* Before the walk, because a process with a copy runs. */
	if (census_resident_read(&c->resident, c))
		debug("census: PID %d: no smaps", (int)c->pid);
	err = c->is_copied ? walk_calmly(c) : census_walk_allocators(c, deadline_ns);
	if (err == -ETIME)
		error("scan: PID %d: its heap could not be read in %s: a larger --max-pause allows more",
		      (int)c->pid, human_duration(max_pause_ns).text);
	if (!err && is_over(tries, &c->blocks)) {
		census_resident_split(&c->resident, c);
		read_err = census_read_memory(c, o);
	}
	/* The copy ends with the snapshot, because names are read from it. The process runs already. */
	if (!c->is_copied)
		snapshot_resume(c->snap);
	courtesy_hurry_end(&hurry);
	c->pause_ns += c->snap->pause_ns;
	if (!err && !read_err && c->scan)
		read_err = scan_judge(c->scan);
	if (read_err)
		drop_verdicts(c, read_err, max_pause_ns);
	return err;
}

int census_take(struct census **out, pid_t pid, const struct census_options *options)
{
	auto_census struct census *c = calloc(1, sizeof(*c));
	u64 max_pause_ns = options->max_pause_ns ? options->max_pause_ns : CENSUS_PAUSE_NS;
	auto_free struct tries *tries = calloc(1, sizeof(*tries));
	int err = 0;

	if (!c || !tries)
		return -ENOMEM;
	c->pid = pid;
	while (!err && !tries->is_over) {
		snapshot_free(take_ptr(c->snap));
		census_blocks_fini(&c->blocks);
		residence_fini(&c->resident);
		err = census_try_once(c, options, max_pause_ns, tries);
	}
	if (err && err != -ENOENT)
		return err;
	if (!err)
		c->free_resident = census_resident_free(c, &c->has_free_resident);
	*out = take_ptr(c);
	return err;
}

struct census_lister {
	struct census census; /* borrows its snapshot */
	struct tries tries;
};

int census_lister_new(struct census_lister **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void census_lister_free(struct census_lister *l)
{
	if (l)
		census_blocks_fini(&l->census.blocks);
	free(l);
}

int census_list(void *ctx, struct snapshot *snap, u64 deadline_ns, bool is_last, struct leaks_listed *out)
{
	struct census_lister *l = ctx;
	struct census *c = &l->census;
	int err;

	census_blocks_fini(&c->blocks);
	*c = (struct census){ .pid = snap->pid, .word_size = snap->word_size, .snap = snap };
	err = census_walk_allocators(c, deadline_ns);
	if (!err && !is_over(&l->tries, &c->blocks) && !is_last)
		err = -EBUSY;
	if (!err)
		*out = census_listed(c);
	return err;
}
