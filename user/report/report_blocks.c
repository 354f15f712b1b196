/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects the live blocks of each process, the largest first, and writes them as lines, CSV or JSON. */
#include "user/report/report_blocks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/stacks.h"
#include "user/heap/thread_table.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/human.h"
#include "user/lib/json.h"
#include "user/report/caller_id.h"
#include "user/report/report_parts.h"
#include "user/target/target.h"

enum { MAX_NAMES = 512, MAX_STACK = 16 * 1024, ASK_EACH = 4096 };

/* The largest blocks so far. */
struct blocks {
	const struct report *report;
	struct heap_block *list; /* owned */
	size_t nr, room;
	size_t max; /* 0 = all */
	u64 nr_all, nr_seen;
	/* The names of the row that was named last. */
	char names[MAX_STACK];
	u32 named; /* row + 1; 0 = none */
	char *csv; /* owned; its function and names as fields of CSV */
};

static int compare_blocks(const void *pa, const void *pb)
{
	const struct heap_block *a = pa, *b = pb;

	if (a->size != b->size)
		return a->size < b->size ? 1 : -1;
	return (a->addr > b->addr) - (a->addr < b->addr);
}

static void keep_largest(struct blocks *b)
{
	if (b->nr)
		qsort(b->list, b->nr, sizeof(*b->list), compare_blocks);
	if (b->max && b->nr > b->max)
		b->nr = b->max;
}

/* Ask, for some of the blocks @i. */
static bool is_unwanted(const struct report *r, u64 i)
{
	return i % ASK_EACH == 0 && r->options.is_unwanted && r->options.is_unwanted();
}

static int visit_block(void *ctx, const struct heap_block *block)
{
	struct blocks *b = ctx;
	u32 only = b->report->options.only;

	if (is_unwanted(b->report, b->nr_seen++))
		return -ECANCELED;
	if ((only && block->row + 1 != only) || !report_has_block(b->report, block))
		return 0;
	b->nr_all++;
	if (b->nr == b->room && b->max)
		keep_largest(b);
	if (b->nr == b->room) {
		/* Much room at once, because keep_largest() sorts each time that the room is full. */
		int err = array_reserve(b->list, b->room, 2 * b->nr + 64);

		if (err)
			return err;
	}
	b->list[b->nr++] = *block;
	return 0;
}

/* Fill @b, whose list the caller frees. */
static int collect(struct blocks *b, const struct report *r, const struct report_process *p)
{
	int err;

	*b = (struct blocks){ .report = r, .max = r->options.top };
	err = heap_for_each_block(p->heap, visit_block, b);
	keep_largest(b);
	return err;
}

static u64 age_of(const struct report *r, const struct heap_block *b)
{
	return r->time_ns > b->time_ns ? r->time_ns - b->time_ns : 0;
}

/* Find the names of callers, two of them or all, for b->names. Blocks of one size are often of one caller. */
static int name_callers(struct blocks *b, const struct report_process *p, u32 row)
{
	const struct report *r = b->report;

	if (b->named == row + 1)
		return 0;
	b->named = row + 1;
	if (r->options.verbose)
		return report_all_callers(r, p, row, b->names, sizeof(b->names));
	return report_callers(r, p, row, b->names, MAX_NAMES);
}

/* Write the blocks of @b by @write. */
static int for_each(struct blocks *b, FILE *out, const struct report_process *p,
		    int (*write)(FILE *out, struct blocks *all, const struct report_process *p,
				 const struct heap_block *b))
{
	int err = 0;

	for (size_t i = 0; i < b->nr && !err; i++)
		err = is_unwanted(b->report, i) ? -ECANCELED : write(out, b, p, &b->list[i]);
	return err;
}

static int text_block(FILE *out, struct blocks *all, const struct report_process *p,
		      const struct heap_block *b)
{
	const char *names = all->names;
	int err = name_callers(all, p, b->row);

	fprintf(out, "  0x%-14" PRIx64 "  %12s  %10s  %6u  ", b->addr, human_bytes(b->size).text,
		human_duration(age_of(all->report, b)).text, b->row + 1);
	report_function(out, p, heap_row_get(p->heap, b->row).fn);
	fprintf(out, "%s%s%s%s\n", *names ? " < " : "", names, b->is_unsure ? "; perhaps free" : "",
		b->is_pending ? ", in a realloc" : "");
	return err;
}

static int text_process(FILE *out, const struct report *r, const struct report_process *p)
{
	struct blocks b;
	int err = collect(&b, r, p);

	if (r->nr_processes > 1)
		report_name(out, p->target);
	fprintf(out, "  %-16s  %12s  %10s  %6s  by\n", "address", "size", "age", "id");
	if (!err)
		err = for_each(&b, out, p, text_block);
	if (b.nr < b.nr_all)
		fprintf(out, "%s more\n", human_count(b.nr_all - b.nr).text);
	free(b.list);
	return err;
}

int report_blocks_text(FILE *out, const struct report *r)
{
	int err = 0;

	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = text_process(out, r, &r->processes[i]);
	return err ? err : flush_stream(out);
}

