/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live bytes over time against a list of all events: bounded, in order, and no extreme is lost. */
#include "tests/unit/books.h"

#include "user/heap/budget.h"
#include "user/heap/heap_sample.h"
#include "user/heap/timeline.h"

enum { NR_EVENTS = 200000, NR_BLOCKS = 1000 };

/* Live bytes after each event, and its time. */
static u64 times[NR_EVENTS], live[NR_EVENTS];
static u64 random_state = 88172645463325252ULL;

static u32 below(u32 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 16) % n;
}

/* Bursts of events, with gaps of all lengths between them. */
static u64 next_time(u64 now)
{
	if (below(50))
		return now + below(3000);
	return now + (1ULL << below(35));
}

/* Enter @nr random events after @done earlier ones. */
static void enter_random(struct heap *h, size_t done, size_t nr)
{
	u64 now = done ? times[done - 1] : 5 * MS;

	for (size_t i = done; i < done + nr; i++) {
		taddr_t addr = (below(NR_BLOCKS) + 1) * 16;
		struct heap_event ev = event(EVENT_ALLOC, fn_malloc);
		struct heap_block b;

		if (heap_find(h, addr, &b))
			ev = event(EVENT_FREE, fn_free);
		ev.time_ns = now = next_time(now);
		ev.addr = addr;
		ev.size = below(100) ? below(1000) : below(1000000);
		assert_int_equal(heap_event(h, &ev), 0);
		times[i] = now;
		live[i] = heap_live_bytes(h);
	}
}

/* Each point has the extremes of its events and of the value that it begins with. Returns how many points there are. */
static size_t check_points(const struct heap *h, size_t nr_events)
{
	struct timeline_point p;
	u64 value = 0;
	u64 peak = 0;
	size_t next = 0;
	size_t nr = 0;

	for (; heap_timeline(h, nr, &p); nr++) {
		u64 min = value;
		u64 max = value;

		assert_true(next < nr_events && p.time_ns >= times[next]);
		for (; next < nr_events && times[next] <= p.time_ns; next++) {
			value = live[next];
			min = value < min ? value : min;
			max = value > max ? value : max;
		}
		assert_int_equal(p.live_bytes, value);
		assert_int_equal(p.min_bytes, min);
		assert_int_equal(p.max_bytes, max);
		peak = max > peak ? max : peak;
	}
	assert_int_equal(next, nr_events);
	assert_int_equal(peak, heap_totals(h).peak_bytes);
	return nr;
}

static void all_extremes_are_kept(void **state)
{
	struct heap *h = new_heap();
	struct timeline_point p;
	size_t nr;

	(void)state;
	assert_false(heap_timeline(h, 0, &p));
	for (size_t done = 0; done < NR_EVENTS; done += 10000) {
		enter_random(h, done, 10000);
		nr = check_points(h, done + 10000);
		assert_true(nr > TIMELINE_MAX / 8 && nr <= TIMELINE_MAX + 1);
	}
	assert_true(heap_timeline(h, nr - 1, &p));
	assert_int_equal(p.live_blocks, heap_totals(h).live_blocks);
	assert_int_equal(p.time_ns, heap_totals(h).last_time_ns);
	heap_free(h);
}

/* The books of a sampled process stay small, and its line has all extremes. */
static void sampled_heaps_have_few_points(void **state)
{
	struct heap *h = new_heap();
	struct timeline_point p;
	size_t nr = 0;

	(void)state;
	heap_set_sample(h, 4096);
	for (u64 i = 1; i <= 100000; i++) {
		struct heap_event ev = event(EVENT_ALLOC, fn_malloc);

		ev.time_ns = i * MS;
		ev.addr = i * 16;
		ev.size = 100;
		assert_int_equal(heap_event(h, &ev), 0);
	}
	for (u64 last = 0; heap_timeline(h, nr, &p); nr++, last = p.live_bytes)
		assert_true(p.live_bytes > last && p.min_bytes >= last && p.max_bytes == p.live_bytes);
	assert_true(nr > TIMELINE_FEW / 4 && nr <= TIMELINE_FEW + 1);
	assert_int_equal(p.live_bytes, heap_live_bytes(h));
	heap_free(h);
}

/* Without memory for points the line gets coarser, and no event is lost. */
static void no_memory_makes_it_coarse(void **state)
{
	struct heap *h = new_heap();
	size_t nr;

	(void)state;
	enter_random(h, 0, 20000);
	heap_set_limit(h, heap_memory(h));
	for (u64 limit = 0; limit < 3; limit++) {
		enter_random(h, 20000 * (limit + 1), 20000);
		nr = check_points(h, 20000 * (limit + 2));
		assert_true(nr && nr <= TIMELINE_MAX + 1);
	}
	assert_int_equal(heap_lost(h), 0);
	heap_free(h);
}

