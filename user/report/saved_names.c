/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies a saved JSON report, with new tables of modules, functions, frames and stacks, and a place for each caller. */
#include "user/report/saved_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/stacks.h"
#include "user/lib/cleanup.h"
#include "user/lib/json.h"
#include "user/names/symbolize.h"
#include "user/report/json_tables.h"
#include "user/report/own_code.h"
#include "user/report/saved_private.h"
#include "user/target/module.h"
#include "user/target/target.h"

/* Stacks are kept by addresses. File n is mapped at n << MODULE_BITS, where no process has an address. */
enum { MODULE_BITS = 48, MAX_MODULES = 16384, EXE_MAX = 4096 };

struct saved_naming {
	struct saved_reading reading; /* first, so that its functions lead here */
	FILE *out;
	const char *text;
	size_t copied; /* bytes of @text that are written or left out */
	struct saved_named *named;
	struct module_table *modules;  /* owned */
	struct symbolizer *symbolizer; /* owned */
	struct stack_table *stacks;    /* owned */
	struct mapping_list maps;      /* owned; of the files as above */
	u32 *numbers;		       /* owned; of stacks, now, by what they were */
	struct target target;	       /* whose callers are being read */
	u64 stack;		       /* of the caller that is being read; STACK_NONE = not known */
	bool has_place;		       /* that caller, and with a name */
	char exe[EXE_MAX];	       /* of it */
	struct report_process process; /* of it */
	struct report report;
	struct json_tables tables;
};

static struct saved_naming *naming_of(struct saved_reading *r)
{
	return (struct saved_naming *)r;
}

/* Copy what is before position @end. */
static void naming_copy(struct saved_naming *n, size_t end)
{
	fwrite(n->text + n->copied, 1, end - n->copied, n->out);
	n->copied = end;
}

/* Leave out the member that was just read; all before it is copied. */
static int naming_drop(struct saved_naming *n)
{
	const char *p = n->text + n->copied;

	p += strspn(p, " \t\r\n");
	n->copied = json_position(&n->reading.json);
	return *p == ',' ? 0 : saved_wrong(&n->reading, "a member that is replaced stands first");
}

/* A writer that goes on in an open object at @depth. */
static struct json naming_writer(const struct saved_naming *n, u32 depth, u32 fold_depth)
{
	struct json j;

	json_init(&j, n->out, fold_depth);
	j.depth = depth;
	j.has_items = j.is_dense = true;
	return j;
}

static int naming_add_modules(struct saved_naming *n)
{
	u32 nr = saved_tables_modules(n->reading.tables);
	struct module known, *m;
	int err = 0;

	if (nr > MAX_MODULES)
		return saved_wrong(&n->reading, "a table is too long");
	n->maps.maps = calloc(nr + 1, sizeof(*n->maps.maps));
	if (!n->maps.maps)
		return -ENOMEM;
	for (u32 i = 0; i < nr && !err; i++) {
		taddr_t start = (taddr_t)(i + 1) << MODULE_BITS;

		saved_tables_module(n->reading.tables, i, &known);
		err = module_add_known(n->modules, &known, &m);
		if (!err)
			n->maps.maps[n->maps.nr++] = (struct mapping){ .start = start,
								       .end = start + (1ULL << MODULE_BITS),
								       .bias = start,
								       .module = m };
	}
	n->named->nr_modules = nr;
	return err;
}

/* Stack @number of the report as an event: its frames without those that are inlined into the next one. */
static int naming_read_stack(struct saved_naming *n, u32 number, struct stack_event *ev)
{
	struct saved_place place;
	int err = 0;

	*ev = (struct stack_event){ .id = STACK_FIRST_ID + (u64)number };
	for (u32 i = 0; !(err = saved_tables_place(&n->reading, number, i, &place)); i++) {
		if (place.is_inlined)
			continue;
		if (ev->nr_frames == STACK_MAX_FRAMES || (place.has_module && place.offset >> MODULE_BITS))
			return saved_wrong(&n->reading, "a stack is too long, or leads out of its file");
		ev->ips[ev->nr_frames++] =
			place.offset + (place.has_module ? ((u64)place.module + 1) << MODULE_BITS : 0);
	}
	return err == -ENOENT ? 0 : err;
}

/* Name all stacks of the report. */
static int naming_add_stacks(struct saved_naming *n)
{
	u32 nr = saved_tables_stacks(n->reading.tables);
	auto_free struct stack_event *ev = malloc(sizeof(*ev));
	int err = 0;

	n->numbers = calloc(nr + 1, sizeof(*n->numbers));
	if (!ev || !n->numbers)
		return -ENOMEM;
	for (u32 i = 0; i < nr && !err; i++) {
		err = naming_read_stack(n, i, ev);
		if (!err)
			err = stack_table_add(n->stacks, ev, &n->maps);
		if (!err)
			err = json_tables_stack(&n->tables, &n->process, stack_get(n->stacks, ev->id),
						&n->numbers[i]);
	}
	return err;
}

