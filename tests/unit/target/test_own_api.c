/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the own functions of allocators, found by sets of names. */
#include "user/target/own_api.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "user/lib/types.h"

struct fixture {
	struct own_api_list list;
	struct alloc_table *fns;
};

static struct fixture f;

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	return alloc_table_new(&f.fns);
}

static int teardown(void **state)
{
	(void)state;
	alloc_table_free(f.fns);
	return 0;
}

/* The names in @text, with blanks between. */
static void see(const char *text)
{
	char word[64];

	for (int len; sscanf(text, "%63s%n", word, &len) == 1; text += len)
		own_api_see(&f.list, word);
}

static const struct alloc_fn *row(const char *symbol, const char *kind)
{
	const char *found = NULL;
	int fn = own_api_row(&f.list, f.fns, symbol, &found);

	assert_true(fn > 0);
	assert_string_equal(found, kind);
	assert_string_equal(alloc_fn(f.fns, (u16)fn)->name, symbol);
	return alloc_fn(f.fns, (u16)fn);
}

static void assert_no_row(const char *symbol)
{
	const char *kind;

	assert_int_equal(own_api_row(&f.list, f.fns, symbol, &kind), 0);
}

/* jemalloc under any prefix, and two of them in one file (T7). */
static void any_prefix(void **state)
{
	(void)state;
	see("main _rjem_mallocx _rjem_rallocx _rjem_sdallocx _rjem_mallctl xy_mallocx xy_dallocx xy_nallocx");
	assert_int_equal(own_api_settle(&f.list), 2);
	assert_int_equal(row("_rjem_mallocx", "jemalloc")->size_arg, 1);
	assert_int_equal(row("_rjem_sdallocx", "jemalloc")->kind, ALLOC_FREE);
	assert_int_equal(row("_rjem_realloc", "jemalloc")->old_arg, 1);
	assert_int_equal(row("xy_rallocx", "jemalloc")->size_arg, 2);
	assert_int_equal(row("xy_xallocx", "jemalloc")->kind, ALLOC_RESIZE);
	assert_no_row("xy_nallocx");
	assert_no_row("mallocx");
	assert_no_row("_rjem_mallctl");
}

/* Inner names prove it, too; and so do nearly all of its own names (T7). */
static void any_proof(void **state)
{
	(void)state;
	see("q_mallocx q_rallocx q_sdallocx _q_je_arena_init xy_mallocx xy_dallocx");
	assert_int_equal(own_api_settle(&f.list), 1);
	assert_int_equal(row("q_mallocx", "jemalloc")->size_arg, 1);
	f.list = (struct own_api_list){ 0 };
	see("z_mallocx z_rallocx z_xallocx z_sallocx z_dallocx z_sdallocx");
	assert_int_equal(own_api_settle(&f.list), 1);
}

/* A library in which such names mean something else (T7). */
static void names_of_something_else(void **state)
{
	(void)state;
	see("a_mallocx a_rallocx a_dallocx a_sdallocx mi_new mi_free mi_expand mi_realloc mi_version tc_new tc_free "
	    "tc_delete tc_version rpmalloc rpfree rprealloc sn_malloc sn_free sn_realloc");
	assert_int_equal(own_api_settle(&f.list), 0);
	assert_no_row("a_dallocx");
	assert_no_row("mi_free");
}

/* One name or two may be those of anything (T7). */
static void few_names_prove_nothing(void **state)
{
	(void)state;
	see("mallocx mallocx dallocx mi_new mi_free tc_malloc rpfree sn_malloc mi_ rp");
	assert_int_equal(own_api_settle(&f.list), 0);
	assert_no_row("mallocx");
	assert_no_row("mi_free");
}

