/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The census for scripts. */
#include <stdlib.h>

#include "user/census/census_owners.h"
#include "user/census/census_report.h"
#include "user/census/census_sizes.h"
#include "user/census/census_types.h"
#include "user/census/census_walk.h"
#include "user/census/census_why.h"
#include "user/census/census_why_type.h"
#include "user/lib/cleanup.h"
#include "user/lib/json.h"
#include "user/report/report_hint.h"
#include "user/report/report_json.h"

void census_sum_json(struct json *j, const char *key, struct census_sum sum)
{
	json_object_begin(j, key);
	json_u64(j, "blocks", sum.blocks);
	json_u64(j, "bytes", sum.bytes);
	json_object_end(j);
}

static void json_arena(struct json *j, const struct census_arena *a)
{
	json_object_begin(j, NULL);
	json_hex(j, "address", a->addr);
	json_u64(j, "system_bytes", a->system_bytes);
	census_sum_json(j, "live", a->of[CENSUS_LIVE]);
	census_sum_json(j, "bins", a->bins);
	census_sum_json(j, "fast", a->of[CENSUS_FAST]);
	census_sum_json(j, "cached", a->of[CENSUS_CACHED]);
	census_sum_json(j, "own", a->of[CENSUS_OWN]);
	json_u64(j, "top_bytes", a->top_bytes);
	json_u64(j, "page_bytes", a->page_bytes);
	json_u64(j, "unknown_bytes", a->unknown_bytes);
	json_u64(j, "foreign_bytes", a->foreign_bytes);
	json_u64(j, "other_bytes", a->other_bytes);
	json_u64(j, "parts", a->nr_segments);
	json_bool(j, "locked", a->is_locked);
	json_object_end(j);
}

static void json_memory(struct json *j, const struct census *c)
{
	const struct census_blocks *b = &c->blocks;

	json_array_begin(j, "allocators");
	for (u32 i = 0; i < c->nr_allocators; i++) {
		json_object_begin(j, NULL);
		json_string(j, "name", c->allocators[i].name);
		json_string(j, "version", c->allocators[i].version[0] ? c->allocators[i].version : NULL);
		census_sum_json(j, "live", c->allocators[i].live);
		json_object_end(j);
	}
	json_array_end(j);
	json_string(j, "not_listed", c->stranger);
	census_sum_json(j, "live", census_live(b));
	json_u64(j, "free_bytes", census_free_bytes(b));
	json_u64(j, "unknown_bytes", census_unknown_bytes(b));
	json_object_begin(j, "mapped");
	json_u64(j, "blocks", b->mapped.blocks);
	json_u64(j, "bytes", b->mapped.bytes);
	json_u64(j, "mapping_bytes", b->mapped_bytes);
	json_object_end(j);
	json_array_begin(j, "arenas");
	for (size_t i = 0; i < b->nr_arenas; i++)
		json_arena(j, &b->arenas[i]);
	json_array_end(j);
}

static void json_core(struct json *j, const struct census *c)
{
	if (!c->is_core) {
		json_null(j, "core");
		return;
	}
	json_object_begin(j, "core");
	json_u64(j, "truncated_bytes", c->core.truncated_bytes);
	json_u64(j, "missing_bytes", c->core.missing_bytes);
	json_u64(j, "files_missing", c->core.nr_files_missing);
	json_bool(j, "registers", c->core.has_registers);
	json_bool(j, "may_have_gaps", c->core.may_have_gaps);
	json_u64(j, "threads", c->snap->nr_threads);
	json_object_end(j);
}

static void json_verdicts(struct json *j, const struct census *c)
{
	struct scan_result r;

	if (!c->scan) {
		json_null(j, "scan");
		json_string(j, "no_verdict", c->why);
		return;
	}
	r = scan_result(c->scan);
	json_object_begin(j, "scan");
	for (enum scan_verdict v = SCAN_REACHABLE; v < NR_SCAN_VERDICTS; v++)
		report_json_sum(j, scan_verdict_name(v), &r.sums.of[v]);
	json_u64(j, "scanned_bytes", r.scanned_bytes);
	json_u64(j, "skipped_bytes", r.skipped_bytes);
	report_hint_json(j, &r);
	json_object_end(j);
}

static int json_leaks(struct json *j, const struct census *c)
{
	auto_free struct scan_block_info *leaders = NULL;
	size_t nr = 0;
	int err = c->scan ? scan_leaders(c->scan, &leaders, &nr) : 0;

	if (err)
		return err;
	json_array_begin(j, "leaks");
	for (size_t i = 0; i < nr; i++) {
		json_object_begin(j, NULL);
		json_hex(j, "address", leaders[i].addr);
		json_u64(j, "size", leaders[i].size);
		census_sum_json(j, "indirect",
				(struct census_sum){ leaders[i].indirect_blocks, leaders[i].indirect_bytes });
		json_object_end(j);
	}
	json_array_end(j);
	return 0;
}

static int json_sizes(struct json *j, const struct census *c)
{
	auto_free struct census_size *sizes = NULL;
	size_t nr = 0;
	int err = census_sizes(&sizes, &nr, c);

	if (err)
		return err;
	json_array_begin(j, "sizes");
	for (size_t i = 0; i < nr; i++) {
		json_object_begin(j, NULL);
		json_u64(j, "size", sizes[i].size);
		census_sum_json(j, "live", sizes[i].live);
		census_sum_json(j, "lost", sizes[i].lost);
		json_object_end(j);
	}
	json_array_end(j);
	return 0;
}

