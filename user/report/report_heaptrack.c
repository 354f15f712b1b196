/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report for heaptrack_print and heaptrack_gui: all blocks that came and went, with their times. One line each, its
 * first letter says what it is: s string, i place, t trace (a place and the trace of its caller), a size of blocks of a
 * trace, + and - a block, c the time. Numbers are hexadecimal; s, i and t count from 1, a from 0.
 */
#include "user/report/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "user/heap/stacks.h"
#include "user/heap/tape.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/names/symbolize.h"
#include "user/report/gzip.h"
#include "user/report/intern.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"
#include "user/source/source.h"
#include "user/target/target.h"

enum { NS_PER_MS = 1000000, TIME_STEP_MS = 10 /* as heaptrack */, NAME_MAX_BYTES = 128 };
/* Version of heaptrack, and of the format: the last one whose strings have no length. Later readers know it too. */
#define VERSION_LINE "v 10400 2\n"

/* A place in code; or one that only has a name. */
struct ht_place {
	u64 module, offset;
	u64 name; /* number of a string from 1, 0 = none */
};

struct ht_trace {
	u64 place, caller; /* numbers from 1; caller 0 = none */
};

/* Blocks of one size of one trace. */
struct block_kind {
	u64 bytes, trace;
};

/* The events of one process, and the entry that comes next. */
struct feed {
	const struct report_process *process;
	u64 *traces; /* owned; by row */
	struct tape_entry entry;
	bool has_entry;
};

struct heaptrack {
	const struct report *report;
	FILE *out;
	struct intern_strings strings;
	struct intern_table places, traces, kinds;
	struct feed *feeds; /* owned; one for each process */
	u64 start_ms, now_ms;
};

/* The number of @text, from 1. 0 or -ENOMEM. */
static int put_string(struct heaptrack *h, const char *text, u64 *number)
{
	size_t at;
	bool is_new;
	int err = intern_string(&h->strings, text, &at, &is_new);

	if (err)
		return err;
	if (is_new)
		fprintf(h->out, "s %s\n", h->strings.list[at]);
	*number = at + 1;
	return 0;
}

/* Write the new place @p, with a function for each call inlined there. */
static int put_place_line(struct heaptrack *h, const struct ht_place *p, const struct symbol *symbols,
			  size_t nr)
{
	const struct module *m = module_get(h->report->modules, (u32)p->module);
	auto_free u64 *numbers = calloc(2 * nr + 1, sizeof(*numbers));
	u64 module = 0;
	int err = numbers ? 0 : -ENOMEM;

	if (!err && m)
		err = put_string(h, module_name(m), &module);
	for (size_t i = 0; i < nr && !err; i++) {
		if (symbols[i].function)
			err = put_string(h, symbols[i].function, &numbers[2 * i]);
		if (!err && symbols[i].file)
			err = put_string(h, symbols[i].file, &numbers[2 * i + 1]);
	}
	if (err)
		return err;
	fprintf(h->out, "i %" PRIx64 " %" PRIx64, p->offset, module);
	for (size_t i = 0; i < nr; i++)
		if (numbers[2 * i])
			fprintf(h->out, " %" PRIx64 " %" PRIx64 " %x", numbers[2 * i], numbers[2 * i + 1],
				symbols[i].line);
	fputc('\n', h->out);
	return 0;
}

/* Make *@trace the trace of @p, which was called from *@trace. */
static int add_place(struct heaptrack *h, const struct ht_place *p, const struct symbol *symbols, size_t nr,
		     u64 *trace)
{
	struct ht_trace t = { .caller = *trace };
	size_t at;
	bool is_new;
	int err = intern_item(&h->places, p, &at, &is_new);

	if (!err && is_new)
		err = put_place_line(h, p, symbols, nr);
	if (err)
		return err;
	t.place = at + 1;
	err = intern_item(&h->traces, &t, &at, &is_new);
	if (err)
		return err;
	if (is_new)
		fprintf(h->out, "t %" PRIx64 " %" PRIx64 "\n", t.place, t.caller);
	*trace = at + 1;
	return 0;
}

/* Add a place that is a text. */
static int add_text(struct heaptrack *h, const char *text, u64 *trace)
{
	const struct symbol symbol = { .function = text };
	struct ht_place p = { 0 };
	int err = put_string(h, text, &p.name);

	return err ? err : add_place(h, &p, &symbol, 1, trace);
}

static int add_frame(struct heaptrack *h, struct code_ref ref, u64 *trace)
{
	const struct ht_place p = { .module = ref.module, .offset = ref.offset };
	const struct symbol *symbols;
	size_t nr;
	int err = report_symbols(h->report, ref, &symbols, &nr);

	return err ? err : add_place(h, &p, symbols, nr, trace);
}

static int put_trace(struct heaptrack *h, const struct report_process *p, u32 row, u64 *trace)
{
	const struct report_row shown = { .row = heap_row_get(p->heap, row) };
	const char *truncated;
	const struct stack *s = report_stack(p, &shown, &truncated);
	char name[NAME_MAX_BYTES];
	int err = 0;

	*trace = 0;
	if (h->report->nr_processes > 1) {
		snprintf(name, sizeof(name), "%s (pid %d)", p->target->comm, (int)p->target->pid);
		err = add_text(h, name, trace);
	}
	if (!err && !s)
		err = add_text(h, *truncated == 'l' ? "[stack lost]" : "[no stack taken]", trace);
	for (size_t i = s ? s->nr_frames : 0; i-- > 0 && !err;)
		err = add_frame(h, s->frames[i], trace);
	return err;
}

