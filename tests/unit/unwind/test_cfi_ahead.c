/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables that a thread reads ahead: the same as those that are read when they are needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/mman.h>
#include <unistd.h>

#include "user/lib/elf.h"
#include "user/unwind/cfi_ahead.h"
#include "tests/unit/skip.h"

enum { LARGE = 8 << 20, SMALL = 1 << 20 };

/* This program, with zeros behind it. */
static int copy_of_us(off_t size)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = memfd_create("copy", MFD_CLOEXEC);
	off_t at = 0;

	assert_true(from >= 0 && to >= 0);
	while (sendfile(to, from, &at, LARGE) > 0)
		;
	close(from);
	assert_true(at > 0 && at < size);
	assert_int_equal(ftruncate(to, size), 0);
	return to;
}

static struct module new_module(u32 id, int fd)
{
	return (struct module){ .id = id, .fd = fd };
}

static bool is_second(const void *ctx, const struct module *m)
{
	(void)ctx;
	return m->id == 2;
}

/* The table that @a gives for @m has the rows that cfi_build() makes of the file. */
static void check(struct cfi_ahead *a, const struct module *m)
{
	struct cfi_table *table = NULL, *wanted;
	struct elf *elf;

	assert_int_equal(elf_open(&elf, m->fd), 0);
	assert_int_equal(cfi_build(&wanted, elf), 0);
	elf_close(elf);
	assert_int_equal(cfi_ahead_load(a, m, &table), 0);
	assert_int_equal(table->nr_rows, wanted->nr_rows);
	assert_true(table->nr_rows > 0);
	assert_memory_equal(table->rows, wanted->rows, wanted->nr_rows * sizeof(*wanted->rows));
	cfi_free(table);
	cfi_free(wanted);
}

static void test_same(void **state)
{
	struct module modules[] = { new_module(1, copy_of_us(LARGE)), new_module(2, copy_of_us(LARGE)),
				    new_module(3, -1),
				    new_module(4, open("/dev/null", O_RDONLY | O_CLOEXEC)) };
	struct mapping maps[] = { { .module = &modules[0] }, { .module = NULL },
				  { .module = &modules[1] }, { .module = &modules[2] },
				  { .module = &modules[3] }, { .module = &modules[0] } };
	const struct mapping_list list = { .maps = maps, .nr = ARRAY_SIZE(maps) };
	struct cfi_ahead *a = cfi_ahead_start(&list, is_second, NULL);
	struct cfi_table *table;
	cpu_set_t cpus;

	(void)state;
	if (!sched_getaffinity(0, sizeof(cpus), &cpus) && CPU_COUNT(&cpus) == 1)
		skip_because("one CPU: nothing is read ahead");
	assert_non_null(a);
	check(a, &modules[1]); /* not among those that are read ahead */
	check(a, &modules[0]);
	check(a, &modules[0]); /* once more: it is read again */
	check(NULL, &modules[0]);
	assert_true(cfi_ahead_load(a, &modules[2], &table) < 0);
	assert_true(cfi_ahead_load(a, &modules[3], &table) < 0);
	cfi_ahead_end(a);
	a = cfi_ahead_start(&list, is_second, NULL);
	assert_non_null(a);
	cfi_ahead_end(a); /* nobody has asked */
	cfi_ahead_end(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(modules); i++)
		close(modules[i].fd);
}

static void test_small(void **state)
{
	struct module m = new_module(1, copy_of_us(SMALL));
	struct mapping map = { .module = &m };

	(void)state;
	assert_null(cfi_ahead_start(&(struct mapping_list){ .maps = &map, .nr = 1 }, is_second, NULL));
	close(m.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
