/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for scripts, "heaptap-report/2": each file, function, frame and stack once, and no zeros in callers. */
#include "user/report/report_json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "user/heap/misuse.h"
#include "user/lib/cleanup.h"
#include "user/lib/digits.h"
#include "user/lib/flush.h"
#include "user/report/estimate.h"
#include "user/report/json_tables.h"
#include "user/report/modules.h"
#include "user/report/own_code.h"
#include "user/report/report_hint.h"
#include "user/report/report_parts.h"
#include "user/report/report_marks.h"
#include "user/report/report_residence.h"
#include "user/report/report_rows.h"
#include "user/report/report_verdict.h"
#include "user/report/report_why.h"
#include "user/scan/leaks.h"
#include "user/scan/leaks_books.h"
#include "user/source/source.h"
#include "user/stream/span.h"
#include "user/heap/fold.h"
#include "user/heap/stacks.h"
#include "user/heap/thread_table.h"
#include "user/heap/timeline.h"
#include "user/names/symbolize.h"
#include "user/target/target.h"
#include "user/heap/trend.h"
#include "user/report/format.h"

/* A line for each key of a process, and for each caller, thread and module. */
enum { FOLD_PROCESS = 3, FOLD_ITEMS = 4 };

static void json_exit(struct json *j, const struct target *t)
{
	int status = t->exit_status;

	if (!t->has_exited || status < 0) {
		json_null(j, "exit");
		return;
	}
	json_object_begin(j, "exit");
	if (WIFSIGNALED(status))
		json_u64(j, "signal", WTERMSIG(status));
	else
		json_u64(j, "code", WEXITSTATUS(status));
	json_object_end(j);
}

/* The sentence that all outputs begin with. */
/* Where the resident memory is, and what became of it since the attach. */
static int json_residence(struct json *j, const struct report *r, const struct report_process *p,
			  const struct report_row *rows, size_t nr)
{
	struct residence_item items[RESIDENCE_MAX_ITEMS];
	const struct report_residence *d = p->residence;
	size_t nr_items = d ? report_residence_items(p, items) : 0;
	char text[RESIDENCE_TEXT_MAX];
	int err = report_residence(text, r, p, rows, nr);

	if (err || !d)
		return err;
	json_object_begin(j, "resident");
	json_string(j, "text", text);
	json_u64(j, "rss", d->now.rss);
	json_u64(j, "rss_before", d->before.rss);
	json_object_begin(j, "change");
	for (size_t i = 0; i < nr_items; i++)
		json_s64(j, items[i].key, items[i].bytes);
	json_object_end(j);
	json_u64(j, "ended_threads", d->now.nr_ended);
	json_object_end(j);
	return 0;
}

static int json_wrappers(struct json *j, const struct report *r, const struct report_process *p)
{
	const char *names[OWN_MAX_WRAPPERS];
	size_t nr = 0;
	int err = own_code_wrappers(r, p, names, &nr);

	json_array_begin(j, "wrappers");
	for (size_t i = 0; i < nr; i++)
		json_string(j, NULL, names[i]);
	json_array_end(j);
	return err;
}

static int json_verdict(struct json *j, const struct report *r, const struct report_process *p)
{
	auto_free struct report_row *rows = NULL;
	struct report_verdict v;
	size_t nr;
	int err = report_rows(r, p, &rows, &nr, NULL);

	if (!err)
		err = report_verdict(&v, r, p, rows, nr);
	if (!err)
		json_string(j, "verdict", v.text);
	if (!err)
		err = json_residence(j, r, p, rows, nr);
	return err ? err : json_wrappers(j, r, p);
}

static void report_json_target(struct json *j, const struct report_process *p)
{
	const struct target *t = p->target;

	json_u64(j, "pid", t->pid);
	json_string(j, "comm", t->comm);
	json_string(j, "exe", t->exe);
	json_bool(j, "started", t->is_started);
	json_bool(j, "ended", t->has_exited);
	json_bool(j, "replaced", p->is_replaced);
	json_exit(j, t);
}

static void json_allocators(struct json *j, const struct report_process *p)
{
	json_array_begin(j, "allocators");
	for (size_t i = 0; i < p->nr_allocators; i++) {
		json_object_begin(j, NULL);
		json_string(j, "object", p->allocators[i].object);
		json_string(j, "kind", p->allocators[i].kind);
		json_object_end(j);
	}
	json_array_end(j);
	json_bool(j, "watched", !p->unwatched);
	json_string(j, "unwatched_reason", p->unwatched);
	json_string(j, "unwatched_help", p->unwatched_help);
}

