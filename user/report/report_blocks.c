/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects the live blocks of each process, the largest first, and writes them as lines, CSV or JSON. */
#include "user/report/report_blocks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap.h"
#include "user/heap/stacks.h"
#include "user/heap/thread_table.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/digits.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/human.h"
#include "user/lib/json.h"
#include "user/names/symbolize.h"
#include "user/report/caller_id.h"
#include "user/report/format.h"
#include "user/report/report_json.h"
#include "user/report/report_parts.h"
#include "user/scan/leaks.h"
#include "user/target/target.h"

/*
 * Collects and sorts live blocks. There may be tens of millions, so all of them are sorted digit by digit, which takes
 * a pass over the list for each digit in which blocks differ.
 */

/* All zero: no block. */
struct sorted_blocks {
	struct heap_block *blocks; /* owned; in no order */
	u32 *order;		   /* owned; numbers of blocks in order */
	size_t nr;
	u64 nr_all; /* blocks that the report lets through, also those that are too many */
};

/* Block @i in order. For calls with increasing @i: loads the memory of blocks that come soon. */
static inline const struct heap_block *block_list_get(const struct sorted_blocks *l, size_t i)
{
	enum { AHEAD = 16 };

	if (i + AHEAD < l->nr)
		__builtin_prefetch(&l->blocks[l->order[i + AHEAD]]);
	return &l->blocks[l->order[i]];
}

enum { ASK_EACH = 4096, DIGIT_BITS = 11, NR_VALUES = 1 << DIGIT_BITS, NR_DIGITS = 6 };

/* A block to sort. */
struct item {
	u64 key;
	u32 number;
};

struct collecting {
	const struct report *report;
	const struct report_process *process;
	struct sorted_blocks *list;
	size_t room, max; /* max: 0 = all */
	u64 nr_seen;
	bool has_least;
	struct heap_block least; /* of the largest blocks so far the last: those behind it are not wanted */
};

/* Ask, for some of the blocks @i. */
static bool report_blocks_is_unwanted(const struct report *r, u64 i)
{
	return i % ASK_EACH == 0 && r->options.is_unwanted && r->options.is_unwanted();
}

static int compare_blocks(const void *pa, const void *pb)
{
	const struct heap_block *a = pa, *b = pb;

	if (a->size != b->size)
		return a->size < b->size ? 1 : -1;
	return (a->addr > b->addr) - (a->addr < b->addr);
}

static void keep_largest(struct sorted_blocks *l, size_t max)
{
	if (l->nr)
		qsort(l->blocks, l->nr, sizeof(*l->blocks), compare_blocks);
	if (l->nr > max)
		l->nr = max;
}

/* The room is full: drop what is not among the first c->max. */
static void block_list_make_room(struct collecting *c)
{
	struct sorted_blocks *l = c->list;

	keep_largest(l, c->max);
	c->has_least = l->nr == c->max;
	if (c->has_least)
		c->least = l->blocks[l->nr - 1];
}

/* The verdict on the live block @b of @p; SCAN_NONE = not known. */
static enum scan_verdict report_block_verdict(const struct report_process *p, const struct heap_block *b)
{
	return p->leaks && p->leaks->blocks.time_ns ? leak_blocks_find(&p->leaks->blocks, b) : SCAN_NONE;
}

static bool is_leaked(const struct report_process *p, const struct heap_block *b)
{
	enum scan_verdict v = report_block_verdict(p, b);

	return v == SCAN_DEFINITE || v == SCAN_INDIRECT || v == SCAN_POSSIBLE;
}

