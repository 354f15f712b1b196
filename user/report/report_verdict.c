/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the verdict on a process as a sentence, so that all outputs have the same words, sums and place. */
#include "user/report/report_verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "user/heap/misuse.h"
#include "user/heap/trend.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/report/estimate.h"
#include "user/report/report_residence.h"
#include "user/scan/leaks.h"
#include "user/source/source.h"
#include "user/target/target.h"

enum {
	MAX_LOOKED_AT = 64, /* callers whose places are added up, the largest first */
	MIN_GROWTH =
		64 << 10, /* bytes; less than this, or than a twentieth, is no growth for the first line */
	GROWTH_PERMILLE = 50,
	REASON_MAX = 400,
};

static const u64 minute_ns = 60ULL * 1000 * 1000 * 1000;
static const u64 short_life_ns = 10ULL * 1000 * 1000 * 1000;

static __printf(2, 3) void verdict_add(struct report_verdict *v, const char *fmt, ...)
{
	size_t used = strlen(v->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->text + used, sizeof(v->text) - used, fmt, ap);
	va_end(ap);
}

static void verdict_add_sum(struct report_verdict *v, const struct report_process *p,
			    const struct scan_sum *sum)
{
	const char *mark = HAS_SAMPLES && heap_sample_bytes(p->heap) && !leaks_by_books(p->leaks) ? "~" : "";

	verdict_add(v, "%s%s in %s%s block%s", mark, human_bytes(sum->bytes).text, mark,
		    human_count(sum->blocks).text, sum->blocks == 1 ? "" : "s");
}

/* ---- the place ---- */

/* A caller, and how many bytes of what the sentence is about are its. */
struct verdict_part {
	const struct report_row *row;
	u64 bytes;
};

static int verdict_compare(const void *a, const void *b)
{
	const struct verdict_part *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->row->id < y->row->id ? -1 : x->row->id > y->row->id;
}

/* The callers with bytes, the largest first, at most MAX_LOOKED_AT: *@list is owned by the caller. 0 or -ENOMEM. */
static int verdict_list_parts(const struct report_row *rows, size_t nr, enum row_number number,
			      struct verdict_part **list, size_t *nr_parts, u64 *all)
{
	struct verdict_part *parts = calloc(nr + 1, sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	*nr_parts = *all = 0;
	for (size_t i = 0; i < nr; i++) {
		u64 bytes = report_number(&rows[i], number);

		if (bytes)
			parts[(*nr_parts)++] = (struct verdict_part){ &rows[i], bytes };
		*all += bytes;
	}
	qsort(parts, *nr_parts, sizeof(*parts), verdict_compare);
	*nr_parts = *nr_parts < MAX_LOOKED_AT ? *nr_parts : MAX_LOOKED_AT;
	*list = parts;
	return 0;
}

/* Find the place that has most of @number. "" without one. */
static int verdict_find_place(struct report_holder *out, const struct report *r,
			      const struct report_process *p, const struct report_row *rows, size_t nr,
			      enum row_number number)
{
	auto_free struct verdict_part *parts = NULL;
	auto_free char(*places)[OWN_PLACE_MAX] = calloc(MAX_LOOKED_AT, sizeof(*places));
	size_t count, most = 0;
	u64 all;
	int err = places ? verdict_list_parts(rows, nr, number, &parts, &count, &all) : -ENOMEM;

