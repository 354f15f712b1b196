/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the table of allocator functions: its rows make sense, and custom ones find their place. */
#include "user/target/allocator.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ARGS = 4 }; /* that the programs can read */

static bool is_operator(const struct alloc_fn *fn)
{
	return fn->family == FAMILY_NEW || fn->family == FAMILY_NEW_ARRAY;
}

static void check_row(u16 i)
{
	const struct alloc_fn *fn = alloc_fn(NULL, i);
	bool is_release = fn->kind == ALLOC_FREE || fn->kind == ALLOC_MUNMAP;
	bool is_known = strcmp(fn->symbol, "kernel:brk") != 0; /* by its results alone */

	if (alloc_fn_find(NULL, fn->symbol) != i || !*fn->name)
		fail_msg("row %d: %s is there twice, or has no name", i, fn->symbol);
	/* Each kind needs certain arguments. */
	if ((is_known && fn->kind != ALLOC_FREE && !fn->size_arg) || (is_release && !fn->old_arg) ||
	    ((fn->kind == ALLOC_REALLOC || fn->kind == ALLOC_MREMAP) && !fn->old_arg) ||
	    (fn->kind == ALLOC_OUT) != !!fn->out_arg)
		fail_msg("%s: arguments", fn->symbol);
	if (fn->size_arg > MOST_ARGS || fn->count_arg > MOST_ARGS || fn->old_arg > MOST_ARGS ||
	    fn->out_arg > MOST_ARGS)
		fail_msg("%s: argument out of reach", fn->symbol);
	if (is_operator(fn) != !strncmp(fn->symbol, "_Z", 2))
		fail_msg("%s: family", fn->symbol);
	/* Only operators new without nothrow can throw. */
	if (fn->can_throw != (is_operator(fn) && !is_release && !strstr(fn->symbol, "nothrow")))
		fail_msg("%s: throws %d", fn->symbol, fn->can_throw);
	if (is_operator(fn) && (fn->symbol[3] == 'a') != (fn->family == FAMILY_NEW_ARRAY) &&
	    strncmp(fn->symbol, "_Zna", 4) && strncmp(fn->symbol, "_Zda", 4))
		fail_msg("%s: array or not", fn->symbol);
}

static void test_rows(void **state)
{
	size_t nr_operators = 0;

	(void)state;
	for (u16 i = 1; i < alloc_fn_count(NULL); i++) {
		check_row(i);
		nr_operators += is_operator(alloc_fn(NULL, i));
	}
	/* 8 news and 8 sized deletes for each of two size_t, 8 deletes without a size. */
	assert_int_equal(nr_operators, 8 * 2 + 4 * 2 + 8);
}

static void test_numbers(void **state)
{
	(void)state;
	assert_string_equal(alloc_fn(NULL, 0)->name, "unknown");
	assert_ptr_equal(alloc_fn(NULL, alloc_fn_count(NULL)), alloc_fn(NULL, 0));
	assert_ptr_equal(alloc_fn(NULL, 0xffff), alloc_fn(NULL, 0));
	assert_int_equal(alloc_fn_find(NULL, "printf"), 0);
	assert_int_equal(alloc_fn_find(NULL, ""), 0);
	assert_int_equal(alloc_fn(NULL, alloc_fn_find(NULL, "malloc"))->size_arg, 1);
}

static void test_families(void **state)
{
	(void)state;
	for (int i = 0; i < NR_FAMILIES; i++)
		for (int k = 0; k < i; k++)
			assert_string_not_equal(alloc_family_name(i), alloc_family_name(k));
	assert_string_equal(alloc_family_name(FAMILY_NEW_ARRAY), "new[]");
}

/* Copied, found, until the table is full. */
static void test_custom(void **state)
{
	struct alloc_table *t;
	size_t before = alloc_fn_count(NULL);
	char symbol[16];
	struct alloc_fn row = { symbol, symbol, ALLOC_MALLOC, FAMILY_CUSTOM, .size_arg = 1 };
	int nr;

	(void)state;
	assert_int_equal(alloc_table_new(&t), 0);
	assert_int_equal(alloc_fn_count(t), before);
	for (size_t i = before; i < ALLOC_MAX_FNS; i++) {
		snprintf(symbol, sizeof(symbol), "custom%zu", i);
		nr = alloc_fn_add(t, &row);
		assert_int_equal(nr, i);
	}
	snprintf(symbol, sizeof(symbol), "custom");
	assert_int_equal(alloc_fn_add(t, &row), -ENOSPC);
	assert_int_equal(alloc_fn_count(t), ALLOC_MAX_FNS);
	for (u16 i = 1; i < ALLOC_MAX_FNS; i++)
		assert_int_equal(alloc_fn_find(t, alloc_fn(t, i)->symbol), i);
	for (u16 i = 1; i < before; i++)
		assert_int_equal(alloc_fn_find(NULL, alloc_fn(t, i)->symbol), i);
	assert_int_equal(alloc_fn_find(t, "custo"), 0);
	snprintf(symbol, sizeof(symbol), "custom%zu", before);
	assert_string_equal(alloc_fn(t, before)->name, symbol);
	assert_ptr_not_equal(alloc_fn(t, before)->symbol, symbol);
	alloc_table_free(t);
}

/* The custom rows of one table are not in another, nor among the built-in rows. */
static void test_two_tables(void **state)
{
	const struct alloc_fn pool = { "pool_free", "pool_free", ALLOC_FREE, FAMILY_CUSTOM, .old_arg = 1 };
	const struct alloc_fn arena = { "arena_get", "arena_get", ALLOC_MALLOC, FAMILY_CUSTOM,
					.size_arg = 2 };
	size_t nr = alloc_fn_count(NULL);
	struct alloc_table *a, *b;

	(void)state;
	assert_int_equal(alloc_table_new(&a), 0);
	assert_int_equal(alloc_table_new(&b), 0);
	assert_int_equal(alloc_fn_add(a, &pool), nr);
	assert_int_equal(alloc_fn_add(b, &arena), nr);
	assert_int_equal(alloc_fn_add(b, &pool), nr + 1);
	assert_string_equal(alloc_fn(a, nr)->name, "pool_free");
	assert_string_equal(alloc_fn(b, nr)->name, "arena_get");
	assert_int_equal(alloc_fn_find(a, "arena_get"), 0);
	assert_int_equal(alloc_fn_find(b, "pool_free"), nr + 1);
	assert_ptr_equal(alloc_fn(a, nr + 1), alloc_fn(NULL, 0));
	assert_int_equal(alloc_fn_count(NULL), nr);
	assert_ptr_equal(alloc_fn(a, 1), alloc_fn(b, 1));
	alloc_table_free(a);
	assert_string_equal(alloc_fn(b, nr + 1)->symbol, "pool_free");
	alloc_table_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	   cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_families),   cmocka_unit_test(test_custom),
		cmocka_unit_test(test_two_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
