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
#include <string.h>

#include "user/heap/stacks.h"
#include "user/heap/tape.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/digits.h"
#include "user/lib/flush.h"
#include "user/lib/escape.h"
#include "user/names/symbolize.h"
#include "user/report/intern.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"
#include "user/target/target.h"

enum {
	NS_PER_MS = 1000000,
	TIME_STEP_MS = 10 /* as heaptrack */,
	NAME_MAX_BYTES = 128,
	LINES_BYTES = 1 << 16
};
enum { LINE_MAX_BYTES = 2 * DIGITS_MAX + 4 };
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

/* The events of one process, and what comes next. */
struct feed {
	const struct report_process *process;
	struct tape *tape; /* borrowed; NULL = none */
	u64 *traces;	   /* owned; by row */
	u32 *numbers; /* owned; by kind of the tape: its number in the file. None are kept for the only process */
	size_t nr_kinds, max_numbers;
	struct tape_part part;
	bool has_part;
	u64 time_ms; /* of the last part */
};

struct heaptrack {
	const struct report *report;
	FILE *out;
	struct intern_strings strings;
	struct intern_table places, traces, kinds;
	struct feed *feeds; /* owned; one for each process */
	u64 start_ms, now_ms;
	char *lines; /* owned; LINES_BYTES: lines of events that are not written yet */
	size_t nr_bytes;
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
static int report_heaptrack_add_place(struct heaptrack *h, const struct ht_place *p,
				      const struct symbol *symbols, size_t nr, u64 *trace)
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
static int report_heaptrack_add_text(struct heaptrack *h, const char *text, u64 *trace)
{
	const struct symbol symbol = { .function = text };
	struct ht_place p = { 0 };
	int err = put_string(h, text, &p.name);

	return err ? err : report_heaptrack_add_place(h, &p, &symbol, 1, trace);
}

static int report_heaptrack_add_frame(struct heaptrack *h, struct code_ref ref, u64 *trace)
{
	const struct ht_place p = { .module = ref.module, .offset = ref.offset };
	const struct symbol *symbols;
	size_t nr;
	int err = report_symbols(h->report, ref, &symbols, &nr);

	return err ? err : report_heaptrack_add_place(h, &p, symbols, nr, trace);
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
		err = report_heaptrack_add_text(h, name, trace);
	}
	if (!err && !s)
		err = report_heaptrack_add_text(h, *truncated == 'l' ? "[stack lost]" : "[no stack taken]",
						trace);
	for (size_t i = s ? s->nr_frames : 0; i-- > 0 && !err;)
		err = report_heaptrack_add_frame(h, s->frames[i], trace);
	return err;
}

/* Write the lines of events. There may be many million such lines, so nothing slow is done for one. */
static void flush_lines(struct heaptrack *h)
{
	fwrite(h->lines, 1, h->nr_bytes, h->out);
	h->nr_bytes = 0;
}

static char *line_room(struct heaptrack *h)
{
	if (h->nr_bytes > LINES_BYTES - LINE_MAX_BYTES)
		flush_lines(h);
	return h->lines + h->nr_bytes;
}

static size_t report_heaptrack_put_number(char *text, char letter, u64 number)
{
	text[0] = letter;
	text[1] = ' ';
	return 2 + digits_bare_hex(text + 2, number);
}

static void report_heaptrack_put_time(struct heaptrack *h, u64 ms)
{
	char *line = line_room(h);
	size_t len = report_heaptrack_put_number(line, 'c', ms);

	line[len++] = '\n';
	h->nr_bytes += len;
	h->now_ms = ms;
}

static void report_heaptrack_put_kind(struct heaptrack *h, const struct block_kind *kind)
{
	char *line = line_room(h);
	size_t len = report_heaptrack_put_number(line, 'a', kind->bytes);

	line[len++] = ' ';
	len += digits_bare_hex(line + len, kind->trace);
	line[len++] = '\n';
	h->nr_bytes += len;
}

/* The number of @kind, from 0. A new kind gets the line that says so. 0 or -ENOMEM. */
static int number_kind(struct heaptrack *h, const struct block_kind *kind, u32 *number)
{
	size_t at;
	bool is_new;
	int err = intern_item(&h->kinds, kind, &at, &is_new);

	if (!err && is_new)
		report_heaptrack_put_kind(h, kind);
	*number = (u32)at;
	return err;
}

static void report_heaptrack_put_event(struct heaptrack *h, char letter, u32 number)
{
	char *line = line_room(h);
	size_t len = report_heaptrack_put_number(line, letter, number);

	line[len++] = '\n';
	h->nr_bytes += len;
}

struct visit {
	struct heaptrack *heaptrack;
	const struct feed *feed;
};

static int report_heaptrack_visit_block(void *ctx, const struct heap_block *b)
{
	const struct visit *v = ctx;
	const struct block_kind kind = { b->size, v->feed->traces[b->row] };
	u32 number;
	int err = number_kind(v->heaptrack, &kind, &number);

	if (!err)
		report_heaptrack_put_event(v->heaptrack, '+', number);
	return err;
}

/* Read the next part of @f. 0 or -errno. */
static int report_heaptrack_advance(struct feed *f)
{
	int got = tape_next(f->tape, &f->part);

	f->has_part = got == 1;
	if (got != 1)
		return got;
	if (f->part.what == TAPE_KIND && f->part.row >= heap_row_count(f->process->heap))
		return -EIO;
	if (f->part.what == TAPE_TIME)
		f->time_ms = f->part.time_ms;
	return 0;
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
	f->tape = heap_tape(heap);
	if (!f->tape)
		return heap_for_each_block(heap, report_heaptrack_visit_block, &v);
	err = tape_rewind(f->tape);
	return err ? err : report_heaptrack_advance(f);
}

