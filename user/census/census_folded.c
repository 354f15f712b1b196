/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A census as folded stacks: the process, what its memory is, and by which type or arena. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/census/census_report.h"
#include "user/census/census_types.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"

/* A frame: neither the sign between frames nor a new line may be in it. */
static void census_folded_put_frame(FILE *out, const char *text)
{
	char copy[320];

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *p = copy; *p; p++)
		*p = *p == ';' ? ':' : *p;
	escape_text(out, copy);
}

static void census_folded_put_line(FILE *out, const struct census_report_options *o, const char *first,
				   const char *second, const char *third, u64 bytes)
{
	if (!bytes)
		return;
	census_folded_put_frame(out, o->comm);
	fprintf(out, ";%s", first);
	if (second) {
		putc(';', out);
		census_folded_put_frame(out, second);
	}
	if (third) {
		putc(';', out);
		census_folded_put_frame(out, third);
	}
	fprintf(out, " %" PRIu64 "\n", bytes);
}

static void put_type(FILE *out, const struct census_report_options *o, const struct census_type_row *row,
		     const struct census_name *name)
{
	char text[sizeof(name->text) + 64];

	snprintf(text, sizeof(text), "%s %s", name->kind, name->text[0] ? name->text : name->object);
	if (name->offset && strcmp(name->kind, "class") != 0)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "+0x%" PRIx64, name->offset);
	census_folded_put_line(out, o, "live", "in use", text, row->live.bytes - row->lost.bytes);
	census_folded_put_line(out, o, "live", "lost", text, row->lost.bytes);
}

/* The blocks without a type are what is left of all. */
static int put_types(FILE *out, const struct census *c, const struct census_report_options *o)
{
	auto_free struct census_type_row *rows = NULL;
	struct census_sum live = census_live(&c->blocks);
	u64 lost = 0;
	size_t nr = 0;
	int err = census_type_rows(&rows, &nr, c, true);

	if (c->scan) {
		struct scan_result r = scan_result(c->scan);

		lost = r.sums.of[SCAN_DEFINITE].bytes + r.sums.of[SCAN_INDIRECT].bytes;
	}
	for (size_t i = 0; i < nr && !err; i++) {
		struct census_name name;

		err = census_name_type(o->names, rows[i].word, &name);
		put_type(out, o, &rows[i], &name);
		live.bytes -= rows[i].live.bytes;
		lost -= rows[i].lost.bytes;
	}
	census_folded_put_line(out, o, "live", "in use", "no type", live.bytes - lost);
	census_folded_put_line(out, o, "live", "lost", "no type", lost);
	return err;
}

static void put_arena(FILE *out, const struct census_report_options *o, const struct census_arena *a,
		      size_t number)
{
	char name[32];

	snprintf(name, sizeof(name), "arena %zu", number);
	census_folded_put_line(out, o, "free", name, "in caches",
			       a->of[CENSUS_CACHED].bytes + a->of[CENSUS_FAST].bytes);
	census_folded_put_line(out, o, "free", name, "in bins", a->bins.bytes);
	census_folded_put_line(out, o, "free", name, "at the end", a->top_bytes);
	census_folded_put_line(out, o, "free", name, "pages", a->page_bytes);
	census_folded_put_line(out, o, "books", name, NULL, a->other_bytes + a->of[CENSUS_OWN].bytes);
	census_folded_put_line(out, o, "unknown", name, NULL, a->unknown_bytes + a->foreign_bytes);
}

int census_folded(FILE *out, const struct census *c, const struct census_report_options *o)
{
	int err = put_types(out, c, o);

	for (size_t i = 0; i < c->blocks.nr_arenas && !err; i++)
		put_arena(out, o, &c->blocks.arenas[i], i);
	return err;
}
