/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stop, start, depth and filter of a session that goes on: what its books and its source are told, in which order. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/heap/heap.h"
#include "user/heap/misuse.h"
#include "user/heap/stacks.h"
#include "user/lib/log.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"

enum { PID = 77, MAX_EVENTS = 16 };

/* A source that has some events waiting, and notes what it is told. */
struct source {
	struct heap_event events[MAX_EVENTS];
	size_t nr;
	bool is_paused;
	u32 depth;
	bool has_no_stacks;
	bool is_at_once; /* it delivers many events at once */
};

static int fake_poll(struct source *src, const struct sink *sink)
{
	size_t nr = src->nr;

	src->nr = 0;
	if (src->is_at_once && nr)
		return sink->heap_events(sink->ctx, src->events, nr) ? -EIO : (int)nr;
	for (size_t i = 0; i < nr; i++)
		if (sink->record(sink->ctx, &src->events[i].h, sizeof(src->events[i])))
			return -EIO;
	return (int)nr;
}

static void fake_pause(struct source *src, pid_t pid)
{
	assert_int_equal(pid, PID);
	src->is_paused = true;
}

static void fake_resume(struct source *src, pid_t pid)
{
	assert_int_equal(pid, PID);
	assert_int_equal(src->nr, 0);
	src->is_paused = false;
}

static int fake_depth(struct source *src, u32 depth)
{
	if (src->has_no_stacks)
		return -EOPNOTSUPP;
	src->depth = depth;
	return 0;
}

static struct losses fake_losses(struct source *src, pid_t pid)
{
	(void)src;
	(void)pid;
	return (struct losses){ 0 };
}

static void fake_free(struct source *src)
{
	free(src);
}

static const struct source_ops fake = {
	.name = "fake",
	.poll = fake_poll,
	.pause = fake_pause,
	.resume = fake_resume,
	.set_depth = fake_depth,
	.losses = fake_losses,
	.free = fake_free,
};

static const struct session_options options = { .command = "attach", .tuning = { .depth = 64 } };

static int setup(void **state)
{
	struct session *s;
	struct process *p;

	log_set_level((enum log_level) - 1);
	if (session_alloc(&s, &options, NULL))
		return -1;
	s->ops = &fake;
	s->source = calloc(1, sizeof(*s->source));
	if (session_new_process(s, &p))
		return -1;
	p->target = calloc(1, sizeof(*p->target));
	p->target->pid = PID;
	p->target->pidfd = -1;
	*state = s;
	return heap_check(p->heap, true);
}

static int setup_at_once(void **state)
{
	int err = setup(state);

	if (!err)
		((struct session *)*state)->source->is_at_once = true;
	return err;
}

static int teardown(void **state)
{
	session_free(*state);
	return 0;
}

static void queue(const struct session *s, u8 kind, taddr_t addr, u64 size)
{
	struct heap_event *ev = &s->source->events[s->source->nr++];
	static u64 time_ns;

	*ev = (struct heap_event){
		.h = { .kind = kind, .fn = alloc_fn_find(NULL, "malloc"), .pid = PID, .tid = PID },
		.time_ns = ++time_ns,
		.addr = addr,
		.size = size
	};
}

static bool is_unsure(const struct session *s, taddr_t addr)
{
	struct heap_block block;

	assert_true(heap_find(s->processes[0]->heap, addr, &block));
	return block.is_unsure;
}

static struct heap_totals totals(const struct session *s)
{
	return heap_totals(s->processes[0]->heap);
}

/* Events that wait when tracing stops belong to the time before, and are unsure. Events after the start are not. */
static void stop_and_start(void **state)
{
	struct session *s = *state;
	struct tuning t = session_tuning(s);

	queue(s, EVENT_ALLOC, 0x1000, 10);
	t.is_paused = true;
	assert_int_equal(session_tune(s, &t), 0);
	assert_true(s->source->is_paused);
	assert_int_equal(totals(s).allocs, 1);
	assert_true(is_unsure(s, 0x1000));
	assert_true(s->processes[0]->tuned.has_unseen);

	/* Of a child's that nobody could stop in time. */
	queue(s, EVENT_ALLOC, 0x2000, 10);
	t.is_paused = false;
	assert_int_equal(session_tune(s, &t), 0);
	assert_false(s->source->is_paused);
	assert_int_equal(totals(s).allocs, 1);

	queue(s, EVENT_ALLOC, 0x3000, 10);
	queue(s, EVENT_FREE, 0x2000, 0);
	assert_int_equal(session_poll(s), 0);
	assert_false(is_unsure(s, 0x3000));
	assert_int_equal(totals(s).unknown_frees, 1);
	/* The block was allocated unseen: its release is not wrong. */
	assert_int_equal(heap_misuse_counts(s->processes[0]->heap).of[MISUSE_BAD_FREE], 0);
	assert_int_equal(heap_misuse_counts(s->processes[0]->heap).nr_unsure, 1);
	assert_int_equal(s->processes[0]->tuned.pauses.nr, 1);
}

