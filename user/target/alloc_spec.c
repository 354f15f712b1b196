/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes rows of the table of allocator functions from the user's description of an allocator. */
#include "user/target/alloc_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/target/allocator.h"
#include "user/lib/parse.h"

enum {
	MAX_ARG = 3
}; /* call_arg() of the BPF programs reads four arguments, and a function may need the next one too */

static const struct {
	const char *key;
	size_t field;
} fields[] = {
	{ "malloc", offsetof(struct alloc_spec, malloc_symbol) },
	{ "calloc", offsetof(struct alloc_spec, calloc_symbol) },
	{ "realloc", offsetof(struct alloc_spec, realloc_symbol) },
	{ "free", offsetof(struct alloc_spec, free_symbol) },
	{ "object", offsetof(struct alloc_spec, object) },
};

static const char **alloc_spec_field_of(struct alloc_spec *spec, const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strcmp(key, fields[i].key))
			return (const char **)((char *)spec + fields[i].field);
	return NULL;
}

/* Parse one "key=value". Returns NULL, or a text about the error. */
static const char *parse_part(struct alloc_spec *spec, char *part)
{
	char *value = strchr(part, '=');
	const char **field;
	u64 arg;

	if (!value || !value[1])
		return "must be a list of key=value";
	*value++ = '\0';
	if (!strcmp(part, "arg")) {
		if (parse_u64(value, &arg) || arg < 1 || arg > MAX_ARG)
			return "arg must be between 1 and 3";
		spec->arg = arg;
		return NULL;
	}
	field = alloc_spec_field_of(spec, part);
	if (!field)
		return "keys are malloc, calloc, realloc, free, arg and object";
	if (*field)
		return "a key stands there twice";
	*field = value;
	return NULL;
}

int alloc_spec_parse(struct alloc_spec *spec, const char *text, const char **why)
{
	char *rest;
	char *part;

	*spec = (struct alloc_spec){ .text = strdup(text), .arg = 1 };
	if (!spec->text)
		return -ENOMEM;
	*why = NULL;
	rest = spec->text;
	while (!*why && (part = strsep(&rest, ",")))
		*why = parse_part(spec, part);
	if (!*why && !spec->malloc_symbol && !spec->calloc_symbol)
		*why = "must name malloc or calloc";
	if (!*why && !spec->free_symbol)
		*why = "must name free, or nothing would ever be freed";
	if (!*why)
		return 0;
	alloc_spec_fini(spec);
	return -EINVAL;
}

void alloc_spec_fini(struct alloc_spec *spec)
{
	free(spec->text);
	*spec = (struct alloc_spec){ .text = NULL };
}

int alloc_spec_add(struct alloc_table *table, const struct alloc_spec *spec)
{
	u8 arg = spec->arg;
	const struct alloc_fn rows[] = {
		{ spec->malloc_symbol, spec->malloc_symbol, ALLOC_MALLOC, FAMILY_CUSTOM, .size_arg = arg },
		{ spec->calloc_symbol, spec->calloc_symbol, ALLOC_MALLOC, FAMILY_CUSTOM, .size_arg = arg + 1,
		  .count_arg = arg },
		{ spec->realloc_symbol, spec->realloc_symbol, ALLOC_REALLOC, FAMILY_CUSTOM,
		  .size_arg = arg + 1, .old_arg = arg },
		{ spec->free_symbol, spec->free_symbol, ALLOC_FREE, FAMILY_CUSTOM, .old_arg = arg },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int err;

		if (!rows[i].symbol || alloc_fn_find(table, rows[i].symbol))
			continue;
		err = alloc_fn_add(table, &rows[i]);
		if (err < 0)
			return err;
	}
	return 0;
}