static int json_types(struct json *j, const struct census *c, struct census_names *names)
{
	auto_free struct census_type_row *rows = NULL;
	size_t nr = 0;
	int err = census_type_rows(&rows, &nr, c, true);

	if (err)
		return err;
	json_array_begin(j, "types");
	for (size_t i = 0; i < nr && !err; i++) {
		struct census_name name;

		err = census_name_type(names, rows[i].word, &name);
		json_object_begin(j, NULL);
		json_hex(j, "address", rows[i].word);
		json_string(j, "kind", name.kind);
		json_string(j, "name", name.text[0] ? name.text : NULL);
		json_string(j, "object", name.object[0] ? name.object : NULL);
		json_hex(j, "offset", name.offset);
		census_sum_json(j, "live", rows[i].live);
		census_sum_json(j, "lost", rows[i].lost);
		json_object_end(j);
	}
	json_array_end(j);
	return err;
}

static int json_owners(struct json *j, const struct census *c, struct census_names *names)
{
	auto_free struct census_owner_row *rows = NULL;
	size_t nr = 0;
	int err = census_owner_rows(&rows, &nr, c, names, NULL);

	if (err)
		return err;
	json_array_begin(j, "owners");
	for (size_t i = 0; i < nr; i++) {
		json_object_begin(j, NULL);
		json_string(j, "kind", rows[i].name.kind);
		json_string(j, "name", rows[i].name.text[0] ? rows[i].name.text : NULL);
		json_string(j, "object", rows[i].name.object[0] ? rows[i].name.object : NULL);
		census_sum_json(j, "held", rows[i].held);
		json_object_end(j);
	}
	json_array_end(j);
	return 0;
}

/* First words of blocks that have no type. */
static int json_first_words(struct json *j, const struct census *c)
{
	auto_free struct census_type_row *rows = NULL;
	size_t nr = 0;
	int err = census_type_rows(&rows, &nr, c, false);

	if (err)
		return err;
	json_array_begin(j, "first_words");
	for (size_t i = 0; i < nr; i++) {
		char text[CENSUS_FIRST_TEXT];

		census_row_text(c, &rows[i], text);
		json_object_begin(j, NULL);
		json_string(j, "kind", census_first_name(rows[i].first));
		json_string(j, "text", text[0] ? text : NULL);
		census_sum_json(j, "live", rows[i].live);
		census_sum_json(j, "lost", rows[i].lost);
		json_object_end(j);
	}
	json_array_end(j);
	return 0;
}

static void json_resident(struct json *j, const struct census *c)
{
	const struct residence *r = &c->resident;

	if (!r->rss) {
		json_null(j, "resident");
		return;
	}
	json_object_begin(j, "resident");
	json_u64(j, "rss", r->rss);
	for (int i = 0; i < NR_RESIDENT_PARTS; i++)
		json_u64(j, residence_key(i), r->of[i]);
	json_u64(j, "ended_stacks", r->ended);
	json_u64(j, "ended_threads", r->nr_ended);
	if (c->has_free_resident)
		json_u64(j, "free", c->free_resident);
	json_u64(j, "swapped", r->swapped);
	json_u64(j, "huge", r->huge);
	json_u64(j, "page_tables", r->page_tables);
	json_object_end(j);
}

static void json_notes(struct json *j, const struct census *c)
{
	const struct census_blocks *b = &c->blocks;

	json_u64(j, "nr_notes", b->nr_notes);
	json_array_begin(j, "notes");
	for (size_t i = 0; i < b->nr_notes && i < CENSUS_MAX_NOTES; i++) {
		json_object_begin(j, NULL);
		json_hex(j, "address", b->notes[i].addr);
		json_string(j, "text", b->notes[i].text);
		json_object_end(j);
	}
	json_array_end(j);
}

int census_json(FILE *out, const struct census *c, const struct census_report_options *o)
{
	struct json j;
	int err;

	json_init(&j, out, 2);
	json_object_begin(&j, NULL);
	json_string(&j, "schema", "heaptap-census/1");
	json_string(&j, "version", HEAPTAP_VERSION);
	json_u64(&j, "pid", (u64)c->pid);
	json_string(&j, "comm", o->comm);
	json_u64(&j, "word_bits", c->word_size * 8U);
	json_u64(&j, "pause_ns", c->pause_ns);
	json_bool(&j, "copied", c->is_copied);
	json_core(&j, c);
	json_memory(&j, c);
	json_resident(&j, c);
	json_verdicts(&j, c);
	err = json_leaks(&j, c);
	if (!err)
		err = json_owners(&j, c, o->names);
	if (!err)
		err = json_types(&j, c, o->names);
	if (!err)
		err = json_first_words(&j, c);
	if (!err)
		err = json_sizes(&j, c);
	if (!err && o->why_addr)
		err = census_why_json(&j, c, o->names, o->why_addr);
	if (!err && o->why_type)
		err = census_why_type_json(&j, c, o->names, o->why_type, o->top);
	if (!err && o->baseline)
		err = census_baseline_json(&j, o->baseline, c, o->names);
	if (o->known)
		census_known_json(&j, o->known);
	json_notes(&j, c);
	json_object_end(&j);
	putc('\n', out);
	return err;
}
