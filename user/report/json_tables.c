/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers the files, functions, frames and stacks of the JSON report, and writes each once. */
#include "user/report/json_tables.h"

#include <stdlib.h>

#include "user/heap/stacks.h"
#include "user/lib/array.h"
#include "user/names/symbolize.h"
#include "user/report/report_json.h"

enum { NONE = UINT32_MAX /* no function, no file */, FOLD_ITEMS = 2 };

struct table_function {
	u32 name, source;     /* the key, with the next; NONE = unknown */
	const char *language; /* static; NULL = native code */
};

struct table_module {
	u64 id; /* the key */
};

/* A place in a file, and the frames that it has. */
struct table_place {
	u64 module, offset; /* the key */
	u32 first, nr;	    /* frames, innermost first */
};

/* One function on a stack. */
struct written_frame {
	u64 offset;
	u32 function, module; /* numbers; NONE = unknown */
	u32 line;	      /* 0 = unknown */
	bool is_inlined;
};

/* A stack of this process, or of all processes that share a table of stacks. */
struct table_stack {
	u64 table, id; /* the key: address of the table, id in it */
};

void json_tables_init(struct json_tables *t, const struct report *r)
{
	*t = (struct json_tables){
		.report = r,
		.names = { .is_raw = true },
		.sources = { .is_raw = true },
		.functions = { .item_size = sizeof(struct table_function),
			       .key_size = sizeof(struct table_function) },
		.modules = { .item_size = sizeof(struct table_module),
			     .key_size = sizeof(struct table_module) },
		.places = { .item_size = sizeof(struct table_place),
			    .key_size = offsetof(struct table_place, first) },
		.stacks = { .item_size = sizeof(struct table_stack), .key_size = sizeof(struct table_stack) },
	};
}

void json_tables_fini(struct json_tables *t)
{
	intern_strings_fini(&t->names);
	intern_strings_fini(&t->sources);
	intern_fini(&t->functions);
	intern_fini(&t->modules);
	intern_fini(&t->places);
	intern_fini(&t->stacks);
	free(t->frames);
}

static int json_tables_add_text(struct intern_strings *s, const char *text, u32 *out)
{
	size_t number = NONE;
	int err = text ? intern_string(s, text, &number, NULL) : 0;

	*out = (u32)number;
	return err;
}

static int json_tables_add_item(struct intern_table *t, const void *key, u32 *out)
{
	size_t number = NONE;
	bool is_new;
	int err = intern_item(t, key, &number, &is_new);

	*out = (u32)number;
	return err;
}

static int add_function(struct json_tables *t, const struct symbol *s, u32 *out)
{
	struct table_function f;
	int err;

	*out = NONE;
	if (IS_AGENT) /* it knows no names */
		return 0;
	err = json_tables_add_text(&t->names, s->function, &f.name);
	if (!err)
		err = json_tables_add_text(&t->sources, s->file, &f.source);
	f.language = s->language;
	return err || (!s->function && !s->file) ? err : json_tables_add_item(&t->functions, &f, out);
}

static int json_tables_add_frame(struct json_tables *t, struct code_ref ref, const struct symbol *s)
{
	const struct table_module key = { ref.module };
	struct written_frame f = {
		.offset = ref.offset, .line = s->line, .module = NONE, .is_inlined = s->is_inlined
	};
	int err = module_get(t->report->modules, ref.module)
			  ? json_tables_add_item(&t->modules, &key, &f.module)
			  : 0;

	if (!err)
		err = add_function(t, s, &f.function);
	if (!err)
		err = array_reserve(t->frames, t->max_frames, (size_t)t->nr_frames + 1);
	if (!err)
		t->frames[t->nr_frames++] = f;
	return err;
}

static int json_tables_add_place(struct json_tables *t, struct code_ref ref)
{
	const struct table_place key = { .module = ref.module, .offset = ref.offset };
	const struct symbol *symbols;
	struct table_place *place;
	size_t number, nr;
	bool is_new;
	int err = intern_item(&t->places, &key, &number, &is_new);

	if (err || !is_new)
		return err;
	place = intern_get(&t->places, number);
	place->first = t->nr_frames;
	err = report_symbols(t->report, ref, &symbols, &nr);
	for (size_t i = 0; i < nr && !err; i++)
		err = json_tables_add_frame(t, ref, &symbols[i]);
	place->nr = t->nr_frames - place->first;
	return err;
}

