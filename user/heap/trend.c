/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The least live bytes, slot by slot. The session adds them, reports show them, --fail-on growth asks for them. */
#include "user/heap/trend.h"

#define FIRST_SLOT_NS 10000000ULL
#define LEAST_NS      1000000000ULL

/* Join each two slots to one. */
static void trend_halve(struct trend *t)
{
	for (u32 i = 0; i < TREND_SLOTS / 2; i++)
		t->least[i] = t->least[2 * i] < t->least[2 * i + 1] ? t->least[2 * i] : t->least[2 * i + 1];
	t->nr = TREND_SLOTS / 2;
	t->slot_ns *= 2;
}

void trend_go_on(struct trend *t, u64 now_ns)
{
	u64 slot;

	if (!t->slot_ns) {
		t->slot_ns = FIRST_SLOT_NS;
		t->start_ns = now_ns;
		t->nr = 1;
		t->least[0] = UINT64_MAX;
	}
	slot = (now_ns - t->start_ns) / t->slot_ns;
	while (slot >= TREND_SLOTS) {
		while (t->nr < TREND_SLOTS)
			t->least[t->nr++] = t->last;
		trend_halve(t);
		slot = (now_ns - t->start_ns) / t->slot_ns;
	}
	/* Nothing has changed in the slots between. */
	while (t->nr <= slot)
		t->least[t->nr++] = t->last;
	t->slot_end_ns = t->start_ns + (slot + 1) * t->slot_ns;
}

static u64 least_of(const struct trend *t, u32 from, u32 to)
{
	u64 least = UINT64_MAX;

	for (u32 i = from; i < to; i++)
		if (t->least[i] < least)
			least = t->least[i];
	return least;
}

bool trend_growth(const struct trend *t, struct trend_growth *out)
{
	if (t->nr < 3 || t->nr * t->slot_ns < LEAST_NS)
		return false;
	out->before = least_of(t, t->nr / 3, t->nr * 2 / 3);
	out->after = least_of(t, t->nr * 2 / 3, t->nr);
	out->span_ns = t->nr * t->slot_ns / 3;
	return true;
}

u32 trend_permille(const struct trend_growth *g)
{
	u64 more = g->after > g->before ? g->after - g->before : 0;
	u64 base = g->before ? g->before : 1;

	if (more > UINT64_MAX / 1000 || more * 1000 / base > UINT32_MAX)
		return UINT32_MAX;
	return more * 1000 / base;
}
