/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Live blocks by address: linear probing in hash order, grown and shrunk in place.
 *
 * The key of a block is its hash, and a bijection of its address. The home of a key is the slot
 * key * nr_homes / 2^64, therefore homes are in the order of keys. Blocks are too: each block lies at its home, or in
 * the run of used slots behind it. Spare slots after the last home take the run at the end.
 *
 * A larger table has the same order, so growing needs no second table. First all blocks move to the end of the longer
 * array, then one by one to max(home, slot behind the previous block). No block overtakes blocks that have not moved
 * yet: all of these fit behind its final place, so that place is not beyond the slot where it waits.
 */
#include "user/heap/block_table.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	MIN_HOMES = 192,
	NR_SPARE = 128, /* at full load, one table in 10^12 has a run of 60 slots behind the end */
	HUGE_PAGE = 2 << 20,
	PREFETCH_FROM = 1 << 20,       /* bytes; a smaller table is in the cache anyway */
	ROUND_TO_HUGE_FROM = 32 << 20, /* bytes; rounding would waste too much of a smaller table */
};

_Static_assert(sizeof(struct block) == 24, "the memory per block is promised");

static u64 block_table_mix(const struct block_table *t, taddr_t addr)
{
	u64 x = addr ^ (addr >> 32);

	x *= t->mul[0];
	x ^= x >> 32;
	return x * t->mul[1]; /* the low half is not mixed well, but only the high half chooses the home */
}

/* The inverse of block_table_mix(). A xor with a shift by half the width is its own inverse. */
static u64 block_table_unmix(const struct block_table *t, u64 key)
{
	u64 x = key * t->inverse[1];

	x ^= x >> 32;
	x *= t->inverse[0];
	return x ^ (x >> 32);
}

/* The inverse of an odd number modulo 2^64. Each step of Newton doubles the right bits, from 3 to 96. */
static u64 block_table_invert(u64 odd)
{
	u64 x = odd;

	for (int i = 0; i < 5; i++)
		x *= 2 - odd * x;
	return x;
}

/* Uses only the high half of the key, so that 32-bit machines need no wide multiply. nr_homes < 2^32. */
static u64 block_table_home_of(const struct block_table *t, u64 key)
{
	return ((key >> 32) * t->nr_homes) >> 32;
}

/* The first slot from the home of @key on that is empty or has a key >= @key. The table has slots. */
static struct block *lower_bound(const struct block_table *t, u64 key)
{
	struct block *b = &t->slots[block_table_home_of(t, key)];

	/* The key 0 of an empty slot wraps to the greatest number, so one comparison ends both. */
	while (b->key - 1 < key - 1)
		b++;
	return b;
}

void block_table_init(struct block_table *t, u64 seed, struct budget *budget)
{
	*t = (struct block_table){ .budget = budget };
	t->mul[0] = (seed * 0x9e3779b97f4a7c15ULL) | 1;
	t->mul[1] = ((seed ^ (seed >> 31)) * 0xd6e8feb86659fd93ULL) ^ 0xa0761d6478bd642fULL;
	t->mul[1] |= 1;
	for (int i = 0; i < 2; i++)
		t->inverse[i] = block_table_invert(t->mul[i]);
}

/* Bytes to map for @nr_slots and the empty slot behind them. */
static u64 bytes_for(u64 nr_slots)
{
	u64 bytes = (nr_slots + 1) * sizeof(struct block);
	u64 unit = bytes >= ROUND_TO_HUGE_FROM ? (u64)HUGE_PAGE : (u64)sysconf(_SC_PAGESIZE);

	return (bytes + unit - 1) / unit * unit;
}

void block_table_fini(struct block_table *t)
{
	if (!t->slots)
		return;
	budget_give(t->budget, t->bytes);
	munmap(t->slots, t->bytes);
	t->slots = NULL;
}

static int map_slots(struct block_table *t, u64 bytes)
{
	void *p;

	if (bytes > SIZE_MAX || !budget_take(t->budget, bytes))
		return -ENOMEM;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		budget_give(t->budget, bytes);
		return -ENOMEM;
	}
	madvise(p, bytes, MADV_HUGEPAGE); /* each look-up is a random access: fewer TLB misses */
	t->slots = p;
	t->bytes = bytes;
	return 0;
}

int block_table_copy(struct block_table *out, const struct block_table *t, struct budget *budget)
{
	int err;

	*out = *t;
	out->budget = budget;
	if (!t->slots)
		return 0;
	out->slots = NULL;
	err = map_slots(out, t->bytes);
	if (err)
		return err;
	memcpy(out->slots, t->slots, t->bytes);
	return 0;
}

/* Lengthen the mapping. The new bytes are zero: empty slots. */
static int block_table_lengthen(struct block_table *t, u64 bytes)
{
	u64 more = bytes - t->bytes;
	void *p;

	if (!t->slots)
		return map_slots(t, bytes);
	if (bytes > SIZE_MAX || !budget_take(t->budget, more))
		return -ENOMEM;
	p = mremap(t->slots, t->bytes, bytes, MREMAP_MAYMOVE);
	if (p == MAP_FAILED) {
		budget_give(t->budget, more);
		return -ENOMEM;
	}
	t->slots = p;
	t->bytes = bytes;
	return 0;
}

static void move_block(struct block *to, struct block *from)
{
	if (to == from)
		return;
	*to = *from;
	from->key = 0;
}

/* Move all blocks of the first @nr_used slots to the end of the array, in order. */
static void gather_at_end(struct block_table *t, u64 nr_used)
{
	struct block *to = t->slots + t->nr_slots;

	for (struct block *b = t->slots + nr_used; b-- > t->slots;)
		if (b->key)
			move_block(--to, b);
}

