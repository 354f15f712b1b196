/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a block has its verdict: the shortest chain of pointers from a root, or from the leader that lost it. */
#include "user/scan/scan_why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/scan/scan_state.h"

enum { IS_START = BLOCK_NONE - 1 }; /* parent of a block that a root points to, or of a leader */

/* Roots at which chains begin, in the order in which they are tried. The most telling ones come first. */
enum seed_class { SEED_MEMORY, SEED_KERNEL, SEED_STACK, SEED_REGISTER, SEED_UNNAMED, NR_SEED_CLASSES };

/* A breadth-first search, which continues when the next question asks for the same search. */
struct scan_whys {
	struct scan *s;
	u32 *parents; /* owned; BLOCK_NONE = not seen */
	u32 *queue;   /* owned */
	u32 head, tail;
	u32 leader;	/* the search began at this leader, BLOCK_NONE: at the roots */
	u32 next_class; /* class of roots to begin with, when the present ones lead to no more blocks */
	bool is_begun;
	bool only_starts; /* follow pointers to starts only */
	bool *has_stack; /* owned; per mapping: it contains the stack pointer or thread pointer of a thread */
};

static void scan_why_see(struct scan_whys *w, u32 block, u32 parent)
{
	if (w->parents[block] != BLOCK_NONE)
		return;
	w->parents[block] = parent;
	w->queue[w->tail++] = block;
}

/* Search until @goal is seen. */
static bool scan_why_spread(struct scan_whys *w, u32 goal)
{
	while (w->parents[goal] == BLOCK_NONE && w->head < w->tail) {
		u32 block = w->queue[w->head++];
		struct edge_iter it;

		edge_begin(&it, &w->s->edges, block);
		while (edge_next(&it))
			if (!w->only_starts || scan_is_start(w->s, it.target, it.offset))
				scan_why_see(w, it.target, block);
	}
	return w->parents[goal] != BLOCK_NONE;
}

static enum seed_class class_of(const struct scan_whys *w, const struct root_ref *ref)
{
	const struct snapshot *snap = w->s->snap;
	const struct snapshot_map *map;

	if (WHERE_KIND(ref->where) != WHERE_MEMORY)
		return snap->words[WHERE_VALUE(ref->where)].owner < snap->nr_threads ? SEED_REGISTER
										     : SEED_KERNEL;
	map = snapshot_map_find(snap, WHERE_VALUE(ref->where));
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): where there is a map, there are all stacks. */
	return map && w->has_stack[map - snap->maps] ? SEED_STACK : SEED_MEMORY;
}

/* Begin at one more class of roots. */
static void scan_why_seed(struct scan_whys *w, enum seed_class class)
{
	const struct scan *s = w->s;
	struct root_iter it = { &s->roots };
	struct root_ref ref;

	while (class != SEED_UNNAMED && root_next(&it, &ref))
		if (w->parents[ref.block] == BLOCK_NONE && class_of(w, &ref) == class &&
		    (!w->only_starts || scan_is_start(s, ref.block, ref.offset)))
			scan_why_see(w, ref.block, IS_START);
	/* Roots beyond a limit are not kept. Only the blocks that they point to are known. */
	for (u32 i = 0; class == SEED_UNNAMED && i < s->nr; i++)
		if (s->blocks[i].flags & (w->only_starts ? BLOCK_ROOT : BLOCK_ROOT | BLOCK_SEED))
			scan_why_see(w, i, IS_START);
}

static bool search_for(struct scan_whys *w, u32 goal)
{
	while (!scan_why_spread(w, goal)) {
		if (w->leader != BLOCK_NONE || w->next_class == NR_SEED_CLASSES)
			return false;
		scan_why_seed(w, w->next_class++);
	}
	return true;
}

/* Continue the search that the verdict on @goal asks for, or begin it. */
static void choose_search(struct scan_whys *w, u32 goal)
{
	const struct scan *s = w->s;
	const struct scan_block *b = &s->blocks[goal];
	bool is_lost = b->verdict >= SCAN_DEFINITE && b->link < s->nr;
	u32 leader = is_lost ? b->link : BLOCK_NONE;
	bool only_starts = b->verdict == SCAN_REACHABLE;

	if (w->is_begun && w->leader == leader && w->only_starts == only_starts)
		return;
	memset(w->parents, 0xff, s->nr * sizeof(*w->parents));
	w->head = w->tail = 0;
	w->next_class = 0;
	w->leader = leader;
	w->only_starts = only_starts;
	w->is_begun = true;
	if (is_lost)
		scan_why_see(w, leader, IS_START);
}

