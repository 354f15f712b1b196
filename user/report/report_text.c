/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for people. */
#include "user/report/report_text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/wrap.h"
#include "user/report/estimate.h"
#include "user/report/report_hint.h"
#include "user/report/report_parts.h"
#include "user/report/report_residence.h"
#include "user/report/report_verdict.h"
#include "user/report/report_why.h"
#include "user/scan/leaks.h"
#include "user/source/source.h"
#include "user/heap/stacks.h"
#include "user/names/symbolize.h"
#include "user/target/target.h"
#include "user/heap/trend.h"
#include "user/report/format.h"

/* The answer with which the report for people begins: at most two sentences that a reader can quote. */

/* Why the numbers are not exact, if they are not. */
static void doubt_line(struct text *t, const struct report_process *p)
{
	struct losses lost = report_losses(p);
	u64 nr_lost = lost.allocs + lost.frees;

	if (!nr_lost)
		return;
	text_tone_begin(t, TONE_WARN);
	if (!IS_AGENT && (lost.cramped || lost.twins))
		fputs("not exact: later calls were not seen", t->out);
	else
		fprintf(t->out, "not exact: %s event%s lost", human_count(nr_lost).text,
			nr_lost == 1 ? " was" : "s were");
	text_tone_end(t);
	putc('\n', t->out);
}

/* Are the lost blocks held by pointers that heaptap was not told how to read? */
static void tagged_line(struct text *t, const struct report_process *p)
{
	char text[REPORT_HINT_TEXT] = "";

	if (p->leaks && p->leaks->has_verdict)
		report_hint_tagged(text, &p->leaks->result);
	if (*text)
		fprintf(t->out, "%s\n", text);
}

/* The answer in one or two lines: leaks, or none, or what prevents a verdict; wrong releases, losses. 0 or -ENOMEM. */
static int text_verdict(struct text *t, const struct report_process *p, const struct report_row *rows,
			size_t nr)
{
	struct report_verdict v;
	int err = report_verdict(&v, t->report, p, rows, nr);

	if (err)
		return err;
	fwrite(v.text, 1, v.bad_at, t->out);
	if (v.nr_bad)
		text_tone_begin(t, TONE_WARN);
	fwrite(v.text + v.bad_at, 1, v.nr_bad, t->out);
	if (v.nr_bad)
		text_tone_end(t);
	fprintf(t->out, "%s\n", v.text + v.bad_at + v.nr_bad);
	if (!p->unwatched)
		doubt_line(t, p);
	if (!IS_AGENT)
		tagged_line(t, p);
	if (p->ending) {
		escape_text(t->out, p->ending);
		putc('\n', t->out);
	}
	return 0;
}

enum {
	DEFAULT_WIDTH = 100,
	LABEL_WIDTH = 14, /* where the text of a line of the head begins */
	MAX_ITEM_BYTES = PATH_MAX + 128,
};

/* "; 3 blocks definite, 2 possible" */
static void text_mark(struct text *t, const struct heap *heap, const struct leak_row *row)
{
	static const enum scan_verdict verdicts[] = { SCAN_DEFINITE, SCAN_INDIRECT, SCAN_POSSIBLE,
						      SCAN_UNSURE };
	const char *before = "; leaked: ";

	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
		u64 blocks = row->sums.of[verdicts[i]].blocks;

		if (!blocks)
			continue;
		if (verdicts[i] == SCAN_UNSURE)
			before = *before == ';' ? "; " : ", ";
		fprintf(t->out, "%s%s %s", before, estimate_count(heap, blocks).text,
			scan_verdict_name(verdicts[i]));
		before = ", ";
	}
}