/* The feed that is the earliest, NULL at the end. *@until_ms is the time of the next one. */
static struct feed *next_feed(struct heaptrack *h, u64 *until_ms)
{
	struct feed *first = NULL;

	*until_ms = UINT64_MAX;
	for (struct feed *f = h->feeds; f < h->feeds + h->report->nr_processes; f++) {
		if (!f->has_part)
			continue;
		if (!first || f->time_ms < first->time_ms) {
			*until_ms = first ? first->time_ms : UINT64_MAX;
			first = f;
		} else if (f->time_ms < *until_ms) {
			*until_ms = f->time_ms;
		}
	}
	return first;
}

/* There is a new kind on the tape of @f. 0 or -ENOMEM. */
static int take_kind(struct heaptrack *h, struct feed *f)
{
	const struct block_kind kind = { f->part.bytes, f->traces[f->part.row] };
	int err;

	if (h->report->nr_processes == 1) {
		report_heaptrack_put_kind(h, &kind);
		return 0;
	}
	err = array_reserve(f->numbers, f->max_numbers, f->nr_kinds + 1);
	return err ? err : number_kind(h, &kind, &f->numbers[f->nr_kinds++]);
}

/* Write the lines @p as they are. */
static void copy_lines(struct heaptrack *h, const struct tape_part *p)
{
	if (p->len > LINES_BYTES - h->nr_bytes)
		flush_lines(h);
	if (p->len > LINES_BYTES / 4) {
		flush_lines(h);
		fwrite(p->lines, 1, p->len, h->out);
		return;
	}
	memcpy(h->lines + h->nr_bytes, p->lines, p->len);
	h->nr_bytes += p->len;
}

/* Write the lines of @f with the numbers of the file. 0 or -EIO. */
static int renumber_lines(struct heaptrack *h, const struct feed *f)
{
	const char *at = f->part.lines, *end = at + f->part.len;

	while (at < end) {
		char letter = *at;
		u64 kind;

		at = digits_get_bare_hex(at + 2, end, &kind);
		if (!at || at == end || *at++ != '\n' || kind >= f->nr_kinds)
			return -EIO;
		report_heaptrack_put_event(h, letter, f->numbers[kind]);
	}
	return 0;
}

/* Write the part of @f. 0 or -errno. */
static int put_part(struct heaptrack *h, struct feed *f)
{
	const struct tape_part *p = &f->part;
	u64 ms = f->time_ms > h->start_ms ? f->time_ms - h->start_ms : 0;

	if (p->what == TAPE_KIND)
		return take_kind(h, f);
	if (p->what == TAPE_TIME) {
		if (ms >= h->now_ms + TIME_STEP_MS)
			report_heaptrack_put_time(h, ms);
		return 0;
	}
	if (h->report->nr_processes > 1)
		return renumber_lines(h, f);
	copy_lines(h, p);
	return 0;
}

/* Write what comes on the tape of @f before @until_ms, and at least one part. */
static int put_parts(struct heaptrack *h, struct feed *f, u64 until_ms)
{
	int err;

	do {
		err = put_part(h, f);
		if (!err)
			err = report_heaptrack_advance(f);
	} while (!err && f->has_part && f->time_ms < until_ms);
	return err;
}

static int put_events(struct heaptrack *h)
{
	const struct report *r = h->report;
	struct feed *f;
	u64 until_ms;
	int err = 0;

	h->lines = malloc(LINES_BYTES);
	h->feeds = calloc(r->nr_processes + 1, sizeof(*h->feeds));
	if (!h->feeds || !h->lines)
		return -ENOMEM;
	for (size_t i = 0; i < r->nr_processes && !err; i++) {
		h->feeds[i].process = &r->processes[i];
		err = begin_feed(h, &h->feeds[i]);
	}
	while (!err && (f = next_feed(h, &until_ms)))
		err = put_parts(h, f, until_ms);
	return err;
}

static void report_heaptrack_put_head(struct heaptrack *h)
{
	const struct target *t = h->report->nr_processes ? h->report->processes[0].target : NULL;

	fputs(VERSION_LINE "X ", h->out);
	escape_text(h->out, t ? (*t->exe ? t->exe : t->comm) : "");
	/* Blocks from before the attach are not known. */
	fputs(t && !t->is_started ? "\nA\n" : "\n", h->out);
}

static void report_heaptrack_fini(struct heaptrack *h)
{
	for (size_t i = 0; h->feeds && i < h->report->nr_processes; i++) {
		free(h->feeds[i].traces);
		free(h->feeds[i].numbers);
	}
	free(h->feeds);
	free(h->lines);
	intern_strings_fini(&h->strings);
	intern_fini(&h->places);
	intern_fini(&h->traces);
	intern_fini(&h->kinds);
}

int report_heaptrack(FILE *out, const struct report *r)
{
	struct heaptrack h = {
		.report = r,
		.out = out,
		.places = { .item_size = sizeof(struct ht_place), .key_size = sizeof(struct ht_place) },
		.traces = { .item_size = sizeof(struct ht_trace), .key_size = sizeof(struct ht_trace) },
		.kinds = { .item_size = sizeof(struct block_kind), .key_size = sizeof(struct block_kind) },
		.start_ms = (r->time_ns - r->duration_ns) / NS_PER_MS,
	};
	u64 duration_ms = r->duration_ns / NS_PER_MS;
	int err;

	report_heaptrack_put_head(&h);
	err = put_events(&h);
	if (!err && duration_ms > h.now_ms)
		report_heaptrack_put_time(&h, duration_ms);
	if (!err)
		flush_lines(&h);
	report_heaptrack_fini(&h);
	return err ? err : flush_stream(out);
}
