/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages whose code indirect jumps reach only by landing pads, as the kernel lists them. */
#include "user/inject/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static const char smaps[] = "aaaac0000000-aaaac0001000 r-xp 00000000 fe:01 17  /usr/bin/bt\n"
			    "Size:                  4 kB\n"
			    "VmFlags: rd ex mr mw me\n"
			    "ffff9a000000-ffff9a180000 r-xp 00000000 fe:01 18  /usr/lib/libc.so.6\n"
			    "Rss:                1024 kB\n"
			    "VmFlags: rd ex mr mw me bt\n"
			    "ffff9a180000-ffff9a190000 ---p 00180000 fe:01 18  /usr/lib/libc.so.6\n"
			    "VmFlags: mr mw me\n";

static void test_guarded(void **state)
{
	int fd = memfd_create("smaps", MFD_CLOEXEC);
	char path[32];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, smaps, strlen(smaps)), strlen(smaps));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_true(inject_is_guarded(path, 0xffff9a000000));
	assert_true(inject_is_guarded(path, 0xffff9a17f000));
	assert_false(inject_is_guarded(path, 0xffff9a180000));
	assert_false(inject_is_guarded(path, 0xaaaac0000000));
	assert_false(inject_is_guarded(path, 0x1000));
	assert_false(inject_is_guarded("/nonexistent", 0xffff9a000000));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_guarded) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
