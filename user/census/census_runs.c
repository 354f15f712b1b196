/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorts the runs of an allocator by address, and lists their blocks. */
#include "user/census/census_runs.h"

#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

enum { CHECK_EVERY = 64 /* runs between two looks at the clock */ };

void census_runs_fini(struct census_runs *r)
{
	free(r->of);
	memset(r, 0, sizeof(*r));
}

int census_runs_add(struct census_runs *r, const struct census_run *run)
{
	int err = array_reserve(r->of, r->max, r->nr + 1);

	if (!err)
		r->of[r->nr++] = *run;
	return err;
}

static int census_runs_by_start(const void *a, const void *b)
{
	const struct census_run *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int census_runs_enter_run(const struct census_run *run, struct census_blocks *out,
				 census_enter_fn *enter, void *ctx)
{
	struct census_segment segment = {
		.start = run->start, .end = run->end, .arena = run->arena, .first = out->nr
	};
	int err = run->nr ? enter(ctx, run) : 0;

	segment.nr = out->nr - segment.first;
	out->arenas[run->arena].nr_segments++;
	return err ? err : census_add_segment(out, &segment);
}

int census_runs_enter(struct census_runs *r, struct census_walk *w, census_enter_fn *enter, void *ctx)
{
	taddr_t end = 0;
	int err = 0;

	if (r->nr)
		qsort(r->of, r->nr, sizeof(*r->of), census_runs_by_start);
	for (size_t i = 0; i < r->nr && !err; i++) {
		const struct census_run *run = &r->of[i];

		if (run->start < end) {
			census_note(w->out, run->start, "two parts of memory overlap");
			continue;
		}
		end = run->end;
		err = census_runs_enter_run(run, w->out, enter, ctx);
		if (!err && i % CHECK_EVERY == 0)
			err = census_check_time(w);
	}
	return err;
}

int census_enter_block(struct census_walk *w, taddr_t addr, u64 size)
{
	const u8 *p = size >= w->w ? census_window(w, addr, w->w) : NULL;
	u32 type = 0;
	int err = p ? census_type_of(w, census_word_of(w, p), &type) : 0;

	return err ? err : census_add_block(w->out, addr, size, type);
}
