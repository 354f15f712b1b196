/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a JSON document piece by piece, and keeps nothing in memory. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

/*
 * State of the writer. Each call below takes the key that the value has in its object, or NULL in an
 * array and at the top. Keys and strings are escaped.
 */
struct json {
	FILE *out;	/* borrowed */
	u32 depth;	/* containers open */
	u32 fold_depth; /* containers deeper than this are printed on one line */
	bool has_items; /* the open container has a value already */
	bool is_dense;	/* no spaces */
	bool in_page; /* the document goes into a <script> element: no '<' in it, no spaces, no line breaks */
};

void json_init(struct json *j, FILE *out, u32 fold_depth);
/* Print containers deeper than @fold_depth on one line, from now on. */
void json_fold(struct json *j, u32 fold_depth);

void json_object_begin(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array_begin(struct json *j, const char *key);
void json_array_end(struct json *j);

void json_string(struct json *j, const char *key, const char *value); /* NULL becomes null */
void json_u64(struct json *j, const char *key, u64 value);
void json_known(struct json *j, const char *key, u64 value); /* 0 = not known, becomes null */
void json_s64(struct json *j, const char *key, s64 value);
void json_hex(struct json *j, const char *key, u64 value); /* "0x1f", a string */
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
