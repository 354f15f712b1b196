/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts about the pointers of a program that a scan found out: one text for all reports. */
#pragma once

#include "user/lib/json.h"
#include "user/scan/scan.h"

enum { REPORT_HINT_TEXT = 256 };

/* "reached behind a 16-byte header", or "" without such blocks. @out has REPORT_HINT_TEXT bytes. */
void report_hint_behind(char *out, const struct scan_result *r);
/* "3 words are left from lists of free blocks, no pointers". False if there are no such words. */
bool report_hint_links(char *out, const struct scan_result *r);
/* How to follow the pointers that lead to the lost blocks, or "" if none do: a line without a full stop. */
void report_hint_tagged(char *out, const struct scan_result *r);
/* The keys "behind_header", "free_list_words" and "tagged" of a scan, each if there are such. */
void report_hint_json(struct json *j, const struct scan_result *r);