/* The number of the stack now. It becomes that of the caller that is being read. */
static int naming_put_stack(struct saved_naming *n, enum json_token token)
{
	struct saved_reading *r = &n->reading;
	size_t end = json_position(&r->json);
	u64 number = 0;
	int err = saved_number(r, token, &number);

	if (!err && number >= saved_tables_stacks(r->tables))
		return saved_wrong(r, "there is no backtrace of this number");
	if (err)
		return err;
	naming_copy(n, end - strlen(r->json.text));
	n->copied = end;
	n->stack = STACK_FIRST_ID + number;
	fprintf(n->out, "%u", n->numbers[number]);
	return 0;
}

static int naming_on_stack_member(struct saved_reading *r, const char *key, enum json_token token)
{
	struct saved_naming *n = naming_of(r);
	int err;

	if (!strcmp(key, "backtrace"))
		return naming_put_stack(n, token);
	err = saved_skip(r, token);
	if (err)
		return err;
	if (!strcmp(key, "place") && token == JSON_STRING) {
		/* One with a name may be of a machine that knew more. */
		if (strstr(r->json.text, "+0x"))
			return naming_drop(n);
		n->has_place = true;
	}
	naming_copy(n, json_position(&r->json));
	return 0;
}

static int naming_on_stack(struct saved_reading *r, enum json_token token)
{
	struct saved_naming *n = naming_of(r);
	struct json j = naming_writer(n, 1, 0);
	char place[OWN_PLACE_MAX];
	int err;

	n->has_place = false;
	n->stack = STACK_NONE;
	err = saved_object(r, token, naming_on_stack_member);
	if (err || n->has_place || n->stack == STACK_NONE)
		return err;
	err = own_code_name(&n->report, &n->process, n->stack, place);
	if (*place)
		json_string(&j, "place", place);
	return err;
}

static int naming_on_process_member(struct saved_reading *r, const char *key, enum json_token token)
{
	struct saved_naming *n = naming_of(r);

	if (!strcmp(key, "stacks"))
		return saved_array(r, token, naming_on_stack);
	if (!strcmp(key, "exe") && token == JSON_STRING)
		saved_copy_text(n->exe, sizeof(n->exe), r->json.text);
	return saved_skip(r, token);
}

static int naming_on_process(struct saved_reading *r, enum json_token token)
{
	naming_of(r)->exe[0] = '\0';
	return saved_object(r, token, naming_on_process_member);
}

static int naming_on_report_member(struct saved_reading *r, const char *key, enum json_token token)
{
	static const char *const replaced[] = { "modules",    "sources",       "functions",	"frames",
						"backtraces", "stale_modules", "unread_modules" };
	struct saved_naming *n = naming_of(r);
	bool is_replaced = false;
	int err = strcmp(key, "processes") ? saved_skip(r, token) : saved_array(r, token, naming_on_process);

	for (size_t i = 0; i < ARRAY_SIZE(replaced); i++)
		is_replaced |= !strcmp(key, replaced[i]);
	if (!err && is_replaced)
		return naming_drop(n);
	if (!err)
		naming_copy(n, json_position(&r->json));
	return err;
}

static int naming_write(struct saved_naming *n, size_t len)
{
	struct saved_reading *r = &n->reading;
	struct json j;
	int err;

	json_reader_init(&r->json, n->text, len);
	err = saved_object(r, json_next(&r->json), naming_on_report_member);
	if (!err && json_next(&r->json) != JSON_END)
		err = saved_wrong(r, "more follows the report");
	if (err)
		return err;
	j = naming_writer(n, 1, 2);
	err = json_tables_write(&j, &n->tables);
	json_u64(&j, "stale_modules", symbolizer_stale(n->symbolizer));
	json_u64(&j, "unread_modules", symbolizer_unread(n->symbolizer));
	naming_copy(n, len);
	json_tables_count(&n->tables, &n->named->nr_frames, &n->named->nr_unnamed);
	return err ? err : ferror(n->out) ? -ENOMEM : 0;
}

static int naming_open(struct saved_naming *n, const struct symbolizer_options *options)
{
	int err = module_table_new(&n->modules);

	if (!err)
		err = symbolizer_new(&n->symbolizer, n->modules, options);
	if (!err)
		err = stack_table_new(&n->stacks);
	n->target.exe = n->exe;
	n->process = (struct report_process){ .target = &n->target, .stacks = n->stacks };
	n->report = (struct report){ .processes = &n->process,
				     .nr_processes = 1,
				     .modules = n->modules,
				     .symbolizer = n->symbolizer };
	json_tables_init(&n->tables, &n->report);
	return err;
}

static void naming_close(struct saved_naming *n)
{
	json_tables_fini(&n->tables);
	stack_table_free(n->stacks);
	symbolizer_free(n->symbolizer);
	module_table_free(n->modules);
	saved_tables_free(n->reading.tables);
	free(n->maps.maps);
	free(n->numbers);
}

int saved_name(FILE *out, const char *text, size_t len, const struct symbolizer_options *options,
	       struct saved_named *named, const char **why, size_t *at)
{
	auto_free struct saved_naming *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return -ENOMEM;
	*named = (struct saved_named){ 0 };
	n->out = out;
	n->text = text;
	n->named = named;
	err = naming_open(n, options);
	if (!err)
		err = saved_tables_read(&n->reading, text, len);
	if (!err)
		err = naming_add_modules(n);
	if (!err)
		err = naming_add_stacks(n);
	if (!err)
		err = naming_write(n, len);
	*why = n->reading.why;
	*at = json_position(&n->reading.json);
	naming_close(n);
	return err;
}
