/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of another process, by its file and by the system call: both read the same, up to the first hole. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>

#include "tests/unit/child.h"
#include "user/lib/proc_memory.h"

static void both_ways_read_the_same(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	char *area = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct proc_memory by_file, by_call = { .pid = getpid(), .fd = -1 };
	const struct proc_memory *ways[] = { &by_file, &by_call };
	char copy[64];

	(void)state;
	assert_ptr_not_equal(area, MAP_FAILED);
	memset(area, 'x', 2 * page);
	munmap(area + page, page);
	assert_int_equal(proc_memory_open(&by_file, getpid()), 0);
	for (int i = 0; i < 2; i++) {
		taddr_t end = (uintptr_t)area + page;

		memset(copy, 0, sizeof(copy));
		assert_int_equal(proc_memory_read(ways[i], end - 40, copy, sizeof(copy)), 40);
		assert_memory_equal(copy, area + page - 40, 40);
		assert_true(proc_memory_read(ways[i], end, copy, sizeof(copy)) < 0);
		assert_true(proc_memory_read(ways[i], 0, copy, 1) < 0);
	}
	proc_memory_close(&by_file);
	proc_memory_close(&by_file);
	assert_int_equal(proc_memory_read(&by_file, (uintptr_t)area, copy, 1), -EBADF);
	munmap(area, page);
}

/* An address space that is gone reads as 0 bytes, and not as an error that the next page may not have. */
static void gone(void **state)
{
	struct proc_memory by_file, by_call;
	struct child c;
	char byte;

	(void)state;
	assert_int_equal(child_start(&c, "/proc/self/exe", "x", NULL), 0);
	assert_int_equal(proc_memory_open(&by_file, c.pid), 0);
	by_call = (struct proc_memory){ .pid = c.pid, .fd = -1 };
	assert_int_equal(child_make_zombie(&c), 0);
	assert_int_equal(proc_memory_read(&by_file, (uintptr_t)&byte, &byte, 1), 0);
	assert_int_equal(proc_memory_read(&by_call, (uintptr_t)&byte, &byte, 1), 0);
	proc_memory_close(&by_file);
	child_stop(&c);
	assert_int_equal(proc_memory_open(&by_file, c.pid), -ESRCH);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_read_the_same),
		cmocka_unit_test(gone),
	};

	child_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
