/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leaks of a process in the report for people. */
#include "user/report/report_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/stacks.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/path.h"
#include "user/report/estimate.h"
#include "user/report/report_parts.h"
#include "user/report/report_why.h"
#include "user/scan/leaks.h"
#include "user/scan/leaks_suppress.h"

static void leak_row_head(struct text *t, const struct report_process *p, const struct report_row *row,
			  size_t number)
{
	const struct scan_sum *definite = &row->leaks.sums.of[SCAN_DEFINITE];
	const struct scan_sum *possible = &row->leaks.sums.of[SCAN_POSSIBLE];
	const struct scan_sum *through = &row->leaks.through;
	struct scan_sum lost = leaks_lost(&row->leaks);

	text_tone_begin(t, TONE_STRONG);
	fprintf(t->out, "#%-3zu ", number);
	if (lost.blocks)
		fprintf(t->out, "%s leaked", estimate_bytes(p->heap, definite->bytes).text);
	else
		fprintf(t->out, "%s possibly leaked", estimate_bytes(p->heap, possible->bytes).text);
	text_tone_end(t);
	if (HAS_SAMPLES && heap_sample_bytes(p->heap) && t->report->options.verbose)
		fputs(estimate_interval(heap_bytes_interval(p->heap, &row->row,
							    lost.blocks ? definite->bytes : possible->bytes))
			      .text,
		      t->out);
	if (lost.blocks)
		fprintf(t->out, " in %s block%s", estimate_count(p->heap, definite->blocks).text,
			plural(definite->blocks));
	if (through->blocks)
		fprintf(t->out, ", and with %s another %s in %s block%s",
			definite->blocks == 1 ? "it" : "them", estimate_bytes(p->heap, through->bytes).text,
			estimate_count(p->heap, through->blocks).text, plural(through->blocks));
	if (lost.blocks && possible->blocks)
		fprintf(t->out, ", possibly another %s", estimate_bytes(p->heap, possible->bytes).text);
	if (possible->blocks)
		fprintf(t->out, " in %s block%s", estimate_count(p->heap, possible->blocks).text,
			plural(possible->blocks));
	fputs(", by ", t->out);
	report_function(t->out, p, row->row.fn);
	putc('\n', t->out);
}

/* Name the holder of one block of @row with @verdict, as an example. */
int text_why(struct text *t, const struct report_process *p, const struct report_row *row,
	     enum scan_verdict verdict)
{
	if (!row->why || row->why->verdict != verdict || text_is_brief(t))
		return 0;
	return IS_AGENT ? 0 : report_why_text(t->out, t->report, p, row->why);
}

/* Possible leaks of the callers in one file. */
struct library {
	u32 module; /* number in the table of modules; 0 = no file */
	size_t nr_callers;
	struct scan_sum sum;
};

static struct library *find_library(struct library *list, size_t *nr, u32 module)
{
	for (size_t i = 0; i < *nr; i++)
		if (list[i].module == module)
			return &list[i];
	list[*nr] = (struct library){ .module = module };
	return &list[(*nr)++];
}

static int report_text_leaks_by_bytes(const void *a, const void *b)
{
	u64 left = ((const struct library *)a)->sum.bytes, right = ((const struct library *)b)->sum.bytes;

	return left < right ? 1 : left > right ? -1 : 0;
}