/* Sums of this heap are estimates. */
static void json_samples(struct json *j, const struct heap *heap)
{
	struct heap_samples n = heap_samples(heap);

	json_bool(j, "estimated", true);
	json_object_begin(j, "samples");
	json_u64(j, "seen", n.seen);
	json_u64(j, "live", n.live);
	json_object_end(j);
}

static void json_totals(struct json *j, const struct heap *heap)
{
	struct heap_totals t = heap_totals(heap);

	json_object_begin(j, "totals");
	json_u64(j, "allocs", t.allocs);
	json_u64(j, "frees", t.frees);
	json_u64(j, "alloc_bytes", t.alloc_bytes);
	json_u64(j, "live_blocks", t.live_blocks);
	json_u64(j, "live_bytes", t.live_bytes);
	json_u64(j, "peak_bytes", t.peak_bytes);
	json_u64(j, "peak_time_ns", t.peak_time_ns);
	json_u64(j, "temporary", t.temporary);
	json_u64(j, "unknown_frees", t.unknown_frees);
	json_u64(j, "failed_allocs", t.failed_allocs);
	json_u64(j, "collisions", t.collisions);
	json_u64(j, "pending_blocks", heap_pending(heap)); /* in reallocs that have not returned */
	if (HAS_SAMPLES && heap_sample_bytes(heap))
		estimate_json_all(j, heap);
	json_object_end(j);
}

/* One number of each point. The extremes are those since the point before. */
static void json_column(struct json *j, const struct heap *heap, const char *name, size_t field)
{
	struct timeline_point p;

	json_array_begin(j, name);
	for (size_t i = 0; heap_timeline(heap, i, &p); i++)
		json_u64(j, NULL, *(const u64 *)((const char *)&p + field));
	json_array_end(j);
}

static void json_timeline(struct json *j, const struct heap *heap)
{
	json_object_begin(j, "timeline");
	json_column(j, heap, "time_ns", offsetof(struct timeline_point, time_ns));
	json_column(j, heap, "bytes", offsetof(struct timeline_point, live_bytes));
	json_column(j, heap, "blocks", offsetof(struct timeline_point, live_blocks));
	json_column(j, heap, "min_bytes", offsetof(struct timeline_point, min_bytes));
	json_column(j, heap, "max_bytes", offsetof(struct timeline_point, max_bytes));
	json_object_end(j);
}

static void json_functions(struct json *j, const struct heap *heap)
{
	const struct alloc_table *fns = heap_functions(heap);

	json_object_begin(j, "functions");
	for (size_t fn = 1; fn < alloc_fn_count(fns); fn++) {
		u64 calls = report_calls(heap, fn);

		if (calls)
			json_u64(j, alloc_fn(fns, fn)->name, calls);
	}
	json_object_end(j);
}

static void json_lost(struct json *j, const struct report_process *p)
{
	struct losses lost = report_losses(p);

	json_object_begin(j, "lost");
	json_u64(j, "allocs", lost.allocs);
	json_u64(j, "frees", lost.frees);
	json_u64(j, "stacks", lost.stacks);
	json_u64(j, "other", lost.other);
	json_object_end(j);
}

static void json_folded(struct json *j, const struct heap *heap)
{
	struct fold_counts folded = heap_folded(heap);

	json_object_begin(j, "folded");
	json_u64(j, "callers", folded.callers);
	json_u64(j, "live_callers", folded.live_callers);
	json_object_end(j);
}

void report_json_sum(struct json *j, const char *name, const struct scan_sum *sum)
{
	json_object_begin(j, name);
	json_u64(j, "blocks", sum->blocks);
	json_u64(j, "bytes", sum->bytes);
	json_object_end(j);
}

static void json_sums(struct json *j, const struct scan_sums *sums)
{
	static const enum scan_verdict verdicts[] = { SCAN_DEFINITE, SCAN_INDIRECT, SCAN_POSSIBLE,
						      SCAN_REACHABLE, SCAN_UNSURE };

	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		report_json_sum(j, scan_verdict_name(verdicts[i]), &sums->of[verdicts[i]]);
}

