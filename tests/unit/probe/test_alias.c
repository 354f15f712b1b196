/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One function under several names: what a call of it says. */
#include "user/probe/probe.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/elf.h"

void alias_free(void *p, size_t size);
void alias_free_sized(void *p, size_t size) __attribute__((alias("alias_free")));
void alias_free_aligned(void *p, size_t size) __attribute__((alias("alias_free")));

static volatile size_t seen;

__attribute__((noipa)) void alias_free(void *p, size_t size)
{
	seen += (size_t)p + size;
}

/* The site of the functions of @rows, which have one address. */
static void check_site(const struct alloc_fn *rows, size_t nr, bool has_size, bool has_alignment)
{
	struct probe_custom custom[2] = { 0 };
	struct probe_options options = { .custom = custom, .nr_custom = nr };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct alloc_table *fns;
	struct probe_list list;
	struct elf *elf;

	assert_int_equal(elf_open(&elf, fd), 0);
	assert_int_equal(alloc_table_new(&fns), 0);
	options.fns = fns;
	for (size_t i = 0; i < nr; i++)
		custom[i].fn = alloc_fn_add(fns, &rows[i]);
	assert_int_equal(probe_list_init(&list, elf, "test_alias", &options), 0);
	assert_int_equal(list.nr, 1);
	assert_string_equal(list.sites[0].row->symbol, rows[0].symbol);
	assert_int_equal(probe_site_describe(&list.sites[0]).size_arg, has_size ? 2 : 0);
	assert_int_equal(probe_site_describe(&list.sites[0]).align_arg, has_alignment ? 2 : 0);
	probe_list_fini(&list);
	alloc_table_free(fns);
	elf_close(elf);
	close(fd);
}

/* A release with and without a size at one address: a call does not show whether it says one. */
static void vague_size(void **state)
{
	const struct alloc_fn rows[] = {
		{ "alias_free_sized", "sized", ALLOC_FREE, FAMILY_CUSTOM, .size_arg = 2, .old_arg = 1 },
		{ "alias_free", "plain", ALLOC_FREE, FAMILY_CUSTOM, .old_arg = 1 },
	};

	(void)state;
	alias_free(NULL, 0);
	check_site(rows, 1, true, false);
	check_site(rows, 2, false, false);
}

/* A release with and without an alignment at one address. */
static void vague_alignment(void **state)
{
	const struct alloc_fn rows[] = {
		{ "alias_free_aligned", "aligned", ALLOC_FREE, FAMILY_CUSTOM, .align_arg = 2, .old_arg = 1 },
		{ "alias_free", "plain", ALLOC_FREE, FAMILY_CUSTOM, .old_arg = 1 },
	};

	(void)state;
	check_site(rows, 1, false, true);
	check_site(rows, 2, false, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(vague_size), cmocka_unit_test(vague_alignment) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
