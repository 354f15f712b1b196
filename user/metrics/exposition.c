/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One family of samples after the other, each with all of its rows: so OpenMetrics wants it. */
#include "user/metrics/exposition.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/clock.h"
#include "user/lib/escape.h"
#include "user/lib/proc.h"
#include "user/metrics/metrics_table.h"

enum field_type { FIELD_U64, FIELD_S64, FIELD_DOUBLE, FIELD_BOOL };

enum { NO_FLAG = SIZE_MAX };

/* A family of which each row of a list has at most one sample. */
struct family {
	const char *name, *type, *unit, *help; /* unit NULL = none */
	size_t flag; /* place of a bool: without it the row has no sample; or NO_FLAG */
	size_t field;
	enum field_type is;
};

#define GAUGE	"gauge"
#define COUNTER "counter"

#define P(field)   offsetof(struct metrics_process, field)
#define C(field)   offsetof(struct metrics_caller, field)
#define BOX(field) offsetof(struct metrics_container, field)

/* clang-format off: one row, one look */
static const struct family of_processes[] = {
	{ "heaptap_process_resident_bytes", GAUGE, "bytes", "resident memory", P(is_watched), P(resident) },
	{ "heaptap_process_anonymous_bytes", GAUGE, "bytes", "resident memory of its own", P(is_watched),
	  P(anonymous) },
	{ "heaptap_process_swapped_bytes", GAUGE, "bytes", "swapped memory", P(is_watched), P(swapped) },
	{ "heaptap_process_growing", GAUGE, NULL, "1 = it surely grows", P(is_watched), P(grows),
	  FIELD_BOOL },
	{ "heaptap_process_growth_bytes_per_second", GAUGE, "bytes_per_second", "slope of its memory",
	  P(is_watched), P(growth), FIELD_DOUBLE },
	{ "heaptap_process_growth_error_bytes_per_second", GAUGE, "bytes_per_second",
	  "standard error of the slope", P(is_watched), P(growth_error), FIELD_DOUBLE },
	{ "heaptap_process_limit_reached_seconds", GAUGE, "seconds", "time until its memory meets a limit",
	  P(has_limit), P(limit_s), FIELD_DOUBLE },
	{ "heaptap_process_traced", GAUGE, NULL, "1 = its calls are traced now", NO_FLAG, P(is_traced),
	  FIELD_BOOL },
	{ "heaptap_process_cost_ratio", GAUGE, "ratio", "part of a CPU that tracing costs the process",
	  P(has_cost), P(cost), FIELD_DOUBLE },
	{ "heaptap_heap_live_bytes", GAUGE, "bytes",
	  "live bytes that were allocated while it was traced; an estimate with --sample", P(has_heap),
	  P(totals.live_bytes) },
	{ "heaptap_heap_live_blocks", GAUGE, "blocks", "live blocks", P(has_heap), P(totals.live_blocks) },
	{ "heaptap_heap_peak_bytes", GAUGE, "bytes", "most live bytes so far", P(has_heap),
	  P(totals.peak_bytes) },
	{ "heaptap_heap_allocations", COUNTER, NULL, "blocks allocated", P(has_heap), P(totals.allocs) },
	{ "heaptap_heap_releases", COUNTER, NULL, "blocks freed", P(has_heap), P(totals.frees) },
	{ "heaptap_heap_allocated_bytes", COUNTER, "bytes", "bytes allocated", P(has_heap),
	  P(totals.alloc_bytes) },
	{ "heaptap_heap_verdict_timestamp_seconds", GAUGE, "seconds", "time of the last leak verdict",
	  P(has_verdict), P(verdict_s), FIELD_DOUBLE },
	{ "heaptap_heap_window_ratio", GAUGE, "ratio",
	  "traced in windows: time since the first one by the time of this one, of which the heap is",
	  P(is_window), P(scale), FIELD_DOUBLE },
	{ "heaptap_heap_verdict_window_ratio", GAUGE, "ratio", "likewise, at the last leak verdict",
	  P(is_verdict_of_window), P(verdict_scale), FIELD_DOUBLE },
};

