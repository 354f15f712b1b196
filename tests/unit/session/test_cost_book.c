/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process rests before tracing has cost it more than it may in five seconds, and until that is five seconds old. */
#include "user/session/cost_book.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ULL
enum { LIMIT = 100, BEGIN_MS = 1000000, STEP_MS = 10, AHEAD_MS = 60, MAX_STEPS = 10000 };

/* A process of a server: its own CPU time and what calls cost, in thousandths of the time. */
struct load {
	u64 own, cost, now_ms, cpu_ns;
};

static struct cost_book begin(struct load *l)
{
	struct cost_book b = { .pid = 1, .age_ns = 100000 * MS };

	l->now_ms = BEGIN_MS;
	l->cpu_ns = b.age_ns * l->own / 1000;
	cost_book_look(&b, l->now_ms * MS, l->cpu_ns, 0);
	return b;
}

static u64 step(struct cost_book *b, struct load *l)
{
	u64 cost_ns = b->opened_ns ? STEP_MS * MS * l->cost / 1000 : 0;

	l->now_ms += STEP_MS;
	l->cpu_ns += STEP_MS * MS * l->own / 1000 + cost_ns;
	cost_book_look(b, l->now_ms * MS, l->cpu_ns, cost_ns);
	return cost_ns;
}

/* The steps until it must rest. */
static u32 steps_until_rest(struct cost_book *b, struct load *l)
{
	u32 nr = 0;

	while (nr < MAX_STEPS && !cost_book_must_rest(b, LIMIT, AHEAD_MS * MS)) {
		step(b, l);
		nr++;
	}
	return nr;
}

/* A ninth of its own time makes a tenth of all; the price may be wrong by a fifth. */
static void a_process_rests_before_it_has_paid_too_much(void **state)
{
	struct load l = { .own = 200, .cost = 400 };
	struct cost_book b = begin(&l);
	u64 may_ns = 5000 * MS * 200 / 1000 / 9;

	(void)state;
	assert_in_range(steps_until_rest(&b, &l), 2, MAX_STEPS - 1);
	assert_true(cost_book_sum(&b) + AHEAD_MS * MS * 400 / 1000 <= may_ns);
	assert_true(cost_book_sum(&b) + AHEAD_MS * MS * 400 / 1000 >= may_ns / 2);
	assert_true(cost_book_rest(&b, LIMIT) == COST_SPAN_NS);
}

static void in_no_five_seconds_it_pays_more(void **state)
{
	struct load l = { .own = 200, .cost = 400 };
	struct cost_book b = begin(&l);
	u64 costs[MAX_STEPS] = { 0 }, sum = 0, most = 0, until_ms = 0;
	const u32 span = COST_SPAN_NS / MS / STEP_MS;

	(void)state;
	for (u32 i = 0; i < MAX_STEPS; i++) {
		costs[i] = step(&b, &l);
		sum += costs[i] - (i >= span ? costs[i - span] : 0);
		most = sum > most ? sum : most;
		if (b.opened_ns && cost_book_must_rest(&b, LIMIT, 0))
			until_ms = l.now_ms + cost_book_rest(&b, LIMIT) / MS;
		else if (!b.opened_ns && l.now_ms >= until_ms)
			cost_book_open(&b);
	}
	assert_true(most <= 5000 * MS * 200 / 1000 / 9);
	assert_true(most > 5000 * MS * 200 / 1000 / 20);
}

static void what_is_cheap_never_rests(void **state)
{
	struct load l = { .own = 200, .cost = 10 };
	struct cost_book b = begin(&l);

	(void)state;
	assert_int_equal(steps_until_rest(&b, &l), MAX_STEPS);
}

static void all_of_the_time_is_no_limit(void **state)
{
	struct load l = { .own = 10, .cost = 900 };
	struct cost_book b = begin(&l);

	(void)state;
	for (int i = 0; i < 1000; i++)
		step(&b, &l);
	assert_false(cost_book_must_rest(&b, 1000, AHEAD_MS * MS));
	assert_false(cost_book_must_rest(&b, 1000000, AHEAD_MS * MS));
	assert_true(cost_book_must_rest(&b, 999, AHEAD_MS * MS) || cost_book_may(&b, 999) > 900 * MS);
}

/* One moment too dear has a longer rest; the second one in a row was the last. */
static void where_a_moment_is_too_dear_it_is_left(void **state)
{
	struct load l = { .own = 10, .cost = 1900 };
	struct cost_book b = begin(&l);
	u64 rest_ns;

	(void)state;
	for (int i = 0; i < 9; i++)
		step(&b, &l);
	rest_ns = cost_book_rest(&b, LIMIT);
	assert_true(rest_ns > 2 * COST_SPAN_NS && rest_ns < UINT64_MAX && !b.is_left);
	for (int i = 0; i < 1000; i++)
		step(&b, &l);
	cost_book_open(&b);
	for (int i = 0; i < 9; i++)
		step(&b, &l);
	assert_true(cost_book_rest(&b, LIMIT) == UINT64_MAX);
	assert_true(b.is_left);
}

/* While probes go in or out, time that is not its own is their cost, up to that of its calls. */
static void changes_of_probes_are_paid_for(void **state)
{
	struct load l = { .own = 200, .cost = 400 };
	struct cost_book b = begin(&l), busy;
	u64 paid;

	(void)state;
	for (int i = 0; i < 10; i++)
		step(&b, &l);
	cost_book_rest(&b, LIMIT);
	for (int i = 0; i < 300; i++)
		step(&b, &l);
	paid = cost_book_sum(&b);
	busy = b;
	cost_book_change(&b, (l.now_ms + 100) * MS, l.cpu_ns + 25 * MS);
	assert_true(cost_book_sum(&b) - paid == 15 * MS);
	cost_book_change(&busy, (l.now_ms + 100) * MS, l.cpu_ns + 100 * MS);
	assert_true(cost_book_sum(&busy) - paid == 40 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_rests_before_it_has_paid_too_much),
		cmocka_unit_test(in_no_five_seconds_it_pays_more),
		cmocka_unit_test(what_is_cheap_never_rests),
		cmocka_unit_test(all_of_the_time_is_no_limit),
		cmocka_unit_test(where_a_moment_is_too_dear_it_is_left),
		cmocka_unit_test(changes_of_probes_are_paid_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