static void text_row_head(struct text *t, const struct report_process *p, const struct heap_totals *totals,
			  const struct report_row *row, size_t number, const struct report_key *key)
{
	const struct heap_row *h = &row->row;
	bool is_of_live = key->is_of_live;
	u64 bytes = is_of_live ? h->live_bytes : h->alloc_bytes;
	u64 blocks = is_of_live ? h->live_blocks : h->allocs;
	u64 whole = is_of_live ? totals->live_bytes : totals->alloc_bytes;

	text_tone_begin(t, TONE_STRONG);
	fprintf(t->out, "#%-3zu ", number);
	if (key->label)
		fprintf(t->out, "%s %s, ", key->human((u64)report_key_value(key, row)).text, key->label);
	fputs(estimate_bytes(p->heap, bytes).text, t->out);
	text_tone_end(t);
	if (HAS_SAMPLES && heap_sample_bytes(p->heap) && t->report->options.verbose)
		fputs(estimate_interval(estimate_row(p->heap, h,
						     is_of_live ? ESTIMATE_LIVE_BYTES : ESTIMATE_ALLOC_BYTES))
			      .text,
		      t->out);
	fprintf(t->out, " (%s) %s in %s block%s", human_percent(bytes, whole).text,
		is_of_live ? "live" : "allocated", estimate_count(p->heap, blocks).text, plural(blocks));
	if (is_of_live && h->allocs != h->live_blocks)
		fprintf(t->out, " of %s (%s)", estimate_count(p->heap, h->allocs).text,
			estimate_bytes(p->heap, h->alloc_bytes).text);
	else if (!is_of_live && h->live_blocks)
		fprintf(t->out, ", %s in %s live", estimate_bytes(p->heap, h->live_bytes).text,
			estimate_count(p->heap, h->live_blocks).text);
	if (p->reported && row->grown && strcmp(key->name, "growth"))
		fprintf(t->out, ", %s%s since the last report", row->grown < 0 ? "-" : "+",
			estimate_bytes(p->heap, row->grown < 0 ? -row->grown : row->grown).text);
	fputs(", by ", t->out);
	report_function(t->out, p, h->fn);
	text_mark(t, p->heap, &row->leaks);
	putc('\n', t->out);
}

/* Sum up the rows that are not shown. */
static void text_rest(struct text *t, const struct heap *heap, const struct heap_totals *totals,
		      const struct report_row *rows, size_t nr, const struct report_key *key)
{
	u64 bytes = 0;

	if (!nr)
		return;
	if (!text_is_brief(t))
		putc('\n', t->out);
	for (size_t i = 0; i < nr; i++)
		bytes += key->is_of_live ? rows[i].row.live_bytes : rows[i].row.alloc_bytes;
	fprintf(t->out, "%s more caller%s: %s (%s) %s\n", human_count(nr).text, plural(nr),
		estimate_bytes(heap, bytes).text,
		human_percent(bytes, key->is_of_live ? totals->live_bytes : totals->alloc_bytes).text,
		key->is_of_live ? "live" : "allocated");
}

static void text_rows_title(struct text *t, size_t shown, size_t nr, const struct report_key *key,
			    size_t nr_lost)
{
	if (nr_lost)
		fputs("Still in use: ", t->out);
	if (shown < nr)
		fprintf(t->out, "%s %zu of %s callers by %s", nr_lost ? "top" : "Top", shown,
			human_count(nr).text, key->what);
	else
		fprintf(t->out, "%s caller%s by %s", human_count(nr).text, plural(nr), key->what);
	if (nr_lost)
		fprintf(t->out, "; %s leaking one%s above", human_count(nr_lost).text,
			nr_lost == 1 ? " is" : "s are");
	putc('\n', t->out);
}

/*
 * Move callers that have only lost blocks, which were shown as leaks, to the end. Returns how many are left.
 * *@nr_leaking of the others have a row of their own there.
 */
static size_t drop_lost(struct report_row *rows, size_t nr, size_t *nr_leaking)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct scan_sum *of = rows[i].leaks.sums.of;

		if (!rows[i].row.live_blocks ||
		    of[SCAN_DEFINITE].blocks + of[SCAN_INDIRECT].blocks < rows[i].row.live_blocks) {
			const struct report_row dropped = rows[kept];

			rows[kept++] = rows[i];
			rows[i] = dropped;
		} else {
			*nr_leaking += of[SCAN_DEFINITE].blocks != 0;
		}
	}
	return kept;
}

bool text_is_brief(const struct text *t)
{
	const struct report_options *o = &t->report->options;

	return !IS_AGENT && o->is_terminal && !o->has_top && !o->verbose && !o->gen_suppressions &&
	       !o->libraries;
}

