/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compressed files are unpacked whole, and never fill the disk. */
#include "user/census/census_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zstd.h>

#include <cmocka.h>

enum { SIZE = 4 << 20, HOLE = 2 << 20, SHORT = 1000, BLOCK = 4096 };

static u64 free_blocks;
static u64 nr_writes;

/* The disk has as much room as the test says. */
int fstatvfs(int fd, struct statvfs *fs)
{
	(void)fd;
	*fs = (struct statvfs){ .f_blocks = UINT32_MAX, .f_bavail = free_blocks, .f_frsize = BLOCK };
	return 0;
}

/* Each write takes a part only, and some are interrupted. */
ssize_t pwrite(int fd, const void *buf, size_t len, off_t at)
{
	const struct iovec part = { (void *)(uintptr_t)buf, len < SHORT ? len : SHORT };

	if (nr_writes++ % 3 == 1) {
		errno = EINTR;
		return -1;
	}
	return pwritev(fd, &part, 1, at);
}

/* Bytes that do not repeat, with zeros in the middle. */
static void fill(u8 *bytes)
{
	u32 x = 1;

	for (size_t i = 0; i < SIZE; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = i >= HOLE / 2 && i < HOLE + HOLE / 2 ? 0 : (u8)(x >> 24);
	}
}

static int packed(const u8 *bytes)
{
	size_t most = ZSTD_compressBound(SIZE), len;
	u8 *out = malloc(most);
	int fd = memfd_create("packed", MFD_CLOEXEC);

	assert_non_null(out);
	assert_true(fd >= 0);
	len = ZSTD_compress(out, most, bytes, SIZE, 1);
	assert_false(ZSTD_isError(len));
	assert_int_equal(write(fd, out, len), len);
	free(out);
	return fd;
}

static void check(u64 blocks, bool has_room)
{
	u8 *want = malloc(SIZE), *have = malloc(SIZE);
	int from, to;

	assert_non_null(want);
	assert_non_null(have);
	fill(want);
	from = packed(want);
	free_blocks = blocks;
	to = census_unpack(from);
	if (has_room) {
		assert_true(to >= 0);
		assert_int_equal(lseek(to, 0, SEEK_END), SIZE);
		assert_int_equal(pread(to, have, SIZE, 0), SIZE);
		assert_memory_equal(have, want, SIZE);
		assert_true(nr_writes >= (SIZE - HOLE) / SHORT);
		close(to);
	} else {
		assert_int_equal(to, -ENOSPC);
	}
	close(from);
	free(want);
	free(have);
}

static void short_writes(void **state)
{
	(void)state;
	check(UINT32_MAX, true);
}

/* Zeros take no room: what is written must fit, and a part stays free. */
static void bounded_by_room(void **state)
{
	(void)state;
	check(SIZE / BLOCK, true);
	check((SIZE - HOLE / 2) / BLOCK, true);
	check((SIZE - HOLE) / BLOCK, false);
	check(0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_writes),
		cmocka_unit_test(bounded_by_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
