/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the tables of a JSON report: files, functions, frames and stacks, which callers refer to by number. */
#include "user/report/saved_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

/* Texts that are longer are cut, as they are in reports with inline frames. */
enum { MAX_TEXT = sizeof(((struct saved_frame *)0)->function) - 1 };

enum { NONE = UINT32_MAX, MAX_ITEMS = 1 << 24, MAX_NUMBERS = 1 << 28 };

static const char too_long[] = "a table is too long";

/* A list of texts. NULL = unknown. */
struct texts {
	char **list; /* owned, and its texts */
	u32 nr, max;
};

struct saved_table_frame {
	u32 function, module; /* numbers; NONE = unknown */
	u64 offset;
	bool is_inlined;
};

struct backtrace {
	size_t first; /* of struct saved_tables.numbers */
	u32 nr;
};

struct saved_tables {
	bool is_known;				    /* the schema */
	struct texts modules, build_ids, functions; /* the first two have the same numbers */
	struct saved_table_frame *frames;	    /* owned */
	u32 nr_frames, max_frames;
	struct backtrace *stacks; /* owned */
	u32 nr_stacks, max_stacks;
	u32 *numbers; /* owned; of the frames of all stacks */
	size_t nr_numbers, max_numbers;
};

static void texts_free(struct texts *t)
{
	for (u32 i = 0; i < t->nr; i++)
		free(t->list[i]);
	free(t->list);
}

void saved_tables_free(struct saved_tables *t)
{
	if (!t)
		return;
	texts_free(&t->modules);
	texts_free(&t->build_ids);
	texts_free(&t->functions);
	free(t->frames);
	free(t->stacks);
	free(t->numbers);
	free(t);
}

static int add_unknown(struct saved_reading *r, struct texts *t)
{
	if (t->nr == MAX_ITEMS)
		return saved_wrong(r, too_long);
	if (array_reserve(t->list, t->max, (size_t)t->nr + 1))
		return -ENOMEM;
	t->list[t->nr++] = NULL;
	return 0;
}

/* The text of the last item of @t. */
static int set_text(struct saved_reading *r, struct texts *t, enum json_token token)
{
	char **last = &t->list[t->nr - 1];

	if (token != JSON_STRING || *last)
		return saved_skip(r, token);
	*last = strndup(r->json.text, MAX_TEXT);
	return *last ? 0 : -ENOMEM;
}

static int on_module_member(struct saved_reading *r, const char *key, enum json_token token)
{
	if (!strcmp(key, "build_id"))
		return set_text(r, &r->tables->build_ids, token);
	return strcmp(key, "path") ? saved_skip(r, token) : set_text(r, &r->tables->modules, token);
}

static int on_function_member(struct saved_reading *r, const char *key, enum json_token token)
{
	return strcmp(key, "name") ? saved_skip(r, token) : set_text(r, &r->tables->functions, token);
}

static int saved_tables_on_module(struct saved_reading *r, enum json_token token)
{
	int err = add_unknown(r, &r->tables->modules);

	if (!err)
		err = add_unknown(r, &r->tables->build_ids);
	return err ? err : saved_object(r, token, on_module_member);
}

static int saved_tables_on_function(struct saved_reading *r, enum json_token token)
{
	int err = add_unknown(r, &r->tables->functions);

	return err ? err : saved_object(r, token, on_function_member);
}

/* A number of an item of a table. */
static int read_index(struct saved_reading *r, enum json_token token, u32 *out)
{
	u64 value = 0;
	int err = saved_number(r, token, &value);

	if (!err && value >= NONE)
		return saved_wrong(r, "a number of a table is too large");
	*out = (u32)value;
	return err;
}

static int on_frame_member(struct saved_reading *r, const char *key, enum json_token token)
{
	struct saved_table_frame *f = &r->tables->frames[r->tables->nr_frames - 1];

	if (!strcmp(key, "function"))
		return read_index(r, token, &f->function);
	if (!strcmp(key, "module"))
		return read_index(r, token, &f->module);
	if (!strcmp(key, "inlined"))
		f->is_inlined = token == JSON_TRUE;
	if (strcmp(key, "offset") || token != JSON_STRING)
		return saved_skip(r, token);
	f->offset = strtoull(r->json.text, NULL, 16);
	return 0;
}

static int saved_tables_on_frame(struct saved_reading *r, enum json_token token)
{
	struct saved_tables *t = r->tables;

	if (t->nr_frames == MAX_ITEMS)
		return saved_wrong(r, too_long);
	if (array_reserve(t->frames, t->max_frames, (size_t)t->nr_frames + 1))
		return -ENOMEM;
	t->frames[t->nr_frames++] = (struct saved_table_frame){ .function = NONE, .module = NONE };
	return saved_object(r, token, on_frame_member);
}

static int on_stack_frame(struct saved_reading *r, enum json_token token)
{
	struct saved_tables *t = r->tables;
	u32 number = NONE;
	int err = read_index(r, token, &number);

	if (err)
		return err;
	if (t->nr_numbers == MAX_NUMBERS)
		return saved_wrong(r, too_long);
	if (array_reserve(t->numbers, t->max_numbers, t->nr_numbers + 1))
		return -ENOMEM;
	t->numbers[t->nr_numbers++] = number;
	t->stacks[t->nr_stacks - 1].nr++;
	return 0;
}