static void filter(void **state)
{
	struct session *s = *state;
	struct tuning t = session_tuning(s);
	const char *notes[3];

	queue(s, EVENT_ALLOC, 0x1000, 10);
	t.min_size = 100;
	t.max_size = 200;
	assert_int_equal(session_tune(s, &t), 0);
	assert_int_equal(totals(s).allocs, 1);
	assert_false(is_unsure(s, 0x1000));
	queue(s, EVENT_ALLOC, 0x2000, 99);
	queue(s, EVENT_ALLOC, 0x3000, 100);
	queue(s, EVENT_ALLOC, 0x4000, 200);
	queue(s, EVENT_ALLOC, 0x5000, 201);
	queue(s, EVENT_ALLOC, 0, 1);
	queue(s, EVENT_FREE, 0x1000, 0);
	queue(s, EVENT_FREE, 0x2000, 0);
	assert_int_equal(session_poll(s), 0);
	assert_int_equal(totals(s).allocs, 3);
	assert_int_equal(totals(s).frees, 1);
	assert_int_equal(totals(s).failed_allocs, 1);
	assert_int_equal(totals(s).unknown_frees, 1);
	assert_int_equal(heap_misuse_counts(s->processes[0]->heap).of[MISUSE_BAD_FREE], 0);
	assert_int_equal(session_note_tuning(s, s->processes[0], 0, notes), 1);
	assert_string_equal(notes[0], "2 allocations left out for their size, in all sums");
	t.min_size = 300;
	assert_int_equal(session_tune(s, &t), -EINVAL);
}

static void queue_realloc(const struct session *s, u8 kind, taddr_t old, taddr_t addr)
{
	queue(s, kind, addr, 20);
	s->source->events[s->source->nr - 1].old_addr = old;
	s->source->events[s->source->nr - 1].h.fn = alloc_fn_find(NULL, "realloc");
}

/* Allocations after the last one are left out, also those by realloc; what happens to counted blocks is not. */
static void stop_after(void **state)
{
	const struct session_options stops = { .command = "attach", .stop_after = 3 };
	struct session *s = *state;
	struct heap_block block;

	s->options = &stops;
	queue(s, EVENT_ALLOC, 0x1000, 10);
	queue(s, EVENT_ALLOC, 0x2000, 10);
	assert_int_equal(session_poll(s), 0);
	assert_false(session_is_enough(s));
	queue(s, EVENT_ALLOC, 0x3000, 10);
	queue(s, EVENT_ALLOC, 0x4000, 10);
	queue(s, EVENT_ALLOC, 0, 10);
	queue(s, EVENT_FREE, 0x4000, 0);
	queue(s, EVENT_FREE, 0x1000, 0);
	queue(s, EVENT_ALLOC, 0x1000, 10);
	queue_realloc(s, EVENT_REALLOC_BEGIN, 0x1000, 0);
	queue_realloc(s, EVENT_REALLOC_END, 0x1000, 0x5000);
	queue_realloc(s, EVENT_REALLOC_BEGIN, 0x2000, 0);
	queue_realloc(s, EVENT_REALLOC_END, 0x2000, 0x6000);
	queue(s, EVENT_FREE, 0x6000, 0);
	assert_int_equal(session_poll(s), 0);
	assert_true(session_is_enough(s));
	assert_int_equal(totals(s).allocs, 3);
	assert_int_equal(totals(s).frees, 2);
	assert_int_equal(totals(s).unknown_frees, 0);
	assert_int_equal(totals(s).failed_allocs, 0);
	assert_int_equal(heap_pending(s->processes[0]->heap), 0);
	assert_int_equal(heap_misuse_counts(s->processes[0]->heap).of[MISUSE_BAD_FREE], 0);
	assert_true(heap_find(s->processes[0]->heap, 0x3000, &block));
	/* A verdict must know that there are blocks which are not in the books. */
	assert_true(s->processes[0]->tuned.has_unseen);
}

/* Without a verdict to come, the report shows the heap at the last allocation. */
static void stop_after_without_verdict(void **state)
{
	const struct session_options stops = { .command = "attach", .stop_after = 1, .scan = SCAN_NEVER };
	struct session *s = *state;

	s->options = &stops;
	queue(s, EVENT_ALLOC, 0x1000, 10);
	queue(s, EVENT_ALLOC, 0x2000, 10);
	queue(s, EVENT_FREE, 0x1000, 0);
	assert_int_equal(session_poll(s), 0);
	assert_int_equal(totals(s).allocs, 1);
	assert_int_equal(totals(s).live_blocks, 1);
}