/* The escaping of names takes longer than all else: do that once for each row. */
static int name_csv(struct blocks *all, const struct report_process *p, u32 row)
{
	u16 fn = heap_row_get(p->heap, row).fn;
	size_t len;
	FILE *out;
	int err;

	if (all->named == row + 1)
		return 0;
	err = name_callers(all, p, row);
	free(all->csv);
	all->csv = NULL;
	out = err ? NULL : open_memstream(&all->csv, &len);
	if (!out)
		return err ? err : -ENOMEM;
	escape_csv(out, alloc_fn(heap_functions(p->heap), fn)->name);
	putc(',', out);
	escape_csv(out, all->names);
	return fclose(out) ? -ENOMEM : 0;
}

/* The thread that allocated @b, "" if it is not known. */
static const char *tid_text(const struct report_process *p, const struct heap_block *b, char text[12])
{
	struct thread_row row = { 0 };

	if (heap_thread(p->heap, b->thread, &row) && row.tid)
		snprintf(text, 12, "%" PRIu32, row.tid);
	else
		*text = '\0';
	return text;
}

static int csv_block(FILE *out, struct blocks *all, const struct report_process *p,
		     const struct heap_block *b)
{
	char tid[12];
	int err = name_csv(all, p, b->row);

	if (!err)
		fprintf(out, "%d,0x%" PRIx64 ",%" PRIu64 ",%" PRIu64 ",%u,%s,%s,%s\n", (int)p->target->pid,
			b->addr, b->size, age_of(all->report, b), b->row + 1, all->csv,
			b->is_unsure ? "true" : "false", tid_text(p, b, tid));
	return err;
}

int report_blocks_csv(FILE *out, const struct report *r)
{
	int err = 0;

	fputs("pid,address,size,age_ns,caller,function,stack,unsure,tid\n", out);
	for (size_t i = 0; i < r->nr_processes && !err; i++) {
		struct blocks b;

		err = collect(&b, r, &r->processes[i]);
		if (!err)
			err = for_each(&b, out, &r->processes[i], csv_block);
		free(b.list);
		free(b.csv);
	}
	return err ? err : flush_stream(out);
}

static void json_block(struct json *j, const struct report *r, const struct report_process *p,
		       const struct heap_block *b)
{
	struct thread_row thread = { 0 };

	json_object_begin(j, NULL);
	json_hex(j, "address", b->addr);
	json_u64(j, "size", b->size);
	json_u64(j, "time_ns", b->time_ns);
	json_u64(j, "age_ns", age_of(r, b));
	json_u64(j, "caller", b->row + 1);
	json_bool(j, "unsure", b->is_unsure);
	if (heap_thread(p->heap, b->thread, &thread) && thread.tid)
		json_u64(j, "tid", thread.tid);
	else
		json_null(j, "tid");
	json_object_end(j);
}

static int json_caller(struct json *j, const struct report *r, const struct report_process *p,
		       const struct caller_ids *ids, u32 row)
{
	struct heap_row h = heap_row_get(p->heap, row);
	int err;

	json_object_begin(j, NULL);
	json_u64(j, "caller", row + 1);
	json_u64(j, "id", caller_number(ids, row));
	json_string(j, "function", alloc_fn(heap_functions(p->heap), h.fn)->name);
	err = report_json_frames(j, r, stack_get(p->stacks, h.stack));
	json_object_end(j);
	return err;
}

/* The callers of the blocks, each once. */
static int json_callers(struct json *j, const struct report *r, const struct report_process *p,
			const struct blocks *b)
{
	size_t nr = heap_row_count(p->heap);
	auto_free bool *is_there = calloc(nr + 1, sizeof(*is_there));
	struct caller_ids ids = { .list = NULL };
	int err = is_there ? caller_ids_init(&ids, r, p) : -ENOMEM;

	for (size_t i = 0; i < b->nr && !err; i++)
		is_there[b->list[i].row] = true;
	json_array_begin(j, "stacks");
	for (size_t i = 0; i < nr && !err; i++)
		if (is_there[i])
			err = json_caller(j, r, p, &ids, (u32)i);
	json_array_end(j);
	caller_ids_fini(&ids);
	return err;
}

static int json_process(struct json *j, const struct report *r, const struct report_process *p)
{
	struct blocks b;
	int err = collect(&b, r, p);

	json_object_begin(j, NULL);
	json_u64(j, "pid", (u64)p->target->pid);
	json_string(j, "comm", p->target->comm);
	json_array_begin(j, "blocks");
	for (size_t i = 0; i < b.nr && !err; i++) {
		err = is_unwanted(r, i) ? -ECANCELED : 0;
		json_block(j, r, p, &b.list[i]);
	}
	json_array_end(j);
	if (!err)
		err = json_callers(j, r, p, &b);
	json_object_end(j);
	free(b.list);
	return err;
}

int report_blocks_json(FILE *out, const struct report *r)
{
	struct json j;
	int err = 0;

	json_init(&j, out, 4);
	json_object_begin(&j, NULL);
	json_string(&j, "schema", "heaptap-blocks/1");
	json_u64(&j, "time_ns", r->time_ns);
	json_array_begin(&j, "processes");
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = json_process(&j, r, &r->processes[i]);
	json_array_end(&j);
	json_object_end(&j);
	putc('\n', out);
	return err ? err : flush_stream(out);
}

report_blocks_fn report_blocks_writer(const char *path)
{
	static const struct {
		const char *ending;
		report_blocks_fn write;
	} writers[] = { { ".csv", report_blocks_csv }, { ".json", report_blocks_json } };
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
		size_t ending = strlen(writers[i].ending);

		if (len > ending && !strcmp(path + len - ending, writers[i].ending))
			return writers[i].write;
	}
	return report_blocks_text;
}