static int saved_tables_on_stack(struct saved_reading *r, enum json_token token)
{
	struct saved_tables *t = r->tables;

	if (t->nr_stacks == MAX_ITEMS)
		return saved_wrong(r, too_long);
	if (array_reserve(t->stacks, t->max_stacks, (size_t)t->nr_stacks + 1))
		return -ENOMEM;
	t->stacks[t->nr_stacks++] = (struct backtrace){ .first = t->nr_numbers };
	return saved_array(r, token, on_stack_frame);
}

static int on_schema(struct saved_reading *r, enum json_token token)
{
	if (token != JSON_STRING || strcmp(r->json.text, "heaptap-report/2") != 0)
		return saved_wrong(r, "is no report of the schema heaptap-report/2");
	r->tables->is_known = true;
	return 0;
}

static int saved_tables_on_report_member(struct saved_reading *r, const char *key, enum json_token token)
{
	static const struct {
		const char *key;
		int (*item)(struct saved_reading *r, enum json_token token);
	} tables[] = {
		{ "modules", saved_tables_on_module },
		{ "functions", saved_tables_on_function },
		{ "frames", saved_tables_on_frame },
		{ "backtraces", saved_tables_on_stack },
	};

	if (!strcmp(key, "schema"))
		return on_schema(r, token);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (!strcmp(key, tables[i].key))
			return saved_array(r, token, tables[i].item);
	return saved_skip(r, token);
}

int saved_tables_read(struct saved_reading *r, const char *text, size_t len)
{
	int err;

	r->tables = calloc(1, sizeof(*r->tables));
	if (!r->tables)
		return -ENOMEM;
	json_reader_init(&r->json, text, len);
	err = saved_object(r, json_next(&r->json), saved_tables_on_report_member);
	return err || r->tables->is_known ? err : saved_wrong(r, saved_no_report);
}

static const char *text_of(const struct texts *t, u32 number)
{
	return number < t->nr && t->list[number] ? t->list[number] : "";
}

static bool is_bad(u32 number, u32 nr)
{
	return number != NONE && number >= nr;
}

u32 saved_tables_modules(const struct saved_tables *t)
{
	return t->modules.nr;
}

u32 saved_tables_stacks(const struct saved_tables *t)
{
	return t->nr_stacks;
}

static u8 saved_tables_digit(char c)
{
	return (u8)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

void saved_tables_module(const struct saved_tables *t, u32 i, struct module *out)
{
	const char *id = text_of(&t->build_ids, i);
	size_t len = strspn(id, "0123456789abcdefABCDEF");

	*out = (struct module){ .fd = -1, .path = t->modules.list[i] ? t->modules.list[i] : (char *)"" };
	if (id[len] || len % 2 || len > 2 * BUILD_ID_MAX)
		return;
	out->build_id_len = (u8)(len / 2);
	for (size_t k = 0; k < len / 2; k++)
		out->build_id[k] =
			(u8)(saved_tables_digit(id[2 * k]) << 4 | saved_tables_digit(id[2 * k + 1]));
}

/* Frame @i of the stack @s, or NULL if the tables lack something. */
static const struct saved_table_frame *saved_tables_frame(struct saved_reading *r, const struct backtrace *s,
							  u32 i)
{
	const struct saved_tables *t = r->tables;
	u32 at = t->numbers[s->first + i];
	const struct saved_table_frame *f = at < t->nr_frames ? &t->frames[at] : NULL;

	if (f && !is_bad(f->function, t->functions.nr) && !is_bad(f->module, t->modules.nr))
		return f;
	return saved_wrong(r, "a table lacks a frame, a function or a file of a stack") ? NULL : f;
}

int saved_tables_place(struct saved_reading *r, u32 number, u32 i, struct saved_place *out)
{
	const struct backtrace *s = &r->tables->stacks[number];
	const struct saved_table_frame *f;

	if (i >= s->nr)
		return -ENOENT;
	f = saved_tables_frame(r, s, i);
	if (!f)
		return -EBADMSG;
	*out = (struct saved_place){ f->offset, f->module, f->module != NONE, f->is_inlined };
	return 0;
}

int saved_tables_stack(struct saved_reading *r, u64 number)
{
	const struct saved_tables *t = r->tables;
	const struct backtrace *s = number < t->nr_stacks ? &t->stacks[number] : NULL;
	int err = s ? 0 : saved_wrong(r, "there is no backtrace of this number");

	for (u32 i = 0; s && i < s->nr && !err; i++) {
		const struct saved_table_frame *f = saved_tables_frame(r, s, i);

		if (!f)
			return -EBADMSG;
		r->frame = (struct saved_frame){ .function = "" };
		saved_copy_text(r->frame.function, sizeof(r->frame.function),
				text_of(&t->functions, f->function));
		saved_copy_text(r->frame.module, sizeof(r->frame.module), text_of(&t->modules, f->module));
		snprintf(r->frame.offset, sizeof(r->frame.offset), "0x%" PRIx64, f->offset);
		err = saved_add_frame(r, &r->frame);
	}
	return err;
}