/* All blocks, also those that are no samples; null: sampled blocks were judged alone. */
static void json_books(struct json *j, const struct leak_books *books)
{
	if (!*books->allocator) {
		json_null(j, "books");
		return;
	}
	json_object_begin(j, "books");
	json_string(j, "allocator", books->allocator);
	json_sums(j, &books->sums);
	json_object_end(j);
}

static int json_scan(struct json *j, const struct report *r, const struct report_process *p,
		     const struct caller_ids *ids)
{
	const struct leaks *l = p->leaks;
	int err;

	if (!l) {
		json_null(j, "scan");
		return 0;
	}
	json_object_begin(j, "scan");
	json_sums(j, &l->result.sums);
	report_json_sum(j, "suppressed", &l->suppressed);
	report_json_sum(j, "left_out", &l->left_out); /* by --leaks */
	if (l->has_before) {
		report_json_sum(j, "new", &l->fresh);
		report_json_sum(j, "found_again", &l->again);
	}
	if (HAS_SAMPLES && (heap_sample_bytes(p->heap) || *l->books.allocator))
		json_books(j, &l->books);
	json_u64(j, "pause_ns", l->pause_ns);
	json_bool(j, "copied", l->is_copied);
	json_u64(j, "scanned_bytes", l->result.scanned_bytes);
	json_u64(j, "skipped_bytes", l->result.skipped_bytes);
	json_u64(j, "unstopped_threads", l->result.nr_unstopped);
	json_u64(j, "overlapping_blocks", l->result.nr_overlaps);
	if (!IS_AGENT)
		report_hint_json(j, &l->result);
	json_bool(j, "partial", l->is_partial); /* blocks may be alive that nobody saw allocated */
	err = !IS_AGENT && l->asked ? report_why_json(j, "why", r, p, ids, l->asked) : 0;
	json_object_end(j);
	return err;
}

void report_json_id(struct json *j, const char *key, const struct caller_ids *ids, u32 row)
{
	char hex[CALLER_ID_TEXT];

	caller_id_text(ids, row, hex);
	json_string(j, key, hex);
}

void report_json_build_id(struct json *j, const struct module *m)
{
	char hex[2 * BUILD_ID_MAX + 1];

	if (!m || !m->build_id_len || m->build_id_len > BUILD_ID_MAX) {
		json_null(j, "build_id");
		return;
	}
	digits_bytes(hex, m->build_id, m->build_id_len);
	json_string(j, "build_id", hex);
}

/* The allocations and the live blocks of each thread, in order of first use. */
int report_json_threads(struct json *j, const struct report_process *p)
{
	auto_free struct scan_sum *live = NULL;
	struct thread_row row;
	int err = report_threads(p, &live);

	if (err)
		return err;
	json_array_begin(j, "threads");
	json_fold(j, FOLD_ITEMS);
	for (size_t i = 0; heap_thread(p->heap, i, &row); i++) {
		const struct scan_sum sum = { row.allocs, row.alloc_bytes };

		if (!row.allocs)
			continue;
		json_object_begin(j, NULL);
		json_string(j, "name", report_thread_name(p, &row));
		json_known(j, "tid", row.tid); /* threads without a row */
		report_json_sum(j, "allocated", &sum);
		report_json_sum(j, "live", &live[i]);
		json_object_end(j);
	}
	json_array_end(j);
	json_fold(j, FOLD_PROCESS);
	return 0;
}

static void json_module(struct json *j, const struct report_module *m, bool is_scanned)
{
	json_object_begin(j, NULL);
	json_string(j, "module", m->module ? module_name(m->module) : NULL);
	json_u64(j, "callers", m->nr_callers);
	report_json_sum(j, "allocated", &m->allocated);
	report_json_sum(j, "live", &m->live);
	if (is_scanned)
		report_json_sum(j, "leaked", &m->leaked);
	json_u64(j, "at_peak_bytes", m->peak_bytes);
	json_object_end(j);
}

/* Callers by the file of their first frame. */
static int json_modules(struct json *j, const struct report *r, const struct report_process *p,
			const struct report_row *rows, size_t nr_rows)
{
	auto_free struct report_module *list = NULL;
	size_t nr;
	int err = report_modules(r, p, rows, nr_rows, &list, &nr);

	if (err)
		return err;
	json_array_begin(j, "modules");
	json_fold(j, FOLD_ITEMS);
	for (size_t i = 0; i < nr; i++)
		json_module(j, &list[i], p->leaks);
	json_array_end(j);
	json_fold(j, FOLD_PROCESS);
	return 0;
}