size_t text_room(const struct text *t, size_t nr_shown, size_t nr)
{
	u32 top = t->report->options.top;
	size_t room = BRIEF_ROWS > nr_shown ? BRIEF_ROWS - nr_shown : 0;

	if (text_is_brief(t))
		return room < nr ? room : nr;
	return top && top < nr ? top : nr;
}

/* On a screen a caller with less than one percent is only counted. */
static size_t drop_small(const struct heap_totals *totals, const struct report_row *rows, size_t nr,
			 const struct report_key *key)
{
	while (nr > 1) {
		const struct heap_row *h = &rows[nr - 1].row;

		if (key->is_of_live ? h->live_bytes * 100 >= totals->live_bytes
				    : h->alloc_bytes * 100 >= totals->alloc_bytes)
			break;
		nr--;
	}
	return nr;
}

/* A key that asks for something else than leaks has its rows first. */
static bool text_is_asked(const struct text *t, const struct report_key *key)
{
	return t->report->options.sort == key && key->label && !key->wants_scan;
}

static int text_rows(struct text *t, struct section *s, struct report_row *rows, size_t nr,
		     const struct report_key *key)
{
	const struct report_options *o = &t->report->options;
	struct heap_totals totals = heap_totals(s->process->heap);
	bool is_brief = text_is_brief(t);
	size_t shown, nr_lost = 0;
	int err = 0;

	if (key->is_of_live && s->process->leaks && !o->verbose && !text_is_asked(t, key))
		nr = drop_lost(rows, nr, &nr_lost);

	/* Rows are sorted: zeros are at the end. */
	while (nr && !report_key_value(key, &rows[nr - 1]))
		nr--;
	if (is_brief)
		err = text_merge(t, s->process, rows, &nr, key);
	if (err)
		return err;
	shown = text_room(t, s->nr_shown, nr);
	if (is_brief && !shown)
		return 0;
	if (is_brief && !key->label)
		shown = drop_small(&totals, rows, shown, key);
	if (!key->is_of_live && (!o->sort || o->sort->is_of_live))
		fputs(!IS_AGENT && s->process->saw_few ? "\nOf the blocks that were seen none is live.\n"
						       : "\nNothing is live.\n",
		      t->out);
	else if (nr)
		putc('\n', t->out);
	if (!nr)
		return 0;
	/* Callers that are one line are counted once on a screen. */
	text_rows_title(t, shown, nr, key, is_brief ? 0 : nr_lost);
	for (size_t i = 0; i < shown && !err; i++) {
		if (!is_brief)
			putc('\n', t->out);
		text_row_head(t, s->process, &totals, &rows[i], ++s->nr_shown, key);
		err = text_row(t, s->process, &rows[i], s->nr_shown, &s->anchors);
		if (!err)
			err = text_why(t, s->process, &rows[i], SCAN_REACHABLE);
	}
	text_rest(t, s->process->heap, &totals, rows + shown, nr - shown, key);
	return err;
}

/* Parts of the text on a process. */
enum part { PART_HEAD = 1, PART_CALLERS = 2 };

static int text_callers(struct text *t, const struct report_process *p, struct report_row *rows, size_t nr,
			const struct report_key *key)
{
	struct section s = { .process = p };
	bool is_first = text_is_asked(t, key);
	int err = is_first ? text_rows(t, &s, rows, nr, key) : 0;

	if (!err && p->leaks && p->leaks->asked)
		err = IS_AGENT ? 0 : report_asked_text(t->out, t->report, p, p->leaks->asked);
	if (!err && !t->report->options.only)
		err = text_misuses(t, p, &s.nr_shown, &s.anchors);
	if (!err && !t->report->options.only)
		err = text_notices(t, p, &s.nr_shown, &s.anchors);
	if (!err && p->leaks)
		err = text_leaks(t, &s, rows, nr, key);
	if (!err && !IS_AGENT)
		err = text_samples(t, p);
	text_growth(t, p, "\n");
	/* The section on leaks showed rows that are sorted by leaks. */
	if (!err && !key->wants_scan && !is_first)
		err = text_rows(t, &s, rows, nr, key);
	return err ? err : text_suppressions(t, p);
}

