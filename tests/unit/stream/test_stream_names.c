/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the meaning of numbers in a stream: functions, modules, mappings. */
#include "user/stream/stream_names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int setup(void **state)
{
	struct stream_names *n = calloc(1, sizeof(*n));

	*state = n;
	return !n || alloc_table_new(&n->fns) || module_table_new(&n->modules);
}

static int teardown(void **state)
{
	struct stream_names *n = *state;

	stream_names_fini(n);
	module_table_free(n->modules);
	alloc_table_free(n->fns);
	free(n);
	return 0;
}

static int function(struct stream_names *n, u32 fn, u8 kind, const char *symbol)
{
	const struct stream_function f = { fn, kind, FAMILY_MALLOC, symbol, symbol };

	return stream_names_function(n, &f);
}

static void functions(void **state)
{
	struct stream_names *n = *state;
	size_t nr = alloc_fn_count(NULL);

	assert_int_equal(function(n, 7, ALLOC_FREE, "free"), 0);
	assert_int_equal(n->fn_of[7], alloc_fn_find(NULL, "free"));
	assert_int_equal(function(n, 8, ALLOC_MALLOC, "pool_get"), 0);
	assert_int_equal(n->fn_of[8], nr);
	/* Another allocator's free that allocates is not ours. */
	assert_int_equal(function(n, 9, ALLOC_MALLOC, "free"), 0);
	assert_int_equal(n->fn_of[9], nr + 1);
	assert_int_equal(function(n, 10, ALLOC_MALLOC, ""), 0);
	assert_int_equal(n->fn_of[10], 0);
	assert_int_equal(function(n, 7, 200, "free"), -EINVAL);
	assert_int_equal(n->fn_of[7], 0);
	assert_int_equal(alloc_fn_count(n->fns), nr + 2);
	stream_names_clear(n);
	assert_int_equal(n->fn_of[8], 0);
}

static void modules(void **state)
{
	struct stream_names *n = *state;
	struct module *m;

	assert_int_equal(module_add(n->modules, "/lib/none.so", NULL, 0, &m), 0);
	assert_int_equal(stream_names_module(n, m), 0);
	assert_ptr_equal(stream_names_get(n, 1), m);
	assert_null(stream_names_get(n, 0));
	assert_null(stream_names_get(n, 2));
	stream_names_clear(n);
	assert_null(stream_names_get(n, 1));
}

static int mapping(struct stream_names *n, u64 start, u64 end)
{
	const struct stream_mapping m = { .start = start, .end = end, .bias = start };

	return stream_names_mapping(n, &m);
}

static void mappings(void **state)
{
	struct stream_names *n = *state;
	struct mapping_list list = { .epoch = 5 };

	assert_int_equal(mapping(n, 0x1000, 0x2000), -EINVAL); /* none is expected */
	assert_int_equal(stream_names_expect(n, 2), 0);
	assert_int_equal(mapping(n, 0x1000, 0x1000), -EINVAL);
	assert_int_equal(mapping(n, 0x1000, 0x2000), 0);
	assert_false(stream_names_have_all(n));
	assert_int_equal(mapping(n, 0x1800, 0x3000), -EINVAL);
	assert_int_equal(mapping(n, 0x2000, 0x3000), 0);
	assert_true(stream_names_have_all(n));
	assert_int_equal(mapping(n, 0x3000, 0x4000), -EINVAL); /* one more than expected */
	stream_names_install(n, &list);
	assert_int_equal(list.nr, 2);
	assert_int_equal(list.epoch, 5);
	assert_int_equal(list.maps[1].start, 0x2000);
	assert_true(stream_names_have_all(n));
	mapping_list_fini(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(functions, setup, teardown),
		cmocka_unit_test_setup_teardown(modules, setup, teardown),
		cmocka_unit_test_setup_teardown(mappings, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
