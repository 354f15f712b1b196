/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the report of tests/unit/report/hostile.h in a format. */
#pragma once

#include "tests/unit/report/hostile.h"

/* Write the report to hostile.text. */
static inline void hostile_write(int (*write)(FILE *, const struct report *))
{
	FILE *out;

	free(hostile.text);
	hostile.text = NULL;
	out = open_memstream(&hostile.text, &hostile.len);
	assert_non_null(out);
	assert_int_equal(write(out, &hostile.report), 0);
	fclose(out);
}

/* Errors of the file, and of the symbolizer, are returned. */
static inline void hostile_errors(int (*write)(FILE *, const struct report *))
{
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	assert_int_equal(write(full, &hostile.report), -ENOSPC);
	fclose(full);
	symbolize_err = -ENOMEM;
	full = fopen("/dev/null", "w");
	assert_non_null(full);
	assert_int_equal(write(full, &hostile.report), -ENOMEM);
	fclose(full);
	symbolize_err = 0;
}
