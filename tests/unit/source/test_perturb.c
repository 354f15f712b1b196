/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment with glibc's tunable: merged, never replaced. */
#include "user/source/perturb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char **made;

static void expect(const char *const *env, const char *const *wanted)
{
	size_t i = 0;

	assert_int_equal(perturb_env(&made, (char *const *)env), 0);
	for (; wanted[i]; i++) {
		assert_non_null(made[i]);
		assert_string_equal(made[i], wanted[i]);
	}
	assert_null(made[i]);
	free(made);
}

#define ENV(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void cases(void **state)
{
	(void)state;
	expect(ENV(), ENV("GLIBC_TUNABLES=glibc.malloc.perturb=165:glibc.malloc.tcache_count=0",
			  "MALLOC_PERTURB_=165"));
	expect(ENV("A=1", "GLIBC_TUNABLES=x=1:y=2", "B="),
	       ENV("A=1", "B=", "GLIBC_TUNABLES=glibc.malloc.perturb=165:glibc.malloc.tcache_count=0:x=1:y=2",
		   "MALLOC_PERTURB_=165"));
	expect(ENV("GLIBC_TUNABLES="),
	       ENV("GLIBC_TUNABLES=glibc.malloc.perturb=165:glibc.malloc.tcache_count=0",
		   "MALLOC_PERTURB_=165"));
	expect(ENV("GLIBC_TUNABLES=glibc.malloc.perturb=7"), ENV("GLIBC_TUNABLES=glibc.malloc.perturb=7"));
	expect(ENV("MALLOC_PERTURB_=9", "A=1"), ENV("MALLOC_PERTURB_=9", "A=1"));
	expect(ENV("MALLOC_PERTURB_=9", "GLIBC_TUNABLES=x=1"),
	       ENV("MALLOC_PERTURB_=9", "GLIBC_TUNABLES=x=1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(cases) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