static void json_growth(struct json *j, const struct trend *trend)
{
	struct trend_growth g;

	if (!trend || !trend_growth(trend, &g)) {
		json_null(j, "growth");
		return;
	}
	/* The minimum of live bytes in the second third of the time, and in the last third. */
	json_object_begin(j, "growth");
	json_u64(j, "before_bytes", g.before);
	json_u64(j, "after_bytes", g.after);
	json_object_end(j);
}

/* Write the id of a caller of this report, or null if no stack was taken. */
static void json_stack_of(struct json *j, const char *key, const struct heap *heap,
			  const struct caller_ids *ids, u32 row)
{
	u64 stack = row == MISUSE_NO_ROW ? STACK_NONE : heap_row_get(heap, row).stack;

	if (stack < STACK_FIRST_ID)
		json_null(j, key);
	else
		report_json_id(j, key, ids, row);
}

static void json_errors(struct json *j, const struct report_process *p, const struct caller_ids *ids)
{
	const struct heap *heap = p->heap;
	struct misuse_counts counts = heap_misuse_counts(heap);
	size_t nr;
	const struct misuse *list = heap_misuses(heap, &nr);

	json_array_begin(j, "errors");
	for (const struct misuse *m = list; m < list + nr; m++) {
		json_object_begin(j, NULL);
		json_string(j, "kind", misuse_name(m->kind));
		json_string(j, "function", alloc_fn(heap_functions(heap), m->fn)->name);
		json_hex(j, "address", m->addr);
		json_u64(j, "count", m->count);
		json_stack_of(j, "alloc_stack", heap, ids, m->alloc_row);
		json_stack_of(j, "free_stack", heap, ids, m->free_row);
		json_stack_of(j, "earlier_free_stack", heap, ids, m->earlier_row);
		json_u64(j, "inside", m->inside); /* bytes into the block of alloc_stack */
		if (m->kind == MISUSE_SIZE) {
			json_u64(j, "block_bytes", m->asked);
			json_u64(j, "said_bytes", m->said); /* by the release */
		} else if (misuse_has_numbers(m)) {
			json_u64(j, "block_alignment", m->asked);
			json_u64(j, "said_alignment", m->said);
		}
		json_object_end(j);
	}
	json_array_end(j);
	json_bool(j, "checked", heap_is_checked(heap) && !p->unwatched);
	json_u64(j, "errors_dropped", counts.nr_dropped);
	json_u64(j, "errors_unsure", counts.nr_unsure); /* releases that may have been right */
}

static void json_notices(struct json *j, const struct heap *heap, const struct caller_ids *ids)
{
	const struct misuse_notice *n = heap_notices(heap);

	json_array_begin(j, "notices");
	for (int kind = 0; n && kind < NR_NOTICES_KINDS; kind++) {
		if (!n[kind].count)
			continue;
		json_object_begin(j, NULL);
		json_string(j, "kind", notice_name(kind));
		json_u64(j, "count", n[kind].count);
		json_stack_of(j, "stack", heap, ids, n[kind].row);
		json_object_end(j);
	}
	json_array_end(j);
}

int report_json_process(struct json *j, const struct report *r, const struct report_process *p,
			const struct caller_ids *ids)
{
	int err;

	report_json_target(j, p);
	err = IS_AGENT ? 0 : json_verdict(j, r, p);
	if (err)
		return err;
	json_allocators(j, p);
	if (HAS_SAMPLES && heap_sample_bytes(p->heap))
		json_samples(j, p->heap);
	json_totals(j, p->heap);
	json_timeline(j, p->heap);
	json_growth(j, p->trend);
	json_functions(j, p->heap);
	json_lost(j, p);
	json_folded(j, p->heap);
	json_array_begin(j, "notes");
	for (size_t i = 0; i < p->nr_notes; i++)
		json_string(j, NULL, p->notes[i]);
	json_array_end(j);
	err = json_scan(j, r, p, ids);
	json_errors(j, p, ids);
	json_notices(j, p->heap, ids);
	json_u64(j, "changed_ids", ids->nr_changed); /* callers whose id was taken */
	if (!IS_AGENT && r->options.libraries)
		report_libraries_json(j, p);
	return err;
}

