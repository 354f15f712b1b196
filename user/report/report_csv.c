/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for tables: a line of CSV for each caller, below a line with the names of the columns. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/names/symbolize.h"
#include "user/report/caller_id.h"
#include "user/report/estimate.h"
#include "user/report/format.h"
#include "user/report/frames.h"
#include "user/report/report_rows.h"
#include "user/scan/scan.h"
#include "user/target/target.h"

static const enum scan_verdict verdicts[] = { SCAN_DEFINITE, SCAN_INDIRECT, SCAN_POSSIBLE, SCAN_REACHABLE,
					      SCAN_UNSURE };

static void report_csv_put_head(FILE *out)
{
	fputs("pid,process,id,function,family,allocs,frees,alloc_bytes,live_blocks,live_bytes,peak_bytes,"
	      "temporary",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		fprintf(out, ",%s_blocks,%s_bytes", scan_verdict_name(verdicts[i]),
			scan_verdict_name(verdicts[i]));
	fputs(",truncated,caller,file,line,module,stack,live_low,live_high\n", out);
}

static void put_text(FILE *out, const char *text)
{
	putc(',', out);
	if (text)
		escape_csv(out, text);
}

static void report_csv_put_numbers(FILE *out, const struct report_process *p, const struct report_row *row)
{
	const struct heap_row *h = &row->row;
	const u64 numbers[] = { h->allocs,     h->frees,      h->alloc_bytes, h->live_blocks,
				h->live_bytes, h->peak_bytes, h->temporary };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		fprintf(out, ",%" PRIu64, numbers[i]);
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
		const struct scan_sum *sum = &row->leaks.sums.of[verdicts[i]];

		if (p->leaks)
			fprintf(out, ",%" PRIu64 ",%" PRIu64, sum->blocks, sum->bytes);
		else
			fputs(",,", out); /* not zero: nobody has looked */
	}
}

/* The innermost frame in columns of its own. */
static void report_csv_put_caller(FILE *out, const struct report *r, struct report_frames *f)
{
	const struct symbol *s = f->nr ? f->list[0].symbol : NULL;
	const struct module *m = f->nr ? module_get(r->modules, f->list[0].ref.module) : NULL;

	put_text(out, s ? report_frame_name(f, r, 0) : NULL);
	put_text(out, s ? s->file : NULL);
	putc(',', out);
	if (s && s->line)
		fprintf(out, "%u", s->line);
	put_text(out, m ? module_name(m) : NULL);
}

/* All frames in one column, innermost first. */
static int report_csv_put_stack(FILE *out, const struct report *r, struct report_frames *f)
{
	auto_free char *text = NULL;
	size_t len;
	FILE *names = open_memstream(&text, &len);

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < f->nr; i++)
		fprintf(names, "%s%s", i ? " < " : "", report_frame_name(f, r, i));
	if (fclose(names))
		return -ENOMEM;
	put_text(out, text);
	return 0;
}

/* The interval of live bytes, if they are an estimate. */
static void report_csv_put_interval(FILE *out, const struct report_process *p, const struct report_row *row)
{
	struct heap_interval i = estimate_row(p->heap, &row->row, ESTIMATE_LIVE_BYTES);

	if (heap_sample_bytes(p->heap))
		fprintf(out, ",%" PRIu64 ",%" PRIu64 "\n", i.low, i.high);
	else
		fputs(",,\n", out);
}

static int report_csv_put_row(FILE *out, const struct report *r, const struct report_process *p,
			      const struct caller_ids *ids, const struct report_row *row,
			      struct report_frames *f)
{
	const struct alloc_fn *fn = report_alloc_fn(p, row);
	int err = report_frames(f, r, p, row);
	char id[CALLER_ID_TEXT];

	if (err)
		return err;
	fprintf(out, "%d", (int)p->target->pid);
	put_text(out, p->target->comm);
	caller_id_text(ids, row->id, id);
	put_text(out, id);
	put_text(out, fn->name);
	put_text(out, alloc_family_name(fn->family));
	report_csv_put_numbers(out, p, row);
	put_text(out, *f->mark ? f->mark : NULL);
	report_csv_put_caller(out, r, f);
	err = report_csv_put_stack(out, r, f);
	report_csv_put_interval(out, p, row);
	return err;
}

int report_csv(FILE *out, const struct report *r)
{
	struct report_frames f = { 0 };
	int err = 0;

	report_csv_put_head(out);
	for (size_t i = 0; i < r->nr_processes && !err; i++) {
		auto_free struct report_row *rows = NULL;
		struct caller_ids ids = { .list = NULL };
		size_t nr = 0;

		err = report_rows(r, &r->processes[i], &rows, &nr, NULL);
		if (!err)
			err = caller_ids_init(&ids, r, &r->processes[i]);
		for (size_t k = 0; k < nr && !err; k++)
			err = report_csv_put_row(out, r, &r->processes[i], &ids, &rows[k], &f);
		caller_ids_fini(&ids);
	}
	report_frames_fini(&f);
	return err ? err : flush_stream(out);
}