static int block_list_visit_block(void *ctx, const struct heap_block *block)
{
	struct collecting *c = ctx;
	struct sorted_blocks *l = c->list;
	u32 only = c->report->options.only;

	if (report_blocks_is_unwanted(c->report, c->nr_seen++))
		return -ECANCELED;
	if ((only && block->row + 1 != only) || !report_has_block(c->report, block))
		return 0;
	if (c->report->options.want_leaked && !is_leaked(c->process, block))
		return 0;
	l->nr_all++;
	if (c->has_least && compare_blocks(&c->least, block) <= 0)
		return 0;
	if (l->nr && l->nr == c->room && c->max)
		block_list_make_room(c);
	if (l->nr == c->room) {
		/* Much room at once, because keep_largest() sorts each time that the room is full. */
		int err = array_reserve(l->blocks, c->room, 2 * l->nr + 64);

		if (err)
			return err;
	}
	l->blocks[l->nr++] = *block;
	return 0;
}

static size_t block_list_digit(u64 key, int i)
{
	return key >> (i * DIGIT_BITS) & (NR_VALUES - 1);
}

/* Sort @items by one digit into @out. @starts: how many items have each value; is changed. */
static void sort_digit(const struct item *items, struct item *out, size_t nr, int i, u32 *starts)
{
	u32 sum = 0;

	for (size_t k = 0; k < NR_VALUES; k++) {
		u32 count = starts[k];

		starts[k] = sum;
		sum += count;
	}
	for (size_t k = 0; k < nr; k++)
		out[starts[block_list_digit(items[k].key, i)]++] = items[k];
}

/* Sort *@items by their keys with the help of *@spare. Equal keys keep their order. 0 or -ECANCELED. */
static int sort_items(struct item **items, struct item **spare, size_t nr, const struct report *r)
{
	u32 counts[NR_DIGITS][NR_VALUES];

	memset(counts, 0, sizeof(counts));
	for (size_t k = 0; k < nr; k++)
		for (int i = 0; i < NR_DIGITS; i++)
			counts[i][block_list_digit((*items)[k].key, i)]++;
	for (int i = 0; i < NR_DIGITS; i++) {
		struct item *sorted = *spare;

		if (counts[i][block_list_digit((*items)[0].key, i)] == nr)
			continue;
		if (report_blocks_is_unwanted(r, 0))
			return -ECANCELED;
		sort_digit(*items, sorted, nr, i, counts[i]);
		*spare = *items;
		*items = sorted;
	}
	return 0;
}

static int sort_all(struct sorted_blocks *l, const struct report *r)
{
	auto_free struct item *items = malloc(l->nr * sizeof(*items));
	auto_free struct item *spare = malloc(l->nr * sizeof(*spare));
	int err;

	if (!items || !spare)
		return -ENOMEM;
	for (size_t i = 0; i < l->nr; i++)
		items[i] = (struct item){ l->blocks[i].addr, (u32)i };
	err = sort_items(&items, &spare, l->nr, r);
	for (size_t i = 0; i < l->nr; i++)
		items[i].key = ~l->blocks[items[i].number].size;
	if (!err)
		err = sort_items(&items, &spare, l->nr, r);
	for (size_t i = 0; i < l->nr; i++)
		l->order[i] = items[i].number;
	return err;
}

/*
 * Collect the blocks of @p that the options of @r let through: the first options.top in order, 0 = all. 0, -ENOMEM, or
 * -ECANCELED if options.is_unwanted says so.
 */
static int block_list_init(struct sorted_blocks *l, const struct report *r, const struct report_process *p)
{
	struct collecting c = { .report = r, .process = p, .list = l, .max = r->options.top };
	int err;

	*l = (struct sorted_blocks){ .nr = 0 };
	err = heap_for_each_block(p->heap, block_list_visit_block, &c);
	if (err || !l->nr)
		return err;
	if (l->nr > UINT32_MAX)
		return -ENOMEM;
	l->order = malloc(l->nr * sizeof(*l->order));
	if (!l->order)
		return -ENOMEM;
	if (!c.max)
		return sort_all(l, r);
	keep_largest(l, c.max);
	for (size_t i = 0; i < l->nr; i++)
		l->order[i] = (u32)i;
	return 0;
}

static void block_list_fini(struct sorted_blocks *l)
{
	free(l->blocks);
	free(l->order);
	*l = (struct sorted_blocks){ .nr = 0 };
}

enum { MAX_NAMES = 512, MAX_STACK = 16 * 1024 };

