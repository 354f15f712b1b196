/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers on processes that are or were traced: one for each, kept over windows, and the oldest makes room. */
#include "user/system/zoom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "user/system/answer.h"
#include "user/system/zoom_price.h"

static const struct zoom_options options = { .nr = 3 };

static int setup(void **state)
{
	static struct zooms z;

	*state = &z;
	return zooms_init(&z, &options);
}

static int teardown(void **state)
{
	zooms_fini(*state);
	return 0;
}

/* A window begins for the process @pid, which needs @bytes. */
static struct zoom_answer *begin(struct zooms *z, pid_t pid, u64 start_time, u64 bytes, u64 now_ns)
{
	struct watched p = { .pid = pid, .start_time = start_time, .comm = "grower", .anonymous = bytes };
	struct zoom_answer *a = zoom_new_answer(z, &p);

	if (a)
		zoom_begin_answer(a, &p, now_ns);
	return a;
}

static void another_window(void **state)
{
	struct zooms *z = *state;
	struct zoom_answer *a = begin(z, 7, 1, 4096, 100);

	assert_string_equal(a->comm, "grower");
	assert_true(a->needs == 4096 && a->needed == 4096 && a->begin_ns == 100);
	a->end_ns = 200;
	a->nr_verdicts = 3;
	a->kind = ANSWER_LEAKS;
	a->bytes = 55;
	/* The answer stays until the new window has one; the first memory stays, too. */
	assert_ptr_equal(begin(z, 7, 1, 9000, 300), a);
	assert_true(a->begin_ns == 300 && !a->end_ns && !a->nr_verdicts);
	assert_true(a->kind == ANSWER_LEAKS && a->bytes == 55 && a->needed == 4096);
	assert_ptr_equal(zooms_answer(z, 7, 1), a);
	/* The PID belongs to another process now. */
	assert_null(zooms_answer(z, 7, 2));
	assert_ptr_not_equal(begin(z, 7, 2, 8192, 400), a);
	assert_true(zooms_answer(z, 7, 2)->bytes == 0 && zooms_answer(z, 7, 2)->needed == 8192);
	assert_int_equal(z->nr_answers, 2);
}

static void the_oldest_makes_room(void **state)
{
	struct zooms *z = *state;

	for (int i = 0; i < ZOOM_MAX_ANSWERS; i++)
		assert_non_null(begin(z, 1000 + i, 1, 1, 10));
	/* All are of now. */
	assert_null(begin(z, 1, 1, 1, 20));
	z->answers[9].end_ns = 90;
	z->answers[5].end_ns = 50;
	z->answers[7].end_ns = 70;
	assert_ptr_equal(begin(z, 2, 1, 1, 100), &z->answers[5]);
	assert_null(zooms_answer(z, 1005, 1));
	assert_ptr_equal(begin(z, 3, 1, 1, 100), &z->answers[7]);
	assert_ptr_equal(begin(z, 4, 1, 1, 100), &z->answers[9]);
	assert_null(begin(z, 5, 1, 1, 100));
	assert_int_equal(z->nr_answers, ZOOM_MAX_ANSWERS);
	assert_int_equal(z->nr_dropped, 5);
}

/* 30 s of 90 s were seen in the last window, which is exact; the first one has nothing to scale. */
static void scaled_to_the_gaps(void **state)
{
	struct zooms *z = *state;
	struct zoom_answer *a = begin(z, 7, 1, 4096, 1000);
	char text[512];

	a->kind = ANSWER_LEAKS;
	a->bytes = 3 << 20;
	assert_true(answer_scaled(a) == 0);
	a->nr_windows = 1;
	assert_true(answer_scaled(a) == 0);
	a->end_ns = 31000;
	begin(z, 7, 1, 9000, 61000);
	a->nr_windows = 2;
	/* The new window has no answer yet. */
	assert_true(answer_scaled(a) == 0);
	a->window = (struct report_window){ 2, 30000, 90000 };
	assert_true(answer_scaled(a) == 9 << 20);
	answer_describe(a, text, sizeof(text));
	assert_non_null(strstr(text, "leaks 3.00 MiB"));
	assert_non_null(strstr(text, ", in 2 windows; scaled to the gaps between them about 9.00 MiB"));
	a->window = (struct report_window){ 0 };
	answer_describe(a, text, sizeof(text));
	assert_null(strstr(text, "scaled"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(another_window, setup, teardown),
		cmocka_unit_test_setup_teardown(scaled_to_the_gaps, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_makes_room, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
