/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A JSON document written as it comes. */
#include "user/lib/json.h"

#include <stdio_ext.h>

#include "user/lib/digits.h"
#include "user/lib/escape.h"

void json_init(struct json *j, FILE *out, u32 fold_depth)
{
	*j = (struct json){ .out = out, .fold_depth = fold_depth };
	/* Unlocked, because reports may have some hundred MB. No other thread writes here. */
	__fsetlocking(out, FSETLOCKING_BYCALLER);
}

void json_fold(struct json *j, u32 fold_depth)
{
	j->fold_depth = fold_depth;
}

static void new_line(struct json *j)
{
	putc('\n', j->out);
	for (u32 i = 0; i < j->depth && !j->is_dense; i++)
		putc(' ', j->out);
}

static void json_write_text(struct json *j, const char *text)
{
	if (j->in_page)
		escape_script(j->out, text);
	else
		escape_json(j->out, text);
}

/* Write the text before a value: the comma, the line break, the key. */
static void json_item(struct json *j, const char *key)
{
	if (j->has_items)
		putc(',', j->out);
	if (j->depth && j->depth <= j->fold_depth && !j->in_page)
		new_line(j);
	else if (j->has_items && !j->in_page && !j->is_dense)
		putc(' ', j->out);
	if (key) {
		json_write_text(j, key);
		fputs(j->in_page || j->is_dense ? ":" : ": ", j->out);
	}
	j->has_items = true;
}

static void json_open_container(struct json *j, const char *key, char bracket)
{
	json_item(j, key);
	putc(bracket, j->out);
	j->depth++;
	j->has_items = false;
}

static void close_container(struct json *j, char bracket)
{
	j->depth--;
	if (j->has_items && j->depth < j->fold_depth && !j->in_page)
		new_line(j);
	putc(bracket, j->out);
	j->has_items = true;
	if (!j->depth)
		putc('\n', j->out);
}

void json_object_begin(struct json *j, const char *key)
{
	json_open_container(j, key, '{');
}

void json_object_end(struct json *j)
{
	close_container(j, '}');
}

void json_array_begin(struct json *j, const char *key)
{
	json_open_container(j, key, '[');
}

void json_array_end(struct json *j)
{
	close_container(j, ']');
}

void json_string(struct json *j, const char *key, const char *value)
{
	json_item(j, key);
	if (value)
		json_write_text(j, value);
	else
		fputs("null", j->out);
}

static void json_write_number(struct json *j, u64 value)
{
	char text[DIGITS_MAX];

	fwrite(text, 1, digits_u64(text, value), j->out);
}

void json_u64(struct json *j, const char *key, u64 value)
{
	json_item(j, key);
	json_write_number(j, value);
}

void json_known(struct json *j, const char *key, u64 value)
{
	if (value)
		json_u64(j, key, value);
	else
		json_null(j, key);
}

void json_s64(struct json *j, const char *key, s64 value)
{
	json_item(j, key);
	if (value < 0)
		putc('-', j->out);
	json_write_number(j, value < 0 ? 0 - (u64)value : (u64)value);
}

void json_hex(struct json *j, const char *key, u64 value)
{
	char text[DIGITS_MAX + 2];
	size_t len;

	json_item(j, key);
	text[0] = '"';
	len = digits_hex(text + 1, value);
	text[len + 1] = '"';
	fwrite(text, 1, len + 2, j->out);
}

void json_bool(struct json *j, const char *key, bool value)
{
	json_item(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
	json_item(j, key);
	fputs("null", j->out);
}
