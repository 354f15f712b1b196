/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for ms_print and massif-visualizer: live bytes over time, with the callers at the peak and at the end. */
#include <inttypes.h>

#include "user/heap/timeline.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/log.h"
#include "user/report/format.h"
#include "user/report/massif_tree.h"
#include "user/target/target.h"

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
