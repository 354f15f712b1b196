/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live bytes over time: slots that double in length, so that memory is bounded and no extreme is lost. */
#include "user/heap/timeline.h"

#include <stdlib.h>

#include "user/heap/budget.h"
#include "user/heap/heap_sample.h"

enum {
	FIRST_SHIFT = 10, /* slots of about a microsecond */
	MAX_SHIFT = 63,
};

void timeline_init(struct timeline *t, struct budget *budget)
{
	*t = (struct timeline){ .shift = FIRST_SHIFT, .budget = budget };
}

void timeline_fini(struct timeline *t)
{
	budget_give(t->budget, (u64)t->max * sizeof(*t->points));
	free(t->points);
	timeline_init(t, t->budget);
}

int timeline_copy(struct timeline *t, const struct timeline *from, struct budget *budget)
{
	*t = *from;
	t->budget = budget;
	t->max = t->nr;
	return budget_copy(budget, &t->points, from->points, t->nr * sizeof(*t->points));
}

void timeline_reset(struct timeline *t)
{
	t->end_ns = t->min_bytes = t->max_bytes = 0;
	t->shift = FIRST_SHIFT;
	t->nr = 0;
}

static u64 timeline_slot_of(const struct timeline *t, u64 time_ns)
{
	return time_ns > t->start_ns ? (time_ns - t->start_ns) >> t->shift : 0;
}

/* @b, which comes after @a, with the extremes of both. */
static struct timeline_point timeline_join(struct timeline_point a, struct timeline_point b)
{
	b.min_bytes = a.min_bytes < b.min_bytes ? a.min_bytes : b.min_bytes;
	b.max_bytes = a.max_bytes > b.max_bytes ? a.max_bytes : b.max_bytes;
	return b;
}

/* Double the length of slots until at most half of the points are left. */
static void timeline_merge(struct timeline *t)
{
	u32 half = t->nr / 2;

	while (t->nr > half && t->shift < MAX_SHIFT) {
		u32 kept = 0;

		t->shift++;
		for (u32 i = 1; i < t->nr; i++) {
			struct timeline_point *last = &t->points[kept];

			if (timeline_slot_of(t, last->time_ns) == timeline_slot_of(t, t->points[i].time_ns))
				*last = timeline_join(*last, t->points[i]);
			else
				t->points[++kept] = t->points[i];
		}
		t->nr = kept + 1;
	}
}

static bool timeline_make_room(struct timeline *t)
{
	u32 most = HAS_SAMPLES && t->has_few ? TIMELINE_FEW : TIMELINE_MAX;

	if (t->nr < most && !budget_array(t->budget, t->points, t->max, (size_t)t->nr + 1))
		return true;
	if (t->nr > 1)
		timeline_merge(t);
	return t->nr < t->max;
}

void timeline_go_on(struct timeline *t, u64 now_ns, struct timeline_point last)
{
	u64 slot;

	if (!t->end_ns) {
		t->start_ns = now_ns;
		t->min_bytes = t->max_bytes = last.live_bytes;
	} else if (timeline_make_room(t)) {
		last.min_bytes = t->min_bytes;
		last.max_bytes = t->max_bytes;
		t->points[t->nr++] = last;
		t->min_bytes = t->max_bytes = last.live_bytes;
	}
	slot = timeline_slot_of(t, now_ns) + 1;
	t->end_ns = t->start_ns + (slot << t->shift);
	if (slot > UINT64_MAX >> t->shift || t->end_ns < t->start_ns)
		t->end_ns = UINT64_MAX;
}

bool timeline_point(const struct timeline *t, size_t i, struct timeline_point last,
		    struct timeline_point *out)
{
	if (i > t->nr || !t->end_ns)
		return false;
	last.min_bytes = t->min_bytes;
	last.max_bytes = t->max_bytes;
	*out = i < t->nr ? t->points[i] : last;
	return true;
}