/* Bytes from the start of @block to where the pointer from @parent points. */
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

/* A thread whose stack pointer or thread pointer lies in @map. */
static const struct snapshot_thread *scan_why_thread_at(const struct snapshot *snap,
							const struct snapshot_map *map)
{
	for (size_t i = 0; i < snap->nr_threads; i++) {
		const struct snapshot_thread *t = &snap->threads[i];

		if ((t->sp >= map->start && t->sp < map->end) || (t->tp >= map->start && t->tp < map->end))
			return t;
	}
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
		thread = root->map ? scan_why_thread_at(snap, root->map) : NULL;
		root->tid = thread ? thread->tid : 0;
		root->tp = thread ? thread->tp : 0;
		return;
	}
	word = &snap->words[WHERE_VALUE(where)];
	root->kind = word->owner < snap->nr_threads ? ROOT_REGISTER : ROOT_KERNEL;
	root->where = word->where;
	if (root->kind == ROOT_REGISTER)
		root->tid = snap->threads[word->owner].tid;
}

/* The best known root of @block: it points to the start, and is of a telling class, if possible. False: none. */
static bool root_of(const struct scan_whys *w, u32 block, struct root_ref *out)
{
	struct root_iter it = { &w->s->roots };
	struct root_ref ref;
	bool is_found = false;

	while (root_next(&it, &ref)) {
		if (ref.block != block)
			continue;
		if (!is_found || ref.offset < out->offset ||
		    (ref.offset == out->offset && class_of(w, &ref) < class_of(w, out)))
			*out = ref;
		is_found = true;
	}
	return is_found;
}

static int make_chain(const struct scan_whys *w, u32 goal, struct scan_chain **out)
{
	const struct scan *s = w->s;
	struct scan_chain *chain;
	struct root_ref ref;
	size_t nr = 1;
	u32 first = goal;

	for (; w->parents[first] != IS_START; first = w->parents[first])
		nr++;
	chain = calloc(1, sizeof(*chain) + nr * sizeof(chain->steps[0]));
	if (!chain)
		return -ENOMEM;
	chain->nr = nr;
	for (u32 block = goal; nr-- > 0; block = w->parents[block]) {
		u32 parent = w->parents[block];

		chain->steps[nr].addr = s->blocks[block].addr;
		chain->steps[nr].size = scan_block_size(s, block);
		chain->steps[nr].offset = parent == IS_START ? 0 : step_offset(s, parent, block);
	}
	if (w->leader == BLOCK_NONE && root_of(w, first, &ref)) {
		chain->steps[0].offset = ref.offset;
		describe_root(s, ref.where, &chain->root);
	}
	*out = chain;
	return 0;
}

static bool *find_stacks(const struct snapshot *snap)
{
	bool *has_stack = calloc(snap->nr_maps + 1, sizeof(*has_stack));

	for (size_t i = 0; has_stack && i < snap->nr_threads; i++) {
		const struct snapshot_map *stack = snapshot_map_find(snap, snap->threads[i].sp);
		const struct snapshot_map *own = snapshot_map_find(snap, snap->threads[i].tp);

		if (stack)
			has_stack[stack - snap->maps] = true;
		if (own)
			has_stack[own - snap->maps] = true;
	}
	return has_stack;
}

int scan_whys_new(struct scan_whys **out, struct scan *s)
{
	struct scan_whys *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->s = s;
	w->parents = malloc(s->nr * sizeof(*w->parents) + 1);
	w->queue = malloc(s->nr * sizeof(*w->queue) + 1);
	w->has_stack = s->snap ? find_stacks(s->snap) : NULL;
	if (!w->parents || !w->queue || (s->snap && !w->has_stack)) {
		scan_whys_free(w);
		return -ENOMEM;
	}
	*out = w;
	return 0;
}

void scan_whys_free(struct scan_whys *w)
{
	if (!w)
		return;
	free(w->parents);
	free(w->queue);
	free(w->has_stack);
	free(w);
}

int scan_whys_find(struct scan_whys *w, taddr_t addr, struct scan_chain **out)
{
	u32 goal = w->s->snap && !(addr >> 56) ? scan_lookup(w->s, addr) : BLOCK_NONE;

	if (goal == BLOCK_NONE)
		return -ENOENT;
	choose_search(w, goal);
	return search_for(w, goal) ? make_chain(w, goal, out) : -ENOENT;
}

