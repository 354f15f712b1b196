/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory that control groups have left, by files as both versions of the kernel write them (E5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/cgroup_memory.h"

static char dir[] = "/tmp/heaptap-cgroup-XXXXXX";

static const char *const names[] = { "memory.max", "memory.current", "memory.stat", "memory.limit_in_bytes",
				     "memory.usage_in_bytes" };

static const char *path_of(const char *name)
{
	static char path[sizeof(dir) + 64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void cgroup_memory_write(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int cgroup_memory_begin(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int cgroup_memory_clear(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlink(path_of(names[i]));
	return 0;
}

static int cgroup_memory_end(void **state)
{
	(void)state;
	return rmdir(dir);
}

static void has_used(enum cgroup_version version, u64 max, u64 used)
{
	struct cgroup_memory m;

	assert_true(cgroup_memory_read(&m, dir, version));
	assert_int_equal(m.max, max);
	assert_int_equal(m.used, used);
}

/* Clean pages of files can be taken back, however lately they were read. */
static void pages_of_files(void **state)
{
	(void)state;
	cgroup_memory_write("memory.max", "1000000\n");
	cgroup_memory_write("memory.current", "990000\n");
	cgroup_memory_write(
		"memory.stat",
		"anon 90000\nfile 860000\nshmem 40000\nfile_dirty 20000\nfile_writeback 10000\n"
		"inactive_anon 40000\nactive_anon 90000\ninactive_file 100000\nactive_file 700000\n"
		"unevictable 20000\nslab_reclaimable 30000\nslab_unreclaimable 10000\nslab 40000\n"
		"workingset_refault_file 500000\n");
	has_used(CGROUP_SECOND, 1000000, 990000 - 700000 - 100000 - 30000 + 20000 + 10000);
}

/* The first version counts the groups below under keys of their own, and has no slabs. */
static void first_version(void **state)
{
	(void)state;
	cgroup_memory_write("memory.limit_in_bytes", "1000000\n");
	cgroup_memory_write("memory.usage_in_bytes", "990000\n");
	cgroup_memory_write("memory.stat", "cache 1000\ninactive_file 100\nactive_file 200\ndirty 7\n"
					   "total_cache 800000\ntotal_dirty 20000\ntotal_writeback 10000\n"
					   "total_inactive_file 100000\ntotal_active_file 700000\n"
					   "total_unevictable 20000\n");
	has_used(CGROUP_FIRST, 1000000, 990000 - 700000 - 100000 + 20000 + 10000);
}

/* Numbers of different moments: more than all of it cannot be taken back, and no more than all be used. */
static void odd_numbers(void **state)
{
	(void)state;
	cgroup_memory_write("memory.max", "1000\n");
	cgroup_memory_write("memory.current", "900\n");
	has_used(CGROUP_SECOND, 1000, 900);
	cgroup_memory_write("memory.stat", "inactive_file 950\n");
	has_used(CGROUP_SECOND, 1000, 0);
	cgroup_memory_write("memory.stat", "inactive_file 100\nfile_dirty 300\n");
	has_used(CGROUP_SECOND, 1000, 900);
	cgroup_memory_write("memory.current", "1100\n");
	has_used(CGROUP_SECOND, 1000, 1000);
}

static void no_limit(void **state)
{
	struct cgroup_memory m;

	(void)state;
	assert_false(cgroup_memory_read(&m, dir, CGROUP_SECOND));
	cgroup_memory_write("memory.max", "max\n");
	cgroup_memory_write("memory.current", "990000\n");
	assert_false(cgroup_memory_read(&m, dir, CGROUP_SECOND));
	cgroup_memory_write("memory.limit_in_bytes", "9223372036854771712\n");
	cgroup_memory_write("memory.usage_in_bytes", "990000\n");
	assert_false(cgroup_memory_read(&m, dir, CGROUP_FIRST));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pages_of_files, NULL, cgroup_memory_clear),
		cmocka_unit_test_setup_teardown(first_version, NULL, cgroup_memory_clear),
		cmocka_unit_test_setup_teardown(odd_numbers, NULL, cgroup_memory_clear),
		cmocka_unit_test_setup_teardown(no_limit, NULL, cgroup_memory_clear),
	};

	return cmocka_run_group_tests(tests, cgroup_memory_begin, cgroup_memory_end);
}
