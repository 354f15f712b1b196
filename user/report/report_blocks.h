/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of live blocks: as text, and for other programs. */
#pragma once

#include <stdio.h>

#include "user/report/report.h"

/*
 * Write the live blocks of @r, those of options.only and within the filters, the largest first; at most options.top of
 * each process. Text and CSV name two functions of each stack, and all of them with options.verbose. JSON
 * ("heaptap-blocks/1") has each stack once. 0, -ENOMEM, or -errno.
 */
int report_blocks_text(FILE *out, const struct report *r) __must_check;
int report_blocks_csv(FILE *out, const struct report *r) __must_check;
int report_blocks_json(FILE *out, const struct report *r) __must_check;

typedef int (*report_blocks_fn)(FILE *out, const struct report *r);

/* The function for the ending of @path: .csv, .json, else text. */
report_blocks_fn report_blocks_writer(const char *path);
