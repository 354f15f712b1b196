/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums of live and lost blocks by type. */
#include "user/census/census_types.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/census/census_walk.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"

struct type_sums {
	const struct census_blocks *blocks;
	size_t at; /* index of the next block; both lists ascend */
	struct census_type_row *rows;
};

static int census_types_add_lost(void *ctx, const struct scan_block_info *info)
{
	struct type_sums *s = ctx;
	const struct census_blocks *b = s->blocks;
	struct census_type_row *row;

	if (info->verdict != SCAN_DEFINITE && info->verdict != SCAN_INDIRECT)
		return 0;
	while (s->at < b->nr && b->blocks[s->at].addr < info->addr)
		s->at++;
	if (s->at == b->nr || b->blocks[s->at].addr != info->addr)
		return 0;
	row = &s->rows[b->blocks[s->at].type];
	row->lost.blocks++;
	row->lost.bytes += info->size;
	return 0;
}

static int census_types_by_bytes(const void *a, const void *b)
{
	const struct census_type_row *x = a, *y = b;

	if (x->live.bytes != y->live.bytes)
		return x->live.bytes < y->live.bytes ? 1 : -1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->word > y->word) - (x->word < y->word);
}

int census_type_rows(struct census_type_row **out, size_t *nr, const struct census *c, bool is_file)
{
	const struct census_blocks *b = &c->blocks;
	auto_free struct census_type_row *rows = calloc(b->nr_types + 1, sizeof(*rows));
	struct type_sums sums = { .blocks = b, .rows = rows };
	int err;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < b->nr_types; i++) {
		rows[i].word = b->types[i].word;
		rows[i].first = b->types[i].first;
		rows[i].live = b->types[i].live;
	}
	err = c->scan ? scan_for_each(c->scan, census_types_add_lost, &sums) : 0;
	if (err)
		return err;
	*nr = 0;
	for (size_t i = 0; i < b->nr_types; i++)
		if (rows[i].live.blocks && rows[i].first != FIRST_UNREAD &&
		    (rows[i].first == FIRST_FILE) == is_file)
			rows[(*nr)++] = rows[i];
	if (*nr)
		qsort(rows, *nr, sizeof(*rows), census_types_by_bytes);
	*out = take_ptr(rows);
	return 0;
}

const char *census_first_name(enum census_first first)
{
	static const char *const names[] = {
		[FIRST_UNREAD] = "unread", [FIRST_FILE] = "file",	[FIRST_TEXT] = "text",
		[FIRST_ZERO] = "zero",	   [FIRST_POINTER] = "pointer", [FIRST_NUMBER] = "number",
		[FIRST_OTHER] = "other",
	};

	return names[first];
}

void census_row_text(const struct census *c, const struct census_type_row *row, char *text)
{
	char word[CENSUS_WORD_TEXT] = "";

	if (row->first == FIRST_TEXT)
		census_first_text(c->snap, row->word, word);
	escape_buf(text, CENSUS_FIRST_TEXT, word);
}

int census_type_text(const struct census *c, struct census_names *names, const struct census_type_row *row,
		     char *text)
{
	char first[CENSUS_FIRST_TEXT], offset[24] = "";
	struct census_name name;
	int err;

	if (row->first != FIRST_FILE) {
		census_row_text(c, row, first);
		snprintf(text, CENSUS_TYPE_TEXT, "%s%s%s", census_first_name(row->first), first[0] ? " " : "",
			 first);
		return 0;
	}
	err = census_name_type(names, row->word, &name);
	if (err)
		return err;
	if (name.offset && strcmp(name.kind, "class") != 0)
		snprintf(offset, sizeof(offset), "+0x%llx", (unsigned long long)name.offset);
	snprintf(text, CENSUS_TYPE_TEXT, "%s %s%s", name.kind, name.text[0] ? name.text : name.object,
		 offset);
	return 0;
}
