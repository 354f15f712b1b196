/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads smaps of mappings whose pages are known. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/scan/snapshot_resident.h"

enum { PAGES = 8 };

/* A mapping of its own, between two pages that may not be read, so that the kernel merges it with no other. */
static char *area_new(long page, int flags)
{
	char *area = mmap(NULL, (PAGES + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *inner = mmap(area + page, PAGES * page, PROT_READ | PROT_WRITE,
			   flags | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	assert_ptr_not_equal(inner, MAP_FAILED);
	madvise(inner, PAGES * page, MADV_NOHUGEPAGE);
	return inner;
}

static void counts_touched_pages(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	char *empty = area_new(page, MAP_PRIVATE), *some = area_new(page, MAP_PRIVATE);
	char *shared = area_new(page, MAP_SHARED);
	auto_free struct resident_map *maps = NULL;
	const struct resident_map *map;
	size_t nr;

	(void)state;
	memset(some, 1, 3 * page);
	memset(shared, 1, 2 * page);
	assert_int_equal(resident_read(&maps, &nr, getpid()), 0);
	map = resident_find(maps, nr, (uintptr_t)empty);
	assert_non_null(map);
	assert_int_equal(map->bytes, 0);
	map = resident_find(maps, nr, (uintptr_t)some);
	assert_non_null(map);
	assert_int_equal(map->bytes, 3 * page);
	assert_int_equal(map->private_bytes, 3 * page);
	map = resident_find(maps, nr, (uintptr_t)shared);
	assert_non_null(map);
	assert_int_equal(map->bytes, 2 * page);
	assert_null(resident_find(maps, nr, (uintptr_t)some + page));
}

/* Code is in memory, and is no private copy. */
static void code_is_no_copy(void **state)
{
	auto_free struct resident_map *maps = NULL;
	size_t nr, nr_files = 0;

	(void)state;
	assert_int_equal(resident_read(&maps, &nr, getpid()), 0);
	for (size_t i = 0; i < nr; i++)
		nr_files += maps[i].bytes && !maps[i].private_bytes;
	assert_true(nr_files > 0);
	assert_int_equal(resident_read(&maps, &nr, 0x7fffffff), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_touched_pages),
		cmocka_unit_test(code_is_no_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
