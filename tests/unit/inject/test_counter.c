/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Machines whose time stamp counter can be relied on, and others. */
#include "user/inject/counter.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* A file with @text; its path is in @path. Returns its descriptor. */
static int text_file(char path[32], const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static bool is_reliable(const char *clocksource, const char *cpuinfo)
{
	char first[32], second[32];
	int a = text_file(first, clocksource), b = text_file(second, cpuinfo);
	bool is = counter_is_reliable(first, second);

	close(a);
	close(b);
	return is;
}

static void test_machines(void **state)
{
	static const char good[] =
		"processor\t: 0\nmodel name\t: x\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n";

	(void)state;
	assert_true(is_reliable("tsc\n", good));
	assert_true(is_reliable("tsc\n", "flags : nonstop_tsc x constant_tsc\nflags : fpu\n"));
	assert_false(is_reliable("hpet\n", good));
	assert_false(is_reliable("tsc-early\n", good));
	assert_false(is_reliable("kvm-clock\n", good));
	assert_false(is_reliable("", good));
	assert_false(is_reliable("tsc\n", "flags\t: tsc constant_tsc\n"));
	assert_false(is_reliable("tsc\n", "flags\t: tsc xnonstop_tsc constant_tsc_known\n"));
	assert_false(is_reliable("tsc\n", "bugs\t: constant_tsc nonstop_tsc\n"));
	assert_false(is_reliable("tsc\n", ""));
}

static void test_no_file(void **state)
{
	(void)state;
	assert_false(counter_is_reliable("/nonexistent/clock", "/nonexistent/cpu"));
	assert_false(counter_is_reliable("/nonexistent/clock", COUNTER_CPUINFO));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