static const u64 MAX_FIELDS = 256 << 20; /* bytes */

/* The blocks of a process, and the names of callers. */
struct blocks {
	const struct report *report;
	struct sorted_blocks list;
	/* The names of the row that was named last. */
	char names[MAX_STACK];
	u32 named; /* row + 1; 0 = none */
	/* Fields of CSV of each row, so that names are found and escaped once. */
	struct field *fields; /* owned */
	size_t nr_fields;
	u64 bytes; /* of all fields */
};

/* Function and names of a row as fields of CSV. */
struct field {
	char *text; /* owned; NULL = not made yet */
	size_t len;
};

static void blocks_fini(struct blocks *b)
{
	block_list_fini(&b->list);
	for (size_t i = 0; i < b->nr_fields; i++)
		free(b->fields[i].text);
	free(b->fields);
}

/* Fill @b, for blocks_fini(). */
static int report_blocks_collect(struct blocks *b, const struct report *r, const struct report_process *p)
{
	*b = (struct blocks){ .report = r };
	return block_list_init(&b->list, r, p);
}

static u64 report_blocks_age_of(const struct report *r, const struct heap_block *b)
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
static int report_blocks_for_each(struct blocks *b, FILE *out, const struct report_process *p,
				  int (*write)(FILE *out, struct blocks *all, const struct report_process *p,
					       const struct heap_block *b))
{
	int err = 0;

	for (size_t i = 0; i < b->list.nr && !err; i++)
		err = report_blocks_is_unwanted(b->report, i) ? -ECANCELED
							      : write(out, b, p, block_list_get(&b->list, i));
	return err;
}

static bool is_judged(const struct report_process *p)
{
	return p->leaks && p->leaks->blocks.time_ns;
}

/* "" if it is not known. */
static const char *verdict_name(const struct report_process *p, const struct heap_block *b)
{
	enum scan_verdict v = report_block_verdict(p, b);

	return v == SCAN_NONE ? "" : scan_verdict_name(v);
}

static int text_block(FILE *out, struct blocks *all, const struct report_process *p,
		      const struct heap_block *b)
{
	const char *names = all->names;
	int err = name_callers(all, p, b->row);

	fprintf(out, "  0x%-14" PRIx64 "  %12s  %10s  %6u  ", b->addr, human_bytes(b->size).text,
		human_duration(report_blocks_age_of(all->report, b)).text, b->row + 1);
	if (is_judged(p))
		fprintf(out, "%-9s  ", verdict_name(p, b));
	report_function(out, p, heap_row_get(p->heap, b->row).fn);
	fprintf(out, "%s%s%s%s\n", *names ? " < " : "", names, b->is_unsure ? "; perhaps free" : "",
		b->is_pending ? ", in a realloc" : "");
	return err;
}

static int report_blocks_text_process(FILE *out, const struct report *r, const struct report_process *p)
{
	struct blocks b;
	int err = report_blocks_collect(&b, r, p);

	if (r->nr_processes > 1)
		report_name(out, p->target);
	if (!err && !b.list.nr)
		fputs(!r->options.want_leaked ? "  no live block\n"
		      : is_judged(p)	      ? "  no leaked block\n"
					      : "  no verdict on blocks\n",
		      out);
	else
		fprintf(out, "  %-16s  %12s  %10s  %6s  %sby\n", "address", "size", "age", "id",
			is_judged(p) ? "verdict    " : "");
	if (!err)
		err = report_blocks_for_each(&b, out, p, text_block);
	if (b.list.nr < b.list.nr_all)
		fprintf(out, "%s more\n", human_count(b.list.nr_all - b.list.nr).text);
	blocks_fini(&b);
	return err;
}

int report_blocks_text(FILE *out, const struct report *r)
{
	int err = 0;

	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = report_blocks_text_process(out, r, &r->processes[i]);
	return err ? err : flush_stream(out);
}