static void json_between(struct json *j, const struct span_course *c)
{
	static const char *const names[] = { "from_ns", "to_ns", "at_ns" };

	if (!c)
		return;
	json_object_begin(j, "between");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		json_u64(j, names[i], c->times[i] - c->start_ns);
	json_object_end(j);
}

static void json_window(struct json *j, const struct report_window *w)
{
	if (!w->number)
		return;
	json_object_begin(j, "window");
	json_u64(j, "number", w->number);
	json_u64(j, "seen_ns", w->seen_ns);
	json_u64(j, "whole_ns", w->whole_ns);
	json_u64(j, "scale_permille", report_window_permille(w));
	json_object_end(j);
}

static void json_marks(struct json *j, const struct report_marks *m)
{
	json_array_begin(j, "marks");
	for (size_t i = 0; m && i < m->nr; i++) {
		json_object_begin(j, NULL);
		json_u64(j, "time_ns", m->list[i].time_ns);
		json_string(j, "name", m->list[i].name);
		json_object_end(j);
	}
	json_array_end(j);
	json_u64(j, "marks_left_out", m ? m->nr_left_out : 0);
}

void report_json_head(struct json *j, const struct report *r)
{
	json_string(j, "version", HEAPTAP_VERSION);
	json_string(j, "backend", r->backend);
	json_u64(j, "time_ns", r->time_ns);
	json_u64(j, "duration_ns", r->duration_ns);
	json_known(j, "sample_bytes", HAS_SAMPLES ? report_sample_bytes(r) : 0);
	json_bool(j, "broken_off", r->is_broken_off);
	json_window(j, &r->window);
	json_between(j, r->between);
	json_marks(j, r->marks);
	if (!r->options.min_size && !r->options.max_size)
		return;
	json_object_begin(j, "filter");
	json_u64(j, "min_size", r->options.min_size);
	json_u64(j, "max_size", r->options.max_size);
	json_object_end(j);
}

static void json_cost(struct json *j, const struct report_cost *cost)
{
	if (!cost->cpu_ns)
		return;
	json_object_begin(j, "cost");
	json_u64(j, "events", cost->events);
	json_u64(j, "cpu_ns", cost->cpu_ns);
	if (cost->call_ns) {
		json_u64(j, "call_ns", cost->call_ns);
		json_u64(j, "inline_call_ns", cost->inline_call_ns);
		json_u64(j, "probes_permille", cost->probes_permille);
	}
	json_object_end(j);
}

void report_json_tail(struct json *j, const struct report *r)
{
	json_cost(j, &r->cost);
	json_u64(j, "stray_events", r->nr_strays); /* of processes that nobody asked for */
	json_u64(j, "stale_modules", r->symbolizer ? symbolizer_stale(r->symbolizer) : 0);
	if (r->is_short)
		json_bool(j, "short", true);
	json_u64(j, "unread_modules", r->symbolizer ? symbolizer_unread(r->symbolizer) : 0);
}

/* One process while it is written. */
struct json_rows {
	struct json *j;
	struct json_tables *tables;
	const struct report *report;
	const struct report_process *process;
	struct caller_ids ids;
};

static void report_json_put_number(struct json *j, const char *key, u64 number)
{
	if (number)
		json_u64(j, key, number);
}

static void put_sum(struct json *j, const char *key, const struct scan_sum *sum)
{
	if (sum->blocks || sum->bytes)
		report_json_sum(j, key, sum);
}

static void report_json_put_numbers(struct json *j, const struct report_process *p,
				    const struct report_row *row)
{
	const struct heap_row *h = &row->row;

	report_json_put_number(j, "allocs", h->allocs);
	report_json_put_number(j, "frees", h->frees);
	report_json_put_number(j, "alloc_bytes", h->alloc_bytes);
	report_json_put_number(j, "live_blocks", h->live_blocks);
	report_json_put_number(j, "live_bytes", h->live_bytes);
	report_json_put_number(j, "peak_bytes", h->peak_bytes);
	report_json_put_number(j, "temporary", h->temporary);
	report_json_put_number(j, "folded", h->nr_folded);
	if (p->reported && row->grown)
		json_s64(j, "grown", row->grown);
	if (HAS_SAMPLES && heap_sample_bytes(p->heap))
		estimate_json_row(j, p->heap, h);
}

