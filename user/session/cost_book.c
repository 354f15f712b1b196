/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums over five seconds, in tenths of a second. */
#include "user/session/cost_book.h"

#include <string.h>

#define MS 1000000ULL

/*
 * The price of a call is right within a fifth. Nobody can see less than a thousandth of a CPU. A moment that ends at
 * its first looks could not be shorter.
 */
enum { WHOLE = 1000, SURE = 800, LEAST_OF_CPU = 1, MAX_TOO_DEAR = 2, TICK_NS = 10000000 /* of /proc */ };
static const u64 known_after_ns = 1000 * MS, shortest_ns = 100 * MS;

static void cost_book_advance(struct cost_book *b, u64 now_ns)
{
	u64 slot = now_ns / COST_SLOT_NS;

	for (u64 i = 0; i < COST_SLOTS && b->slot < slot; i++) {
		b->slot = slot - b->slot > COST_SLOTS ? slot - COST_SLOTS + 1 : b->slot + 1;
		b->costs_ns[b->slot % COST_SLOTS] = b->cpus_ns[b->slot % COST_SLOTS] = 0;
	}
}

static u64 sum_of(const u64 slots[COST_SLOTS])
{
	u64 sum = 0;

	for (int i = 0; i < COST_SLOTS; i++)
		sum += slots[i];
	return sum;
}

void cost_book_look(struct cost_book *b, u64 now_ns, u64 cpu_ns, u64 cost_ns)
{
	if (!b->begin_ns) {
		b->begin_ns = b->looked_ns = b->opened_ns = now_ns;
		b->past_cpu_ns = b->cpu_ns = cpu_ns;
		b->slot = now_ns / COST_SLOT_NS;
	}
	cost_book_advance(b, now_ns);
	b->costs_ns[b->slot % COST_SLOTS] += cost_ns;
	b->cpus_ns[b->slot % COST_SLOTS] += cpu_ns > b->cpu_ns ? cpu_ns - b->cpu_ns : 0;
	if (b->opened_ns && now_ns > b->looked_ns)
		b->rate = (double)cost_ns / (double)(now_ns - b->looked_ns);
	if (!b->opened_ns && now_ns > b->rest_ns + known_after_ns && cpu_ns > b->rest_cpu_ns)
		b->own = (double)(cpu_ns - b->rest_cpu_ns) / (double)(now_ns - b->rest_ns);
	b->cpu_ns = cpu_ns;
	b->looked_ns = now_ns;
}

void cost_book_change(struct cost_book *b, u64 now_ns, u64 cpu_ns)
{
	double time_ns = (double)(now_ns - b->looked_ns), cost_ns = b->rate * time_ns;
	double more_ns = (double)(cpu_ns - b->cpu_ns) - b->own * time_ns + TICK_NS, rate = b->rate;

	if (more_ns < cost_ns)
		cost_ns = more_ns > 0 ? more_ns : 0;
	cost_book_look(b, now_ns, cpu_ns, (u64)cost_ns);
	b->rate = rate;
}

u64 cost_book_sum(const struct cost_book *b)
{
	return sum_of(b->costs_ns);
}

u64 cost_book_may(const struct cost_book *b, u32 max_cost)
{
	u64 time_ns = b->looked_ns - b->begin_ns, cpu_ns = sum_of(b->cpus_ns), cost_ns = cost_book_sum(b);
	u64 least_ns = COST_SPAN_NS / WHOLE * LEAST_OF_CPU, may_ns;
	double own_ns = cpu_ns > cost_ns ? (double)(cpu_ns - cost_ns) : 0;

	if (max_cost >= WHOLE)
		return UINT64_MAX;
	if (time_ns > COST_SPAN_NS)
		time_ns = COST_SPAN_NS;
	/* In its first moments it was held up: what it did before says more. */
	if (time_ns < known_after_ns) {
		own_ns += (double)b->past_cpu_ns;
		time_ns += b->age_ns;
	}
	if (time_ns)
		own_ns *= (double)COST_SPAN_NS / (double)time_ns;
	if (b->own > 0)
		own_ns = b->own * (double)COST_SPAN_NS;
	own_ns = b->is_of_cpu ? (double)COST_SPAN_NS * max_cost / WHOLE
			      : own_ns * max_cost / (WHOLE - max_cost);
	may_ns = (u64)(own_ns * SURE / WHOLE);
	return may_ns > least_ns ? may_ns : least_ns;
}

bool cost_book_must_rest(const struct cost_book *b, u32 max_cost, u64 ahead_ns)
{
	u64 may_ns = cost_book_may(b, max_cost);

	return may_ns != UINT64_MAX &&
	       (double)cost_book_sum(b) + b->rate * (double)ahead_ns >= (double)may_ns;
}

u64 cost_book_rest(struct cost_book *b, u32 max_cost)
{
	u64 may_ns = cost_book_may(b, max_cost), sum_ns = cost_book_sum(b);
	bool is_too_dear = sum_ns * SURE / WHOLE > may_ns && b->looked_ns - b->opened_ns < shortest_ns;

	b->opened_ns = 0;
	b->rest_ns = b->looked_ns;
	b->rest_cpu_ns = b->cpu_ns;
	b->nr_too_dear = is_too_dear ? b->nr_too_dear + 1 : 0;
	b->is_left = b->nr_too_dear >= MAX_TOO_DEAR;
	if (b->is_left)
		return UINT64_MAX;
	return sum_ns > may_ns ? (u64)((double)COST_SPAN_NS * (double)sum_ns / (double)may_ns) : COST_SPAN_NS;
}

void cost_book_open(struct cost_book *b)
{
	b->opened_ns = b->looked_ns;
	b->calls = 0;
}