/* Make @f for @row. */
static int make_field(struct blocks *all, const struct report_process *p, u32 row, struct field *f)
{
	u16 fn = heap_row_get(p->heap, row).fn;
	char *text = NULL;
	size_t len = 0;
	FILE *out;
	int err = name_callers(all, p, row);

	out = err ? NULL : open_memstream(&text, &len);
	if (!out)
		return err ? err : -ENOMEM;
	escape_csv(out, alloc_fn(heap_functions(p->heap), fn)->name);
	putc(',', out);
	escape_csv(out, all->names);
	if (fclose(out)) {
		free(text);
		return -ENOMEM;
	}
	*f = (struct field){ text, len };
	all->bytes += len;
	return 0;
}

/* With more text than that, keep the fields of the last row only. */
static void forget_fields(struct blocks *all)
{
	for (size_t i = 0; i < all->nr_fields && all->bytes > MAX_FIELDS; i++) {
		free(all->fields[i].text);
		all->fields[i] = (struct field){ .text = NULL };
	}
	all->bytes = all->bytes > MAX_FIELDS ? 0 : all->bytes;
}

/* The fields of @row. The escaping of names takes longer than all else: do that once for each row. */
static int report_blocks_field_of(struct blocks *all, const struct report_process *p, u32 row,
				  const struct field **out)
{
	int err = 0;

	if (!all->fields) {
		all->nr_fields = heap_row_count(p->heap) + 1;
		all->fields = calloc(all->nr_fields, sizeof(*all->fields));
	}
	if (!all->fields)
		return -ENOMEM;
	*out = &all->fields[row < all->nr_fields ? row : all->nr_fields - 1];
	if ((*out)->text)
		return 0;
	forget_fields(all);
	err = make_field(all, p, row, &all->fields[*out - all->fields]);
	return err;
}

/* The thread that allocated @b; its tid is 0 if it is not known. */
static struct thread_row report_blocks_thread_of(const struct report_process *p, const struct heap_block *b)
{
	struct thread_row row;

	return heap_thread(p->heap, b->thread, &row) ? row : (struct thread_row){ 0 };
}

static int csv_block(FILE *out, struct blocks *all, const struct report_process *p,
		     const struct heap_block *b)
{
	char head[5 * (DIGITS_MAX + 1)], tail[DIGITS_MAX + 32], *to = head;
	const struct field *f = NULL;
	const u64 numbers[] = { b->size, report_blocks_age_of(all->report, b), b->row + 1 };
	struct thread_row thread = report_blocks_thread_of(p, b);
	int err = report_blocks_field_of(all, p, b->row, &f);

	if (err)
		return err;
	to += digits_u64(to, (u64)p->target->pid);
	*to++ = ',';
	to += digits_hex(to, b->addr);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		*to++ = ',';
		to += digits_u64(to, numbers[i]);
	}
	*to++ = ',';
	fwrite(head, 1, (size_t)(to - head), out);
	fwrite(f->text, 1, f->len, out);
	to = stpcpy(tail, b->is_unsure ? ",true," : ",false,");
	if (thread.tid)
		to += digits_u64(to, thread.tid);
	*to++ = ',';
	to = stpcpy(to, verdict_name(p, b));
	*to++ = ',';
	fwrite(tail, 1, (size_t)(to - tail), out);
	if (report_thread_name(p, &thread))
		escape_csv(out, report_thread_name(p, &thread));
	putc('\n', out);
	return 0;
}

int report_blocks_csv(FILE *out, const struct report *r)
{
	int err = 0;

	/* Unlocked: there may be millions of lines. No other thread writes here. */
	__fsetlocking(out, FSETLOCKING_BYCALLER);
	fputs("pid,address,size,age_ns,caller,function,stack,unsure,tid,verdict,thread\n", out);
	for (size_t i = 0; i < r->nr_processes && !err; i++) {
		struct blocks b;

		err = report_blocks_collect(&b, r, &r->processes[i]);
		if (!err)
			err = report_blocks_for_each(&b, out, &r->processes[i], csv_block);
		blocks_fini(&b);
	}
	return err ? err : flush_stream(out);
}

