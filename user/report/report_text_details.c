/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The details of a process in the report for people: a table of labels and what belongs to them. */
#include "user/report/report_parts.h"
#include "user/report/report_text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "user/heap/misuse.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/report/estimate.h"
#include "user/report/modules.h"
#include "user/report/own_code.h"
#include "user/report/report_hint.h"
#include "user/report/report_verdict.h"
#include "user/report/wrappers.h"
#include "user/scan/leaks.h"
#include "user/source/source.h"
#include "user/heap/thread_table.h"
#include "user/names/debug_package.h"
#include "user/names/symbolize.h"
#include "user/target/target.h"
#include "user/heap/timeline.h"
#include "user/lib/path.h"

#define HOUR_NS (3600 * 1000000000ULL)

enum {
	LABEL_WIDTH = 14, /* where the text of a line of the head begins */
	MAX_ITEM_BYTES = PATH_MAX + 128,
	SHARE_MIN_NS = 1000 * 1000 * 1000, /* shorter traces have no share of a CPU */
	WRAPPER_WIDTH = 80,
	MAX_MODULES = 5, /* in the text; JSON has all */
	MAX_THREADS = 5,
};

static void report_text_details_toned(struct text *t, enum tone tone, const char *s)
{
	text_tone_begin(t, tone);
	escape_text(t->out, s);
	text_tone_end(t);
}

/* Begin a line of the head: "  live        ". Then call report_text_details_item() for each item, and line_end(). */
static void line_begin(struct text *t, const char *label)
{
	fprintf(t->out, "  %-*s", LABEL_WIDTH - 2, label);
	t->column = LABEL_WIDTH;
	t->has_items = false;
}

/* Write one item of a line of the head: after a comma if it is not the first, on a new line if it does not fit. */
static __printf(2, 3) void report_text_details_item(struct text *t, const char *fmt, ...)
{
	u32 width = t->report->options.width ? t->report->options.width : TEXT_DEFAULT_WIDTH;
	char s[MAX_ITEM_BYTES];
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	vsnprintf(s, sizeof(s), fmt, ap);
	va_end(ap);
	len = strlen(s);
	if (t->has_items && t->column + 2 + len >= width) {
		fprintf(t->out, ",\n%*s", LABEL_WIDTH, "");
		t->column = LABEL_WIDTH;
	} else if (t->has_items) {
		fputs(", ", t->out);
		t->column += 2;
	}
	escape_text(t->out, s);
	t->column += len;
	t->has_items = true;
}

static void line_end(struct text *t)
{
	putc('\n', t->out);
}

void text_fate(struct text *t, const struct report_process *p)
{
	const struct target *target = p->target;
	int status = target->exit_status;

	if (p->is_replaced)
		report_text_details_item(t, "became another program");
	else if (!target->has_exited && t->report->is_broken_off)
		report_text_details_item(t, "what came later is not known");
	else if (!target->has_exited)
		report_text_details_item(t, "still running");
	else if (status < 0)
		report_text_details_item(t, "has ended");
	else if (WIFSIGNALED(status))
		report_text_details_item(t, "killed by signal %d%s%s%s", WTERMSIG(status),
					 IS_AGENT ? "" : " (", IS_AGENT ? "" : strsignal(WTERMSIG(status)),
					 IS_AGENT ? "" : ")");
	else
		report_text_details_item(t, "exited with status %d", WEXITSTATUS(status));
}

void text_name(struct text *t, const struct target *target)
{
	char comm[4 * TARGET_COMM_LEN];

	text_tone_begin(t, TONE_STRONG);
	fprintf(t->out, "%s (pid %d)", escape_buf(comm, sizeof(comm), target->comm), (int)target->pid);
	text_tone_end(t);
	if (target->exe && *target->exe) {
		fputs("  ", t->out);
		report_text_details_toned(t, TONE_FAINT, target_program(target));
	}
	putc('\n', t->out);
}

static void text_help(struct text *t, const struct report_process *p)
{
	if (!p->unwatched_help)
		return;
	line_begin(t, "what helps");
	report_text_details_item(t, "%s", p->unwatched_help);
	line_end(t);
}