int json_tables_stack(struct json_tables *t, const struct report_process *p, const struct stack *s,
		      u32 *number)
{
	const struct table_stack key = { (u64)(uintptr_t)p->stacks, s->id };
	size_t nr = 0;
	bool is_new = false;
	int err = intern_item(&t->stacks, &key, &nr, &is_new);

	for (size_t i = 0; is_new && i < s->nr_frames && !err; i++)
		err = json_tables_add_place(t, s->frames[i]);
	*number = (u32)nr;
	return err;
}

static void json_tables_write_text(struct json *j, const char *key, const struct intern_strings *s,
				   u32 number)
{
	if (number != NONE)
		json_string(j, key, s->list[number]);
}

static void json_tables_write_number(struct json *j, const char *key, u32 number)
{
	if (number != NONE)
		json_u64(j, key, number);
}

static void write_modules(struct json *j, const struct json_tables *t)
{
	json_array_begin(j, "modules");
	for (size_t i = 0; i < t->modules.nr; i++) {
		const struct table_module *key = intern_get(&t->modules, i);
		const struct module *m = module_get(t->report->modules, (u32)key->id);

		json_object_begin(j, NULL);
		json_string(j, "path", module_name(m));
		if (m->build_id_len)
			report_json_build_id(j, m);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_tables_write_functions(struct json *j, const struct json_tables *t)
{
	json_array_begin(j, "sources");
	for (size_t i = 0; i < t->sources.nr; i++)
		json_string(j, NULL, t->sources.list[i]);
	json_array_end(j);
	json_array_begin(j, "functions");
	for (size_t i = 0; i < t->functions.nr; i++) {
		const struct table_function *f = intern_get(&t->functions, i);

		json_object_begin(j, NULL);
		json_tables_write_text(j, "name", &t->names, f->name);
		json_tables_write_number(j, "source", f->source);
		json_string(j, "language", f->language ? f->language : "native");
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_tables_write_frames(struct json *j, const struct json_tables *t)
{
	json_array_begin(j, "frames");
	for (const struct written_frame *f = t->frames; f < t->frames + t->nr_frames; f++) {
		json_object_begin(j, NULL);
		json_tables_write_number(j, "function", f->function);
		if (f->line)
			json_u64(j, "line", f->line);
		json_tables_write_number(j, "module", f->module);
		json_hex(j, "offset", f->offset);
		if (f->is_inlined)
			json_bool(j, "inlined", true);
		json_object_end(j);
	}
	json_array_end(j);
}

/* Write the numbers of the frames of @s. Each place is in its table already. */
static int json_tables_write_stack(struct json *j, struct intern_table *places, const struct stack *s)
{
	int err = 0;

	json_array_begin(j, NULL);
	for (size_t i = 0; i < s->nr_frames && !err; i++) {
		const struct table_place key = { .module = s->frames[i].module,
						 .offset = s->frames[i].offset };
		const struct table_place *place;
		size_t number;
		bool is_new;

		err = intern_item(places, &key, &number, &is_new);
		place = err ? NULL : intern_get(places, number);
		for (u32 k = 0; place && k < place->nr; k++)
			json_u64(j, NULL, place->first + k);
	}
	json_array_end(j);
	return err;
}

int json_tables_write(struct json *j, struct json_tables *t)
{
	int err = 0;

	json_fold(j, FOLD_ITEMS);
	write_modules(j, t);
	if (!IS_AGENT)
		json_tables_write_functions(j, t);
	json_tables_write_frames(j, t);
	json_array_begin(j, "backtraces");
	for (size_t i = 0; i < t->stacks.nr && !err; i++) {
		const struct table_stack *key = intern_get(&t->stacks, i);

		err = json_tables_write_stack(
			j, &t->places, stack_get((const struct stack_table *)(uintptr_t)key->table, key->id));
	}
	json_array_end(j);
	return err;
}

void json_tables_count(const struct json_tables *t, size_t *nr, size_t *nr_unnamed)
{
	*nr = t->nr_frames;
	*nr_unnamed = 0;
	for (size_t i = 0; i < t->nr_frames; i++)
		*nr_unnamed += t->frames[i].function == NONE;
}
