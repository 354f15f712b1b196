/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins the owners of all blocks of a type, and shows one chain for each. */
#include "user/census/census_why_type.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/census/census_owners.h"
#include "user/census/census_types.h"
#include "user/census/census_why.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"

enum { MAX_SHOWN = 100 }; /* owners with a chain, each of which takes a search */

/* The blocks of the type that one owner holds. */
struct type_holder {
	struct census_sum held;
	taddr_t example; /* a block that it holds */
	u32 owner;	 /* index in owners */
};

struct type_holders {
	bool *is_wanted; /* owned; by type of a block */
	bool is_any;	 /* a type has this name */
	struct census_sum live, lost;
	taddr_t lost_example;		 /* 0 = none */
	struct census_owner_row *owners; /* owned */
	u32 *owner_of;			 /* owned; as census_owner_rows() has it */
	struct type_holder *holders;	 /* owned; those with the most bytes first */
	size_t nr;
};

static void holders_fini(struct type_holders *t)
{
	free(t->is_wanted);
	free(t->owners);
	free(t->owner_of);
	free(t->holders);
}

/* The name of a type without the word for its kind: "zoo::Cat" of "class zoo::Cat". */
static const char *bare_name(const char *text)
{
	const char *blank = strchr(text, ' ');

	return blank ? blank + 1 : text;
}

/* Choose the types of this name, or those that contain it. */
static int choose_types(struct type_holders *t, const struct census *c, struct census_names *n,
			const char *name, bool is_part)
{
	const struct census_blocks *b = &c->blocks;

	for (size_t i = 0; i < b->nr_types; i++) {
		const struct census_type_row row = { .word = b->types[i].word, .first = b->types[i].first };
		char text[CENSUS_TYPE_TEXT];
		int err = b->types[i].live.blocks ? census_type_text(c, n, &row, text) : 0;

		if (err)
			return err;
		if (!b->types[i].live.blocks)
			continue;
		t->is_wanted[i] = !strcmp(text, name) || !strcmp(bare_name(text), name) ||
				  (is_part && strstr(text, name));
		t->is_any |= t->is_wanted[i];
	}
	return 0;
}

static void census_why_type_add_block(struct type_holders *t, const struct census_block *b,
				      const struct scan_block_info *info)
{
	u32 owner = t->owner_of ? t->owner_of[info->index] : SCAN_NO_OWNER;
	struct type_holder *holder = owner == SCAN_NO_OWNER ? NULL : &t->holders[owner];

	t->live.blocks++;
	t->live.bytes += b->size;
	if (info->verdict == SCAN_DEFINITE || info->verdict == SCAN_INDIRECT) {
		t->lost.blocks++;
		t->lost.bytes += b->size;
		t->lost_example = t->lost_example ? t->lost_example : b->addr;
	}
	if (!holder)
		return;
	holder->example = holder->example ? holder->example : b->addr;
	holder->held.blocks++;
	holder->held.bytes += b->size;
}

static int census_why_type_by_bytes(const void *a, const void *b)
{
	const struct type_holder *x = a, *y = b;

	if (x->held.bytes != y->held.bytes)
		return x->held.bytes < y->held.bytes ? 1 : -1;
	return (x->owner > y->owner) - (x->owner < y->owner);
}

/* Sum up the blocks of the chosen types by owner. */
static int add_up(struct type_holders *t, const struct census *c, struct census_names *n)
{
	size_t nr_owners;
	int err = census_owner_rows(&t->owners, &nr_owners, c, n, &t->owner_of);

	if (err)
		return err;
	t->holders = calloc(nr_owners + 1, sizeof(*t->holders));
	if (!t->holders)
		return -ENOMEM;
	for (size_t i = 0; i < nr_owners; i++)
		t->holders[i].owner = (u32)i;
	for (size_t i = 0; i < c->blocks.nr; i++) {
		const struct census_block *b = &c->blocks.blocks[i];
		struct scan_block_info info;

		if (b->state == CENSUS_LIVE && t->is_wanted[b->type] && scan_find(c->scan, b->addr, &info))
			census_why_type_add_block(t, b, &info);
	}
	if (nr_owners)
		qsort(t->holders, nr_owners, sizeof(*t->holders), census_why_type_by_bytes);
	while (t->nr < nr_owners && t->holders[t->nr].held.blocks)
		t->nr++;
	return 0;
}

