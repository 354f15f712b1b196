/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands as bytes: written and read, cut off, and with impossible values. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/remote/wire_command.h"

static struct wire_start start, back;
static u8 data[WIRE_START_MAX];

static void fill(void)
{
	memset(&start, 0, sizeof(start));
	start.tuning = (struct tuning){
		.is_paused = true, .is_thin = true, .depth = 127, .min_size = 16, .max_size = 1ULL << 40
	};
	start.want_mmap = start.wants_exit_scan = start.wants_exec_scan = true;
	start.resume_id = 0x1122334455667788;
	start.max_followed = 77;
	start.received.nr_ends = 9;
	start.received.nr_had = FORWARD_MAX_PROCESSES;
	for (u32 i = 0; i < FORWARD_MAX_PROCESSES; i++)
		start.received.had[i] = (struct forward_had){ i + 1, 1ULL << 40, UINT64_MAX - i, i };
}

static void starts(void **state)
{
	struct wire_body b = { data, 0, sizeof(data), false };
	struct wire_view v = { data, 0, false };

	(void)state;
	fill();
	wire_put_start(&b, &start);
	assert_false(b.is_bad);
	assert_int_equal(b.len, WIRE_START_MAX);
	v.len = b.len;
	assert_int_equal(wire_get_start(&v, &back), 0);
	assert_memory_equal(&back, &start, sizeof(start));
	/* The rest of 128 KiB is not written to. */
	start.received.nr_had = 1;
	b.len = 0;
	wire_put_start(&b, &start);
	back.received.had[1].pid = 77;
	v = (struct wire_view){ data, b.len, false };
	assert_int_equal(wire_get_start(&v, &back), 0);
	assert_int_equal(back.received.had[1].pid, 77);
	for (size_t len = 0; len < b.len; len += len < 40 ? 1 : 97) {
		v = (struct wire_view){ data, len, false };
		assert_int_equal(wire_get_start(&v, &back), -EPROTO);
	}
	data[0] = 128; /* frames of a stack */
	v = (struct wire_view){ data, b.len, false };
	assert_int_equal(wire_get_start(&v, &back), -EPROTO);
}

static void tunes(void **state)
{
	static const struct tuning good[] = { { 0 },
					      { .is_paused = true, .depth = STACK_MAX_FRAMES },
					      { .min_size = 8 },
					      { .min_size = 8, .max_size = 8 } };
	static const struct tuning bad[] = { { .depth = STACK_MAX_FRAMES + 1 },
					     { .min_size = 9, .max_size = 8 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good) + ARRAY_SIZE(bad); i++) {
		const struct tuning *t = i < ARRAY_SIZE(good) ? &good[i] : &bad[i - ARRAY_SIZE(good)];
		struct wire_body b = { data, 0, sizeof(data), false };
		struct wire_view v = { data, WIRE_TUNE_LEN, false };
		struct tuning got;

		wire_put_tune(&b, t);
		assert_int_equal(b.len, WIRE_TUNE_LEN);
		assert_int_equal(wire_get_tune(&v, &got), i < ARRAY_SIZE(good) ? 0 : -EPROTO);
		assert_true(i >= ARRAY_SIZE(good) || (got.depth == t->depth && got.min_size == t->min_size));
		for (size_t len = 0; len <= WIRE_TUNE_LEN + 1; len++) {
			v = (struct wire_view){ data, len, false };
			if (len != WIRE_TUNE_LEN)
				assert_int_equal(wire_get_tune(&v, &got), -EPROTO);
		}
	}
	/* A flag of a later version. */
	data[0] = 2;
	data[1] = 1;
	assert_int_equal(wire_get_tune(&(struct wire_view){ data, WIRE_TUNE_LEN, false }, &back.tuning),
			 -EPROTO);
}

static bool takes(struct tuning t, u8 kind, u8 flags, u64 addr, u64 size)
{
	const struct heap_event ev = { .h = { .kind = kind, .flags = flags }, .addr = addr, .size = size };

	return tuning_takes(&t, &ev);
}

static void filters(void **state)
{
	const struct tuning t = { .min_size = 10, .max_size = 20 }, least = { .min_size = 10 };

	(void)state;
	assert_false(takes(t, EVENT_ALLOC, 0, 1, 9));
	assert_true(takes(t, EVENT_ALLOC, 0, 1, 10));
	assert_true(takes(t, EVENT_ALLOC, 0, 1, 20));
	assert_false(takes(t, EVENT_ALLOC, 0, 1, 21));
	assert_true(takes(least, EVENT_ALLOC, 0, 1, UINT64_MAX));
	assert_true(takes(t, EVENT_ALLOC, 0, 0, 9));
	assert_true(takes(t, EVENT_ALLOC, EVENT_RETRY, 1, 9));
	assert_true(takes(t, EVENT_FREE, 0, 1, 0));
	assert_true(takes(t, EVENT_REALLOC_END, 0, 1, 9));
	assert_true(takes((struct tuning){ 0 }, EVENT_ALLOC, 0, 1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts),
		cmocka_unit_test(tunes),
		cmocka_unit_test(filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
