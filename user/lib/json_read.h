/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a JSON text token by token. Depth and lengths are bounded, and nothing is kept. */
#pragma once

#include "user/lib/types.h"

enum json_token {
	JSON_OBJECT_BEGIN,
	JSON_OBJECT_END,
	JSON_ARRAY_BEGIN,
	JSON_ARRAY_END,
	JSON_KEY, /* its value follows */
	JSON_STRING,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL,
	JSON_END,   /* the end of a complete text */
	JSON_ERROR, /* for ever */
};

enum { JSON_MAX_DEPTH = 32, JSON_MAX_STRING = 16384 };

struct json_reader {
	const char *p, *end;
	const char *start;
	u32 depth;
	bool is_object[JSON_MAX_DEPTH]; /* kinds of the open containers */
	bool wants_value, wants_comma;
	bool is_over, is_bad;
	/* Of a key or string, unescaped, its first JSON_MAX_STRING bytes; of a number, unchanged. */
	char text[JSON_MAX_STRING + 1];
};

/* @text is borrowed. */
void json_reader_init(struct json_reader *r, const char *text, size_t len);

/* The next token; r->text is set for keys, strings and numbers. */
enum json_token json_next(struct json_reader *r);

/*
 * Skip the value that begins with @token, which was the last one read: containers to their end. JSON_ERROR, or the last
 * token of it.
 */
enum json_token json_skip(struct json_reader *r, enum json_token token);

/* r->text as a number without sign and fraction. False if the text is no such number, or does not fit. */
bool json_number(const struct json_reader *r, u64 *value);

/* The position of the reader, in bytes. */
size_t json_position(const struct json_reader *r);