static const struct family of_callers[] = {
	{ "heaptap_caller_live_bytes", GAUGE, "bytes", "live bytes of a caller; an estimate with --sample",
	  NO_FLAG, C(live_bytes) },
	{ "heaptap_caller_live_blocks", GAUGE, "blocks", "live blocks of a caller", NO_FLAG, C(live_blocks) },
	{ "heaptap_caller_grown_bytes", GAUGE, "bytes", "growth of its live bytes since the last report",
	  NO_FLAG, C(grown), FIELD_S64 },
	{ "heaptap_caller_allocations", COUNTER, NULL, "blocks that a caller allocated", NO_FLAG, C(allocs) },
	{ "heaptap_caller_allocated_bytes", COUNTER, "bytes", "bytes that a caller allocated", NO_FLAG,
	  C(alloc_bytes) },
};

static const struct family of_containers[] = {
	{ "heaptap_container_processes", GAUGE, NULL, "watched processes of a container", NO_FLAG, BOX(nr) },
	{ "heaptap_container_resident_bytes", GAUGE, "bytes", "resident memory of its processes", NO_FLAG,
	  BOX(resident) },
	{ "heaptap_container_anonymous_bytes", GAUGE, "bytes", "memory of their own", NO_FLAG,
	  BOX(anonymous) },
	{ "heaptap_container_growth_bytes_per_second", GAUGE, "bytes_per_second", "sum of the slopes",
	  NO_FLAG, BOX(growth), FIELD_DOUBLE },
	{ "heaptap_container_live_bytes", GAUGE, "bytes", "live bytes of those that are traced", NO_FLAG,
	  BOX(live_bytes) },
	{ "heaptap_container_lost_bytes", GAUGE, "bytes", "leaked bytes at their last verdicts", NO_FLAG,
	  BOX(lost_bytes) },
};
/* clang-format on */

/* ---- text ---- */

/* Text of a target as a label: printable UTF-8, as escape_text() makes it, in the escapes of the format. */
static void put_value(FILE *out, const char *text, bool is_escaped)
{
	char safe[4 * METRICS_WHERE];

	for (const char *c = is_escaped ? text : escape_buf(safe, sizeof(safe), text); *c; c++) {
		if (*c == '\\' || *c == '"')
			putc('\\', out);
		putc(*c, out);
	}
}

/* @before: what is in the braces so far. */
static void exposition_put_label(FILE *out, const char **before, const char *key, const char *value,
				 bool is_escaped)
{
	if (!*value)
		return;
	fprintf(out, "%s%s=\"", *before, key);
	put_value(out, value, is_escaped);
	putc('"', out);
	*before = ",";
}

static void exposition_put_head(FILE *out, const char *name, const char *type, const char *unit,
				const char *help)
{
	fprintf(out, "# TYPE %s %s\n", name, type);
	if (unit)
		fprintf(out, "# UNIT %s %s\n", name, unit);
	fprintf(out, "# HELP %s %s\n", name, help);
}

static const char *exposition_suffix(const char *type)
{
	return !strcmp(type, COUNTER) ? "_total" : "";
}

static void put_field(FILE *out, const void *row, const struct family *f)
{
	const char *at = (const char *)row + f->field;

	switch (f->is) {
	case FIELD_U64:
		fprintf(out, " %" PRIu64 "\n", *(const u64 *)at);
		break;
	case FIELD_S64:
		fprintf(out, " %" PRId64 "\n", *(const s64 *)at);
		break;
	case FIELD_DOUBLE:
		fprintf(out, " %.6f\n", *(const double *)at);
		break;
	case FIELD_BOOL:
		fprintf(out, " %d\n", *(const bool *)at);
		break;
	}
}

static bool has_sample(const void *row, const struct family *f)
{
	return f->flag == NO_FLAG || *(const bool *)((const char *)row + f->flag);
}

/* ---- rows ---- */

static void exposition_put_process(FILE *out, const char **before, const struct metrics_process *p)
{
	fprintf(out, "%spid=\"%d\"", *before, (int)p->pid);
	*before = ",";
	exposition_put_label(out, before, "comm", p->comm, false);
	exposition_put_label(out, before, "container", p->container, false);
	exposition_put_label(out, before, "pod", p->pod, false);
}