static void text_target(struct text *t, const struct report_process *p)
{
	const struct target *target = p->target;

	if (p->unwatched)
		text_help(t, p);
	line_begin(t, "traced");
	report_text_details_item(t, "%s", human_duration(t->report->duration_ns).text);
	report_text_details_item(t, "%s", target->is_started ? "started by heaptap" : "attached to");
	report_text_details_item(t, "source %s", t->report->backend);
	text_fate(t, p);
	line_end(t);
}

static void text_allocators(struct text *t, const struct report_process *p)
{
	if (!p->nr_allocators)
		return;
	line_begin(t, "allocators");
	for (size_t i = 0; i < p->nr_allocators; i++)
		report_text_details_item(t, "%s (%s)", p->allocators[i].kind, p->allocators[i].object);
	line_end(t);
}

static void text_interval(struct text *t, const struct heap *heap, enum estimate_part part)
{
	if (HAS_SAMPLES && heap_sample_bytes(heap))
		fputs(estimate_interval(estimate_all(heap, part)).text, t->out);
}

static void text_peak(struct text *t, const struct heap *heap, const struct heap_totals *totals)
{
	const struct report *r = t->report;
	u64 start_ns = r->time_ns > r->duration_ns ? r->time_ns - r->duration_ns : 0;

	line_begin(t, "peak");
	fputs(estimate_bytes_exact(heap, totals->peak_bytes).text, t->out);
	text_interval(t, heap, ESTIMATE_PEAK_BYTES);
	if (totals->peak_bytes && totals->peak_time_ns >= start_ns)
		fprintf(t->out, " after %s", human_duration(totals->peak_time_ns - start_ns).text);
	line_end(t);
}

/* Name who made most temporary blocks, if most blocks are. */
static int text_temporary(struct text *t, const struct report_process *p, const struct report_row *rows,
			  size_t nr, const struct heap_totals *totals)
{
	const struct report_row *most = NULL;
	char place[OWN_PLACE_MAX];
	int err;

	for (size_t i = 0; i < nr; i++)
		if (!most || rows[i].row.temporary > most->row.temporary)
			most = &rows[i];
	if (!most || totals->temporary * 2 < totals->allocs)
		return 0;
	err = own_code_name(t->report, p, most->row.stack, place);
	if (!err && *place)
		fprintf(t->out, " (%s of these from %s)",
			human_percent(most->row.temporary, totals->temporary).text, place);
	return err;
}

static int text_totals(struct text *t, const struct report_process *p, const struct report_row *rows,
		       size_t nr)
{
	struct heap_totals totals = heap_totals(p->heap);
	bool is_sampled = HAS_SAMPLES && heap_sample_bytes(p->heap);
	u64 pending = heap_pending(p->heap);
	int err = 0;

	line_begin(t, "live");
	text_tone_begin(t, TONE_STRONG);
	fputs(estimate_bytes_exact(p->heap, totals.live_bytes).text, t->out);
	text_tone_end(t);
	text_interval(t, p->heap, ESTIMATE_LIVE_BYTES);
	fprintf(t->out, " in %s block%s", estimate_count(p->heap, totals.live_blocks).text,
		plural(totals.live_blocks));
	if (pending)
		fprintf(t->out, ", %s of them in a realloc that has not returned", human_count(pending).text);
	line_end(t);
	text_peak(t, p->heap, &totals);

	line_begin(t, "allocated");
	report_text_details_item(
		t, "%s%s in %s block%s", estimate_bytes_exact(p->heap, totals.alloc_bytes).text,
		is_sampled ? estimate_interval(estimate_all(p->heap, ESTIMATE_ALLOC_BYTES)).text : "",
		estimate_count(p->heap, totals.allocs).text, plural(totals.allocs));
	if (totals.temporary)
		report_text_details_item(t, "%s of them temporary",
					 human_percent(totals.temporary, totals.allocs).text);
	if (!IS_AGENT && totals.temporary)
		err = text_temporary(t, p, rows, nr, &totals);
	line_end(t);

	line_begin(t, "freed");
	report_text_details_item(t, "%s block%s", estimate_count(p->heap, totals.frees).text,
				 plural(totals.frees));
	if (totals.unknown_frees)
		report_text_details_item(t, "and %s that heaptap never saw allocated%s",
					 human_count(totals.unknown_frees).text,
					 p->target->is_started || p->has_unseen ? ""
										: ": from before the attach");
	line_end(t);
	if (!totals.failed_allocs)
		return err;
	line_begin(t, "failed");
	report_text_details_item(t, "%s allocation%s", estimate_count(p->heap, totals.failed_allocs).text,
				 plural(totals.failed_allocs));
	line_end(t);
	return err;
}

