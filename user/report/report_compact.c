/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for scripts in little space, "heaptap-report/2": names and stacks once, and no zeros. */
#include <errno.h>
#include <stdlib.h>

#include "user/heap/stacks.h"
#include "user/lib/cleanup.h"
#include "user/lib/flush.h"
#include "user/lib/json.h"
#include "user/names/symbolize.h"
#include "user/report/compact_tables.h"
#include "user/report/format.h"
#include "user/report/report_json.h"
#include "user/report/report_rows.h"
#include "user/report/report_why.h"
#include "user/target/target.h"

/* A line for each point of a process, and for each caller. */
enum { FOLD_PROCESS = 3, FOLD_CALLERS = 4 };

/* One process while it is written. */
struct compact {
	struct json *j;
	struct compact_tables *tables;
	const struct report *report;
	const struct report_process *process;
	struct json_style style;
};

static void put_number(struct json *j, const char *key, u64 number)
{
	if (number)
		json_u64(j, key, number);
}

static void put_sum(struct json *j, const char *key, const struct scan_sum *sum)
{
	if (sum->blocks || sum->bytes)
		report_json_sum(j, key, sum);
}

static void put_numbers(struct json *j, const struct report_process *p, const struct report_row *row)
{
	const struct heap_row *h = &row->row;

	put_number(j, "allocs", h->allocs);
	put_number(j, "frees", h->frees);
	put_number(j, "alloc_bytes", h->alloc_bytes);
	put_number(j, "live_blocks", h->live_blocks);
	put_number(j, "live_bytes", h->live_bytes);
	put_number(j, "peak_bytes", h->peak_bytes);
	put_number(j, "temporary", h->temporary);
	put_number(j, "folded", h->nr_folded);
	if (p->reported && row->grown)
		json_s64(j, "grown", row->grown);
}

static int put_leaks(struct compact *c, const struct report_row *row)
{
	static const enum scan_verdict verdicts[] = { SCAN_DEFINITE, SCAN_INDIRECT, SCAN_POSSIBLE,
						      SCAN_REACHABLE, SCAN_UNSURE };

	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		put_sum(c->j, scan_verdict_name(verdicts[i]), &row->leaks.sums.of[verdicts[i]]);
	put_sum(c->j, "indirect_through", &row->leaks.through);
	put_sum(c->j, "suppressed", &row->leaks.suppressed);
	if (!row->why)
		return 0;
	return report_why_json(c->j, "why", c->report, c->process, &c->style, row->why);
}

static int put_row(struct compact *c, const struct report_row *row)
{
	const struct alloc_fn *fn = alloc_fn(heap_functions(c->process->heap), row->row.fn);
	const char *truncated;
	const struct stack *s = report_stack(c->process, row, &truncated);
	u32 number;
	int err = s ? compact_stack(c->tables, c->process, s, &number) : 0;

	if (err)
		return err;
	json_object_begin(c->j, NULL);
	report_json_id(c->j, "id", &c->style, row->id);
	if (s)
		json_u64(c->j, "backtrace", number);
	if (truncated)
		json_string(c->j, "truncated", truncated);
	json_string(c->j, "function", fn->name);
	json_string(c->j, "family", alloc_family_name(fn->family));
	err = report_json_place(c->j, c->report, c->process, row);
	put_numbers(c->j, c->process, row);
	if (!err && c->process->leaks)
		err = put_leaks(c, row);
	json_object_end(c->j);
	return err;
}

static int put_callers(struct compact *c)
{
	auto_free struct report_row *rows = NULL;
	size_t nr = 0;
	int err = report_rows(c->report, c->process, &rows, &nr, NULL);

	if (!err)
		err = report_json_sums(c->j, c->report, c->process, rows, nr);
	json_fold(c->j, FOLD_CALLERS);
	json_array_begin(c->j, "stacks");
	for (size_t i = 0; i < nr && !err; i++)
		err = put_row(c, &rows[i]);
	json_array_end(c->j);
	json_fold(c->j, FOLD_PROCESS);
	return err;
}

static int put_process(struct json *j, struct compact_tables *tables, const struct report *r,
		       const struct report_process *p)
{
	struct compact c = { j, tables, r, p, { .is_compact = true } };
	int err = caller_ids_init(&c.style.ids, r, p);

	json_object_begin(j, NULL);
	if (!err)
		err = report_json_process(j, r, p, &c.style);
	if (!err)
		err = put_callers(&c);
	json_object_end(j);
	caller_ids_fini(&c.style.ids);
	return err;
}

int report_compact(FILE *out, const struct report *r)
{
	struct compact_tables tables;
	struct json j;
	int err = 0;

	compact_tables_init(&tables, r);
	json_init(&j, out, FOLD_PROCESS);
	j.is_dense = true;
	json_object_begin(&j, NULL);
	json_string(&j, "schema", "heaptap-report/2");
	report_json_head(&j, r);
	json_array_begin(&j, "processes");
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = put_process(&j, &tables, r, &r->processes[i]);
	json_array_end(&j);
	if (!err)
		err = compact_tables_write(&j, &tables);
	report_json_tail(&j, r);
	json_object_end(&j);
	compact_tables_fini(&tables);
	return err ? err : flush_stream(out);
}