static int take_window(void *ctx, const struct report *r)
{
	struct report_window *out = ctx;

	*out = r->window;
	assert_int_equal(r->nr_processes, 1);
	/* Every format shows notes: a profile as a comment. */
	assert_int_equal(r->processes[0].nr_notes, out->number ? 1 : 0);
	if (out->number)
		assert_string_equal(r->processes[0].notes[0],
				    "traced in windows, because of --max-cost: these numbers are exact for "
				    "window 3, 2.0 s of 7.0 s; times 3.50 they stand for all that time");
	return 0;
}

/* Reports on a window say so, and by how much its numbers stand for the whole time. */
static void window(void **state)
{
	const u64 s_ns = 1000000000;
	struct session *s = *state;
	struct report_window w;

	s->start_ns = 105 * s_ns;
	s->stop_ns = 107 * s_ns;
	assert_int_equal(session_show(s, 0, take_window, &w), 0);
	assert_int_equal(w.number, 0);
	assert_int_equal(report_window_permille(&w), 1000);
	session_set_window(s, 1, 100 * s_ns);
	assert_int_equal(session_show(s, 0, take_window, &w), 0);
	assert_int_equal(w.number, 0);
	session_set_window(s, 3, 100 * s_ns);
	assert_int_equal(session_show(s, 0, take_window, &w), 0);
	assert_int_equal(w.number, 3);
	assert_true(w.seen_ns == 2 * s_ns && w.whole_ns == 7 * s_ns);
	assert_int_equal(report_window_permille(&w), 3500);
}

static void depth(void **state)
{
	struct session *s = *state;
	struct tuning t = session_tuning(s);

	assert_int_equal(t.depth, 64);
	t.depth = 8;
	assert_int_equal(session_tune(s, &t), 0);
	assert_int_equal(s->source->depth, 8);
	t.depth = STACK_MAX_FRAMES + 1;
	assert_int_equal(session_tune(s, &t), -EINVAL);
	s->source->has_no_stacks = true;
	t.depth = 16;
	assert_int_equal(session_tune(s, &t), -EOPNOTSUPP);
	assert_int_equal(session_tuning(s).depth, 8);
	assert_int_equal(session_kill(s), -EOPNOTSUPP);
}

/* Events name the first stack with their frames. Nobody knows the stack of a false id. */
static void stacks(void **state)
{
	struct session *s = *state;
	struct stack_event first = { .h.pid = PID, .id = 10, .nr_frames = 1 };
	struct stack_event same = { .h.pid = PID, .id = 11, .nr_frames = 1 };
	struct stack_event other = { .h.pid = PID, .id = 12, .nr_frames = 2 };
	const u64 ids[] = { 11, 10, 12, STACK_LOST, STACK_NONE };
	const struct heap *h = s->processes[0]->heap;

	assert_int_equal(stack_table_add(s->stacks, &first, &s->processes[0]->target->maps), 0);
	assert_int_equal(stack_table_add(s->stacks, &same, &s->processes[0]->target->maps), 0);
	assert_int_equal(stack_table_add(s->stacks, &other, &s->processes[0]->target->maps), 0);
	other.nr_frames = 3;
	assert_int_equal(stack_table_add(s->stacks, &other, &s->processes[0]->target->maps), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		queue(s, EVENT_ALLOC, 0x1000 * (i + 1), 10);
		s->source->events[i].stack = ids[i];
	}
	assert_int_equal(session_poll(s), 0);
	assert_int_equal(heap_row_count(h), 3);
	assert_int_equal(heap_row_get(h, 0).stack, 10);
	assert_int_equal(heap_row_get(h, 0).allocs, 2);
	assert_int_equal(heap_row_get(h, 1).stack, STACK_LOST);
	assert_int_equal(heap_row_get(h, 1).allocs, 2);
	assert_int_equal(s->processes[0]->lost.nr_false_stacks, 1);
	assert_int_equal(s->processes[0]->nr_events, 5);
	assert_int_equal(s->nr_allocs, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stop_and_start, setup, teardown),
		cmocka_unit_test_setup_teardown(filter, setup, teardown),
		cmocka_unit_test_setup_teardown(stop_after, setup, teardown),
		cmocka_unit_test_setup_teardown(stop_after_without_verdict, setup, teardown),
		cmocka_unit_test_setup_teardown(window, setup, teardown),
		cmocka_unit_test_setup_teardown(depth, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(stop_and_start, setup_at_once, teardown),
		cmocka_unit_test_setup_teardown(filter, setup_at_once, teardown),
		cmocka_unit_test_setup_teardown(stop_after, setup_at_once, teardown),
		cmocka_unit_test_setup_teardown(stop_after_without_verdict, setup_at_once, teardown),
		cmocka_unit_test_setup_teardown(window, setup_at_once, teardown),
		cmocka_unit_test_setup_teardown(stacks, setup_at_once, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
