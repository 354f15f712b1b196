/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rule by which all outputs fold recursion. */
#include "user/report/turns.h"

enum { MAX_TURN = 12, MIN_TIMES = 3 };

struct turns turns_find(size_t nr, bool (*is_same)(const void *ctx, size_t a, size_t b), const void *ctx)
{
	for (size_t turn = 1; turn <= MAX_TURN && turn * MIN_TIMES <= nr; turn++) {
		size_t more = 0;

		while (more + turn < nr && is_same(ctx, more, more + turn))
			more++;
		if (more / turn + 1 >= MIN_TIMES)
			return (struct turns){ (u32)turn, (u32)(more / turn + 1) };
	}
	return (struct turns){ 1, 1 };
}