/* *@bytes were live an hour before the report, by the last event until then. False: there was none. */
static bool live_an_hour_ago(const struct report *r, const struct heap *h, u64 *bytes)
{
	struct timeline_point p;
	bool is_known = false;

	if (IS_AGENT || r->time_ns < HOUR_NS)
		return false;
	for (size_t i = 0; heap_timeline(h, i, &p) && p.time_ns <= r->time_ns - HOUR_NS; i++) {
		*bytes = p.live_bytes;
		is_known = true;
	}
	return is_known;
}

/* A short run shows no growth. */
void text_growth(struct text *t, const struct report_process *p, const char *before)
{
	u64 live = heap_totals(p->heap).live_bytes, then;
	bool has_hour = live_an_hour_ago(t->report, p->heap, &then);
	struct trend_growth g;
	bool rose = report_rose(p, &g);

	if (!rose && !has_hour)
		return;
	fputs(before, t->out);
	line_begin(t, "growth");
	if (has_hour)
		report_text_details_item(t, "%s in the last hour", human_change((s64)(live - then)).text);
	if (rose)
		report_text_details_item(t, REPORT_ROSE, estimate_bytes(p->heap, g.before).text,
					 estimate_bytes(p->heap, g.after).text);
	line_end(t);
}

static void lost_item(struct text *t, u64 n, const char *what)
{
	if (n)
		report_text_details_item(t, "%s %s%s", human_count(n).text, what, plural(n));
}

/* Always write the line: without it a reader would think that nothing was lost. */
static void text_lost(struct text *t, const struct report_process *p)
{
	struct losses lost = report_losses(p);
	u64 repaired = heap_totals(p->heap).collisions;
	bool is_cut = t->report->is_broken_off && !p->target->has_exited && !p->is_replaced;

	line_begin(t, "lost");
	if (!lost.allocs && !lost.frees && !lost.stacks && !lost.other && !repaired && !is_cut) {
		report_text_details_item(t, "nothing");
		line_end(t);
		return;
	}
	text_tone_begin(t, TONE_WARN);
	lost_item(t, lost.allocs, "allocation");
	lost_item(t, lost.frees, "free");
	lost_item(t, lost.stacks, "stack");
	lost_item(t, lost.other, "other event");
	/* An allocation returned the address of a live block, so its free was lost. The heap is right again. */
	if (repaired)
		report_text_details_item(t, "%s free%s noticed late and corrected",
					 human_count(repaired).text, plural(repaired));
	if (is_cut)
		report_text_details_item(t, "all later calls, which nobody has counted");
	if (lost.frees)
		report_text_details_item(t, "so blocks shown as live may be free");
	else if (lost.allocs)
		report_text_details_item(t, "so there are more blocks than the numbers say");
	text_tone_end(t);
	line_end(t);
}

static void sum_item(struct text *t, const struct heap *heap, const struct scan_sum *sum, const char *what)
{
	report_text_details_item(t, "%s in %s block%s %s", estimate_bytes(heap, sum->bytes).text,
				 estimate_count(heap, sum->blocks).text, plural(sum->blocks), what);
}

/* Differences to the verdicts of the scan before. */
static void text_changes(struct text *t, const struct heap *heap, const struct leaks *l)
{
	if (l->left_out.blocks || l->has_before) {
		line_begin(t, "changed");
		if (l->has_before)
			sum_item(t, heap, &l->fresh, "lost since the last verdict");
		if (l->again.blocks)
			sum_item(t, heap, &l->again, "found again");
		if (l->left_out.blocks)
			sum_item(t, heap, &l->left_out, "left out here by --leaks");
		line_end(t);
	}
}

/* Reachable blocks that only pointers behind a header lead to. */
static void text_behind(struct text *t, const struct heap *heap, const struct scan_result *r)
{
	char text[REPORT_HINT_TEXT];

	report_hint_behind(text, r);
	if (!*text)
		return;
	line_begin(t, "");
	sum_item(t, heap, &r->behind, text);
	line_end(t);
}