static void exposition_put_caller(FILE *out, const char **before, const struct metrics_table *t,
				  const struct metrics_caller *c)
{
	exposition_put_process(out, before, &t->processes[c->process]);
	exposition_put_label(out, before, "function", c->function, false);
	exposition_put_label(out, before, "caller", c->where, true);
}

static void put_processes(FILE *out, const struct metrics_table *t, const struct family *f)
{
	exposition_put_head(out, f->name, f->type, f->unit, f->help);
	for (size_t i = 0; i < t->nr_processes; i++) {
		const char *before = "";

		if (!has_sample(&t->processes[i], f))
			continue;
		fprintf(out, "%s%s{", f->name, exposition_suffix(f->type));
		exposition_put_process(out, &before, &t->processes[i]);
		putc('}', out);
		put_field(out, &t->processes[i], f);
	}
}

static void exposition_put_callers(FILE *out, const struct metrics_table *t, const struct family *f)
{
	exposition_put_head(out, f->name, f->type, f->unit, f->help);
	for (size_t i = 0; i < t->nr_callers; i++) {
		const char *before = "";

		fprintf(out, "%s%s{", f->name, exposition_suffix(f->type));
		exposition_put_caller(out, &before, t, &t->callers[i]);
		putc('}', out);
		put_field(out, &t->callers[i], f);
	}
}

static void put_containers(FILE *out, const struct metrics_table *t, const struct family *f)
{
	exposition_put_head(out, f->name, f->type, f->unit, f->help);
	for (size_t i = 0; i < t->nr_containers; i++) {
		const char *before = "";

		fprintf(out, "%s%s{", f->name, exposition_suffix(f->type));
		exposition_put_label(out, &before, "container", t->containers[i].container, false);
		exposition_put_label(out, &before, "pod", t->containers[i].pod, false);
		putc('}', out);
		put_field(out, &t->containers[i], f);
	}
}

/* ---- families with a label of their own ---- */

static const char *const verdict_names[] = {
	[SCAN_REACHABLE] = "reachable", [SCAN_POSSIBLE] = "possible", [SCAN_DEFINITE] = "definite",
	[SCAN_INDIRECT] = "indirect",	[SCAN_UNSURE] = "unsure",
};
_Static_assert(ARRAY_SIZE(verdict_names) == NR_SCAN_VERDICTS, "a name for each verdict");

static void exposition_put_verdicts(FILE *out, const struct metrics_table *t, bool is_blocks)
{
	const char *unit = is_blocks ? "blocks" : "bytes";
	char name[64];

	snprintf(name, sizeof(name), "heaptap_heap_verdict_%s", unit);
	exposition_put_head(out, name, GAUGE, unit, "live at the last leak verdict, by what it says");
	for (size_t i = 0; i < t->nr_processes; i++) {
		const struct metrics_process *p = &t->processes[i];

		for (size_t v = SCAN_REACHABLE; v < NR_SCAN_VERDICTS && p->has_verdict; v++) {
			const char *before = "";

			fprintf(out, "%s{", name);
			exposition_put_process(out, &before, p);
			fprintf(out, ",verdict=\"%s\"} %" PRIu64 "\n", verdict_names[v],
				is_blocks ? p->leaks.of[v].blocks : p->leaks.of[v].bytes);
		}
	}
}

/* Only what is not 0: most callers have one verdict. */
static void put_caller_verdicts(FILE *out, const struct metrics_table *t)
{
	const char *name = "heaptap_caller_verdict_bytes";

	exposition_put_head(out, name, GAUGE, "bytes",
			    "bytes of a caller at the last leak verdict, by what it says");
	for (size_t i = 0; i < t->nr_callers; i++) {
		const struct metrics_caller *c = &t->callers[i];

		for (size_t v = SCAN_REACHABLE; v < NR_SCAN_VERDICTS && c->has_verdict; v++) {
			const char *before = "";

			if (!c->leaks.of[v].bytes)
				continue;
			fprintf(out, "%s{", name);
			exposition_put_caller(out, &before, t, c);
			fprintf(out, ",verdict=\"%s\"} %" PRIu64 "\n", verdict_names[v],
				c->leaks.of[v].bytes);
		}
	}
}