static int text_residence(struct text *t, const struct report_process *p, const struct report_row *rows,
			  size_t nr)
{
	char line[RESIDENCE_TEXT_MAX];
	int err = report_residence(line, t->report, p, rows, nr);

	if (!err && *line)
		fprintf(t->out, "%s\n", line);
	return err;
}

static int report_text_process(struct text *t, const struct report_process *p, u32 parts)
{
	auto_free struct report_row *rows = NULL;
	const struct report_key *key;
	size_t nr;
	int err = report_rows(t->report, p, &rows, &nr, &key);

	if (err)
		return err;
	/* Of several processes, the name says whose verdict follows. */
	if (!t->is_one)
		text_name(t, p->target);
	if (parts & PART_HEAD)
		err = text_verdict(t, p, rows, nr);
	if (err)
		return err;
	if (parts & PART_HEAD && t->is_one)
		text_name(t, p->target);
	if (!IS_AGENT && parts & PART_HEAD)
		err = text_residence(t, p, rows, nr);
	if (err)
		return err;
	if (parts & PART_CALLERS && !p->unwatched)
		err = text_callers(t, p, rows, nr, key);
	if (parts == PART_HEAD)
		text_growth(t, p, "");
	else if (parts & PART_HEAD && !p->unwatched && !text_is_brief(t))
		fputs("\nDetails\n", t->out);
	if (err || !(parts & PART_HEAD))
		return err;
	if (parts != PART_HEAD && text_is_brief(t)) {
		text_doubts(t, p);
		return 0;
	}
	err = text_details(t, p, rows, nr);
	/* The first line has left the screen. */
	if (!err && t->is_one && t->report->options.is_terminal && parts != PART_HEAD) {
		putc('\n', t->out);
		err = text_verdict(t, p, rows, nr);
	}
	return err;
}

/* Are sums of lost blocks estimates? */
static const char *text_leaks_mark(const struct report_process *p)
{
	return HAS_SAMPLES && heap_sample_bytes(p->heap) && !leaks_by_books(p->leaks) ? "~" : "";
}

static void text_overview_row(FILE *out, const struct report_process *p)
{
	const struct scan_sum *of = p->leaks ? leaks_all(p->leaks)->of : NULL;
	struct heap_totals totals = heap_totals(p->heap);
	char comm[4 * TARGET_COMM_LEN];

	if (p->unwatched) {
		fprintf(out, "  %7d  %-16s nothing could be watched", (int)p->target->pid,
			escape_buf(comm, sizeof(comm), p->target->comm));
		return;
	}
	fprintf(out, "  %7d  %-16s %10s in %s block%s", (int)p->target->pid,
		escape_buf(comm, sizeof(comm), p->target->comm),
		estimate_bytes(p->heap, totals.live_bytes).text,
		estimate_count(p->heap, totals.live_blocks).text, plural(totals.live_blocks));
	if (of && of[SCAN_DEFINITE].blocks)
		fprintf(out, ", leaks %s",
			human_lost(text_leaks_mark(p), of[SCAN_DEFINITE].bytes, of[SCAN_DEFINITE].blocks,
				   of[SCAN_INDIRECT].bytes, of[SCAN_INDIRECT].blocks)
				.text);
}

/* Sums for the first line of a report on several processes. */
struct overview {
	size_t nr, nr_judged, nr_leaky; /* processes */
	struct scan_sum definite, indirect;
	u64 live_bytes, nr_doubtful; /* possible and unsure blocks */
	const char *leaks_mark;
};

/* The memory of a program is gone when its process executes another one. */
static struct overview report_text_sum_up(const struct report *r)
{
	struct overview o = { .leaks_mark = "" };

