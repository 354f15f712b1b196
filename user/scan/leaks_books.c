/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes the verdicts on some blocks from a scan of all blocks. */
#include "user/scan/leaks_books.h"

#include <errno.h>

#include "user/scan/scan_remote.h"
#include "user/scan/scan_state.h"

static bool leaks_books_is_lost(enum scan_verdict verdict)
{
	return verdict == SCAN_DEFINITE || verdict == SCAN_INDIRECT;
}

/* A block that the books have as a part of another one has the verdict of that one. */
static enum scan_verdict verdict_by(const struct scan_block *b, const struct scan *all)
{
	struct scan_block_info info;

	if (!scan_find_around(all, b->addr, &info))
		return SCAN_UNSURE;
	if (leaks_books_is_lost(info.verdict))
		return b->flags & BLOCK_TAINTED ? SCAN_UNSURE : SCAN_DEFINITE;
	return info.verdict;
}

int scan_is_listed(struct scan *s, const struct scan *all)
{
	int err = scan_apply_drained(s);
	struct scan_block_info info;
	u32 nr_missing = 0;

	for (u32 i = 0; i < s->nr && !err; i++)
		nr_missing += !scan_find_around(all, s->blocks[i].addr, &info);
	return err ? err : nr_missing > s->nr / 8 ? -ENOENT : 0;
}

struct scan_sum scan_lost_by(const struct scan *s, const struct scan *all)
{
	struct scan_sum sum = { 0 };

	for (u32 i = 0; i < s->nr; i++) {
		struct scan_block_info own, info;

		scan_at(s, i, &own);
		if (!scan_find_around(all, own.addr, &info) || !leaks_books_is_lost(info.verdict))
			continue;
		sum.blocks++;
		sum.bytes += own.size < info.size ? own.size : info.size;
	}
	return sum;
}

void scan_judge_by(struct scan *s, const struct scan *all)
{
	const struct scan_result result = scan_result(all);

	for (u32 i = 0; i < s->nr; i++) {
		struct scan_block *b = &s->blocks[i];

		b->verdict = verdict_by(b, all);
		b->link = b->verdict == SCAN_DEFINITE ? i : (u32)BLOCK_NONE;
	}
	scan_take_end(s, &result);
}