/* Which way blocks were judged that are sampled, or of one window. */
static void text_books(struct text *t, const struct leaks *l)
{
	const struct scan_sum *of = l->books.sums.of;
	char text[REPORT_HINT_TEXT];

	line_begin(t, "judged");
	if (*l->books.allocator) {
		report_text_details_item(t, "by the books of %s", l->books.allocator);
		report_text_details_item(
			t, "%s in %s block%s definite", human_bytes(of[SCAN_DEFINITE].bytes).text,
			human_count(of[SCAN_DEFINITE].blocks).text, plural(of[SCAN_DEFINITE].blocks));
		report_text_details_item(t, "%s in %s indirect", human_bytes(of[SCAN_INDIRECT].bytes).text,
					 human_count(of[SCAN_INDIRECT].blocks).text);
	} else {
		report_text_details_item(t, "by sampled blocks alone: the books cannot be read");
		report_text_details_item(t, "a block that only a lost block leads to counts as reachable");
	}
	if (report_hint_links(text, &l->result))
		report_text_details_item(t, "%s", text);
	line_end(t);
}

/* The verdicts, and the cost of the scan. */
static void text_scan(struct text *t, const struct heap *heap, const struct leaks *l)
{
	static const enum scan_verdict verdicts[] = { SCAN_DEFINITE, SCAN_INDIRECT, SCAN_POSSIBLE,
						      SCAN_REACHABLE, SCAN_UNSURE };

	if (!l)
		return;
	line_begin(t, "leaks");
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
		const struct scan_sum *sum = &l->result.sums.of[verdicts[i]];

		if (sum->blocks)
			sum_item(t, heap, sum, scan_verdict_name(verdicts[i]));
		else if (verdicts[i] == SCAN_DEFINITE)
			report_text_details_item(t, "none definite");
	}
	if (l->suppressed.blocks)
		report_text_details_item(
			t, "suppressed: %s block%s (%s)", estimate_count(heap, l->suppressed.blocks).text,
			plural(l->suppressed.blocks), estimate_bytes(heap, l->suppressed.bytes).text);
	line_end(t);
	if (HAS_SAMPLES && l->has_verdict && (heap_sample_bytes(heap) || *l->books.allocator))
		text_books(t, l);
	if (!IS_AGENT)
		text_behind(t, heap, &l->result);
	if (!IS_AGENT)
		text_changes(t, heap, l);
	line_begin(t, "scan");
	report_text_details_item(t, "%s was stopped for %s",
				 t->report->nr_processes > 1 ? "the process" : "the target",
				 human_duration(l->pause_ns).text);
	report_text_details_item(t, "%s scanned%s", human_bytes(l->result.scanned_bytes).text,
				 l->is_copied ? " in a copy of it" : "");
	if (l->result.skipped_bytes)
		report_text_details_item(t, "%s not readable, so nothing is definite",
					 human_bytes(l->result.skipped_bytes).text);
	if (l->result.nr_unstopped)
		report_text_details_item(t, "%s thread%s ran on, so nothing is definite",
					 human_count(l->result.nr_unstopped).text,
					 plural(l->result.nr_unstopped));
	line_end(t);
}

/* Always write the line: without it a reader would not know whether releases were checked. */
static void text_checked(struct text *t, const struct heap *heap)
{
	struct misuse_counts c = heap_misuse_counts(heap);
	bool is_any = false;

	if (!heap_is_checked(heap))
		return;
	line_begin(t, "bad frees");
	for (int i = 0; i < NR_MISUSES; i++) {
		if (c.of[i])
			report_text_details_item(t, "%s %s", human_count(c.of[i]).text,
						 misuse_what(i, c.of[i]));
		is_any |= c.of[i] != 0;
	}
	if (!is_any)
		report_text_details_item(t, "none");
	if (heap_is_blurred(heap))
		report_text_details_item(
			t, "families are not told apart where an allocator has one function for several");
	if (c.nr_unsure)
		report_text_details_item(t, "%s release%s of unknown blocks that may have been lost",
					 human_count(c.nr_unsure).text, plural(c.nr_unsure));
	line_end(t);
}

/* Allocated blocks by how their stacks end. The last two slots: no stack was taken, the stack was lost. */
enum { MAX_ENDS = NR_STACK_ENDS + 2 };

