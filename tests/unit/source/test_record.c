/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of records: each kind has a role, and one that is too short or of no known kind has none. */
#include "user/source/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void each_kind_has_a_role(void **state)
{
	struct event_header rec = { 0 };
	bool seen[NR_RECORD_ROLES] = { false };

	(void)state;
	for (u8 kind = 1; kind < NR_EVENT_KINDS; kind++) {
		rec.kind = kind;
		assert_int_not_equal(record_role(&rec, sizeof(struct stack_event)), RECORD_NONE);
		seen[record_role(&rec, sizeof(struct stack_event))] = true;
	}
	for (int role = RECORD_NONE + 1; role < NR_RECORD_ROLES; role++)
		assert_true(seen[role]);
}

static void short_and_unknown_have_none(void **state)
{
	struct event_header rec = { .kind = EVENT_ALLOC };

	(void)state;
	assert_int_equal(record_role(&rec, sizeof(struct heap_event)), RECORD_HEAP);
	assert_int_equal(record_role(&rec, sizeof(struct heap_event) - 1), RECORD_NONE);
	assert_int_equal(record_role(&rec, 0), RECORD_NONE);
	rec.kind = EVENT_EXIT;
	assert_int_equal(record_role(&rec, sizeof(struct process_event)), RECORD_EXIT);
	assert_int_equal(record_role(&rec, sizeof(struct process_event) - 1), RECORD_NONE);
	rec.kind = 0;
	assert_int_equal(record_role(&rec, sizeof(struct stack_event)), RECORD_NONE);
	rec.kind = NR_EVENT_KINDS;
	assert_int_equal(record_role(&rec, sizeof(struct stack_event)), RECORD_NONE);
}

static void times(void **state)
{
	const struct heap_event heap = { .h.kind = EVENT_FREE, .time_ns = 7 };
	const struct process_event end = { .h.kind = EVENT_EXIT, .time_ns = 8 };

	(void)state;
	assert_int_equal(record_time(&heap.h), 7);
	assert_int_equal(record_time(&end.h), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_has_a_role),
		cmocka_unit_test(short_and_unknown_have_none),
		cmocka_unit_test(times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