static void heaps_shift_arguments(void **state)
{
	const struct alloc_fn *fn;

	(void)state;
	see("mi_malloc mi_free mi_zalloc mi_heap_malloc mi_usable_size");
	assert_int_equal(own_api_settle(&f.list), 1);
	fn = row("mi_heap_malloc_aligned", "mimalloc");
	assert_int_equal(fn->size_arg, 2);
	assert_int_equal(fn->align_arg, 3);
	assert_int_equal(fn->old_arg, 0);
	fn = row("mi_heap_reallocn", "mimalloc");
	assert_int_equal(fn->old_arg, 2);
	assert_int_equal(fn->count_arg, 3);
	assert_int_equal(row("mi_reallocn", "mimalloc")->old_arg, 1);
	assert_int_equal(row("mi_theap_zalloc", "mimalloc")->size_arg, 2);
	assert_int_equal(row("mi_heap_destroy", "mimalloc")->kind, ALLOC_DESTROY);
	assert_int_equal(row("mi_heap_destroy", "mimalloc")->old_arg, 1);
	assert_int_equal(row("mi_heap_delete", "mimalloc")->kind, ALLOC_DELETE);
	assert_int_equal(row("mi_realpath", "mimalloc")->out_arg, 2);
	assert_int_equal(row("mi_heap_realpath", "mimalloc")->out_arg, 3);
	assert_int_equal(row("mi_urealloc", "mimalloc")->old_arg, 1);
	assert_int_equal(row("mi_heap_alloc_new_n", "mimalloc")->count_arg, 2);
	assert_no_row("_mi_thread_done");
	assert_no_row("mi_heap_new");
	assert_no_row("mi_usable_size");
}

static void fixed_prefixes(void **state)
{
	(void)state;
	see("tc_malloc tc_free tc_deletearray_sized tc_malloc_size rpmalloc rpfree rpcalloc rpmalloc_usable_size "
	    "sn_rust_alloc sn_rust_dealloc sn_rust_realloc");
	assert_int_equal(own_api_settle(&f.list), 3);
	assert_true(row("tc_new", "tcmalloc")->can_throw);
	assert_int_equal(row("rpaligned_realloc", "rpmalloc")->size_arg, 3);
	assert_int_equal(row("rpmalloc_heap_free", "rpmalloc")->old_arg, 2);
	assert_int_equal(row("sn_rust_realloc", "snmalloc")->size_arg, 4);
}

/* Functions without a name in a library, but not in a program. */
static void inner_functions(void **state)
{
	(void)state;
	see("_mi_thread_done _mi_thread_locals_done _mi_thread_locals_thread_done mi_malloc mi_free mi_zalloc "
	    "_mi_malloc_generic");
	assert_int_equal(own_api_settle(&f.list), 2);
	assert_int_equal(row("_mi_thread_done", "mimalloc")->kind, ALLOC_DELETE);
	assert_int_equal(row("_mi_thread_done", "mimalloc")->old_arg, 0);
}

/* A hostile file: endless prefixes, and names without end. */
static void hostile_names(void **state)
{
	char name[4096];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "p%d_mallocx", i);
		own_api_see(&f.list, name);
	}
	memset(name, 'x', sizeof(name) - 1);
	memcpy(name + sizeof(name) - 8, "mallocx", 8);
	own_api_see(&f.list, name);
	own_api_see(&f.list, "");
	assert_int_equal(f.list.nr, OWN_API_MAX);
	assert_int_equal(own_api_settle(&f.list), 0);
}

/* The table is full: the function is not watched, and that is said. */
static void full_table(void **state)
{
	const char *kind = NULL;
	char name[16];
	int fn = 1;

	(void)state;
	see("mi_malloc mi_free mi_zalloc mi_usable_size");
	assert_int_equal(own_api_settle(&f.list), 1);
	for (int i = 0; fn > 0; i++) {
		struct alloc_fn own = { name, name, ALLOC_FREE, FAMILY_CUSTOM, .old_arg = 1 };

		snprintf(name, sizeof(name), "fn%d", i);
		fn = alloc_fn_add(f.fns, &own);
	}
	assert_int_equal(own_api_row(&f.list, f.fns, "mi_malloc", &kind), -ENOSPC);
	assert_string_equal(kind, "mimalloc");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(any_prefix),      TEST(few_names_prove_nothing), TEST(heaps_shift_arguments),
		TEST(any_proof),       TEST(names_of_something_else), TEST(fixed_prefixes),
		TEST(inner_functions), TEST(hostile_names),	      TEST(full_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