struct ends {
	const char *words[MAX_ENDS];
	u64 allocs[MAX_ENDS];
	size_t nr;
};

static void count_end(struct ends *e, const char *word, u64 allocs)
{
	size_t i = 0;

	while (i < e->nr && strcmp(e->words[i], word))
		i++;
	if (i == MAX_ENDS)
		return;
	if (i == e->nr)
		e->words[e->nr++] = word;
	e->allocs[i] += allocs;
}

static void text_stacks(struct text *t, const struct report_process *p, const struct report_row *rows,
			size_t nr)
{
	struct ends ends = { .nr = 0 };
	u64 complete = 0, all = 0;
	const char *cut_at = " at the depth that was asked for: --depth 127 has more";

	for (size_t i = 0; i < nr; i++) {
		const char *truncated;
		const struct stack *s = report_stack(p, &rows[i], &truncated);

		if (s && s->nr_frames >= STACK_MAX_FRAMES)
			cut_at = " at 127 frames, the most that are taken";
		all += rows[i].row.allocs;
		if (truncated)
			count_end(&ends, truncated, rows[i].row.allocs);
		else
			complete += rows[i].row.allocs;
	}
	if (!all)
		return;
	line_begin(t, "stacks");
	report_text_details_item(t, "complete for %s of the blocks", human_percent(complete, all).text);
	for (size_t i = 0; i < ends.nr; i++) {
		bool is_cut = !strcmp(ends.words[i], "depth");

		report_text_details_item(t, "%s for %s (%s)%s", is_cut ? "cut" : ends.words[i],
					 human_count(ends.allocs[i]).text,
					 human_percent(ends.allocs[i], all).text, is_cut ? cut_at : "");
	}
	line_end(t);
}

static void text_calls(struct text *t, const struct heap *heap)
{
	const struct alloc_table *fns = heap_functions(heap);
	u64 calls[ALLOC_MAX_FNS] = { 0 };
	size_t best;

	for (size_t fn = 1; fn < alloc_fn_count(fns); fn++)
		calls[fn] = report_calls(heap, fn);
	line_begin(t, "calls");
	do {
		best = 0;
		for (size_t fn = 1; fn < alloc_fn_count(fns); fn++)
			if (calls[fn] > calls[best])
				best = fn;
		if (best)
			report_text_details_item(t, "%s %s", alloc_fn(fns, best)->name,
						 estimate_count(heap, calls[best]).text);
		calls[best] = 0;
	} while (best);
	if (!t->has_items)
		report_text_details_item(t, "none seen");
	line_end(t);
}

/* The cost of heaptap itself, once in a report. */
static void text_cost(struct text *t, const struct report_process *p)
{
	const struct report *r = t->report;
	const struct report_cost *cost = &r->cost;

	if (!cost->cpu_ns || p != t->first)
		return;
	line_begin(t, "heaptap");
	report_text_details_item(t, "%s event%s", human_count(cost->events).text, plural(cost->events));
	report_text_details_item(t, "%s of CPU time", human_duration(cost->cpu_ns).text);
	if (cost->events)
		report_text_details_item(t, "%s for an event",
					 human_duration(cost->cpu_ns / cost->events).text);
	/* In a short time names and the verdict are most of the cost. */
	if (r->duration_ns >= SHARE_MIN_NS)
		report_text_details_item(t, "%s of a CPU", human_percent(cost->cpu_ns, r->duration_ns).text);
	line_end(t);
	if (!cost->call_ns)
		return;
	line_begin(t, "probes");
	report_text_details_item(t, "%s for a call", human_duration(cost->call_ns).text);
	report_text_details_item(t, "%s of the program's CPU time",
				 human_percent(cost->probes_permille, 1000).text);
	report_text_details_item(t, "about %s with --backend inline",
				 human_duration(cost->inline_call_ns).text);
	line_end(t);
}

/* Say how to get the names that most frames lack. */
static void text_names(struct text *t)
{
	const struct module *m = t->nr_nameless ? module_get(t->report->modules, t->nameless) : NULL;
	bool is_asked = t->report->symbolizer && symbolizer_asks_server(t->report->symbolizer);
	char hint[MAX_ITEM_BYTES];

	if (!m)
		return;
	debug_package_hint(hint, sizeof(hint), "/", m->path);
	line_begin(t, "names");
	report_text_details_item(t, "missing for %s%s", path_name(module_name(m)),
				 is_asked ? " (no server gave them)" : "");
	if (!is_asked)
		report_text_details_item(t, "%s%s--debuginfod may help", hint, *hint ? " or " : "");
	else if (*hint)
		report_text_details_item(t, "%s may help", hint);
	line_end(t);
	t->nr_nameless = 0;
}

