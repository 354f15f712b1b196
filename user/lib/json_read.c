/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A JSON text read token by token. */
#include "user/lib/json_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void json_reader_init(struct json_reader *r, const char *text, size_t len)
{
	memset(r, 0, offsetof(struct json_reader, text));
	r->text[0] = '\0';
	r->p = r->start = text;
	r->end = text + len;
	r->wants_value = true;
}

static enum json_token json_read_bad(struct json_reader *r)
{
	r->is_bad = true;
	return JSON_ERROR;
}

static void skip_space(struct json_reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
		r->p++;
}

/* Cut off the bytes that do not fit: names of targets may have any length. */
static bool json_read_put(struct json_reader *r, size_t *used, u32 byte)
{
	if (*used < JSON_MAX_STRING)
		r->text[(*used)++] = (char)byte;
	return byte;
}

/* A code point as UTF-8. */
static bool put_point(struct json_reader *r, size_t *used, u32 c)
{
	if (c < 0x80)
		return json_read_put(r, used, c);
	if (c < 0x800)
		return json_read_put(r, used, 0xc0 | c >> 6) && json_read_put(r, used, 0x80 | (c & 63));
	if (c < 0x10000)
		return json_read_put(r, used, 0xe0 | c >> 12) &&
		       json_read_put(r, used, 0x80 | (c >> 6 & 63)) &&
		       json_read_put(r, used, 0x80 | (c & 63));
	return json_read_put(r, used, 0xf0 | c >> 18) && json_read_put(r, used, 0x80 | (c >> 12 & 63)) &&
	       json_read_put(r, used, 0x80 | (c >> 6 & 63)) && json_read_put(r, used, 0x80 | (c & 63));
}

/* Four hexadecimal digits. */
static bool get_unit(struct json_reader *r, u32 *unit)
{
	*unit = 0;
	for (u32 i = 0; i < 4; i++, r->p++) {
		char c = r->p < r->end ? *r->p : 0;

		if (c >= '0' && c <= '9')
			*unit = *unit << 4 | (u32)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			*unit = *unit << 4 | (u32)((c | 32) - 'a' + 10);
		else
			return false;
	}
	return true;
}

static bool get_escape(struct json_reader *r, size_t *used)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	u32 unit, low;
	char c;

	if (r->p == r->end)
		return false;
	c = *r->p++;
	if (c != 'u') {
		at = c ? strchr(from, c) : NULL;
		return at && json_read_put(r, used, (u8)to[at - from]);
	}
	if (!get_unit(r, &unit))
		return false;
	if (unit >= 0xd800 && unit < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
		r->p += 2;
		if (!get_unit(r, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
	}
	return put_point(r, used, unit);
}

/* Behind the first quote. */
static bool get_string(struct json_reader *r)
{
	size_t used = 0;

	while (r->p < r->end) {
		u8 c = (u8)*r->p++;

		if (c == '"') {
			r->text[used] = '\0';
			return true;
		}
		if (c < 0x20 || !(c == '\\' ? get_escape(r, &used) : json_read_put(r, &used, c)))
			return false;
	}
	return false;
}

static bool json_read_get_number(struct json_reader *r)
{
	size_t used = 0;

	while (r->p < r->end && *r->p && strchr("+-.0123456789eE", *r->p))
		if (used == JSON_MAX_STRING || !json_read_put(r, &used, (u8)*r->p++))
			return false;
	r->text[used] = '\0';
	return used > 0;
}

static bool get_word(struct json_reader *r, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(r->end - r->p) < len || memcmp(r->p, word, len))
		return false;
	r->p += len;
	return true;
}

/* A value has been read. */
static enum json_token json_read_done(struct json_reader *r, enum json_token token)
{
	r->wants_value = false;
	r->wants_comma = r->depth;
	r->is_over = !r->depth;
	return token;
}

static enum json_token json_read_open_container(struct json_reader *r, bool is_object)
{
	if (r->depth == JSON_MAX_DEPTH)
		return json_read_bad(r);
	r->p++;
	r->is_object[r->depth++] = is_object;
	r->wants_comma = false;
	r->wants_value = !is_object;
	return is_object ? JSON_OBJECT_BEGIN : JSON_ARRAY_BEGIN;
}

static enum json_token get_value(struct json_reader *r)
{
	switch (*r->p) {
	case '{':
		return json_read_open_container(r, true);
	case '[':
		return json_read_open_container(r, false);
	case '"':
		r->p++;
		return get_string(r) ? json_read_done(r, JSON_STRING) : json_read_bad(r);
	case 't':
		return get_word(r, "true") ? json_read_done(r, JSON_TRUE) : json_read_bad(r);
	case 'f':
		return get_word(r, "false") ? json_read_done(r, JSON_FALSE) : json_read_bad(r);
	case 'n':
		return get_word(r, "null") ? json_read_done(r, JSON_NULL) : json_read_bad(r);
	default:
		return json_read_get_number(r) ? json_read_done(r, JSON_NUMBER) : json_read_bad(r);
	}
}

static enum json_token get_key(struct json_reader *r)
{
	if (*r->p != '"')
		return json_read_bad(r);
	r->p++;
	if (!get_string(r))
		return json_read_bad(r);
	skip_space(r);
	if (r->p == r->end || *r->p++ != ':')
		return json_read_bad(r);
	r->wants_value = true;
	return JSON_KEY;
}

enum json_token json_next(struct json_reader *r)
{
	bool is_object;

	if (r->is_bad)
		return JSON_ERROR;
	skip_space(r);
	if (r->is_over)
		return r->p == r->end ? JSON_END : json_read_bad(r);
	if (r->p == r->end)
		return json_read_bad(r);
	if (!r->depth)
		return get_value(r);
	is_object = r->is_object[r->depth - 1];
	/* A container may end behind a value, or directly if it is empty. */
	if (*r->p == (is_object ? '}' : ']') && !(is_object && r->wants_value)) {
		r->p++;
		r->depth--;
		return json_read_done(r, is_object ? JSON_OBJECT_END : JSON_ARRAY_END);
	}
	if (r->wants_comma) {
		if (*r->p++ != ',')
			return json_read_bad(r);
		r->wants_comma = false;
		r->wants_value = !is_object;
		skip_space(r);
		if (r->p == r->end || *r->p == ']' || *r->p == '}')
			return json_read_bad(r);
	}
	return r->wants_value ? get_value(r) : get_key(r);
}

enum json_token json_skip(struct json_reader *r, enum json_token token)
{
	u32 depth = r->depth;

	if (token != JSON_OBJECT_BEGIN && token != JSON_ARRAY_BEGIN)
		return token;
	do
		token = json_next(r);
	while (token != JSON_ERROR && r->depth >= depth);
	return token;
}

bool json_number(const struct json_reader *r, u64 *value)
{
	char *end;

	if (r->text[0] < '0' || r->text[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(r->text, &end, 10);
	return !errno && !*end;
}

size_t json_position(const struct json_reader *r)
{
	return (size_t)(r->p - r->start);
}
