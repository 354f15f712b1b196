/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of how a program was built: this one itself, and files that are no programs. */
#include "user/target/program_build.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static void this_program(void **state)
{
	struct program_build b = { .is_go = true, .is_static = true, .is_stripped = true };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(program_build_read(&b, fd), 0);
	assert_false(b.is_go || b.is_static || b.is_stripped);
	close(fd);
}

static void no_program(void **state)
{
	struct program_build b;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(program_build_read(&b, fd) < 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(this_program), cmocka_unit_test(no_program) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
