/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for pprof: a compressed profile.proto. Each caller is a sample, or one for each verdict on its blocks. */
#include "user/report/pprof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/stacks.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/report/format.h"
#include "user/report/compressed.h"
#include "user/report/estimate.h"
#include "user/report/otlp.h"
#include "user/report/pprof_tables.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"
#include "user/scan/leaks.h"
#include "user/scan/scan.h"
#include "user/source/source.h"
#include "user/target/target.h"

enum { TEXT_MAX = 512 };
enum sample_field { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum label_field { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum value_type_field { VALUE_TYPE = 1, VALUE_UNIT };

/* The values of a sample, in order. */
enum value { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, LEAK_OBJECTS, LEAK_SPACE, NR_VALUES };

static const struct pprof_type sample_types[] = {
	[ALLOC_OBJECTS] = { "alloc_objects", "count" }, [ALLOC_SPACE] = { "alloc_space", "bytes" },
	[INUSE_OBJECTS] = { "inuse_objects", "count" }, [INUSE_SPACE] = { "inuse_space", "bytes" },
	[LEAK_OBJECTS] = { "leak_objects", "count" },	[LEAK_SPACE] = { "leak_space", "bytes" },
};
_Static_assert(ARRAY_SIZE(sample_types) == NR_VALUES, "a name for each value");

/* The verdicts that samples are split by. Lost blocks are those of the first two. */
static const enum scan_verdict verdicts[] = { SCAN_DEFINITE, SCAN_INDIRECT, SCAN_POSSIBLE, SCAN_REACHABLE,
					      SCAN_UNSURE };
enum { NR_LOST = 2 };

/* The values that readers show first. */
static const enum value first_values[] = {
	[PPROF_HEAP] = INUSE_SPACE,
	[PPROF_ALLOCS] = ALLOC_SPACE,
	[PPROF_LEAKS] = LEAK_SPACE,
	[PPROF_OTLP] = INUSE_SPACE,
};
_Static_assert(ARRAY_SIZE(first_values) == NR_PPROF_KINDS, "a value for each kind");

/* A profile that is being written. */
struct pprof {
	enum pprof_kind kind;
	struct compressed *zip;
	const struct report *report;
	bool has_head;
	struct pprof_tables tables;
	struct otlp *otlp;	 /* owned; NULL = it is a profile.proto */
	struct protobuf message; /* the field that is being written */
	FILE *out;
	u64 *stack; /* owned; ids of locations */
	size_t nr_frames, max_frames;
};

/* The common part of the samples of one caller. */
struct caller {
	const char *function;
	const struct target *target;
	const char *truncated; /* NULL = the stack is complete */
};

/* Write out the message, and begin an empty one. 0 or -ENOMEM; errors of the file show at its end. */
static int flush_message(struct pprof *pr)
{
	int err = pr->message.err;

	if (!err)
		fwrite(pr->message.data, 1, pr->message.len, pr->out);
	protobuf_clear(&pr->message);
	return err;
}

static int put_value_type(struct pprof *pr, enum pprof_field field, enum value value)
{
	u64 type, unit;
	int err = pprof_string(&pr->tables, sample_types[value].type, &type);
	size_t start;

	if (!err)
		err = pprof_string(&pr->tables, sample_types[value].unit, &unit);
	if (err)
		return err;
	start = protobuf_begin(&pr->message, field);
	protobuf_u64(&pr->message, VALUE_TYPE, type);
	protobuf_u64(&pr->message, VALUE_UNIT, unit);
	protobuf_end(&pr->message, start);
	return flush_message(pr);
}

static int report_pprof_put_label(struct pprof *pr, const struct pprof_label *l)
{
	u64 key, text = 0;
	size_t start;
	int err = pprof_string(&pr->tables, l->key, &key);

	if (!err)
		err = pprof_string(&pr->tables, l->text, &text);
	if (err)
		return err;
	start = protobuf_begin(&pr->message, SAMPLE_LABEL);
	protobuf_u64(&pr->message, LABEL_KEY, key);
	protobuf_u64(&pr->message, LABEL_TEXT, text);
	protobuf_u64(&pr->message, LABEL_NUMBER, l->number);
	protobuf_end(&pr->message, start);
	return 0;
}

/* A sample of the stack in @pr. @verdict: of its blocks, NULL = none. Without values nothing is written. */
static int put_sample(struct pprof *pr, const struct caller *c, const char *verdict,
		      const u64 values[NR_VALUES])
{
	/* The resource of OTLP has the first two. */
	enum { OF_PROCESS = 2 };
	const struct pprof_label labels[] = {
		{ .key = "pid", .number = (u64)c->target->pid },
		{ .key = "process", .text = c->target->comm },
		{ .key = "allocator", .text = c->function },
		{ .key = "verdict", .text = verdict },
		{ .key = "truncated", .text = c->truncated },
	};
	bool has_values = false;
	size_t start;
	int err = 0;

	for (size_t i = pr->kind == PPROF_LEAKS ? LEAK_OBJECTS : 0; i < NR_VALUES; i++)
		has_values |= values[i] != 0;
	if (!has_values)
		return 0;
	if (pr->otlp)
		return otlp_sample(pr->otlp, &pr->tables, labels + OF_PROCESS,
				   ARRAY_SIZE(labels) - OF_PROCESS, values);
	start = protobuf_begin(&pr->message, PPROF_SAMPLE);
	protobuf_packed(&pr->message, SAMPLE_LOCATIONS, pr->stack, pr->nr_frames);
	protobuf_packed(&pr->message, SAMPLE_VALUES, values, NR_VALUES);
	for (size_t i = 0; i < ARRAY_SIZE(labels) && !err; i++)
		if (labels[i].text || labels[i].number)
			err = report_pprof_put_label(pr, &labels[i]);
	protobuf_end(&pr->message, start);
	return err ? err : flush_message(pr);
}

/* Collect the locations of @s; of NULL: one that says why there is none. */
static int report_pprof_find_stack(struct pprof *pr, const struct report_process *p, const struct stack *s,
				   const char *truncated)
{
	size_t nr = s ? s->nr_frames : 0;
	int err = array_reserve(pr->stack, pr->max_frames, nr + 1);

	pr->nr_frames = nr;
	for (size_t i = 0; i < nr && !err; i++)
		err = pprof_location(&pr->tables, p, s->frames[i], &pr->stack[i]);
	if (err || nr)
		return err;
	pr->nr_frames = 1;
	return pprof_location_text(&pr->tables, *truncated == 'l' ? "[stack lost]" : "[no stack taken]",
				   &pr->stack[0]);
}

/* A profile of leaks has no row of a caller that lost nothing, and no location of its stack. */
static bool report_pprof_is_left_out(const struct pprof *pr, const struct report_row *row)
{
	u64 lost = 0;

	for (size_t i = 0; i < NR_LOST; i++)
		lost += row->leaks.sums.of[verdicts[i]].blocks;
	return pr->kind == PPROF_LEAKS && !lost;
}

static int report_pprof_put_caller(struct pprof *pr, const struct report_process *p,
				   const struct report_row *row)
{
	const struct heap_row *h = &row->row;
	struct caller c = { .function = alloc_fn(heap_functions(p->heap), h->fn)->name, .target = p->target };
	const struct stack *s = report_stack(p, row, &c.truncated);
	u64 rest[NR_VALUES] = { h->allocs, h->alloc_bytes, h->live_blocks, h->live_bytes };
	int err = report_pprof_find_stack(pr, p, s, c.truncated);

	if (pr->otlp)
		otlp_stack(pr->otlp, pr->stack, pr->nr_frames);
	for (size_t i = 0; i < ARRAY_SIZE(verdicts) && !err; i++) {
		const struct scan_sum *sum = &row->leaks.sums.of[verdicts[i]];
		u64 values[NR_VALUES] = { 0 };

		/* A filter of live blocks does not apply to verdicts: then the rest keeps what is live. */
		if (sum->blocks <= rest[INUSE_OBJECTS] && sum->bytes <= rest[INUSE_SPACE]) {
			values[INUSE_OBJECTS] = sum->blocks;
			values[INUSE_SPACE] = sum->bytes;
			rest[INUSE_OBJECTS] -= sum->blocks;
			rest[INUSE_SPACE] -= sum->bytes;
		}
		if (i < NR_LOST) {
			values[LEAK_OBJECTS] = sum->blocks;
			values[LEAK_SPACE] = sum->bytes;
		}
		err = put_sample(pr, &c, scan_verdict_name(verdicts[i]), values);
	}
	return err ? err : put_sample(pr, &c, NULL, rest);
}

static int put_comment(struct pprof *pr, const char *text)
{
	u64 number;
	int err = pr->otlp ? otlp_remark(pr->otlp, text) : pprof_string(&pr->tables, text, &number);

	if (err || pr->otlp)
		return err;
	/* A list of numbers: zero cannot be one of them, because the text is not "". */
	protobuf_u64(&pr->message, PPROF_COMMENT, number);
	return flush_message(pr);
}

static int __printf(2, 3) put_comment_of(struct pprof *pr, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return put_comment(pr, text);
}

/* Say what the numbers of @p lack. */
static int put_remarks(struct pprof *pr, const struct report_process *p)
{
	struct losses lost = report_losses(p);
	int pid = (int)p->target->pid;
	int err = 0;

	if (lost.allocs || lost.frees || lost.stacks || lost.other)
		err = put_comment_of(pr,
				     "pid %d: lost: %" PRIu64 " allocations, %" PRIu64 " frees, %" PRIu64
				     " stacks, %" PRIu64 " others",
				     pid, lost.allocs, lost.frees, lost.stacks, lost.other);
	if (!err && p->unwatched)
		err = put_comment_of(pr, "pid %d: not watched: %s", pid, p->unwatched);
	if (!err && p->leaks && !p->leaks->has_verdict)
		err = put_comment_of(pr, "pid %d: no leak verdict: %s", pid, p->leaks->why);
	for (size_t i = 0; i < p->nr_notes && !err; i++)
		err = put_comment_of(pr, "pid %d: %s", pid, p->notes[i]);
	return err;
}

static int report_pprof_put_process(struct pprof *pr, const struct report_process *p)
{
	auto_free struct report_row *rows = NULL;
	size_t nr;
	int err = report_rows(pr->report, p, &rows, &nr, NULL);

	for (size_t i = 0; !err && i < nr; i++)
		if (!report_pprof_is_left_out(pr, &rows[i]))
			err = report_pprof_put_caller(pr, p, &rows[i]);
	if (!err)
		err = put_remarks(pr, p);
	return err || !pr->otlp ? err : otlp_process(pr->otlp, &pr->tables, pr->report, p);
}

/* The fields before the samples. */
static int report_pprof_put_head(struct pprof *pr)
{
	enum value first = first_values[pr->kind];
	u64 type;
	int err = 0;

	for (size_t i = 0; i < NR_VALUES && !err; i++)
		err = put_value_type(pr, PPROF_SAMPLE_TYPE, i);
	if (!err)
		err = put_value_type(pr, PPROF_PERIOD_TYPE, first);
	if (!err)
		err = pprof_string(&pr->tables, sample_types[first].type, &type);
	if (err)
		return err;
	/* Without samples, every byte counts. The values are scaled. */
	protobuf_u64(&pr->message, PPROF_PERIOD,
		     report_sample_bytes(pr->report) ? report_sample_bytes(pr->report) : 1);
	protobuf_u64(&pr->message, PPROF_DEFAULT_TYPE, type);
	protobuf_u64(&pr->message, PPROF_TIME_NS, pr->report->real_ns);
	protobuf_u64(&pr->message, PPROF_DURATION_NS, pr->report->duration_ns);
	return put_comment_of(pr, "heaptap " HEAPTAP_VERSION ", source %s", pr->report->backend);
}

/* The tables, which samples have filled. */
static int put_tables(struct pprof *pr)
{
	const struct {
		enum pprof_field field;
		size_t nr;
		pprof_put_fn *put;
	} tables[] = {
		{ PPROF_MAPPING, pr->tables.mappings.nr, pprof_put_mapping },
		{ PPROF_LOCATION, pr->tables.locations.nr, pprof_put_location },
		{ PPROF_FUNCTION, pr->tables.functions.nr, pprof_put_function },
		{ PPROF_STRING, pr->tables.strings.nr, pprof_put_string },
	};
	int err = 0;

	for (size_t k = 0; k < ARRAY_SIZE(tables); k++) {
		for (size_t i = 0; i < tables[k].nr && !err; i++) {
			tables[k].put(&pr->tables, &pr->message, tables[k].field, i);
			err = flush_message(pr);
		}
	}
	return err;
}

int pprof_new(struct pprof **out, FILE *file, enum pprof_kind kind)
{
	auto_free struct pprof *pr = calloc(1, sizeof(*pr));
	int err = pr ? compressed_new(&pr->zip, file, COMPRESSION_GZIP) : -ENOMEM;

	if (err)
		return err;
	pr->kind = kind;
	pr->out = compressed_file(pr->zip);
	err = pprof_tables_init(&pr->tables, kind == PPROF_OTLP);
	if (!err && kind == PPROF_OTLP)
		err = otlp_new(&pr->otlp, sample_types, NR_VALUES);
	if (!err) {
		*out = take_ptr(pr);
		return 0;
	}
	pprof_tables_fini(&pr->tables);
	if (compressed_end(pr->zip))
		debug("pprof: no end");
	return err;
}

int pprof_add(struct pprof *pr, const struct report *r)
{
	int err = 0;

	pr->report = r;
	pprof_tables_use(&pr->tables, r);
	if (!pr->has_head && !pr->otlp)
		err = report_pprof_put_head(pr);
	if (!err && !pr->has_head && r->nr_processes)
		err = pprof_main_mapping(&pr->tables, &r->processes[0]);
	pr->has_head = true;
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = report_pprof_put_process(pr, &r->processes[i]);
	return err;
}

int pprof_end(struct pprof *pr)
{
	int err = pr->otlp ? otlp_end(pr->otlp, &pr->tables, pr->out) : put_tables(pr);
	int end_err = compressed_end(pr->zip);

	pprof_tables_fini(&pr->tables);
	protobuf_fini(&pr->message);
	free(pr->stack);
	free(pr);
	return err ? err : end_err;
}

int report_pprof(FILE *out, const struct report *r)
{
	struct pprof *pr;
	int err = pprof_new(&pr, out, PPROF_HEAP), end_err;

	if (err)
		return err;
	err = pprof_add(pr, r);
	end_err = pprof_end(pr);
	return err ? err : end_err;
}
