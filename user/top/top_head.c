/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The head of the screen. */
#include "user/top/top_head.h"

#include <stdio.h>
#include <string.h>

#include "user/lib/clock.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/report/estimate.h"
#include "user/scan/leaks.h"
#include "user/source/source.h"
#include "user/target/target.h"
#include "user/top/meter.h"
#include "user/top/top_rows.h"

static void top_head_take_name(struct top_head *h, const struct target *t)
{
	char comm[4 * TARGET_COMM_LEN];

	if (h->nr_processes == 1)
		snprintf(h->names, sizeof(h->names), "%s (pid %d)", escape_buf(comm, sizeof(comm), t->comm),
			 (int)t->pid);
	else
		snprintf(h->names, sizeof(h->names), "%zu processes", h->nr_processes);
}

static void take_leaks(struct top_head *h, const struct leaks *l)
{
	if (!l)
		return;
	h->nr_scanned++;
	for (size_t i = 0; i < ARRAY_SIZE(l->result.sums.of); i++) {
		h->leaks.of[i].blocks += l->result.sums.of[i].blocks;
		h->leaks.of[i].bytes += l->result.sums.of[i].bytes;
	}
	if (l->pause_ns > h->pause_ns)
		h->pause_ns = l->pause_ns;
}

static void top_head_take_note(struct top_head *h, const struct report_process *p)
{
	char text[200];

	if (*h->note)
		return;
	if (p->unwatched)
		snprintf(h->note, sizeof(h->note), "nothing can be watched: %s",
			 escape_buf(text, sizeof(text), p->unwatched));
	else if (p->nr_notes)
		escape_buf(h->note, sizeof(h->note), p->notes[0]);
}

static void top_head_take_process(struct top_head *h, const struct report_process *p)
{
	struct heap_totals totals = heap_totals(p->heap);

	h->nr_processes++;
	top_head_take_name(h, p->target);
	if (!p->target->has_exited) {
		h->nr_running++;
		h->pid = h->pid ? h->pid : p->target->pid;
	}
	h->is_sampled |= heap_sample_bytes(p->heap) != 0;
	h->live_bytes += totals.live_bytes;
	h->live_blocks += totals.live_blocks;
	h->peak_bytes += totals.peak_bytes;
	h->alloc_bytes += totals.alloc_bytes;
	h->allocs += totals.allocs;
	h->calls += totals.allocs + totals.frees + totals.unknown_frees + totals.failed_allocs;
	take_leaks(h, p->leaks);
	top_head_take_note(h, p);
}

void top_head_take(struct top_head *h, const struct report *r, const struct meter *meter, bool is_tick)
{
	const struct top_head old = *h;
	u64 past_ns = meter->now.time_ns - meter->before.time_ns;

	*h = (struct top_head){ .backend = r->backend,
				.duration_ns = r->duration_ns,
				.resident_bytes = old.resident_bytes,
				.call_cost_ns = old.call_cost_ns,
				.calls_per_s = old.calls_per_s };
	for (size_t i = 0; i < r->nr_processes; i++) {
		struct losses lost = report_losses(&r->processes[i]);

		h->lost += lost.allocs + lost.frees + lost.stacks + lost.other;
		if (top_shows_process(r, &r->processes[i]))
			top_head_take_process(h, &r->processes[i]);
	}
	if (is_tick)
		h->calls_per_s = past_ns && h->calls > old.calls
					 ? (u64)((double)(h->calls - old.calls) * 1e9 / (double)past_ns)
					 : 0;
	else
		h->calls = old.calls;
}

static void top_head_label(struct top_line *l, const char *text)
{
	/* Narrow screens have no room for it. */
	if (l->max_columns >= 50)
		top_line_cell(l, TOP_FAINT, -9, text);
}

/* Numbers of the heap, which may be estimates. */
static struct human top_head_bytes(const struct top_head *h, u64 bytes)
{
	return estimate_if(h->is_sampled, human_bytes(bytes));
}

static struct human top_head_count(const struct top_head *h, u64 n)
{
	return estimate_if(h->is_sampled, human_count(n));
}

static void live_line(const struct top_head *h, const struct top_head_look *look, struct top_line *l)
{
	u64 time_ns;
	s64 grown = meter_growth(look->meter, &time_ns);

	top_head_label(l, " live");
	top_line_item(l, TOP_STRONG, "%s", top_head_bytes(h, h->live_bytes).text);
	top_line_join(l, TOP_PLAIN, "in %s block%s", top_head_count(h, h->live_blocks).text,
		      h->live_blocks == 1 ? "" : "s");
	top_line_item(l, TOP_PLAIN, "%s%s in %llu s", h->is_sampled ? "~" : "", human_change(grown).text,
		      (unsigned long long)((time_ns + SECOND_NS / 2) / SECOND_NS));
	if (h->nr_processes == 1)
		top_line_item(l, TOP_PLAIN, "peak %s", top_head_bytes(h, h->peak_bytes).text);
	if (h->resident_bytes)
		top_line_item(l, TOP_PLAIN, "resident %s", human_bytes(h->resident_bytes).text);
	top_line_item(l, TOP_PLAIN, "allocated %s in all", top_head_bytes(h, h->alloc_bytes).text);
}

