/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hints for packages with names: in roots with lists of dpkg, with dnf, and with neither. */
#include "user/names/debug_package.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/test_debug_package.XXXXXX";

static void make_dirs(const char *path)
{
	char command[256];

	snprintf(command, sizeof(command), "mkdir -p %s/%s", root, path);
	assert_int_equal(system(command), 0);
}

static void make_list(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	make_dirs("var/lib/dpkg/info");
	snprintf(path, sizeof(path), "%s/var/lib/dpkg/info/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int begin(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void hints(const char *path, const char *expected)
{
	char text[256];

	debug_package_hint(text, sizeof(text), root, path);
	assert_string_equal(text, expected);
}

static void debian(void **state)
{
	(void)state;
	make_list("gdb.list", "/.\n/usr/bin/gdb\n/usr/bin/gdbtui\n");
	make_list("libc6:amd64.list", "/lib/x86_64-linux-gnu/libc.so.6\n");
	make_list("gdb.md5sums", "/usr/bin/gd\n");
	hints("/usr/bin/gdb", "apt install gdb-dbgsym (the debug archive must be in the sources)");
	hints("/usr/lib/x86_64-linux-gnu/libc.so.6", "apt install libc6-dbg");
	/* A part of a name is another file. */
	hints("/usr/bin/gd", "");
	hints("/home/me/program", "");
	hints("", "");
}

static void fedora(void **state)
{
	(void)state;
	make_dirs("var/lib/dnf");
	hints("/usr/bin/gdb", "dnf debuginfo-install /usr/bin/gdb");
	hints("memfd:x", "");
}

static void neither(void **state)
{
	(void)state;
	hints("/usr/bin/gdb", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(debian, begin, end),
		cmocka_unit_test_setup_teardown(fedora, begin, end),
		cmocka_unit_test_setup_teardown(neither, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
