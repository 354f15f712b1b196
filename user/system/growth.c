/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line through the last points of a process, and whether it may be chance. */
#include "user/system/growth.h"

#include <math.h>

enum {
	MINUTE_SLOT_DS = 8, /* less than a second: a late look must not share the slot of the one before */
	HOUR_SLOT_DS = 600,
	MIN_POINTS = 10,
	MIN_RISE_BYTES = 256 << 10, /* less may be one step of an allocator */
	SURE_ERRORS = 5,	    /* at 500 processes a second even rare chances come */
};

static u32 growth_newest(const struct growth_window *w)
{
	return (w->next + GROWTH_POINTS - 1) % GROWTH_POINTS;
}

/* The slot of the oldest point. */
static u32 growth_oldest(const struct growth_window *w)
{
	return (w->next + GROWTH_POINTS - w->nr) % GROWTH_POINTS;
}

static void window_add(struct growth_window *w, u32 slot_ds, u32 time_ds, u32 kib)
{
	u32 last = growth_newest(w);

	if (w->nr && time_ds < w->slot_end_ds) {
		if (kib > w->kib[last])
			return;
		w->kib[last] = kib;
		w->time_ds[last] = time_ds;
		return;
	}
	w->time_ds[w->next] = time_ds;
	w->kib[w->next] = kib;
	w->slot_end_ds = time_ds + slot_ds;
	w->next = (w->next + 1) % GROWTH_POINTS;
	if (w->nr < GROWTH_POINTS)
		w->nr++;
}

void growth_add(struct growth *g, u32 time_ds, u64 bytes)
{
	u32 kib = bytes >> 10 > UINT32_MAX ? UINT32_MAX : (u32)(bytes >> 10);

	window_add(&g->minute, MINUTE_SLOT_DS, time_ds, kib);
	window_add(&g->hour, HOUR_SLOT_DS, time_ds, kib);
}

static s64 newest_over_oldest(const struct growth_window *w)
{
	return w->nr ? (s64)w->kib[growth_newest(w)] - (s64)w->kib[growth_oldest(w)] : 0;
}

/* The least of the points @from to @to - 1, counted from the oldest. */
static u32 growth_least(const struct growth_window *w, u32 from, u32 to)
{
	u32 first = growth_oldest(w), kib = UINT32_MAX;

	for (u32 i = from; i < to; i++) {
		u32 now = w->kib[(first + i) % GROWTH_POINTS];

		kib = now < kib ? now : kib;
	}
	return kib;
}

/* A leak raises what is always needed. */
static bool rises_by_thirds(const struct growth_window *w)
{
	u32 third = w->nr / 3;
	u32 first = growth_least(w, 0, third), second = growth_least(w, third, 2 * third),
	    last = growth_least(w, 2 * third, w->nr);

	return first < second && second < last;
}

/* Sums over the points, seconds and bytes from the oldest one on. */
struct sums {
	double t, b, tt, tb;
};

static double growth_seconds(const struct growth_window *w, u32 i)
{
	return (w->time_ds[(growth_oldest(w) + i) % GROWTH_POINTS] - w->time_ds[growth_oldest(w)]) / 10.0;
}

static double growth_bytes(const struct growth_window *w, u32 i)
{
	return ((double)w->kib[(growth_oldest(w) + i) % GROWTH_POINTS] - (double)w->kib[growth_oldest(w)]) *
	       1024;
}

/*
 * The error of the rate. Memory grows by steps, so neighbours depart from the line in the same direction: there are
 * fewer independent points than points, as their correlation says.
 */
static double growth_error_of(const struct growth_window *w, double start, double rate, double spread)
{
	double squares = 0, products = 0, before = 0, correlation, independent;

	for (u32 i = 0; i < w->nr; i++) {
		double off = growth_bytes(w, i) - start - rate * growth_seconds(w, i);

		squares += off * off;
		products += i ? off * before : 0;
		before = off;
	}
	if (squares <= 0)
		return 0;
	correlation = products / squares;
	if (correlation < 0)
		correlation = 0;
	if (correlation > 0.95)
		correlation = 0.95;
	independent = w->nr * (1 - correlation) / (1 + correlation);
	if (independent < 3)
		independent = 3;
	return sqrt(squares / (independent - 2) / spread);
}

static struct growth_line growth_fit(const struct growth_window *w)
{
	struct growth_line line = { .nr = w->nr };
	struct sums s = { 0 };
	double mean_t, mean_b, spread, rise;

	if (w->nr < 2)
		return line;
	for (u32 i = 0; i < w->nr; i++) {
		double t = growth_seconds(w, i), b = growth_bytes(w, i);

		s.t += t;
		s.b += b;
		s.tt += t * t;
		s.tb += t * b;
	}
	mean_t = s.t / w->nr;
	mean_b = s.b / w->nr;
	spread = s.tt - w->nr * mean_t * mean_t;
	if (spread <= 0)
		return line;
	line.bytes_per_s = (s.tb - w->nr * mean_t * mean_b) / spread;
	line.error_per_s =
		w->nr > 2 ? growth_error_of(w, mean_b - line.bytes_per_s * mean_t, line.bytes_per_s, spread)
			  : 0;
	line.time_ns = (u64)(growth_seconds(w, w->nr - 1) * 1e9);
	rise = line.bytes_per_s * growth_seconds(w, w->nr - 1);
	line.rise_bytes = rise > 0 ? (u64)rise : 0;
	line.is_sure = w->nr >= MIN_POINTS && line.rise_bytes >= MIN_RISE_BYTES &&
		       line.bytes_per_s > SURE_ERRORS * line.error_per_s && rises_by_thirds(w);
	return line;
}

/* A process that grew an hour ago need not grow now. */
static bool still_rises(const struct growth_window *w)
{
	u32 part = MIN_POINTS / 2;

	return growth_least(w, w->nr - part, w->nr) > growth_least(w, w->nr - 2 * part, w->nr - part);
}

bool growth_is_possible(const struct growth *g)
{
	return newest_over_oldest(&g->minute) >= MIN_RISE_BYTES >> 11 ||
	       newest_over_oldest(&g->hour) >= MIN_RISE_BYTES >> 11;
}

struct growth_line growth_estimate(const struct growth *g)
{
	struct growth_line minute = growth_fit(&g->minute), hour = growth_fit(&g->hour);

	return !minute.is_sure && hour.is_sure && still_rises(&g->hour) ? hour : minute;
}

/* The last point that has the least. */
static u32 least_ds(const struct growth_window *w)
{
	u32 kib = UINT32_MAX, time_ds = 0;

	for (u32 i = 0; i < w->nr; i++) {
		u32 at = (growth_oldest(w) + i) % GROWTH_POINTS;

		if (w->kib[at] <= kib) {
			kib = w->kib[at];
			time_ds = w->time_ds[at];
		}
	}
	return time_ds;
}

u32 growth_since(const struct growth *g)
{
	return least_ds(g->hour.nr > 1 ? &g->hour : &g->minute);
}
