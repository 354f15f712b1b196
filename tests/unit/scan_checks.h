/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks of the process that exists only in a test, and what a scan says about them. */
#pragma once

#include "tests/unit/scan_world.h"

static taddr_t block_at(taddr_t addr, u64 size)
{
	struct heap_block *b = &w.blocks[w.nr_blocks];

	*b = (struct heap_block){ .addr = addr, .size = size, .order = w.nr_blocks };
	b->row = (u32)(w.nr_blocks++ % 3);
	return addr;
}

/* A block in the heap, by number. */
static inline taddr_t block(unsigned int n)
{
	return block_at(HEAP + 0x100 * (n + 1), 64);
}

static int each_block(const void *ctx, int (*visit)(void *, const struct heap_block *), void *visit_ctx)
{
	/* Backwards: the order must not matter. */
	for (size_t i = w.nr_blocks; i-- > 0;) {
		int err = visit(visit_ctx, &w.blocks[i]);

		if (err)
			return err;
	}
	return ctx ? -EINVAL : 0;
}

static const struct scan_books books = { .for_each = each_block };

static inline void scan_all(void)
{
	assert_int_equal(scan_new(&w.scan, &books, &w.options), 0);
	assert_int_equal(scan_read(w.scan, &w.snap), 0);
	assert_int_equal(scan_judge(w.scan), 0);
}

/* For books that can be asked, too. */
static inline bool find_block(const void *ctx, taddr_t addr, struct heap_block *out)
{
	for (size_t i = 0; i < w.nr_blocks; i++) {
		if (w.blocks[i].addr != addr)
			continue;
		*out = w.blocks[i];
		return true;
	}
	return ctx != NULL;
}

static inline void scan_with_callers(void)
{
	const struct scan_books with_find = { .for_each = each_block, .find = find_block };

	assert_int_equal(scan_new(&w.scan, &with_find, &w.options), 0);
	assert_int_equal(scan_read(w.scan, &w.snap), 0);
	assert_int_equal(scan_judge(w.scan), 0);
}

static inline struct scan_block_info info_of(taddr_t addr)
{
	struct scan_block_info info;

	assert_true(scan_find(w.scan, addr, &info));
	return info;
}

#define assert_verdict(addr, expected)                                                                       \
	assert_string_equal(scan_verdict_name(info_of(addr).verdict), scan_verdict_name(expected))