static void put_time(struct heaptrack *h, u64 ms)
{
	h->now_ms = ms;
	fprintf(h->out, "c %" PRIx64 "\n", ms);
}

static int put_block(struct heaptrack *h, const struct feed *f, const struct tape_entry *e)
{
	const struct block_kind kind = { e->bytes, f->traces[e->row] };
	u64 ms = e->time_ms > h->start_ms ? e->time_ms - h->start_ms : 0;
	size_t at;
	bool is_new;
	int err = intern_item(&h->kinds, &kind, &at, &is_new);

	if (err)
		return err;
	if (ms >= h->now_ms + TIME_STEP_MS)
		put_time(h, ms);
	if (is_new)
		fprintf(h->out, "a %" PRIx64 " %" PRIx64 "\n", kind.bytes, kind.trace);
	fprintf(h->out, "%c %zx\n", e->is_free ? '-' : '+', at);
	return 0;
}

struct visit {
	struct heaptrack *heaptrack;
	const struct feed *feed;
};

static int visit_block(void *ctx, const struct heap_block *b)
{
	const struct visit *v = ctx;

	return put_block(v->heaptrack, v->feed, &(struct tape_entry){ .bytes = b->size, .row = b->row });
}

/* Read the next entry of @f. 0 or -errno. */
static int advance(struct feed *f)
{
	int got = tape_next(heap_tape(f->process->heap), &f->entry);

	f->has_entry = got == 1;
	if (got == 1 && f->entry.row >= heap_row_count(f->process->heap))
		return -EIO;
	return got < 0 ? got : 0;
}

/* Write all traces of @f. Without a tape its live blocks are all that is known: they come first. */
static int begin_feed(struct heaptrack *h, struct feed *f)
{
	const struct heap *heap = f->process->heap;
	size_t nr = heap_row_count(heap);
	struct visit v = { h, f };
	int err = 0;

	f->traces = calloc(nr + 1, sizeof(*f->traces));
	if (!f->traces)
		return -ENOMEM;
	for (size_t i = 0; i < nr && !err; i++)
		err = put_trace(h, f->process, (u32)i, &f->traces[i]);
	if (err)
		return err;
	if (!heap_tape(heap))
		return heap_for_each_block(heap, visit_block, &v);
	err = tape_rewind(heap_tape(heap));
	return err ? err : advance(f);
}

/* The feed whose entry is the earliest, NULL at the end. */
static struct feed *next_feed(struct heaptrack *h)
{
	struct feed *first = NULL;

	for (struct feed *f = h->feeds; f < h->feeds + h->report->nr_processes; f++)
		if (f->has_entry && (!first || f->entry.time_ms < first->entry.time_ms))
			first = f;
	return first;
}

static int put_events(struct heaptrack *h)
{
	const struct report *r = h->report;
	struct feed *f;
	int err = 0;

	h->feeds = calloc(r->nr_processes + 1, sizeof(*h->feeds));
	if (!h->feeds)
		return -ENOMEM;
	for (size_t i = 0; i < r->nr_processes && !err; i++) {
		h->feeds[i].process = &r->processes[i];
		err = begin_feed(h, &h->feeds[i]);
	}
	while (!err && (f = next_feed(h))) {
		err = put_block(h, f, &f->entry);
		if (!err)
			err = advance(f);
	}
	return err;
}

static void put_head(struct heaptrack *h)
{
	const struct target *t = h->report->nr_processes ? h->report->processes[0].target : NULL;

	fputs(VERSION_LINE "X ", h->out);
	escape_text(h->out, t ? (*t->exe ? t->exe : t->comm) : "");
	/* Blocks from before the attach are not known. */
	fputs(t && !t->is_started ? "\nA\n" : "\n", h->out);
}

static void fini(struct heaptrack *h)
{
	for (size_t i = 0; h->feeds && i < h->report->nr_processes; i++)
		free(h->feeds[i].traces);
	free(h->feeds);
	intern_strings_fini(&h->strings);
	intern_fini(&h->places);
	intern_fini(&h->traces);
	intern_fini(&h->kinds);
}

int report_heaptrack(FILE *out, const struct report *r)
{
	struct heaptrack h = {
		.report = r,
		.places = { .item_size = sizeof(struct ht_place), .key_size = sizeof(struct ht_place) },
		.traces = { .item_size = sizeof(struct ht_trace), .key_size = sizeof(struct ht_trace) },
		.kinds = { .item_size = sizeof(struct block_kind), .key_size = sizeof(struct block_kind) },
		.start_ms = (r->time_ns - r->duration_ns) / NS_PER_MS,
	};
	u64 duration_ms = r->duration_ns / NS_PER_MS;
	struct gzip *zip;
	int err = gzip_new(&zip, out), end_err;

	if (err)
		return err;
	h.out = gzip_file(zip);
	put_head(&h);
	err = put_events(&h);
	if (duration_ms > h.now_ms)
		put_time(&h, duration_ms);
	fini(&h);
	end_err = gzip_end(zip);
	return err ? err : end_err;
}