/* Move all blocks to the beginning of the array, in order. */
static void gather_at_begin(struct block_table *t)
{
	struct block *to = t->slots;

	for (struct block *b = t->slots; b < t->slots + t->nr_slots; b++)
		if (b->key)
			move_block(to++, b);
}

/* Move the blocks from the end to their places. False if the last ones need more spare slots. */
static bool block_table_spread(struct block_table *t)
{
	struct block *next = t->slots;
	struct block *end = t->slots + t->nr_slots;

	for (struct block *b = end - t->nr; b < end; b++) {
		struct block *to = t->slots + block_table_home_of(t, b->key);

		if (to < next)
			to = next;
		if (to > b)
			return false;
		move_block(to, b);
		next = to + 1;
	}
	return true;
}

/* Spread with fewer homes until all blocks fit. This ends, because with one home all blocks fit. */
static void spread_all(struct block_table *t)
{
	while (!block_table_spread(t)) {
		t->nr_homes -= t->nr_homes / 8 + 1;
		gather_at_end(t, t->nr_slots);
	}
}

/* Make more slots spare: chance, or a hostile target, has filled the spare ones. */
static void add_spare(struct block_table *t)
{
	t->nr_homes -= t->nr_homes / 8 + 1;
	gather_at_end(t, t->nr_slots);
	spread_all(t);
}

/* Set the number of slots to what the mapping holds. */
static void block_table_set_size(struct block_table *t)
{
	t->nr_slots = t->bytes / sizeof(struct block) - 1;
	t->nr_homes = t->nr_slots - NR_SPARE;
}

/* The most blocks before the table grows. */
static u64 full_load(const struct block_table *t)
{
	return t->slots ? (t->nr_slots - NR_SPARE) / 5 * 4 : 0;
}

static int block_table_grow(struct block_table *t)
{
	u64 nr_used = t->nr_slots;
	u64 nr_homes = t->slots ? (t->nr_slots - NR_SPARE) / 4 * 5 : (u64)MIN_HOMES;
	u64 bytes;
	int err;

	if (nr_homes > UINT32_MAX)
		return -ENOMEM;
	bytes = bytes_for(nr_homes + NR_SPARE);
	err = block_table_lengthen(t, bytes);
	if (err)
		return err;
	block_table_set_size(t);
	gather_at_end(t, nr_used);
	spread_all(t);
	return 0;
}

/* Shrink to a load of 5/8: then many blocks must come or go before the table grows or shrinks again. */
static void block_table_shrink(struct block_table *t)
{
	u64 bytes = bytes_for(t->nr * 8 / 5 + NR_SPARE);

	if (bytes >= t->bytes)
		return;
	gather_at_begin(t);
	if (mremap(t->slots, t->bytes, bytes, 0) != MAP_FAILED) {
		budget_give(t->budget, t->bytes - bytes);
		t->bytes = bytes;
		block_table_set_size(t);
	}
	gather_at_end(t, t->nr);
	spread_all(t);
}

struct block *block_table_find(const struct block_table *t, taddr_t addr)
{
	u64 key = block_table_mix(t, addr);
	struct block *b;

	if (!t->nr || !addr)
		return NULL;
	b = lower_bound(t, key);
	return b->key == key ? b : NULL;
}

/* Empty the slot @b: move the blocks from there on up by one. False if no slot is left behind the run. */
static bool block_table_make_room(struct block_table *t, struct block *b)
{
	struct block *end = b;

	while (end->key)
		end++;
	if (end == t->slots + t->nr_slots)
		return false;
	if (end > b)
		memmove(b + 1, b, (end - b) * sizeof(*b));
	return true;
}

int block_table_put(struct block_table *t, taddr_t addr, struct block **out)
{
	u64 key = block_table_mix(t, addr);
	struct block *b = t->slots ? lower_bound(t, key) : NULL;

	if (b && b->key == key) {
		*out = b;
		return 1;
	}
	if (!b || t->nr >= full_load(t)) {
		int err = block_table_grow(t);

		if (err)
			return err;
		b = lower_bound(t, key);
	}
	while (!block_table_make_room(t, b)) {
		add_spare(t);
		b = lower_bound(t, key);
	}
	*b = (struct block){ .key = key };
	t->nr++;
	*out = b;
	return 0;
}

void block_table_del(struct block_table *t, struct block *b)
{
	struct block *end = b + 1;

	/* Blocks that are not at home move down. The empty slot behind the last slot ends every run. */
	while (end->key && block_table_home_of(t, end->key) < (u64)(end - t->slots))
		end++;
	if (end > b + 1)
		memmove(b, b + 1, (end - b - 1) * sizeof(*b));
	end[-1].key = 0;
	t->nr--;
	if (t->nr < t->nr_slots / 8 * 3 && t->nr_slots > 16 * MIN_HOMES)
		block_table_shrink(t);
}

struct block *block_table_next(const struct block_table *t, const struct block *prev)
{
	u64 i = prev ? (u64)(prev - t->slots) + 1 : 0;

	for (; i < t->nr_slots; i++)
		if (t->slots[i].key)
			return &t->slots[i];
	return NULL;
}

taddr_t block_table_addr(const struct block_table *t, const struct block *b)
{
	return block_table_unmix(t, b->key);
}

void block_table_prefetch(const struct block_table *t, taddr_t addr)
{
	const char *p;

	if (t->bytes < PREFETCH_FROM)
		return;
	p = (const char *)&t->slots[block_table_home_of(t, block_table_mix(t, addr))];
	__builtin_prefetch(p, 1);
	__builtin_prefetch(p + 64, 1);
}