static void text_notes(struct text *t, const struct report_process *p)
{
	const struct report_options *o = &t->report->options;

	for (size_t i = 0; i < p->nr_notes; i++) {
		if (p->notes[i] == p->ending)
			continue; /* near the verdict */
		line_begin(t, "note");
		report_text_details_item(t, "%s", p->notes[i]);
		line_end(t);
	}
	if (!o->min_size && !o->max_size && !o->older_ns)
		return;
	line_begin(t, "filter");
	fputs("callers count only live blocks of ", t->out);
	if (o->min_size)
		report_text_details_item(t, "at least %s", human_bytes(o->min_size).text);
	if (o->max_size)
		report_text_details_item(t, "at most %s", human_bytes(o->max_size).text);
	if (o->older_ns)
		report_text_details_item(t, "at least %s of age", human_duration(o->older_ns).text);
	line_end(t);
}

static u64 module_bytes(const struct report_module *m, bool is_live)
{
	return is_live ? m->live.bytes : m->allocated.bytes;
}

/* Which files hold what is live; if nothing is, which ones allocated. One file alone says nothing. */
static int text_modules(struct text *t, const struct report_process *p, const struct report_row *rows,
			size_t nr_rows)
{
	auto_free struct report_module *list = NULL;
	u64 all = 0, rest = 0;
	bool is_live;
	size_t nr, shown;
	int err = report_modules(t->report, p, rows, nr_rows, &list, &nr);

	if (err || nr < 2)
		return err;
	is_live = list[0].live.bytes;
	shown = nr > MAX_MODULES ? MAX_MODULES : nr;
	for (size_t i = 0; i < nr; i++)
		all += module_bytes(&list[i], is_live);
	line_begin(t, "modules");
	for (size_t i = 0; i < nr; i++) {
		const struct report_module *m = &list[i];
		u64 bytes = module_bytes(m, is_live);

		if (i < shown && bytes)
			report_text_details_item(
				t, "%s %s (%s)", m->module ? path_name(module_name(m->module)) : "no file",
				estimate_bytes(p->heap, bytes).text, human_percent(bytes, all).text);
		else
			rest += bytes;
	}
	if (rest)
		report_text_details_item(t, "%zu others %s (%s)", nr - shown,
					 estimate_bytes(p->heap, rest).text, human_percent(rest, all).text);
	if (!is_live)
		fputs(" of what was allocated", t->out);
	line_end(t);
	return 0;
}

/* The functions that are no place of a leak, where they were asked for. */
static int text_wrappers(struct text *t, const struct report_process *p)
{
	const char *names[OWN_MAX_WRAPPERS];
	size_t nr = 0;
	int err = own_code_wrappers(t->report, p, names, &nr);

	if (err)
		return err;
	line_begin(t, "wrappers");
	for (size_t i = 0; i < nr; i++) {
		char name[WRAPPER_WIDTH];

		report_text_details_item(t, "%s", escape_buf(name, sizeof(name), names[i]));
	}
	if (!nr)
		fputs("none", t->out);
	line_end(t);
	return 0;
}

/* A thread, and the bytes of it that are live. */
struct thread_item {
	struct thread_row row;
	u64 live_bytes;
};

static int compare_threads(const void *pa, const void *pb)
{
	const struct thread_item *a = pa, *b = pb;

	if (a->row.alloc_bytes != b->row.alloc_bytes)
		return a->row.alloc_bytes < b->row.alloc_bytes ? 1 : -1;
	return (a->row.tid > b->row.tid) - (a->row.tid < b->row.tid);
}

