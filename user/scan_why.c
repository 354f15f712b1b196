/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a block has its verdict: the shortest chain of pointers from a root, or from the lost block that leads to it. */
#include "user/scan_why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/scan_state.h"

enum { IS_START = BLOCK_NONE - 1 }; /* parent of a block that a root points to, or of the head */

/* A search in widening circles. */
struct search {
	struct scan *s;
	u32 *parents; /* owned; BLOCK_NONE = not seen */
	u32 *queue;   /* owned */
	u32 head, tail;
	bool only_starts; /* follow pointers to starts only */
};

static void see(struct search *se, u32 block, u32 parent)
{
	if (se->parents[block] != BLOCK_NONE)
		return;
	se->parents[block] = parent;
	se->queue[se->tail++] = block;
}

/* Until @goal is seen. */
static bool search_for(struct search *se, u32 goal)
{
	while (se->parents[goal] == BLOCK_NONE && se->head < se->tail) {
		u32 block = se->queue[se->head++];
		struct edge_iter it;

		edge_begin(&it, &se->s->edges, block);
		while (edge_next(&it))
			if (!se->only_starts || scan_is_start(se->s, it.target, it.offset))
				see(se, it.target, block);
	}
	return se->parents[goal] != BLOCK_NONE;
}

/* Where the pointer from @parent to @block points to in it. */
static u64 step_offset(const struct scan *s, u32 parent, u32 block)
{
	u64 best = UINT64_MAX;
	struct edge_iter it;

	edge_begin(&it, &s->edges, parent);
	while (edge_next(&it))
		if (it.target == block && it.offset < best)
			best = it.offset;
	return best == UINT64_MAX ? 0 : best;
}

static const struct snapshot_thread *thread_of_stack(const struct snapshot *snap,
						     const struct snapshot_map *map)
{
	for (size_t i = 0; i < snap->nr_threads; i++)
		if (snap->threads[i].sp >= map->start && snap->threads[i].sp < map->end)
			return &snap->threads[i];
	return NULL;
}

static void describe_root(const struct scan *s, u64 where, struct scan_root *root)
{
	const struct snapshot *snap = s->snap;
	const struct snapshot_thread *thread;
	const struct snapshot_word *word;

	if (WHERE_KIND(where) == WHERE_MEMORY) {
		root->kind = ROOT_MEMORY;
		root->addr = WHERE_VALUE(where);
		root->map = snapshot_map_find(snap, root->addr);
		thread = root->map ? thread_of_stack(snap, root->map) : NULL;
		root->tid = thread ? thread->tid : 0;
		return;
	}
	word = &snap->words[WHERE_VALUE(where)];
	root->kind = word->owner < snap->nr_threads ? ROOT_REGISTER : ROOT_KERNEL;
	root->where = word->where;
	if (root->kind == ROOT_REGISTER)
		root->tid = snap->threads[word->owner].tid;
}

/* The root that is known to point to @block; prefers one to its start. */
static const struct root_ref *root_of(const struct scan *s, u32 block)
{
	const struct root_ref *found = NULL;

	for (size_t i = 0; i < s->nr_roots; i++) {
		const struct root_ref *ref = &s->roots[i];

		if (ref->block == block && (!found || ref->offset < found->offset))
			found = ref;
	}
	return found;
}

static int make_chain(const struct search *se, u32 goal, struct scan_chain **out)
{
	const struct scan *s = se->s;
	const struct root_ref *ref;
	struct scan_chain *chain;
	size_t nr = 1;
	u32 first = goal;

	for (; se->parents[first] != IS_START; first = se->parents[first])
		nr++;
	chain = calloc(1, sizeof(*chain) + nr * sizeof(chain->steps[0]));
	if (!chain)
		return -ENOMEM;
	chain->nr = nr;
	for (u32 block = goal; nr-- > 0; block = se->parents[block]) {
		u32 parent = se->parents[block];

		chain->steps[nr].addr = s->blocks[block].addr;
		chain->steps[nr].size = scan_block_size(s, block);
		chain->steps[nr].offset = parent == IS_START ? 0 : step_offset(s, parent, block);
	}
	ref = root_of(s, first);
	if (ref) {
		chain->steps[0].offset = ref->offset;
		describe_root(s, ref->where, &chain->root);
	}
	*out = chain;
	return 0;
}

/* Where the search begins: at the head that lost it, or at what roots point to. */
static void seed(struct search *se, u32 goal)
{
	const struct scan *s = se->s;
	u32 leader = s->blocks[goal].link;

	if (s->blocks[goal].verdict >= SCAN_DEFINITE && leader < s->nr) {
		see(se, leader, IS_START);
		return;
	}
	for (size_t i = 0; i < s->nr_roots; i++)
		if (!se->only_starts || scan_is_start(s, s->roots[i].block, s->roots[i].offset))
			see(se, s->roots[i].block, IS_START);
}

int scan_why(struct scan *s, taddr_t addr, struct scan_chain **out)
{
	auto_free u32 *parents = NULL, *queue = NULL;
	struct search se = { .s = s };
	u32 goal = s->snap && !(addr >> 56) ? scan_lookup(s, addr) : BLOCK_NONE;

	if (goal == BLOCK_NONE)
		return -ENOENT;
	parents = malloc(s->nr * sizeof(*parents));
	queue = malloc(s->nr * sizeof(*queue));
	if (!parents || !queue)
		return -ENOMEM;
	memset(parents, 0xff, s->nr * sizeof(*parents));
	se.parents = parents;
	se.queue = queue;
	se.only_starts = s->blocks[goal].verdict == SCAN_REACHABLE;
	seed(&se, goal);
	/* Roots are kept up to a limit: what began at one beyond it is not found. */
	return search_for(&se, goal) ? make_chain(&se, goal, out) : -ENOENT;
}
