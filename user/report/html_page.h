/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page that reports and comparisons are written into. */
#pragma once

#include <stdio.h>

struct report;

/*
 * Write the page to @out and flush it, with what @write_data writes between its tags: one JSON text, as struct json
 * writes it with in_page. 0, -ENOMEM, or -errno of the first write that failed.
 */
int html_page(FILE *out, int (*write_data)(FILE *out, const void *ctx), const void *ctx) __must_check;
/* Likewise, of a page that a running heaptap serves: it asks for "data" beside its own address again and again. */
int html_page_live(FILE *out, int (*write_data)(FILE *out, const void *ctx), const void *ctx) __must_check;

/*
 * html_page_live() of a report; the page's "data" is what report_html_data() writes. Verdicts are at most
 * @verdict_age_ns old; 0 = not known.
 */
int report_html_live(FILE *out, const struct report *r, u64 verdict_age_ns) __must_check;
int report_html_data(FILE *out, const struct report *r, u64 verdict_age_ns) __must_check;