static void event_line(const struct top_head *h, const struct top_head_look *look, struct top_line *l)
{
	top_head_label(l, " events");
	top_line_item(l, TOP_STRONG, "%s/s", human_count(meter_events_per_s(look->meter)).text);
	if (h->lost)
		top_line_item(l, TOP_BAD, "lost %s", human_count(h->lost).text);
	else
		top_line_item(l, TOP_PLAIN, "lost nothing");
	top_line_item(l, TOP_PLAIN, "heaptap %s of a CPU",
		      human_percent(meter_cpu_permille(look->meter), 1000).text);
	if (h->call_cost_ns)
		top_line_item(l, TOP_PLAIN, "target pays %s a call, %s of a CPU",
			      human_duration(h->call_cost_ns).text,
			      human_percent(h->calls_per_s * h->call_cost_ns, SECOND_NS).text);
	else
		top_line_item(l, TOP_PLAIN, "target's cost not measured");
}

/* "just now", "12 s ago", "2m 05s ago" */
static void write_age(u64 ns, char *text, size_t size)
{
	u64 s = ns / SECOND_NS;

	if (!s)
		snprintf(text, size, "just now");
	else if (s < 60)
		snprintf(text, size, "%u s ago", (unsigned int)s);
	else
		snprintf(text, size, "%s ago", human_duration(ns).text);
}

static void leak_line(const struct top_head *h, const struct top_head_look *look, struct top_line *l)
{
	static const enum scan_verdict others[] = { SCAN_INDIRECT, SCAN_POSSIBLE, SCAN_UNSURE };
	const struct scan_sum *lost = &h->leaks.of[SCAN_DEFINITE];
	char age[80];

	top_head_label(l, " leaks");
	if (!h->nr_scanned) {
		top_line_item(l, TOP_FAINT, look->verdict_age_ns ? "no verdict" : "not looked for: press l");
		return;
	}
	if (lost->blocks)
		top_line_item(l, TOP_BAD, "%s in %s block%s definite", top_head_bytes(h, lost->bytes).text,
			      top_head_count(h, lost->blocks).text, lost->blocks == 1 ? "" : "s");
	else
		top_line_item(l, TOP_STRONG, "none definite");
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (h->leaks.of[others[i]].blocks)
			top_line_item(l, TOP_PLAIN, "%s %s",
				      top_head_bytes(h, h->leaks.of[others[i]].bytes).text,
				      scan_verdict_name(others[i]));
	write_age(look->verdict_age_ns, age, sizeof(age));
	top_line_item(l, TOP_FAINT, "%s", age);
	top_line_item(l, TOP_FAINT, "stopped for %s", human_duration(h->pause_ns).text);
}

static void title_line(const struct top_head *h, const struct top_head_look *look, struct top_line *l)
{
	u64 s = meter_elapsed_ns(look->meter) / SECOND_NS;
	char right[64];

	top_line_put(l, TOP_BAR, l->max_columns >= 50 ? " heaptap  " : " ");
	top_line_put(l, TOP_BAR, *h->names ? h->names : "no process yet");
	snprintf(right, sizeof(right), " %s%s  %llu:%02llu:%02llu ",
		 look->is_frozen		     ? "FROZEN  "
		 : h->nr_processes && !h->nr_running ? "ENDED  "
						     : "",
		 l->max_columns >= 50 && h->backend ? h->backend : "", (unsigned long long)(s / 3600),
		 (unsigned long long)(s / 60 % 60), (unsigned long long)(s % 60));
	while (l->columns + top_columns(right) < l->max_columns && top_line_put(l, TOP_BAR, " "))
		;
	if (l->columns + top_columns(right) <= l->max_columns)
		top_line_put(l, TOP_BAR, right);
	top_line_fill(l, TOP_BAR);
}

u32 top_head_lines(const struct top_head *h, const struct top_head_look *look, struct top_line *lines,
		   u32 max)
{
	static void (*const writers[])(const struct top_head *h, const struct top_head_look *look,
				       struct top_line *l) = { title_line, live_line, event_line, leak_line };
	u32 nr = 0;

	_Static_assert(ARRAY_SIZE(writers) < TOP_HEAD_LINES, "and a note");
	for (; nr < ARRAY_SIZE(writers) && nr < max; nr++)
		writers[nr](h, look, &lines[nr]);
	if (*h->note && nr < max)
		top_line_printf(&lines[nr++], TOP_WARN, " %s", h->note);
	return nr;
}
