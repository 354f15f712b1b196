/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for ms_print and massif-visualizer: live bytes over time, with the callers at the peak and at the end. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "user/heap/timeline.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/log.h"
#include "user/names/symbolize.h"
#include "user/report/format.h"
#include "user/report/frames.h"
#include "user/report/measure.h"
#include "user/report/report_rows.h"
#include "user/target/target.h"

/* Sorts stacks by their frames, so that each subtree is a range of stacks, and writes the ranges, largest first. */

/* One caller with a value. */
struct leaf {
	struct report_frames stack; /* owned */
	u64 value;
};

/* A subtree: leaves with the same frames down to some depth. */
struct branch {
	size_t first, end;
	u64 value;
};

struct tree {
	FILE *out;
	const struct report *report;
	struct leaf *leaves; /* owned */
	size_t nr, max;
	u64 total;
};

static int massif_tree_compare_u64(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

static int compare_frames(const struct report_frame *a, const struct report_frame *b)
{
	int cmp = massif_tree_compare_u64(a->ref.module, b->ref.module);

	if (!cmp)
		cmp = massif_tree_compare_u64(a->ref.offset, b->ref.offset);
	return cmp ? cmp : massif_tree_compare_u64((uintptr_t)a->symbol, (uintptr_t)b->symbol);
}

static int compare_leaves(const void *pa, const void *pb)
{
	const struct leaf *a = pa, *b = pb;
	int cmp = 0;

	for (size_t i = 0; i < a->stack.nr && i < b->stack.nr && !cmp; i++)
		cmp = compare_frames(&a->stack.list[i], &b->stack.list[i]);
	return cmp ? cmp : massif_tree_compare_u64(a->stack.nr, b->stack.nr);
}

/* The largest first; equal ones in the order of their frames. */
static int compare_branches(const void *pa, const void *pb)
{
	const struct branch *a = pa, *b = pb;
	int cmp = massif_tree_compare_u64(b->value, a->value);

	return cmp ? cmp : massif_tree_compare_u64(a->first, b->first);
}

/* The branches of @from behind @depth frames. The caller owns *@out. 0 or -ENOMEM. */
static int find_branches(const struct tree *t, const struct branch *from, size_t depth, struct branch **out,
			 size_t *nr)
{
	auto_free struct branch *list = NULL;
	size_t count = 0, max = 0;

	for (size_t i = from->first; i < from->end; i++) {
		const struct leaf *leaf = &t->leaves[i];

		if (leaf->stack.nr <= depth)
			continue; /* ends here */
		if (count && !compare_frames(&t->leaves[list[count - 1].first].stack.list[depth],
					     &leaf->stack.list[depth])) {
			list[count - 1].end = i + 1;
			list[count - 1].value += leaf->value;
			continue;
		}
		if (array_reserve(list, max, count + 1))
			return -ENOMEM;
		list[count++] = (struct branch){ i, i + 1, leaf->value };
	}
	if (count)
		qsort(list, count, sizeof(*list), compare_branches);
	*out = take_ptr(list);
	*nr = count;
	return 0;
}

/* " 0x1234: make_node (list.c:42)", or " 0x1234: ??? (in /usr/bin/prog)" without a source file. */
static void massif_tree_put_place(const struct tree *t, const struct branch *b, size_t depth)
{
	struct report_frames *f = &t->leaves[b->first].stack;
	const struct symbol *s = f->list[depth].symbol;
	const struct module *m = module_get(t->report->modules, f->list[depth].ref.module);

	fprintf(t->out, " 0x%" PRIX64 ": ", f->list[depth].ref.offset);
	escape_text(t->out, s->function ? s->function : "???");
	if (s->file) {
		fputs(" (", t->out);
		escape_text(t->out, s->file);
		fprintf(t->out, ":%u)", s->line);
	} else if (m) {
		fputs(" (in ", t->out);
		escape_text(t->out, module_name(m));
		putc(')', t->out);
	}
}

/* Is @value less than 1 % of the whole tree? */
static bool is_small(const struct tree *t, u64 value)
{
	return value < t->total / 100 + (t->total % 100 != 0);
}

static void put_small(const struct tree *t, size_t depth, size_t nr, u64 value)
{
	fprintf(t->out, "%*sn0: %" PRIu64 " in %zu place%s, %sbelow massif's threshold (1.00%%)\n",
		(int)depth, "", value, nr, nr == 1 ? "" : "s", nr == 1 ? "" : "all ");
}

/* Blocks without a stack are a place of their own, so that the places of the root add up to it. */
static u64 without_stack(const struct tree *t)
{
	u64 value = 0;

	for (size_t i = 0; i < t->nr && !t->leaves[i].stack.nr; i++)
		value += t->leaves[i].value;
	return value;
}

/* Write the subtree @b, whose leaves have @depth frames in common. Deep at most as the longest stack. */
static int put_branch(const struct tree *t, const struct branch *b, size_t depth)
{
	auto_free struct branch *list = NULL;
	u64 bare = depth ? 0 : without_stack(t), small = 0;
	size_t nr, shown = 0;
	int err = find_branches(t, b, depth, &list, &nr);

	if (err)
		return err;
	while (shown < nr && !is_small(t, list[shown].value))
		shown++;
	for (size_t i = shown; i < nr; i++)
		small += list[i].value;
	fprintf(t->out, "%*sn%zu: %" PRIu64, (int)depth, "", shown + (shown < nr) + (bare != 0), b->value);
	if (depth)
		massif_tree_put_place(t, b, depth - 1);
	else
		fputs(" (heap allocation functions) malloc/new/new[], --alloc-fns, etc.", t->out);
	putc('\n', t->out);
	for (size_t i = 0; i < shown && !err; i++)
		err = put_branch(t, &list[i], depth + 1);
	if (bare)
		fprintf(t->out, " n0: %" PRIu64 " 0x0: ??? (no stack)\n", bare);
	if (shown < nr)
		put_small(t, depth + 1, nr - shown, small);
	return err;
}

static int add_leaves(struct tree *t, const struct report_process *p, const struct report_measure *m)
{
	auto_free struct report_row *rows = NULL;
	size_t nr = 0;
	int err = report_rows(t->report, p, &rows, &nr, NULL);

	for (size_t i = 0; i < nr && !err; i++) {
		struct leaf *leaf;

		if (!report_number(&rows[i], m->number))
			continue;
		err = array_reserve(t->leaves, t->max, t->nr + 1);
		if (err)
			return err;
		leaf = &t->leaves[t->nr++];
		*leaf = (struct leaf){ .value = report_number(&rows[i], m->number) };
		err = report_frames(&leaf->stack, t->report, p, &rows[i]);
	}
	return err;
}

/*
 * Write the tree of the callers of @p by @m, whose root is @total. Places with less than 1 % of @total share a line.
 * 0 or -ENOMEM.
 */
static int massif_tree(FILE *out, const struct report *r, const struct report_process *p,
		       const struct report_measure *m, u64 total)
{
	struct tree t = { .out = out, .report = r, .total = total };
	int err = add_leaves(&t, p, m);

	if (t.nr)
		qsort(t.leaves, t.nr, sizeof(*t.leaves), compare_leaves);
	if (!err)
		err = put_branch(&t, &(struct branch){ 0, t.nr, total }, 0);
	for (size_t i = 0; i < t.nr; i++)
		report_frames_fini(&t.leaves[i].stack);
	free(t.leaves);
	return err;
}

enum { NS_PER_MS = 1000000 };

/* The file that is being written. */
struct massif {
	FILE *out;
	const struct report *report;
	const struct report_process *process;
	u64 nr_snapshots;
};

/* A file of massif has one process: the one with the highest peak. */
static const struct report_process *report_massif_choose(const struct report *r)
{
	const struct report_process *best = r->processes;

	for (const struct report_process *p = best; p < r->processes + r->nr_processes; p++)
		if (heap_totals(p->heap).peak_bytes > heap_totals(best->heap).peak_bytes)
			best = p;
	return best;
}

/* Are they all programs that one process has executed? */
static bool is_one_process(const struct report *r)
{
	for (u32 i = 1; i < r->nr_processes; i++)
		if (r->processes[i].target->pid != r->processes[0].target->pid)
			return false;
	return true;
}

/* Say what is not in the file. %p in its name tells processes apart, and not the programs of one. */
static void warn_of_others(const struct massif *m)
{
	const struct report *r = m->report;
	int pid = (int)m->process->target->pid;

	if (r->nr_processes > 1 && is_one_process(r))
		warn("report: massif: a file holds one program, here the one of PID %d with the highest peak; "
		     "others that it executed are not in it",
		     pid);
	else if (r->nr_processes > 1)
		warn("report: massif: a file holds one process, here PID %d; use %%p in its name for a file each",
		     pid);
}

static void report_massif_put_head(struct massif *m)
{
	size_t nr = m->report->nr_processes;

	fprintf(m->out, "desc: heaptap " HEAPTAP_VERSION ", source %s, pid %d", m->report->backend,
		(int)m->process->target->pid);
	if (nr > 1)
		fprintf(m->out, "; %zu other %s are not in this file", nr - 1,
			is_one_process(m->report) ? "programs of it" : "processes");
	fputs("\ncmd: ", m->out);
	escape_text(m->out, m->process->target->exe ? m->process->target->exe : m->process->target->comm);
	fputs("\ntime_unit: ms\n", m->out);
}

/* The lines of a snapshot before its tree. */
static void put_snapshot(struct massif *m, u64 time_ns, u64 bytes)
{
	u64 start_ns = heap_totals(m->process->heap).first_time_ns;

	fprintf(m->out,
		"#-----------\nsnapshot=%" PRIu64 "\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRIu64
		"\nmem_heap_extra_B=0\nmem_stacks_B=0\n",
		m->nr_snapshots++, time_ns > start_ns ? (time_ns - start_ns) / NS_PER_MS : 0, bytes);
}

static int put_tree(struct massif *m, const char *kind, const char *measure, u64 total)
{
	fprintf(m->out, "heap_tree=%s\n", kind);
	return massif_tree(m->out, m->report, m->process, report_measure_named(measure), total);
}

/* The peak is between two points of the timeline. */
static int put_peak(struct massif *m)
{
	struct heap_totals t = heap_totals(m->process->heap);

	put_snapshot(m, t.peak_time_ns, t.peak_bytes);
	return put_tree(m, "peak", "peak", t.peak_bytes);
}

static int report_massif_put_process(struct massif *m)
{
	const struct heap *heap = m->process->heap;
	struct heap_totals t = heap_totals(heap);
	bool has_peak = !t.peak_bytes;
	struct timeline_point p;
	int err = 0;

	report_massif_put_head(m);
	for (size_t i = 0; heap_timeline(heap, i, &p) && !err; i++) {
		if (!has_peak && t.peak_time_ns <= p.time_ns) {
			has_peak = true;
			err = put_peak(m);
		}
		put_snapshot(m, p.time_ns, p.live_bytes);
		fputs("heap_tree=empty\n", m->out);
	}
	if (err)
		return err;
	put_snapshot(m, t.last_time_ns, t.live_bytes);
	return put_tree(m, "detailed", "live-bytes", t.live_bytes);
}

int report_massif(FILE *out, const struct report *r)
{
	struct massif m = { .out = out, .report = r };
	int err;

	if (!r->nr_processes)
		return flush_stream(out);
	m.process = report_massif_choose(r);
	warn_of_others(&m);
	err = report_massif_put_process(&m);
	return err ? err : flush_stream(out);
}