static int find_holders(struct type_holders *t, const struct census *c, struct census_names *n,
			const char *name)
{
	int err;

	*t = (struct type_holders){ .is_wanted = calloc(c->blocks.nr_types + 1, sizeof(bool)) };
	if (!t->is_wanted)
		return -ENOMEM;
	err = choose_types(t, c, n, name, false);
	if (!err && !t->is_any)
		err = choose_types(t, c, n, name, true);
	return err || !t->is_any || !c->scan ? err : add_up(t, c, n);
}

static size_t nr_shown(const struct type_holders *t, u32 top)
{
	size_t most = top && top < MAX_SHOWN ? top : MAX_SHOWN;

	return most < t->nr ? most : t->nr;
}

static void census_why_type_print_sum(FILE *out, struct census_sum sum)
{
	fprintf(out, "%s in %s block%s", human_bytes(sum.bytes).text, human_count(sum.blocks).text,
		sum.blocks == 1 ? "" : "s");
}

static int print_holder(FILE *out, const struct census *c, struct census_names *n,
			const struct type_holders *t, const struct type_holder *holder)
{
	char text[CENSUS_OWNER_TEXT];

	census_owner_text(&t->owners[holder->owner], text);
	fputs("\n  ", out);
	census_why_type_print_sum(out, holder->held);
	fprintf(out, " held by %s, for example:\n", text);
	return census_why_text(out, c, n, holder->example);
}

int census_why_type_text(FILE *out, const struct census *c, struct census_names *n, const char *type, u32 top)
{
	struct type_holders t;
	int err = find_holders(&t, c, n, type);
	size_t shown = nr_shown(&t, top);

	if (!err) {
		fputs("Who holds blocks of ", out);
		escape_text(out, type);
		if (t.is_any && c->scan) {
			fputs(": ", out);
			census_why_type_print_sum(out, t.live);
		} else {
			fputs(t.is_any ? ": no verdict, so this is not known"
				       : ": no live block begins so (only classes with virtual "
					 "functions have a name; heaptap scan lists them)",
			      out);
		}
		putc('\n', out);
	}
	for (size_t i = 0; i < shown && !err; i++)
		err = print_holder(out, c, n, &t, &t.holders[i]);
	if (!err && shown < t.nr)
		fprintf(out, "\n  ... and %s more owners\n", human_count(t.nr - shown).text);
	if (!err && t.lost.blocks) {
		fputs("\n  ", out);
		census_why_type_print_sum(out, t.lost);
		fputs(" held by nothing, for example:\n", out);
		err = census_why_text(out, c, n, t.lost_example);
	}
	holders_fini(&t);
	return err;
}

int census_why_type_json(struct json *j, const struct census *c, struct census_names *n, const char *type,
			 u32 top)
{
	struct type_holders t;
	int err = find_holders(&t, c, n, type);
	size_t shown = nr_shown(&t, top);

	if (err) {
		holders_fini(&t);
		return err;
	}
	json_object_begin(j, "why_type");
	json_string(j, "type", type);
	json_bool(j, "found", t.is_any);
	census_sum_json(j, "live", t.live);
	census_sum_json(j, "lost", t.lost);
	json_u64(j, "nr_owners", t.nr);
	json_array_begin(j, "owners");
	for (size_t i = 0; i < shown && !err; i++) {
		const struct census_name *name = &t.owners[t.holders[i].owner].name;

		json_object_begin(j, NULL);
		json_string(j, "kind", name->kind);
		json_string(j, "name", name->text[0] ? name->text : NULL);
		json_string(j, "object", name->object[0] ? name->object : NULL);
		census_sum_json(j, "held", t.holders[i].held);
		err = census_why_json(j, c, n, t.holders[i].example);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
	holders_fini(&t);
	return err;
}