static void put_losses(FILE *out, const struct metrics_table *t)
{
	static const struct {
		const char *kind;
		size_t field;
	} kinds[] = {
		{ "allocs", offsetof(struct losses, allocs) },
		{ "frees", offsetof(struct losses, frees) },
		{ "stacks", offsetof(struct losses, stacks) },
		{ "other", offsetof(struct losses, other) },
	};

	exposition_put_head(out, "heaptap_heap_lost_events", COUNTER, NULL, "events that were lost");
	for (size_t i = 0; i < t->nr_processes; i++) {
		const struct metrics_process *p = &t->processes[i];

		for (size_t k = 0; k < ARRAY_SIZE(kinds) && p->has_heap; k++) {
			const char *before = "";

			fputs("heaptap_heap_lost_events_total{", out);
			exposition_put_process(out, &before, p);
			fprintf(out, ",kind=\"%s\"} %" PRIu64 "\n", kinds[k].kind,
				*(const u64 *)((const char *)&p->lost + kinds[k].field));
		}
	}
}

/* ---- heaptap itself ---- */

static void put_own(FILE *out, const struct metrics_table *t)
{
	struct proc_status status;

	exposition_put_head(out, "heaptap_build", "info", NULL, "this program");
	fputs("heaptap_build_info{version=\"" HEAPTAP_VERSION "\"} 1\n", out);
	exposition_put_head(out, "heaptap_snapshot_timestamp_seconds", GAUGE, "seconds",
			    "when these samples were taken");
	fprintf(out, "heaptap_snapshot_timestamp_seconds %.3f\n", t->time_s);
	exposition_put_head(out, "heaptap_own_cpu_seconds", COUNTER, "seconds", "CPU time of heaptap");
	fprintf(out, "heaptap_own_cpu_seconds_total %.6f\n",
		(double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
	if (!proc_read_status(&status, getpid())) {
		exposition_put_head(out, "heaptap_own_resident_bytes", GAUGE, "bytes",
				    "resident memory of heaptap");
		fprintf(out, "heaptap_own_resident_bytes %" PRIu64 "\n", status.resident_bytes);
	}
	exposition_put_head(out, "heaptap_left_out", GAUGE, NULL,
			    "processes, callers and containers beyond the bounds of this page");
	fprintf(out, "heaptap_left_out %" PRIu64 "\n", t->nr_left_out);
}

static void put_system(FILE *out, const struct metrics_table *t)
{
	exposition_put_head(out, "heaptap_processes", GAUGE, NULL, "processes of this machine");
	fprintf(out, "heaptap_processes{state=\"watched\"} %" PRIu64 "\n", t->nr_watched);
	fprintf(out, "heaptap_processes{state=\"growing\"} %" PRIu64 "\n", t->nr_growing);
	fprintf(out, "heaptap_processes{state=\"traced\"} %" PRIu64 "\n", t->nr_traced);
	exposition_put_head(out, "heaptap_unwatched_processes", COUNTER, NULL,
			    "processes that could not be watched");
	fprintf(out, "heaptap_unwatched_processes_total{why=\"evicted\"} %" PRIu64 "\n", t->nr_evicted);
	fprintf(out, "heaptap_unwatched_processes_total{why=\"unseen\"} %" PRIu64 "\n", t->nr_unseen);
	exposition_put_head(out, "heaptap_tracing_cost_ratio", GAUGE, "ratio",
			    "part of a CPU that tracing costs all processes");
	fprintf(out, "heaptap_tracing_cost_ratio %.6f\n", t->targets_cost);
}

void exposition_write(FILE *out, const struct metrics_table *t)
{
	put_own(out, t);
	if (t->is_system)
		put_system(out, t);
	for (size_t i = 0; i < ARRAY_SIZE(of_processes); i++)
		put_processes(out, t, &of_processes[i]);
	exposition_put_verdicts(out, t, false);
	exposition_put_verdicts(out, t, true);
	put_losses(out, t);
	for (size_t i = 0; i < ARRAY_SIZE(of_callers); i++)
		exposition_put_callers(out, t, &of_callers[i]);
	put_caller_verdicts(out, t);
	for (size_t i = 0; i < ARRAY_SIZE(of_containers) && t->nr_containers; i++)
		put_containers(out, t, &of_containers[i]);
	fputs("# EOF\n", out);
}