/* *@list is owned by the caller. 0 or -ENOMEM. */
static int list_threads(const struct report_process *p, struct thread_item **list, size_t *nr)
{
	auto_free struct scan_sum *live = NULL;
	struct thread_row row;
	size_t max = 0;
	int err = heap_thread(p->heap, 1, &row) ? report_threads(p, &live) : 0;

	*nr = 0;
	for (size_t i = 0; !err && heap_thread(p->heap, i, &row); i++) {
		if (!row.allocs)
			continue;
		err = array_reserve(*list, max, *nr + 1);
		if (!err)
			(*list)[(*nr)++] = (struct thread_item){ row, live ? live[i].bytes : 0 };
	}
	return err;
}

/* Which threads allocated most. One thread alone says nothing. */
static int text_threads(struct text *t, const struct report_process *p)
{
	auto_free struct thread_item *list = NULL;
	u64 all = heap_totals(p->heap).alloc_bytes, rest = all;
	size_t nr = 0;
	int err = list_threads(p, &list, &nr);

	if (err || nr < 2)
		return err;
	qsort(list, nr, sizeof(*list), compare_threads);
	line_begin(t, "threads");
	for (size_t i = 0; i < nr && i < MAX_THREADS && list[i].row.tid; i++) {
		const struct thread_row *row = &list[i].row;
		const char *known = report_thread_name(p, row);
		char name[4 * THREAD_NAME_LEN + 1];

		report_text_details_item(t, "%s%stid %u %s (%s), %s live",
					 escape_buf(name, sizeof(name), known ? known : ""), known ? " " : "",
					 row->tid, estimate_bytes(p->heap, row->alloc_bytes).text,
					 human_percent(row->alloc_bytes, all).text,
					 estimate_bytes(p->heap, list[i].live_bytes).text);
		rest -= row->alloc_bytes;
	}
	if (rest)
		report_text_details_item(t, "others %s (%s)", estimate_bytes(p->heap, rest).text,
					 human_percent(rest, all).text);
	fputs(" of what was allocated", t->out);
	line_end(t);
	return 0;
}

/* Lines that the agent leaves to JSON, and to the report of another machine on its recording. */
static int text_sums(struct text *t, const struct report_process *p, const struct report_row *rows, size_t nr)
{
	int err;

	text_stacks(t, p, rows, nr);
	text_calls(t, p->heap);
	text_cost(t, p);
	err = text_modules(t, p, rows, nr);
	if (!IS_AGENT && !err && wrappers_has_names(p->wrappers))
		err = text_wrappers(t, p);
	if (!err)
		err = text_threads(t, p);
	text_names(t);
	return err;
}

void text_doubts(struct text *t, const struct report_process *p)
{
	size_t shown = 0;

	for (size_t i = 0; i < p->nr_notes && shown < BRIEF_NOTES; i++) {
		if (p->notes[i] == p->ending || p->notes[i] == p->no_verdict)
			continue; /* in the answer */
		if (!shown++)
			putc('\n', t->out);
		line_begin(t, "note");
		report_text_details_item(t, "%s", p->notes[i]);
		line_end(t);
	}
}

/* How the numbers came about, where blocks are sampled. */
static void text_sampled(struct text *t, const struct heap *heap)
{
	struct heap_samples n = heap_samples(heap);

	line_begin(t, "sampled");
	report_text_details_item(t, "about one block in %s allocated",
				 human_bytes(heap_sample_bytes(heap)).text);
	if (n.seen)
		report_text_details_item(t, "%s block%s recorded", human_count(n.seen).text,
					 n.seen == 1 ? " was" : "s were");
	else
		report_text_details_item(t, "no block was recorded: a smaller distance shows more");
	report_text_details_item(t, "%s of them live", human_count(n.live).text);
	report_text_details_item(t, "numbers with ~ are estimates by these");
	line_end(t);
}

int text_details(struct text *t, const struct report_process *p, const struct report_row *rows, size_t nr)
{
	int err;

	text_target(t, p);
	if (p->unwatched) {
		text_notes(t, p);
		return 0;
	}
	text_allocators(t, p);
	if (HAS_SAMPLES && heap_sample_bytes(p->heap))
		text_sampled(t, p->heap);
	err = text_totals(t, p, rows, nr);
	if (err)
		return err;
	text_scan(t, p->heap, p->leaks);
	text_lost(t, p);
	text_checked(t, p->heap);
	err = IS_AGENT ? 0 : text_sums(t, p, rows, nr);
	text_notes(t, p);
	if (!IS_AGENT && t->report->options.libraries)
		report_libraries_text(t->out, p);
	return err;
}