	for (size_t i = 0; i < r->nr_processes; i++) {
		const struct report_process *p = &r->processes[i];
		const struct scan_sum *of = p->leaks ? leaks_all(p->leaks)->of : NULL;

		if (p->is_replaced)
			continue;
		o.nr++;
		o.live_bytes += heap_live_bytes(p->heap);
		if (!of || p->unwatched)
			continue;
		o.nr_judged++;
		if (*text_leaks_mark(p))
			o.leaks_mark = "~";
		o.nr_leaky += of[SCAN_DEFINITE].blocks != 0;
		o.definite.bytes += of[SCAN_DEFINITE].bytes;
		o.definite.blocks += of[SCAN_DEFINITE].blocks;
		o.indirect.bytes += of[SCAN_INDIRECT].bytes;
		o.indirect.blocks += of[SCAN_INDIRECT].blocks;
		o.nr_doubtful += of[SCAN_POSSIBLE].blocks + of[SCAN_UNSURE].blocks;
	}
	return o;
}

static void text_answer(struct text *t, const struct overview *o)
{
	const char *mark = HAS_SAMPLES && report_sample_bytes(t->report) ? "~" : "";

	if (o->nr_leaky) {
		text_tone_begin(t, TONE_WARN);
		fprintf(t->out, "leaks %s",
			human_lost(o->leaks_mark, o->definite.bytes, o->definite.blocks, o->indirect.bytes,
				   o->indirect.blocks)
				.text);
		text_tone_end(t);
		fprintf(t->out, ", in %zu of %zu processes", o->nr_leaky, o->nr);
	} else if (o->nr_judged) {
		fprintf(t->out, "no %sleaks in %zu process%s", o->nr_doubtful ? "definite " : "",
			o->nr_judged, o->nr_judged == 1 ? "" : "es");
	} else {
		fprintf(t->out, "no leak verdict on %zu processes", o->nr);
	}
	if (o->nr_judged && o->nr_judged < o->nr)
		fprintf(t->out, "; no verdict on %zu", o->nr - o->nr_judged);
	fprintf(t->out, "; %s%s live\n", mark, human_bytes(o->live_bytes).text);
}

/* A process that forks without end has a report of bounded length. */
static size_t text_most_processes(const struct text *t)
{
	return t->report->options.top ? t->report->options.top : SIZE_MAX;
}

/* With several processes: one line for each, before the details. */
static void text_overview(struct text *t, const struct report_process *const *order)
{
	const struct report *r = t->report;
	struct overview o = report_text_sum_up(r);

	text_answer(t, &o);
	for (size_t i = 0; i < r->nr_processes; i++) {
		if (!IS_AGENT && i == (text_is_brief(t) ? BRIEF_PROCESSES : text_most_processes(t))) {
			fprintf(t->out, "  ... and %zu more (-n 0 shows all)\n", r->nr_processes - i);
			break;
		}
		text_overview_row(t->out, order[i]);
		fputs(order[i]->is_replaced ? ", became another program\n" : "\n", t->out);
	}
	putc('\n', t->out);
}

int report_text_processes(FILE *out, const struct report *r)
{
	struct text t = { .out = out, .report = r };

	for (size_t i = 0; i < r->nr_processes; i++) {
		text_overview_row(out, &r->processes[i]);
		/* Write the end of the process into the line, without a label. */
		t.column = 0;
		t.has_items = true;
		text_fate(&t, &r->processes[i]);
		putc('\n', out);
	}
	return flush_stream(out);
}

static void text_end(struct text *t)
{
	const struct report *r = t->report;
	size_t stale = r->symbolizer ? symbolizer_stale(r->symbolizer) : 0;
	size_t unread = r->symbolizer ? symbolizer_unread(r->symbolizer) : 0;

	if (r->nr_strays)
		fprintf(t->out, "%s event%s of processes that are no targets: left out\n",
			human_count(r->nr_strays).text, plural(r->nr_strays));
	if (!stale && !unread && !r->is_short)
		return;
	text_tone_begin(t, TONE_WARN);
	if (r->is_short)
		fputs("there was not enough memory: no names, and few callers\n", t->out);
	if (stale)
		fprintf(t->out, "%zu file%s on disk %s not what was mapped: no names from %s\n", stale,
			plural(stale), stale == 1 ? "is" : "are", stale == 1 ? "it" : "them");
	if (unread)
		fprintf(t->out, "%zu file%s could not be read to the end: names are missing\n", unread,
			plural(unread));
	text_tone_end(t);
}

