/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The path of a control group: names may look like separators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "user/system/cgroup.h"

static void finds(const char *text, enum cgroup_kind kind, const char *expected)
{
	char path[64] = "";

	assert_int_equal(cgroup_find(text, kind, path, sizeof(path)), expected != NULL);
	if (expected)
		assert_string_equal(path, expected);
}

static void versions(void **state)
{
	const char *mixed = "12:cpu,cpuacct:/a\n5:hugetlb,memory:/m\n1:name=systemd:/s\n0::/u\n";

	(void)state;
	finds("0::/user.slice/x\n", CGROUP_UNIFIED, "/user.slice/x");
	finds("0::/\n", CGROUP_UNIFIED, "");
	finds("0::/x\n", CGROUP_MEMORY, NULL);
	finds("0::/x", CGROUP_ANY, "/x");
	finds(mixed, CGROUP_MEMORY, "/m");
	finds(mixed, CGROUP_UNIFIED, "/u");
	finds(mixed, CGROUP_ANY, "/m");
	finds("12:cpu,cpuacct:/a\n", CGROUP_ANY, "/a");
	finds("", CGROUP_ANY, NULL);
}

/* A group may be called ":memory:", and a controller memoryless. */
static void names_do_not_mislead(void **state)
{
	(void)state;
	finds("3:pids:/x:memory:/y\n2:memory:/right\n", CGROUP_MEMORY, "/right");
	finds("3:pids:/a,memory\n", CGROUP_MEMORY, NULL);
	finds("3:memoryless:/a\n", CGROUP_MEMORY, NULL);
	finds("0::/a:b::/c\n", CGROUP_UNIFIED, "/a:b::/c");
	finds("rubbish\n:\n::\n0::x\n", CGROUP_ANY, NULL);
	finds("0::/0123456789012345678901234567890123456789012345678901234567890123456789\n", CGROUP_ANY,
	      NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(names_do_not_mislead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
