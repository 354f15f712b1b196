/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as JSON: the reader comes to an end, stands within the text, gives texts that are terminated and containers
 * that are balanced; and as two saved reports that are compared (F5).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/replay.h"
#include "user/report/diff.h"
#include "user/lib/json_read.h"

/* Check limits that the reader keeps for any text. */
static void check(const struct json_reader *r, size_t size, enum json_token token, size_t *before)
{
	size_t at = json_position(r);

	if (at > size || at < *before || r->depth > JSON_MAX_DEPTH || token > JSON_ERROR)
		abort();
	if ((token == JSON_KEY || token == JSON_STRING || token == JSON_NUMBER) &&
	    strnlen(r->text, sizeof(r->text)) > JSON_MAX_STRING)
		abort();
	*before = at;
}

/* All tokens; with @skips each second value is skipped. */
static void walk(const char *text, size_t size, bool skips)
{
	static struct json_reader r;
	size_t before = 0, nr = 0;
	s64 depth = 0;
	enum json_token token;
	u64 number;

	json_reader_init(&r, text, size);
	do {
		token = json_next(&r);
		/* A token takes a byte at least. */
		if (nr++ > size + 1)
			abort();
		check(&r, size, token, &before);
		if (token == JSON_NUMBER && json_number(&r, &number) && r.text[strspn(r.text, "0123456789")])
			abort();
		if (skips && nr % 2 && token != JSON_KEY && token < JSON_END && token != JSON_OBJECT_END &&
		    token != JSON_ARRAY_END) {
			token = json_skip(&r, token);
			check(&r, size, token, &before);
			continue;
		}
		depth += token == JSON_OBJECT_BEGIN || token == JSON_ARRAY_BEGIN;
		depth -= token == JSON_OBJECT_END || token == JSON_ARRAY_END;
		if (depth < 0)
			abort();
	} while (token != JSON_END && token != JSON_ERROR);
	if (token == JSON_END && depth)
		abort();
	/* For ever. */
	if (json_next(&r) != token)
		abort();
}

static void compare(const char *text, size_t size)
{
	size_t half = size / 2, nr, at = 0;
	const char *why = NULL;
	struct diff *d;
	int err;

	if (diff_new(&d))
		return;
	err = diff_add(d, 0, text, half, &why, &at);
	if (err == -EBADMSG && (!why || at > half))
		abort();
	if (!err && !diff_add(d, 1, text + half, size - half, &why, &at))
		for (int key = 0; key < NR_DIFF_KEYS; key++)
			diff_rows(d, key, &nr);
	/* The whole, so that the search need not find two. */
	if (!diff_add(d, 1, text, size, &why, &at))
		diff_rows(d, DIFF_LIVE_BYTES, &nr);
	diff_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of this length only, so that a read behind it is seen. */
	char *text = malloc(size + !size);

	if (!text)
		return 0;
	memcpy(text, data, size);
	walk(text, size, false);
	walk(text, size, true);
	compare(text, size);
	free(text);
	return 0;
}