/* The order of processes: those that were replaced at the end, and those that hold most first. */
static int by_interest(const void *a, const void *b)
{
	const struct report_process *left = *(const struct report_process *const *)a;
	const struct report_process *right = *(const struct report_process *const *)b;
	u64 left_bytes = heap_live_bytes(left->heap), right_bytes = heap_live_bytes(right->heap);

	if (left->is_replaced != right->is_replaced)
		return left->is_replaced ? 1 : -1;
	if (left_bytes != right_bytes)
		return left_bytes < right_bytes ? 1 : -1;
	return left < right ? -1 : left > right;
}

/* A shell or a wrapper that executed the program is rarely of interest: its line in the overview is enough. */
static bool is_folded(const struct report *r, const struct report_process *p)
{
	return p->is_replaced && r->nr_processes > 1 && !r->options.verbose;
}

static int text_processes(struct text *t, const struct report_process *const *order, u32 parts)
{
	size_t nr_folded = 0, nr_shown = 0, nr_more = 0;
	int err = 0;

	for (size_t i = 0; i < t->report->nr_processes && !err; i++) {
		if (i && text_is_brief(t) && parts == (PART_HEAD | PART_CALLERS))
			break;
		if (parts & PART_HEAD && is_folded(t->report, order[i])) {
			nr_folded++;
			continue;
		}
		if (!IS_AGENT && nr_shown == text_most_processes(t)) {
			nr_more++;
			continue;
		}
		if (i)
			putc('\n', t->out);
		err = report_text_process(t, order[i], parts);
		nr_shown++;
	}
	if (!IS_AGENT && nr_more)
		fprintf(t->out, "\n%zu more process%s (-n 0 shows all)\n", nr_more, nr_more == 1 ? "" : "es");
	if (!nr_folded)
		return err;
	fprintf(t->out, "\n%zu program%s that became another one; -v has %s details\n", nr_folded,
		plural(nr_folded), nr_folded == 1 ? "its" : "their");
	for (size_t i = 0; i < t->report->nr_processes && t->is_one; i++) {
		if (!is_folded(t->report, order[i]))
			continue;
		text_overview_row(t->out, order[i]);
		putc('\n', t->out);
	}
	return err;
}

static int text_parts(FILE *out, const struct report *r, u32 parts)
{
	struct text t = { .report = r };
	auto_free const struct report_process **order = calloc(r->nr_processes + 1, sizeof(*order));
	int err;

	if (!order)
		return -ENOMEM;
	/* The agent does not fold long lines. */
	t.out = IS_AGENT ? out : wrap_open(out, r->options.width ? r->options.width : TEXT_DEFAULT_WIDTH);
	if (!t.out)
		return -ENOMEM;
	for (size_t i = 0; i < r->nr_processes; i++)
		order[i] = &r->processes[i];
	qsort(order, r->nr_processes, sizeof(*order), by_interest);
	t.first = order[0];
	if (r->title && (parts & PART_HEAD))
		fprintf(t.out, "%s\n\n", r->title);
	t.is_one = r->nr_processes == 1 || (report_text_sum_up(r).nr == 1 && !r->options.verbose);
	if (!t.is_one && parts == (PART_HEAD | PART_CALLERS))
		text_overview(&t, order);
	err = text_processes(&t, order, parts);
	if (parts & PART_HEAD)
		text_end(&t);
	if (text_is_brief(&t) && parts == (PART_HEAD | PART_CALLERS))
		fputs("\nAll callers, whole stacks and details: -n 0, -v, or a file: -o report.html\n",
		      t.out);
	if (t.out != out && fclose(t.out) && !err)
		err = -errno;
	return err ? err : flush_stream(out);
}

int report_text(FILE *out, const struct report *r)
{
	return text_parts(out, r, PART_HEAD | PART_CALLERS);
}

int report_text_head(FILE *out, const struct report *r)
{
	return text_parts(out, r, PART_HEAD);
}

int report_text_callers(FILE *out, const struct report *r)
{
	return text_parts(out, r, PART_CALLERS);
}