	*out = (struct report_holder){ .share = "" };
	for (size_t i = 0; !err && i < count; i++) {
		size_t k = 0;

		err = own_code_name(r, p, parts[i].row->row.stack, places[i]);
		/* Callers of one place count together. */
		while (k < i && strcmp(places[k], places[i]) != 0)
			k++;
		if (k < i)
			parts[k].bytes += parts[i].bytes;
		if (parts[k].bytes > parts[most].bytes)
			most = k;
	}
	if (err || !count)
		return err;
	memcpy(out->place, places[most], sizeof(out->place));
	out->bytes = parts[most].bytes;
	out->all = all;
	out->share = parts[most].bytes >= all	    ? ""
		     : parts[most].bytes >= all / 2 ? "most of it "
						    : "the largest part ";
	return 0;
}

int report_holder(struct report_holder *out, const struct report *r, const struct report_process *p,
		  const struct report_row *rows, size_t nr)
{
	return verdict_find_place(out, r, p, rows, nr, ROW_LIVE_BYTES);
}

/* Append it: ", most of it from make_node (list.c:42)". */
static int verdict_add_place(struct report_verdict *v, const struct report *r, const struct report_process *p,
			     const struct report_row *rows, size_t nr, enum row_number number)
{
	struct report_holder holder;
	int err = verdict_find_place(&holder, r, p, rows, nr, number);

	if (!err && *holder.place)
		verdict_add(v, ", %sfrom %s", holder.share, holder.place);
	return err;
}

/* ---- the parts of the sentence ---- */

/* A sort key that asks for something else than leaks has its answer first. */
static int verdict_asked(struct report_verdict *v, const struct report *r, const struct report_process *p,
			 const struct report_row *rows, size_t nr)
{
	const char *asked = r->options.sort ? r->options.sort->name : "";
	struct heap_totals totals = heap_totals(p->heap);
	struct report_holder holder;
	int err = 0;

	if (!strcmp(asked, "peak")) {
		verdict_add(v, "peak %s", human_bytes(totals.peak_bytes).text);
		err = verdict_add_place(v, r, p, rows, nr, ROW_PEAK);
	} else if (!strcmp(asked, "temporary")) {
		verdict_add(v, "%s of %s blocks are temporary",
			    totals.temporary ? human_percent(totals.temporary, totals.allocs).text : "none",
			    human_count(totals.allocs).text);
		err = verdict_find_place(&holder, r, p, rows, nr, ROW_TEMPORARY);
		if (!err && *holder.place)
			verdict_add(v, ", %sfrom %s", *holder.share == 'm' ? "most of them " : holder.share,
				    holder.place);
	} else {
		return 0;
	}
	verdict_add(v, "; ");
	v->bad_at = strlen(v->text);
	return err;
}

/* Wrong releases may end the program, so they stand before leaks. */
static int verdict_wrong(struct report_verdict *v, const struct report *r, const struct report_process *p)
{
	struct misuse_counts counts = heap_misuse_counts(p->heap);
	char place[OWN_PLACE_MAX] = "";
	size_t nr;
	const struct misuse *list = heap_misuses(p->heap, &nr);
	const char *before = "";
	int err = 0;

	for (int i = 0; i < NR_MISUSES; i++) {
		if (!counts.of[i])
			continue;
		verdict_add(v, "%s%s %s", before, human_count(counts.of[i]).text,
			    misuse_what(i, counts.of[i]));
		before = ", ";
	}
	if (!*before)
		return 0;
	if (!IS_AGENT && nr && list->free_row != MISUSE_NO_ROW)
		err = own_code_name(r, p, heap_row_get(p->heap, list->free_row).stack, place);
	if (*place)
		verdict_add(v, ", %sin %s", nr > 1 ? "first " : "", place);
	v->nr_bad = strlen(v->text) - v->bad_at;
	verdict_add(v, "; ");
	return err;
}

/*
 * The sum is exact, and the share of a place an estimate: of the lost blocks that were sampled, unless some of the sum
 * is older than the trace.
 */
static int verdict_by_books(struct report_verdict *v, const struct report *r, const struct report_process *p,
			    const struct report_row *rows, size_t nr)
{
	const struct scan_sum *of = leaks_all(p->leaks)->of;
	const struct scan_sum lost = { of[SCAN_DEFINITE].blocks + of[SCAN_INDIRECT].blocks,
				       of[SCAN_DEFINITE].bytes + of[SCAN_INDIRECT].bytes };
	struct report_holder holder;
	u64 all;
	int err;

	verdict_add(v, "leaks %s in %s block%s by the allocator's books", human_bytes(lost.bytes).text,
		    human_count(lost.blocks).text, lost.blocks == 1 ? "" : "s");
	v->nr_bad = strlen(v->text) - v->bad_at;
	/* Of a window: its lost blocks stand for none of the others. */
	if (!heap_sample_bytes(p->heap)) {
		verdict_add(v, "%s", p->target->is_started ? "" : ", older ones included");
		return 0;
	}
	err = verdict_find_place(&holder, r, p, rows, nr, ROW_LOST_BYTES);
	if (err)
		return err;
	all = p->target->is_started || holder.all > lost.bytes ? holder.all : lost.bytes;
	if (!holder.all)
		verdict_add(v, "%s; none of these blocks was sampled",
			    p->target->is_started ? "" : ", older ones included");
	else if (!p->target->is_started)
		verdict_add(v, ", ~%.0f %% of it since the attach", 100 * (double)holder.all / (double)all);
	if (*holder.place)
		verdict_add(v, "; ~%.0f %% of it from %s", 100 * (double)holder.bytes / (double)all,
			    holder.place);
	return 0;
}

static int verdict_leaks(struct report_verdict *v, const struct report *r, const struct report_process *p,
			 const struct report_row *rows, size_t nr)
{
	const struct scan_sum *of = p->leaks->result.sums.of;

	if (!IS_AGENT && leaks_by_books(p->leaks))
		return verdict_by_books(v, r, p, rows, nr);
	verdict_add(v, "leaks %s",
		    estimate_lost(p->heap, of[SCAN_DEFINITE].bytes, of[SCAN_DEFINITE].blocks,
				  of[SCAN_INDIRECT].bytes, of[SCAN_INDIRECT].blocks)
			    .text);
	v->nr_bad = strlen(v->text) - v->bad_at;
	return IS_AGENT ? 0 : verdict_add_place(v, r, p, rows, nr, ROW_LOST_BYTES);
}

/* Were allocations lost, or can they be among what was lost? */
static bool verdict_lacks_blocks(const struct report_process *p)
{
	const struct losses lost = report_losses(p);

	return lost.allocs || lost.other > lost.abandoned;
}

/* Nothing is definitely lost. Say what else may be lost, so that nobody takes a doubt for an all-clear. */
static int verdict_none(struct report_verdict *v, const struct report *r, const struct report_process *p,
			const struct report_row *rows, size_t nr)
{
	const struct scan_sum *possible = &leaks_all(p->leaks)->of[SCAN_POSSIBLE];
	const struct scan_sum *unsure = &leaks_all(p->leaks)->of[SCAN_UNSURE];
	bool has_lost = !IS_AGENT && !leaks_by_books(p->leaks) && verdict_lacks_blocks(p);
	int err = 0;

	verdict_add(v, possible->blocks || unsure->blocks ? "no definite leaks" : "no leaks");
	/* An attach sees only the blocks that come later, unless the books have all. */
	if (p->target->is_started || p->is_replaced || leaks_by_books(p->leaks)) {
		verdict_add(v, "%s", has_lost ? " among the blocks that were seen" : "");
	} else {
		verdict_add(v, " among blocks %ssince the attach", has_lost ? "seen " : "");
		if (!IS_AGENT && p->lacks_books)
			verdict_add(v, " (no census can judge older ones)");
		else if (!IS_AGENT && !p->target->has_exited && !r->is_broken_off && !r->is_elsewhere)
			verdict_add(v, " (older ones: heaptap scan %d%s)", (int)p->target->pid,
				    r->goes_on ? " after this trace" : "");
	}
	if (possible->blocks) {
		verdict_add(v, "; ");
		verdict_add_sum(v, p, possible);
		verdict_add(v, " possibly leaked");
		err = IS_AGENT ? 0 : verdict_add_place(v, r, p, rows, nr, ROW_POSSIBLE_BYTES);
	}
	if (unsure->blocks) {
		verdict_add(v, "; ");
		verdict_add_sum(v, p, unsure);
		verdict_add(v, " unsure");
	}
	if (!IS_AGENT && p->leaks->suppressed.blocks) {
		verdict_add(v, "; ");
		verdict_add_sum(v, p, &p->leaks->suppressed);
		verdict_add(v, " suppressed");
	}
	return err;
}

static void verdict_missing(struct report_verdict *v, const struct report *r, const struct report_process *p)
{
	static const char prefix[] = "no leak verdict: ";
	const char *why = p->no_verdict ? p->no_verdict
			  : p->leaks	? p->leaks->why
					: "the memory was not searched";
	char text[REASON_MAX];

	if (!strncmp(why, prefix, sizeof(prefix) - 1))
		why += sizeof(prefix) - 1;
	verdict_add(v, "%s%s", prefix, escape_buf(text, sizeof(text), why));
	if (!IS_AGENT && !p->no_verdict && !p->leaks && r->may_be_scanned && !p->target->has_exited)
		verdict_add(v, " (heaptap scan %d does that)", (int)p->target->pid);
	v->nr_bad = strlen(v->text) - v->bad_at;
}

/* Memory that grows in no block is no leak, and still what the user came for. */
static void verdict_unheld(struct report_verdict *v, const struct report_process *p)
{
	const char *what;
	u64 bytes = IS_AGENT ? 0 : report_residence_unheld(p, &what);

	if (bytes)
		verdict_add(v, "; grew by %s in no block, most of it %s", human_bytes(bytes).text, what);
}

/* Does the low-water mark rise, and who makes it rise? */
static int verdict_growth(struct report_verdict *v, const struct report *r, const struct report_process *p,
			  const struct report_row *rows, size_t nr)
{
	struct report_holder holder;
	struct trend_growth g;
	u64 more;
	int err;

	if (IS_AGENT || p->saw_few || !p->trend || !heap_growth(p->heap, p->trend, &g) || g.after <= g.before)
		return 0;
	/* Most programs grow until they end: what they would have in a minute is no news. */
	if (p->target->is_started && p->target->has_exited && 3 * g.span_ns < short_life_ns)
		return 0;
	more = g.after - g.before;
	if (more < MIN_GROWTH || trend_permille(&g) < GROWTH_PERMILLE)
		return 0;
	verdict_add(
		v, "; grows by %s/min",
		estimate_bytes(p->heap, (u64)((double)more * (double)minute_ns / (double)g.span_ns)).text);
	err = verdict_find_place(&holder, r, p, rows, nr, ROW_GROWTH);
	/* A leak that grows is named once. */
	if (!err && *holder.place && !strstr(v->text + v->bad_at, holder.place))
		verdict_add(v, ", %sfrom %s", holder.share, holder.place);
	return err;
}

/* Few blocks were seen: what is live is known by the books of the allocator alone. */
static void verdict_add_few(struct report_verdict *v, const struct report_process *p)
{
	struct heap_totals totals = heap_totals(p->heap);
	bool has_books = p->leaks && leaks_by_books(p->leaks);
	struct scan_sum live = { totals.live_blocks, totals.live_bytes };

	if (has_books)
		live = (struct scan_sum){ 0 };
	for (int i = 0; has_books && i < NR_SCAN_VERDICTS; i++) {
		live.blocks += leaks_all(p->leaks)->of[i].blocks;
		live.bytes += leaks_all(p->leaks)->of[i].bytes;
	}
	if (!has_books && !live.blocks)
		return;
	verdict_add(v, "; ");
	verdict_add_sum(v, p, &live);
	verdict_add(v, has_books ? " live by the allocator's books" : " live of those seen");
}

static int verdict_add_live(struct report_verdict *v, const struct report *r, const struct report_process *p,
			    const struct report_row *rows, size_t nr)
{
	struct heap_totals totals = heap_totals(p->heap);
	size_t used = strlen(v->text);
	int err = verdict_growth(v, r, p, rows, nr);
	bool has_growth;

	if (err)
		return err;
	verdict_unheld(v, p);
	has_growth = v->text[used];
	if (!IS_AGENT && p->saw_few) {
		verdict_add_few(v, p);
		return 0;
	}
	if (totals.live_blocks)
		verdict_add(v, "; %s live in %s block%s", estimate_bytes(p->heap, totals.live_bytes).text,
			    estimate_count(p->heap, totals.live_blocks).text,
			    totals.live_blocks == 1 ? "" : "s");
	else if (!p->target->is_started && !totals.allocs)
		verdict_add(v, !IS_AGENT && verdict_lacks_blocks(p)
				       ? "; no allocation was seen"
				       : "; nothing was allocated since the attach");
	else
		verdict_add(v, "; nothing is live");
	if (IS_AGENT || p->leaks || has_growth || !totals.live_blocks)
		return 0;
	return verdict_add_place(v, r, p, rows, nr, ROW_LIVE_BYTES);
}

int report_verdict(struct report_verdict *v, const struct report *r, const struct report_process *p,
		   const struct report_row *rows, size_t nr)
{
	char why[REASON_MAX];
	int err = 0;

	*v = (struct report_verdict){ .nr_bad = 0 };
	if (!p->unwatched && !IS_AGENT)
		err = verdict_asked(v, r, p, rows, nr);
	if (!p->unwatched && !err)
		err = verdict_wrong(v, r, p);
	if (err)
		return err;
	if (p->unwatched) {
		verdict_add(v, "no verdict: nothing could be watched: %s",
			    escape_buf(why, sizeof(why), p->unwatched));
		v->nr_bad = strlen(v->text);
		return 0;
	}
	if (!p->leaks || !p->leaks->has_verdict) {
		verdict_missing(v, r, p);
	} else if (leaks_all(p->leaks)->of[SCAN_DEFINITE].blocks) {
		err = verdict_leaks(v, r, p, rows, nr);
		err = err ? err : verdict_growth(v, r, p, rows, nr);
		verdict_unheld(v, p);
		return err;
	} else {
		err = verdict_none(v, r, p, rows, nr);
	}
	return err ? err : verdict_add_live(v, r, p, rows, nr);
}

int report_verdict_of(struct report_verdict *v, const struct report *r, const struct report_process *p)
{
	auto_free struct report_row *rows = NULL;
	size_t nr;
	int err = report_rows(r, p, &rows, &nr, NULL);

	return err ? err : report_verdict(v, r, p, rows, nr);
}