/* Possible leaks are often none: one line for each file that has some. 0 or -ENOMEM. */
static int text_possible(struct text *t, const struct report_process *p, const struct report_row *rows,
			 size_t nr)
{
	auto_free struct library *list = nr ? calloc(nr, sizeof(*list)) : NULL;
	size_t nr_libraries = 0;

	if (!nr)
		return 0;
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const char *truncated;
		const struct stack *stack = report_stack(p, &rows[i], &truncated);
		u32 module = stack && stack->nr_frames ? stack->frames[0].module : 0;
		struct library *l = find_library(list, &nr_libraries, module);

		l->nr_callers++;
		l->sum.blocks += rows[i].leaks.sums.of[SCAN_POSSIBLE].blocks;
		l->sum.bytes += rows[i].leaks.sums.of[SCAN_POSSIBLE].bytes;
	}
	qsort(list, nr_libraries, sizeof(*list), report_text_leaks_by_bytes);
	fputs("\nPossibly leaked (-v lists the callers)\n"
	      "  Pointers lead only into the middle of these blocks: in use, or lost.\n",
	      t->out);
	for (size_t i = 0; i < nr_libraries; i++) {
		const struct module *m = module_get(t->report->modules, list[i].module);

		fputs("  ", t->out);
		escape_text(t->out, m ? path_name(module_name(m)) : "code in no file");
		fprintf(t->out, ": %s in %s block%s of %s caller%s\n",
			estimate_bytes(p->heap, list[i].sum.bytes).text,
			estimate_count(p->heap, list[i].sum.blocks).text, plural(list[i].sum.blocks),
			human_count(list[i].nr_callers).text, plural(list[i].nr_callers));
	}
	return 0;
}

/* Move rows with definite leaks to the front, in their order. Returns how many there are. */
static size_t definite_first(struct report_row *rows, size_t nr, struct report_row *others)
{
	size_t nr_definite = 0, nr_others = 0;

	for (size_t i = 0; i < nr; i++) {
		if (rows[i].leaks.sums.of[SCAN_DEFINITE].blocks)
			rows[nr_definite++] = rows[i];
		else
			others[nr_others++] = rows[i];
	}
	memcpy(rows + nr_definite, others, nr_others * sizeof(*rows));
	return nr_definite;
}

static int text_leak_rows(struct text *t, struct section *s, struct report_row *leaks, size_t count)
{
	const struct report_key *key = report_key_find("leaked-bytes");
	int err = text_is_brief(t) ? text_merge(t, s->process, leaks, &count, key) : 0;
	size_t shown = text_room(t, s->nr_shown, count);

	if (err || !shown)
		return err;
	if (shown < count)
		fprintf(t->out, "\nTop %zu of %s callers with leaks\n", shown, human_count(count).text);
	else if (count)
		fprintf(t->out, "\n%s caller%s with leaks\n", human_count(count).text, plural(count));
	for (size_t i = 0; i < shown && !err; i++) {
		if (!text_is_brief(t))
			putc('\n', t->out);
		leak_row_head(t, s->process, &leaks[i], ++s->nr_shown);
		err = text_row(t, s->process, &leaks[i], s->nr_shown, &s->anchors);
		if (!err)
			err = text_why(t, s->process, &leaks[i], SCAN_POSSIBLE);
	}
	return err;
}

int text_leaks(struct text *t, struct section *s, const struct report_row *rows, size_t nr,
	       const struct report_key *key)
{
	auto_free struct report_row *leaks = NULL;
	auto_free struct report_row *others = NULL;
	size_t count, nr_listed;
	int err = report_leak_rows(rows, nr, key, &leaks, &count);

	if (err || !count)
		return err;
	others = calloc(count, sizeof(*others));
	if (!others)
		return -ENOMEM;
	/* A reader who sorts by leaks, or asks for all, wants to see the callers. */
	nr_listed =
		t->report->options.verbose || key->wants_scan ? count : definite_first(leaks, count, others);
	err = text_leak_rows(t, s, leaks, nr_listed);
	/* The answer has their sum. */
	if (text_is_brief(t))
		return err;
	return err ? err : text_possible(t, s->process, leaks + nr_listed, count - nr_listed);
}

int text_suppressions(struct text *t, const struct report_process *p)
{
	const struct report *r = t->report;
	const struct leaks_names names = { p->heap, p->stacks, r->modules, r->symbolizer };

	if (!r->options.gen_suppressions || !p->leaks)
		return 0;
	putc('\n', t->out);
	return leaks_write_suppressions(t->out, p->leaks, &names);
}
