/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adapts the distance of samples to a process. */
#include "user/source/sample_pace.h"

enum {
	FEW = 100,  /* records a second; with half the distance there are twice as many */
	MANY = 300, /* more is too many */
	AIM = 200,
	LIVE_STEP = 4096, /* live blocks: with each so many more the distance is at least twice as large */
};

static const u64 second_ns = 1000000000;

void sample_pace_count(struct sample_pace *p, const struct heap_event *ev)
{
	bool is_new = (ev->h.kind == EVENT_ALLOC || ev->h.kind == EVENT_REALLOC_END) && ev->addr &&
		      !(ev->h.flags & EVENT_UNSAMPLED);
	bool is_old = ev->h.kind == EVENT_FREE || ev->h.kind == EVENT_REALLOC_BEGIN;

	p->nr_live += is_new - is_old;
}

/* The least distance that these live blocks allow. */
static u8 sample_pace_floor(const struct sample_pace *p)
{
	s64 steps = p->nr_live / LIVE_STEP;

	if (steps <= 0)
		return SAMPLE_LEAST_LOG;
	return steps < SAMPLE_MOST_LOG - SAMPLE_LEAST_LOG ? (u8)(SAMPLE_LEAST_LOG + steps) : SAMPLE_MOST_LOG;
}

/* @nr records of a process are as many as so many of one that has its share, and nothing less, where there are few. */
static u64 sample_pace_shared(const struct sample_pace *p, u64 nr)
{
	u64 sum = p->sum ? p->sum : SAMPLE_SUM, wanted = (u64)p->crowd * AIM;

	return wanted > sum ? nr * wanted / sum : nr;
}

u32 sample_pace_sum(u32 sum, u64 cost, u64 limit)
{
	if (cost > limit)
		return sum / 2 > SAMPLE_LEAST_SUM ? sum / 2 : SAMPLE_LEAST_SUM;
	/* Twice as many cost no more than twice as much. */
	return sum < SAMPLE_SUM && cost < limit / 2 ? sum * 2 : sum;
}

u64 sample_pace_next(struct sample_pace *p, u64 nr, u64 now_ns)
{
	u64 time_ns, rate;

	if (!p->begin_ns)
		p->begin_ns = now_ns;
	p->nr += sample_pace_shared(p, nr);
	time_ns = now_ns - p->begin_ns;
	/* Far too many cannot wait until the second is over. */
	if (time_ns < second_ns && p->nr <= MANY)
		return 1ULL << p->log;
	rate = p->nr * second_ns / (time_ns > second_ns ? time_ns : second_ns);
	for (u64 at = rate; at > MANY && p->log < SAMPLE_MOST_LOG; at /= 2)
		p->log++;
	if (rate < FEW && p->log > SAMPLE_LEAST_LOG)
		p->log--;
	if (p->log < sample_pace_floor(p))
		p->log = sample_pace_floor(p);
	p->begin_ns = now_ns;
	p->nr = 0;
	return 1ULL << p->log;
}