static int put_leaks(struct json_rows *w, const struct report_row *row)
{
	static const enum scan_verdict verdicts[] = { SCAN_DEFINITE, SCAN_INDIRECT, SCAN_POSSIBLE,
						      SCAN_REACHABLE, SCAN_UNSURE };

	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		put_sum(w->j, scan_verdict_name(verdicts[i]), &row->leaks.sums.of[verdicts[i]]);
	put_sum(w->j, "indirect_through", &row->leaks.through);
	put_sum(w->j, "suppressed", &row->leaks.suppressed);
	if (IS_AGENT || !row->why)
		return 0;
	return report_why_json(w->j, "why", w->report, w->process, &w->ids, row->why);
}

/* The function and line that the caller is named by. */
static int report_json_put_place(const struct json_rows *w, const struct report_row *row)
{
	char place[OWN_PLACE_MAX];
	int err = own_code_name(w->report, w->process, row->row.stack, place);

	if (*place)
		json_string(w->j, "place", place);
	return err;
}

static int report_json_put_row(struct json_rows *w, const struct report_row *row)
{
	const struct alloc_fn *fn = alloc_fn(heap_functions(w->process->heap), row->row.fn);
	const char *truncated;
	const struct stack *s = report_stack(w->process, row, &truncated);
	u32 number;
	int err = s ? json_tables_stack(w->tables, w->process, s, &number) : 0;

	if (err)
		return err;
	json_object_begin(w->j, NULL);
	report_json_id(w->j, "id", &w->ids, row->id);
	if (s)
		json_u64(w->j, "backtrace", number);
	if (truncated)
		json_string(w->j, "truncated", truncated);
	json_string(w->j, "function", fn->name);
	json_string(w->j, "family", alloc_family_name(fn->family));
	err = IS_AGENT ? 0 : report_json_put_place(w, row);
	report_json_put_numbers(w->j, w->process, row);
	if (!err && w->process->leaks)
		err = put_leaks(w, row);
	json_object_end(w->j);
	return err;
}

/* The keys "threads" and "modules", which the agent leaves out to be small. */
static int put_sums(const struct json_rows *w, const struct report_row *rows, size_t nr)
{
	int err = IS_AGENT ? 0 : report_json_threads(w->j, w->process);

	return IS_AGENT || err ? err : json_modules(w->j, w->report, w->process, rows, nr);
}

static int report_json_put_callers(struct json_rows *w)
{
	auto_free struct report_row *rows = NULL;
	size_t nr = 0;
	int err = report_rows(w->report, w->process, &rows, &nr, NULL);

	if (!err)
		err = put_sums(w, rows, nr);
	json_fold(w->j, FOLD_ITEMS);
	json_array_begin(w->j, "stacks");
	for (size_t i = 0; i < nr && !err; i++)
		err = report_json_put_row(w, &rows[i]);
	json_array_end(w->j);
	json_fold(w->j, FOLD_PROCESS);
	return err;
}

static int report_json_put_process(struct json *j, struct json_tables *tables, const struct report *r,
				   const struct report_process *p)
{
	struct json_rows w = { j, tables, r, p, { .list = NULL } };
	int err = caller_ids_init(&w.ids, r, p);

	json_object_begin(j, NULL);
	if (!err)
		err = report_json_process(j, r, p, &w.ids);
	if (!err)
		err = report_json_put_callers(&w);
	json_object_end(j);
	caller_ids_fini(&w.ids);
	return err;
}

int report_json(FILE *out, const struct report *r)
{
	struct json_tables tables;
	struct json j;
	int err = 0;

	json_tables_init(&tables, r);
	json_init(&j, out, FOLD_PROCESS);
	j.is_dense = true;
	json_object_begin(&j, NULL);
	json_string(&j, "schema", "heaptap-report/2");
	report_json_head(&j, r);
	json_array_begin(&j, "processes");
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = report_json_put_process(&j, &tables, r, &r->processes[i]);
	json_array_end(&j);
	if (!err)
		err = json_tables_write(&j, &tables);
	report_json_tail(&j, r);
	json_object_end(&j);
	json_tables_fini(&tables);
	return err ? err : flush_stream(out);
}
