/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the hash table, against a plain array that is searched from its beginning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "user/lib/hash_index.h"

enum { NR_ITEMS = 2000, NR_STEPS = 100000 };

/* Few hashes for many items: slots of several items run into each other, and around the end of the table. */
static u64 clashing_hash(u64 key)
{
	return key % 3 ? hash_u64(key % 50) : ~0ULL << 33;
}

static u32 find(const struct hash_index *t, const u64 *keys, u64 (*hash)(u64), u64 key)
{
	u32 item, at = 0;

	while ((item = hash_index_next(t, hash(key), &at)) != HASH_NO_ITEM)
		if (keys[item] == key)
			break;
	return item;
}

/* Adds and removes keys at random; after each step the key is found exactly if the model has it. */
static void against_model(u64 (*hash)(u64))
{
	struct hash_index t = { 0 };
	u64 keys[NR_ITEMS];
	bool is_in[NR_ITEMS] = { false };
	u32 nr = 0;

	srandom(1);
	for (u32 i = 0; i < NR_ITEMS; i++)
		keys[i] = i * 7919ULL;
	for (int step = 0; step < NR_STEPS; step++) {
		u32 i = (u32)random() % NR_ITEMS;

		if (is_in[i]) {
			assert_true(hash_index_del(&t, hash(keys[i]), i));
			nr--;
		} else {
			assert_int_equal(hash_index_add(&t, hash(keys[i]), i), 0);
			nr++;
		}
		is_in[i] = !is_in[i];
		assert_int_equal(t.nr, nr);
		i = (u32)random() % NR_ITEMS;
		assert_int_equal(find(&t, keys, hash, keys[i]), is_in[i] ? i : HASH_NO_ITEM);
	}
	for (u32 i = 0; i < NR_ITEMS; i++)
		assert_int_equal(find(&t, keys, hash, keys[i]), is_in[i] ? i : HASH_NO_ITEM);
	hash_index_fini(&t);
}

static void test_random(void **state)
{
	(void)state;
	against_model(hash_u64);
}

static void test_clashes(void **state)
{
	(void)state;
	against_model(clashing_hash);
}

static void test_empty(void **state)
{
	struct hash_index t = { 0 };
	u32 at = 0;

	(void)state;
	assert_int_equal(hash_index_next(&t, 1, &at), HASH_NO_ITEM);
	assert_false(hash_index_del(&t, 1, 0));
	assert_int_equal(hash_index_bytes(&t, 0), 0);
	hash_index_clear(&t);
	hash_index_fini(&t);
}

/* A reserved table has the size that was foretold, and neither size nor slots change while it fills. */
static void test_reserve(void **state)
{
	struct hash_index t = { 0 };
	size_t bytes = hash_index_bytes(&t, NR_ITEMS);
	struct hash_slot *slots;

	(void)state;
	assert_int_equal(hash_index_reserve(&t, NR_ITEMS), 0);
	assert_int_equal(sizeof(*t.slots) << t.bits, bytes);
	slots = t.slots;
	for (u32 i = 0; i < NR_ITEMS; i++)
		assert_int_equal(hash_index_add(&t, hash_u64(i), i), 0);
	assert_ptr_equal(t.slots, slots);
	assert_int_equal(hash_index_bytes(&t, NR_ITEMS), bytes);
	hash_index_fini(&t);
}

static void test_copy_and_renumber(void **state)
{
	struct hash_index t = { 0 }, copy;
	u32 at = 0;

	(void)state;
	assert_int_equal(hash_index_add(&t, hash_u64(5), 5), 0);
	assert_int_equal(hash_index_copy(&copy, &t), 0);
	hash_index_clear(&t);
	assert_int_equal(hash_index_next(&t, hash_u64(5), &at), HASH_NO_ITEM);
	hash_index_renumber(&copy, hash_u64(5), 5, 9);
	at = 0;
	assert_int_equal(hash_index_next(&copy, hash_u64(5), &at), 9);
	hash_index_fini(&t);
	hash_index_fini(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_clashes),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_copy_and_renumber),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