int scan_why(struct scan *s, taddr_t addr, struct scan_chain **out)
{
	struct scan_whys *w;
	int err = scan_whys_new(&w, s);

	if (err)
		return err;
	err = scan_whys_find(w, addr, out);
	scan_whys_free(w);
	return err;
}

/* For scan_owners(): parents[] has the number of a root in the order of roots, or one more where it is not known. */
static void own_spread(struct scan_whys *w)
{
	while (w->head < w->tail) {
		u32 block = w->queue[w->head++];
		struct edge_iter it;

		edge_begin(&it, &w->s->edges, block);
		while (edge_next(&it))
			if (!w->only_starts || scan_is_start(w->s, it.target, it.offset))
				scan_why_see(w, it.target, w->parents[block]);
	}
}

/* Roots of @class own all that they lead to, unless roots of earlier classes do. */
static void own_from(struct scan_whys *w, enum seed_class class)
{
	const struct scan *s = w->s;
	struct root_iter it = { &s->roots };
	struct root_ref ref;
	u32 flags = w->only_starts ? BLOCK_ROOT : BLOCK_ROOT | BLOCK_SEED;

	for (u32 root = 0; class != SEED_UNNAMED && root_next(&it, &ref); root++)
		if (w->parents[ref.block] == BLOCK_NONE && class_of(w, &ref) == class &&
		    (!w->only_starts || scan_is_start(s, ref.block, ref.offset)))
			scan_why_see(w, ref.block, root);
	for (u32 i = 0; class == SEED_UNNAMED && i < s->nr; i++)
		if (s->blocks[i].flags & flags)
			scan_why_see(w, i, (u32)s->roots.nr);
	own_spread(w);
}

static int scan_why_by_bytes(const void *a, const void *b)
{
	const struct scan_owner *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : 0;
}

/* Sum up what each root holds, and keep those that hold anything. */
static size_t sum_owners(const struct scan_whys *w, struct scan_owner *owners)
{
	const struct scan *s = w->s;
	struct root_iter it = { &s->roots };
	struct root_ref ref;
	size_t nr = 0;

	for (u32 i = 0; i < s->nr; i++) {
		if (w->parents[i] == BLOCK_NONE)
			continue;
		owners[w->parents[i]].blocks++;
		owners[w->parents[i]].bytes += scan_block_size(s, i);
	}
	for (size_t i = 0; i <= s->roots.nr; i++) {
		bool is_known = i < s->roots.nr && root_next(&it, &ref);

		if (!owners[i].blocks)
			continue;
		owners[nr] = owners[i];
		owners[nr].root = (struct scan_root){ 0 };
		owners[nr].where = is_known ? ref.where : 0;
		owners[nr].number = (u32)i;
		owners[nr++].is_known = is_known;
	}
	return nr;
}

/* Put the place of its owner in @owners in place of each parent. */
static int number_owners(struct scan_whys *w, const struct scan_owner *owners, size_t nr)
{
	u32 *places = calloc(w->s->roots.nr + 1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		places[owners[i].number] = (u32)i;
	for (u32 i = 0; i < w->s->nr; i++)
		if (w->parents[i] != BLOCK_NONE)
			w->parents[i] = places[w->parents[i]];
	free(places);
	return 0;
}

int scan_owners(struct scan *s, struct scan_owner **out, size_t *nr, size_t most, u32 **of)
{
	_Static_assert((u32)SCAN_NO_OWNER == (u32)BLOCK_NONE, "no parent is no owner");
	struct scan_owner *owners = calloc(s->roots.nr + 1, sizeof(*owners));
	struct scan_whys *w = NULL;
	int err = owners ? scan_whys_new(&w, s) : -ENOMEM;

	if (err) {
		free(owners);
		return err;
	}
	memset(w->parents, 0xff, s->nr * sizeof(*w->parents));
	for (int pass = 0; pass < 2; pass++) {
		w->only_starts = pass == 0;
		w->head = 0;
		own_spread(w);
		for (enum seed_class class = 0; class < NR_SEED_CLASSES; class ++)
			own_from(w, class);
	}
	*nr = sum_owners(w, owners);
	qsort(owners, *nr, sizeof(*owners), scan_why_by_bytes);
	for (size_t i = 0; i < *nr && i < most; i++)
		if (owners[i].is_known)
			describe_root(s, owners[i].where, &owners[i].root);
	err = of ? number_owners(w, owners, *nr) : 0;
	if (of && !err) {
		*of = w->parents;
		w->parents = NULL;
	}
	scan_whys_free(w);
	if (err) {
		free(owners);
		return err;
	}
	*out = owners;
	return 0;
}
