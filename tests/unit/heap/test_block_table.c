/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the block table: against a plain array, its memory, and addresses that a hostile target would choose. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "user/heap/block_table.h"
#include "user/heap/row_table.h"
#include "user/heap/thread_table.h"

enum { SEED = 12345 };

static u64 random_state;

static u32 random_below(u32 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 16) % n;
}

static taddr_t address(u32 i)
{
	return 0x5500000010 + (u64)i * 32;
}

/* Check that every used slot is found by its address, that slots are in order, and that their number is nr. */
static void check_order(const struct block_table *t)
{
	const struct block *b = NULL;
	u64 last_key = 0;
	u64 nr = 0;

	while ((b = block_table_next(t, b))) {
		assert_true(b->key > last_key);
		assert_ptr_equal(block_table_find(t, block_table_addr(t, b)), b);
		last_key = b->key;
		nr++;
	}
	assert_int_equal(nr, t->nr);
}

static void insert(struct block_table *t, taddr_t addr, u32 row)
{
	struct block *b;

	assert_int_equal(block_table_put(t, addr, &b), 0);
	assert_int_equal(b->size, 0);
	assert_int_equal(b->row, 0);
	b->row = row;
}

static void test_empty(void **state)
{
	struct budget budget = { 0 };
	struct block_table t;

	(void)state;
	block_table_init(&t, SEED, &budget);
	assert_null(block_table_find(&t, 16));
	assert_null(block_table_next(&t, NULL));
	block_table_prefetch(&t, 16);
	block_table_fini(&t);
	assert_int_equal(budget.used, 0);
}

static void test_fields(void **state)
{
	struct budget budget = { 0 };
	struct block_table t;
	struct block *b;

	(void)state;
	block_table_init(&t, SEED, &budget);
	assert_int_equal(block_table_put(&t, UINT64_MAX, &b), 0);
	b->size = BLOCK_MAX_SIZE;
	b->epoch = 63;
	b->thread = THREADS_MAX;
	block_set_order(b, BLOCK_MAX_ORDER);
	b->row = ROWS_MAX - 1;
	assert_int_equal(block_table_put(&t, UINT64_MAX, &b), 1);
	assert_int_equal(b->size, BLOCK_MAX_SIZE);
	assert_int_equal(b->epoch, 63);
	assert_int_equal(b->thread, THREADS_MAX);
	assert_int_equal(block_order(b), BLOCK_MAX_ORDER);
	assert_int_equal(block_table_addr(&t, b), UINT64_MAX);
	assert_null(block_table_find(&t, 0));
	block_table_del(&t, b);
	assert_null(block_table_find(&t, UINT64_MAX));
	block_table_fini(&t);
}

/* Random puts and deletes. Phases fill and empty the table, so that it grows and shrinks many times. */
static void test_against_array(void **state)
{
	enum { NR = 60000 };
	u32 *rows = calloc(NR, sizeof(*rows));
	struct budget budget = { 0 };
	struct block_table t;
	u64 most = 0;

	(void)state;
	random_state = 88172645463325252;
	block_table_init(&t, SEED, &budget);
	for (u32 step = 1; step <= 600000; step++) {
		u32 i = random_below(NR);
		bool is_filling = step / 100000 % 2 == 0;
		struct block *b = block_table_find(&t, address(i));

		assert_int_equal(b ? b->row : 0, rows[i]);
		if (!b && (is_filling || random_below(8) == 0)) {
			rows[i] = step;
			insert(&t, address(i), step);
		} else if (b && (!is_filling || random_below(8) == 0)) {
			rows[i] = 0;
			block_table_del(&t, b);
		}
		most = t.bytes > most ? t.bytes : most;
		if (step % 20000 == 0)
			check_order(&t);
	}
	assert_true(t.bytes < most / 2);
	for (u32 i = 0; i < NR; i++)
		assert_int_equal(!!block_table_find(&t, address(i)), !!rows[i]);
	block_table_fini(&t);
	assert_int_equal(budget.used, 0);
	free(rows);
}

/* A block takes at most 40 bytes at every moment of growth. */
static void test_memory(void **state)
{
	struct budget budget = { 0 };
	struct block_table t;

	(void)state;
	block_table_init(&t, SEED, &budget);
	for (u32 i = 0; i < 2000000; i++) {
		insert(&t, address(i), i + 1);
		if (t.nr > 20000)
			assert_true(budget.used <= 40 * t.nr);
	}
	while (t.nr > 20000) {
		block_table_del(&t, block_table_find(&t, address(t.nr - 1)));
		assert_true(budget.used <= 80 * t.nr);
	}
	check_order(&t);
	block_table_fini(&t);
}

static void test_out_of_memory(void **state)
{
	struct budget budget = { .limit = 200000 };
	struct block_table t;
	struct block *b;
	u32 nr = 0;

	(void)state;
	block_table_init(&t, SEED, &budget);
	while (block_table_put(&t, address(nr), &b) == 0)
		b->row = ++nr;
	assert_true(nr > 200000 / 48);
	assert_int_equal(block_table_put(&t, address(nr), &b), -ENOMEM);
	assert_int_equal(t.nr, nr);
	for (u32 i = 0; i < nr; i++)
		assert_int_equal(block_table_find(&t, address(i))->row, i + 1);
	block_table_del(&t, block_table_find(&t, address(0)));
	insert(&t, address(nr), 1);
	check_order(&t);
	block_table_fini(&t);
}

/* The address whose hash is @key. Only a test that reads the random numbers can compute it. */
static taddr_t address_of_key(const struct block_table *t, u64 key)
{
	struct block b = { .key = key };

	return block_table_addr(t, &b);
}

/* All hashes at the very end, then all at the very beginning: slow, but correct. */
static void test_worst_order(void **state)
{
	struct budget budget = { 0 };
	struct block_table t;

	(void)state;
	block_table_init(&t, SEED, &budget);
	for (u32 i = 0; i < 3000; i++)
		insert(&t, address_of_key(&t, UINT64_MAX - (u64)i * 7), i);
	check_order(&t);
	for (u32 i = 0; i < 3000; i++)
		insert(&t, address_of_key(&t, 1 + (u64)i * 7), i);
	check_order(&t);
	for (u32 i = 0; i < 3000; i++) {
		block_table_del(&t, block_table_find(&t, address_of_key(&t, UINT64_MAX - (u64)i * 7)));
		if (i % 500 == 0)
			check_order(&t);
	}
	assert_int_equal(t.nr, 3000);
	check_order(&t);
	block_table_fini(&t);
	assert_int_equal(budget.used, 0);
}

static void test_copy(void **state)
{
	struct budget budget = { 0 };
	struct budget small = { .limit = 1000 };
	struct block_table t, copy;

	(void)state;
	block_table_init(&t, SEED, &budget);
	assert_int_equal(block_table_copy(&copy, &t, &budget), 0);
	block_table_fini(&copy);
	for (u32 i = 0; i < 1000; i++)
		insert(&t, address(i), i);
	assert_int_equal(block_table_copy(&copy, &t, &small), -ENOMEM);
	assert_int_equal(block_table_copy(&copy, &t, &budget), 0);
	for (u32 i = 0; i < 1000; i += 2)
		block_table_del(&t, block_table_find(&t, address(i)));
	assert_int_equal(copy.nr, 1000);
	check_order(&copy);
	check_order(&t);
	block_table_fini(&copy);
	block_table_fini(&t);
	assert_int_equal(budget.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),	      cmocka_unit_test(test_fields),
		cmocka_unit_test(test_against_array), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_worst_order),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
