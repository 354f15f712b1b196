/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of files that heaptap writes: placeholders, lengths, and the owners of files. */
#include "user/stream/out_name.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct out_values values = { .pid = 1234, .number = 7, .time = "20260131-235959-123" };

static void expand(const char *pattern, const char *name)
{
	char out[NAME_MAX + 1] = "?";

	assert_int_equal(out_expand(pattern, &values, out), 0);
	assert_string_equal(out, name);
}

static void placeholders(void **state)
{
	char out[NAME_MAX + 1];

	(void)state;
	expand("", "");
	expand("plain.json", "plain.json");
	expand("%p", "1234");
	expand("a%p-%n.%t.json", "a1234-7.20260131-235959-123.json");
	expand("100%%%n", "100%7");
	assert_int_equal(out_expand("%q", &values, out), -EINVAL);
	assert_int_equal(out_expand("x%", &values, out), -EINVAL);
}

static void lengths(void **state)
{
	char pattern[NAME_MAX + 3], out[NAME_MAX + 1];

	(void)state;
	memset(pattern, 'x', sizeof(pattern));
	pattern[NAME_MAX] = '\0';
	expand(pattern, pattern);
	strcpy(pattern + NAME_MAX - 4, "%p");
	assert_int_equal(out_expand(pattern, &values, out), 0);
	assert_int_equal(strlen(out), NAME_MAX);
	memcpy(pattern + NAME_MAX - 4, "x%p", 4);
	assert_int_equal(out_expand(pattern, &values, out), -ENAMETOOLONG);
}

static void time_of_now(void **state)
{
	struct out_values v = values;
	int numbers[3], len = 0;

	(void)state;
	out_values_set_time(&v);
	assert_int_equal(sscanf(v.time, "%8d-%6d-%3d%n", &numbers[0], &numbers[1], &numbers[2], &len), 3);
	assert_int_equal(len, 19);
	assert_int_equal(v.time[len], '\0');
	assert_int_equal(v.pid, 1234);
}

static void given_to_the_caller(void **state)
{
	char path[] = "/tmp/heaptap-out-name-XXXXXX";
	int fd = mkstemp(path);
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	unsetenv("SUDO_UID");
	assert_int_equal(out_give_to_caller(fd), 0);
	setenv("SUDO_GID", "54321", 1);
	for (int i = 0; i < 3; i++) {
		/* A value that is no number gives the file to no user. */
		setenv("SUDO_UID", i == 0 ? "-1" : i == 1 ? "4294967295" : "12345", 1);
		assert_int_equal(out_give_to_caller(fd), 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_uid, i == 2 && !geteuid() ? 12345 : geteuid());
	}
	assert_int_equal(st.st_gid, geteuid() ? getegid() : 54321);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placeholders),
		cmocka_unit_test(lengths),
		cmocka_unit_test(time_of_now),
		cmocka_unit_test(given_to_the_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