static void json_block(struct json *j, const struct report *r, const struct report_process *p,
		       const struct heap_block *b)
{
	struct thread_row thread = report_blocks_thread_of(p, b);

	json_object_begin(j, NULL);
	json_hex(j, "address", b->addr);
	json_u64(j, "size", b->size);
	json_u64(j, "time_ns", b->time_ns);
	json_u64(j, "age_ns", report_blocks_age_of(r, b));
	json_u64(j, "caller", b->row + 1);
	json_bool(j, "unsure", b->is_unsure);
	json_known(j, "tid", thread.tid);
	json_string(j, "thread", report_thread_name(p, &thread));
	json_string(j, "verdict", *verdict_name(p, b) ? verdict_name(p, b) : NULL);
	json_object_end(j);
}

static int json_frame(struct json *j, const struct report *r, struct code_ref ref)
{
	const struct module *m = module_get(r->modules, ref.module);
	const struct symbol *symbols;
	size_t nr;
	int err = report_symbols(r, ref, &symbols, &nr);

	if (err)
		return err;
	for (size_t i = 0; i < nr; i++) {
		json_object_begin(j, NULL);
		json_string(j, "function", symbols[i].function);
		json_string(j, "file", symbols[i].file);
		json_known(j, "line", symbols[i].line);
		json_string(j, "module", m ? module_name(m) : NULL);
		report_json_build_id(j, m);
		json_hex(j, "offset", ref.offset);
		json_bool(j, "inlined", symbols[i].is_inlined);
		json_object_end(j);
	}
	return 0;
}

static int json_frames(struct json *j, const struct report *r, const struct stack *s)
{
	int err = 0;

	json_array_begin(j, "frames");
	for (size_t i = 0; s && i < s->nr_frames && !err; i++)
		err = json_frame(j, r, s->frames[i]);
	json_array_end(j);
	return err;
}

static int json_caller(struct json *j, const struct report *r, const struct report_process *p,
		       const struct caller_ids *ids, u32 row)
{
	struct heap_row h = heap_row_get(p->heap, row);
	int err;

	json_object_begin(j, NULL);
	json_u64(j, "caller", row + 1);
	report_json_id(j, "id", ids, row);
	json_string(j, "function", alloc_fn(heap_functions(p->heap), h.fn)->name);
	err = json_frames(j, r, stack_get(p->stacks, h.stack));
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

	for (size_t i = 0; i < b->list.nr && !err; i++)
		is_there[b->list.blocks[i].row] = true;
	json_array_begin(j, "stacks");
	for (size_t i = 0; i < nr && !err; i++)
		if (is_there[i])
			err = json_caller(j, r, p, &ids, (u32)i);
	json_array_end(j);
	caller_ids_fini(&ids);
	return err;
}

static int report_blocks_json_process(struct json *j, const struct report *r, const struct report_process *p)
{
	struct blocks b;
	int err = report_blocks_collect(&b, r, p);

	json_object_begin(j, NULL);
	json_u64(j, "pid", (u64)p->target->pid);
	json_string(j, "comm", p->target->comm);
	json_array_begin(j, "blocks");
	for (size_t i = 0; i < b.list.nr && !err; i++) {
		err = report_blocks_is_unwanted(r, i) ? -ECANCELED : 0;
		json_block(j, r, p, block_list_get(&b.list, i));
	}
	json_array_end(j);
	if (!err)
		err = json_callers(j, r, p, &b);
	json_object_end(j);
	blocks_fini(&b);
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
		err = report_blocks_json_process(&j, r, &r->processes[i]);
	json_array_end(&j);
	json_object_end(&j);
	putc('\n', out);
	return err ? err : flush_stream(out);
}

int report_all_blocks_csv(FILE *out, const struct report *r)
{
	struct report all = *r;

	all.options.top = 0;
	all.options.verbose = true;
	return report_blocks_csv(out, &all);
}

int report_all_blocks_json(FILE *out, const struct report *r)
{
	struct report all = *r;

	all.options.top = 0;
	return report_blocks_json(out, &all);
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
