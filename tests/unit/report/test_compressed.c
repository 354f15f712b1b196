/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compressed files, read again by the library that they are for. */
#include "user/report/compressed.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

enum { NR = 20000, MAX_PLAIN = NR * 24 };

static const enum compression ways[] = { COMPRESSION_GZIP, COMPRESSION_GZIP_FAST, COMPRESSION_ZSTD };

static size_t unpack_gzip(void *plain, void *packed, size_t len)
{
	z_stream z = { .next_in = packed, .avail_in = (uInt)len, .next_out = plain, .avail_out = MAX_PLAIN };

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	inflateEnd(&z);
	return z.total_out;
}

/* From numbers that compress badly: one in @step of them, so that files have many lengths. */
static void print_numbers(FILE *out, size_t step)
{
	for (size_t i = 0; i < NR; i += step)
		fprintf(out, "%zu,", i * 2654435761U);
}

static void check_file(enum compression how, size_t step)
{
	char *packed = NULL, *wanted = NULL, *plain = malloc(MAX_PLAIN);
	size_t packed_len = 0, wanted_len = 0, len;
	FILE *out = open_memstream(&packed, &packed_len), *memory = open_memstream(&wanted, &wanted_len);
	struct compressed *c;

	assert_true(out && memory && plain);
	print_numbers(memory, step);
	fclose(memory);
	assert_int_equal(compressed_new(&c, out, how), 0);
	print_numbers(compressed_file(c), step);
	assert_int_equal(compressed_end(c), 0);
	fclose(out);
	len = how == COMPRESSION_ZSTD ? ZSTD_decompress(plain, MAX_PLAIN, packed, packed_len)
				      : unpack_gzip(plain, packed, packed_len);
	assert_int_equal(len, wanted_len);
	assert_memory_equal(plain, wanted, len);
	free(packed);
	free(wanted);
	free(plain);
}

static void gives_back_what_was_printed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		for (size_t step = 1; step < NR; step *= 7)
			check_file(ways[i], step);
	}
}

static void says_that_the_disk_is_full(void **state)
{
	struct compressed *c;
	FILE *full;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		full = fopen("/dev/full", "w");
		assert_non_null(full);
		assert_int_equal(compressed_new(&c, full, ways[i]), 0);
		print_numbers(compressed_file(c), 1);
		assert_int_equal(compressed_end(c), -ENOSPC);
		fclose(full);
	}
	assert_int_equal(compressed_end(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_back_what_was_printed),
		cmocka_unit_test(says_that_the_disk_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