static void nothing_but_the_line_without_memory(void **state)
{
	struct budget none = { .limit = 1 };
	struct timeline t;
	struct timeline_point p = { 0 };

	(void)state;
	timeline_init(&t, &none);
	for (u64 i = 1; i < 1000; i++) {
		p.time_ns = i * MS;
		p.live_bytes = i == 500 ? 5000 : 100;
		timeline_go_on(&t, (i + 1) * MS, p);
		t.max_bytes = p.live_bytes > t.max_bytes ? p.live_bytes : t.max_bytes;
	}
	assert_true(timeline_point(&t, 0, p, &p));
	assert_int_equal(p.max_bytes, 5000);
	assert_int_equal(p.min_bytes, 100);
	assert_false(timeline_point(&t, 1, p, &p));
	timeline_fini(&t);
}

/* Any times at all, also the last one that there is, and times that go back. */
static void hostile_times(void **state)
{
	static const u64 at[] = {
		0, 1, UINT64_MAX, 5, UINT64_MAX, UINT64_MAX - 1, 1ULL << 63, 0, UINT64_MAX
	};
	struct heap *h = new_heap();
	struct timeline_point p;
	u64 max = 0;
	u64 last_ns = 0;

	(void)state;
	for (u64 i = 0; i < 5000; i++) {
		struct heap_event ev = event(EVENT_ALLOC, fn_malloc);

		ev.time_ns = at[i % ARRAY_SIZE(at)];
		ev.addr = 16 * (i + 1);
		ev.size = 1;
		assert_int_equal(heap_event(h, &ev), 0);
	}
	for (size_t i = 0; heap_timeline(h, i, &p); i++) {
		assert_true(p.time_ns >= last_ns && i <= TIMELINE_MAX);
		last_ns = p.time_ns;
		max = p.max_bytes > max ? p.max_bytes : max;
	}
	assert_int_equal(max, 5000);
	heap_free(h);
}

/* The old block of a realloc and the new one change places at one time. */
static void realloc_is_no_dip(void **state)
{
	struct heap *h = new_heap();
	struct timeline_point p;
	u64 min = UINT64_MAX;

	(void)state;
	do_alloc(h, fn_malloc, 0x10, 1000000);
	do_alloc(h, fn_malloc, 0x20, 1);
	do_begin(h, fn_realloc, 1, 0x10);
	do_end(h, fn_realloc, 1, 0x10, 0x30, 1000001);
	for (size_t i = 2; heap_timeline(h, i, &p); i++)
		min = p.min_bytes < min ? p.min_bytes : min;
	assert_int_equal(min, 1000001);
	assert_int_equal(p.live_bytes, 1000002);
	heap_free(h);
}

static void span_begins_anew(void **state)
{
	struct heap *h = new_heap();
	struct timeline_point p;

	(void)state;
	do_alloc(h, fn_malloc, 0x10, 1000);
	do_alloc(h, fn_malloc, 0x20, 1000);
	heap_span_begin(h);
	assert_false(heap_timeline(h, 0, &p));
	do_free(h, 0x10);
	do_alloc(h, fn_malloc, 0x30, 7);
	assert_true(heap_timeline(h, 1, &p));
	assert_int_equal(p.live_bytes, 7);
	assert_int_equal(p.max_bytes, 7);
	assert_false(heap_timeline(h, 2, &p));
	heap_free(h);
}

static void child_has_the_past_of_its_parent(void **state)
{
	struct heap *h = new_heap();
	struct heap *child;
	struct timeline_point p, q;
	size_t nr = 0;

	(void)state;
	enter_random(h, 0, 5000);
	assert_int_equal(heap_clone(&child, h), 0);
	for (; heap_timeline(h, nr, &p); nr++)
		assert_true(heap_timeline(child, nr, &q) && !memcmp(&p, &q, sizeof(p)));
	heap_free(h);
	assert_true(nr > 100);
	enter_random(child, 5000, 5000);
	check_points(child, 10000);
	heap_free(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_extremes_are_kept),
		cmocka_unit_test(sampled_heaps_have_few_points),
		cmocka_unit_test(no_memory_makes_it_coarse),
		cmocka_unit_test(nothing_but_the_line_without_memory),
		cmocka_unit_test(hostile_times),
		cmocka_unit_test(realloc_is_no_dip),
		cmocka_unit_test(span_begins_anew),
		cmocka_unit_test(child_has_the_past_of_its_parent),
	};

	return cmocka_run_group_tests(tests, find_functions, NULL);
}
