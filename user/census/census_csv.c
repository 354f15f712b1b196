/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The blocks of a census, one a line. */
#include "user/census/census_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/census/census_owners.h"
#include "user/census/census_types.h"
#include "user/lib/escape.h"

/* Names are looked up once for all blocks. */
struct csv_names {
	char **types; /* owned, with the texts; by type of a block; NULL = not asked for yet */
	struct census_owner_row *owners; /* owned */
	u32 *owner_of;			 /* owned; as census_owner_rows() has it */
};

static void names_fini(struct csv_names *n, const struct census *c)
{
	for (size_t i = 0; n->types && i < c->blocks.nr_types; i++)
		free(n->types[i]);
	free(n->types);
	free(n->owners);
	free(n->owner_of);
}

static int names_init(struct csv_names *n, const struct census *c, struct census_names *names)
{
	size_t nr_owners;

	*n = (struct csv_names){ .types = calloc(c->blocks.nr_types + 1, sizeof(*n->types)) };
	return n->types ? census_owner_rows(&n->owners, &nr_owners, c, names, &n->owner_of) : -ENOMEM;
}

/* "class zoo::Cat", "data x.so+0x10", or the kind of the first word. */
static int type_text(const struct census *c, struct census_names *names, u32 type, char **out)
{
	const struct census_type_row row = { .word = c->blocks.types[type].word,
					     .first = c->blocks.types[type].first };
	char text[CENSUS_TYPE_TEXT];
	int err = census_type_text(c, names, &row, text);

	*out = err ? NULL : strdup(text);
	return *out ? 0 : -ENOMEM;
}

static int print_names(FILE *out, const struct census *c, struct csv_names *n, struct census_names *names,
		       const struct census_block *b, const struct scan_block_info *info)
{
	char owner[CENSUS_OWNER_TEXT] = "";
	int err = 0;

	if (b->state == CENSUS_LIVE && !n->types[b->type])
		err = type_text(c, names, b->type, &n->types[b->type]);
	if (err)
		return err;
	if (info && n->owner_of && n->owner_of[info->index] != SCAN_NO_OWNER)
		census_owner_text(&n->owners[n->owner_of[info->index]], owner);
	putc(',', out);
	if (b->state == CENSUS_LIVE)
		escape_csv(out, n->types[b->type]);
	putc(',', out);
	if (owner[0])
		escape_csv(out, owner);
	putc('\n', out);
	return 0;
}

static int print_blocks(FILE *out, const struct census *c, const struct census_segment *s,
			struct csv_names *n, struct census_names *names)
{
	static const char *const states[] = {
		[CENSUS_LIVE] = "live",
		[CENSUS_CACHED] = "cached",
		[CENSUS_FAST] = "fast",
		[CENSUS_OWN] = "own",
	};
	int err = 0;

	for (size_t i = s->first; i < s->first + s->nr && !err; i++) {
		const struct census_block *b = &c->blocks.blocks[i];
		struct scan_block_info info = { .verdict = SCAN_NONE };
		bool is_judged = c->scan && b->state == CENSUS_LIVE && scan_find(c->scan, b->addr, &info);

		fprintf(out, "0x%" PRIx64 ",%" PRIu64 ",%s,", (u64)b->addr, (u64)b->size, states[b->state]);
		if (s->is_mapped)
			fputs("mapped", out);
		else
			fprintf(out, "%u", s->arena);
		fprintf(out, ",%s", is_judged ? scan_verdict_name(info.verdict) : "");
		err = print_names(out, c, n, names, b, is_judged ? &info : NULL);
	}
	return err;
}

int census_csv(FILE *out, const struct census *c, const struct census_report_options *o)
{
	struct csv_names n;
	int err = names_init(&n, c, o->names);

	fputs("address,size,state,arena,verdict,type,owner\n", out);
	for (size_t i = 0; i < c->blocks.nr_segments && !err; i++)
		err = print_blocks(out, c, &c->blocks.segments[i], &n, o->names);
	names_fini(&n, c);
	return err;
}
