/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers the texts, files, frames and stacks of the HTML report, and writes each once. */
#include "user/report/html_tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/names/symbolize.h"
#include "user/report/report_json.h"
#include "user/report/frames.h"

/* Longer names of html_lines() are cut, as in the JSON of a comparison. */
enum { MAX_NAME = 1024 };

/* A place in a file, and the frames that it has. */
struct html_place {
	u64 module, offset; /* the key */
	u32 first, nr;	    /* frames, innermost first */
};

struct html_node {
	u32 parent, frame;  /* the key; parent HTML_NONE = outermost */
	struct turns turns; /* that begin here; zeros: nobody has looked */
};

/* Functions of a stack that are looked at: with inlined ones, more than frames. */
enum { MAX_PATH = 4 * STACK_MAX_FRAMES };

void html_tables_init(struct html_tables *t)
{
	*t = (struct html_tables){
		.places = { .item_size = sizeof(struct html_place),
			    .key_size = offsetof(struct html_place, first) },
		.nodes = { .item_size = sizeof(struct html_node),
			   .key_size = offsetof(struct html_node, turns) },
	};
}

void html_tables_fini(struct html_tables *t)
{
	intern_strings_fini(&t->texts);
	intern_fini(&t->places);
	intern_fini(&t->nodes);
	free(t->modules);
	free(t->frames);
}

int html_text(struct html_tables *t, const char *text, u32 *out)
{
	size_t number = HTML_NONE;
	int err = text ? intern_string(&t->texts, text, &number, NULL) : 0;

	*out = (u32)number;
	return err;
}

/* Modules are few: a search from the newest on finds most at once. */
static int html_add_module(struct html_tables *t, const struct module *m, u32 *out)
{
	*out = HTML_NONE;
	if (!m)
		return 0;
	for (u32 i = t->nr_modules; i--;) {
		if (t->modules[i] == m) {
			*out = i;
			return 0;
		}
	}
	if (array_reserve(t->modules, t->max_modules, (size_t)t->nr_modules + 1))
		return -ENOMEM;
	*out = t->nr_modules++;
	t->modules[*out] = m;
	return 0;
}

static int html_tables_add_frame(struct html_tables *t, struct code_ref ref, u32 module,
				 const struct symbol *s)
{
	struct html_frame f = { .line = s->line,
				.module = module,
				.offset = s->function ? 0 : ref.offset,
				.kind = s->is_inlined ? HTML_INLINED : HTML_FRAME };
	int err = html_text(t, s->function, &f.function);

	if (!err)
		err = html_text(t, s->file, &f.file);
	if (err || array_reserve(t->frames, t->max_frames, (size_t)t->nr_frames + 1))
		return -ENOMEM;
	t->frames[t->nr_frames++] = f;
	return 0;
}

/* Add the frames of the new place @number. */
static int html_tables_add_frames(struct html_tables *t, const struct report *r, struct code_ref ref,
				  size_t number)
{
	u32 first = t->nr_frames;
	const struct symbol *symbols;
	struct html_place *place;
	size_t nr;
	u32 module;
	int err = report_symbols(r, ref, &symbols, &nr);

	if (!err)
		err = html_add_module(t, module_get(r->modules, ref.module), &module);
	for (size_t i = 0; i < nr && !err; i++)
		err = html_tables_add_frame(t, ref, module, &symbols[i]);
	place = intern_get(&t->places, number);
	place->first = first;
	place->nr = t->nr_frames - first;
	return err;
}

static int html_tables_find_place(struct html_tables *t, const struct report *r, struct code_ref ref,
				  struct html_place *out)
{
	const struct html_place key = { .module = ref.module, .offset = ref.offset };
	size_t number;
	bool is_new;
	int err = intern_item(&t->places, &key, &number, &is_new);

	if (!err && is_new)
		err = html_tables_add_frames(t, r, ref, number);
	if (!err)
		*out = *(const struct html_place *)intern_get(&t->places, number);
	return err;
}

/* Go from *@node to its child of @frame. */
static int html_tables_step(struct html_tables *t, u32 frame, u32 *node)
{
	const struct html_node child = { .parent = *node, .frame = frame };
	size_t number;
	bool is_new;
	int err = intern_item(&t->nodes, &child, &number, &is_new);

	*node = (u32)number;
	return err;
}

/* The nodes of a stack, from @from on, and their tables. */
struct html_path {
	const struct html_tables *tables;
	const u32 *nodes;
	size_t from;
};

static bool html_tables_is_same(const void *ctx, size_t a, size_t b)
{
	const struct html_path *p = ctx;
	const struct html_node *nodes = (const struct html_node *)p->tables->nodes.items;
	u32 m = nodes[p->nodes[p->from + a]].frame, n = nodes[p->nodes[p->from + b]].frame;
	const struct html_frame *x = &p->tables->frames[m], *y = &p->tables->frames[n];

	return m == n || (x->function != HTML_NONE && x->function == y->function && x->file == y->file &&
			  x->line == y->line && x->module == y->module && x->kind == y->kind);
}

/* Fold recursion on the stack whose innermost node is @node. */
static void html_tables_fold(struct html_tables *t, u32 node)
{
	struct html_node *nodes = (struct html_node *)t->nodes.items;
	u32 path[MAX_PATH];
	struct html_path p = { t, path, 0 };
	size_t nr = 0;

	for (; node != HTML_NONE && nr < MAX_PATH; node = nodes[node].parent)
		path[nr++] = node;
	while (p.from < nr) {
		struct turns *turns = &nodes[path[p.from]].turns;

		if (!turns->nr)
			*turns = turns_find(nr - p.from, html_tables_is_same, &p);
		p.from += (size_t)turns->nr * turns->times;
	}
}

/* Begin a stack that is cut with a mark: without it the frame where it is cut would look like the program's first. */
static int html_tables_add_mark(struct html_tables *t, u8 end, u32 *node)
{
	const struct symbol mark = { .function = stack_end_word(end) };
	u32 *frame = &t->marks[end < NR_STACK_ENDS ? end : STACK_UNSUPPORTED];

	if (!*frame) {
		int err = html_tables_add_frame(t, (struct code_ref){ 0 }, HTML_NONE, &mark);

		if (err)
			return err;
		t->frames[t->nr_frames - 1].kind = HTML_MARK;
		*frame = t->nr_frames;
	}
	return html_tables_step(t, *frame - 1, node);
}

int html_stack(struct html_tables *t, const struct report *r, const struct report_process *p,
	       const struct report_row *row, u32 *node, const char **truncated)
{
	const struct stack *s = report_stack(p, row, truncated);
	int err = 0;

	*node = HTML_NONE;
	if (s && *truncated)
		err = html_tables_add_mark(t, s->end, node);
	for (size_t i = s ? s->nr_frames : 0; i-- && !err;) {
		struct html_place place = { .nr = 0 };

		err = html_tables_find_place(t, r, s->frames[i], &place);
		for (u32 k = place.nr; k-- && !err;)
			err = html_tables_step(t, place.first + k, node);
	}
	if (!err)
		html_tables_fold(t, *node);
	return err;
}

/*
 * Go from *@node, HTML_NONE for the start, to its child of the function @name, of which nothing else is known. Not in
 * tables that html_stack() fills. 0 or -ENOMEM.
 */
static int html_named(struct html_tables *t, const char *name, u32 *node)
{
	u32 text;
	int err = html_text(t, name, &text);

	/* Each text has the frame of its number. */
	while (!err && t->nr_frames <= text) {
		err = array_reserve(t->frames, t->max_frames, (size_t)t->nr_frames + 1);
		if (!err)
			t->frames[t->nr_frames] = (struct html_frame){ .function = t->nr_frames,
								       .file = HTML_NONE,
								       .module = HTML_NONE };
		t->nr_frames += !err;
	}
	return err ? err : html_tables_step(t, text, node);
}

int html_lines(struct html_tables *t, const char *frames, u32 *node)
{
	const char *end = frames + strlen(frames);
	int err = 0;

	*node = HTML_NONE;
	while (end > frames && !err) {
		const char *start = end - (end[-1] == '\n');
		size_t len = 0;
		char name[MAX_NAME];

		while (start - len > frames && start[-(ssize_t)len - 1] != '\n')
			len++;
		start -= len;
		snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : sizeof(name) - 1),
			 start);
		err = html_named(t, name, node);
		end = start;
	}
	if (!err)
		html_tables_fold(t, *node);
	return err;
}

void html_numbers(struct json *j, const char *key, size_t nr, s64 (*get)(const void *ctx, size_t i),
		  const void *ctx)
{
	s64 first = nr ? get(ctx, 0) : 0;
	size_t i = 0;

	while (i < nr && get(ctx, i) == first)
		i++;
	if (i == nr && first)
		json_s64(j, key, first);
	if (i == nr)
		return;
	json_array_begin(j, key);
	for (i = 0; i < nr; i++)
		json_s64(j, NULL, get(ctx, i));
	json_array_end(j);
}

/* Numbers that may be HTML_NONE are -1 then. */
static s64 html_tables_number(u32 n)
{
	return n == HTML_NONE ? -1 : (s64)n;
}

static void html_tables_write_frames(struct json *j, const struct html_tables *t)
{
	json_array_begin(j, "frames");
	for (const struct html_frame *f = t->frames; f < t->frames + t->nr_frames; f++) {
		json_array_begin(j, NULL);
		json_s64(j, NULL, html_tables_number(f->function));
		json_s64(j, NULL, html_tables_number(f->file));
		json_u64(j, NULL, f->line);
		json_s64(j, NULL, html_tables_number(f->module));
		json_u64(j, NULL, f->kind);
		if (f->offset)
			json_hex(j, NULL, f->offset);
		json_array_end(j);
	}
	json_array_end(j);
}

static void write_nodes(struct json *j, const struct html_tables *t)
{
	const struct html_node *nodes = (const struct html_node *)t->nodes.items;

	/* How far back the parent is; one more than its own number for a node without. */
	json_object_begin(j, "nodes");
	json_array_begin(j, "up");
	for (u32 i = 0; i < t->nodes.nr; i++)
		json_u64(j, NULL, nodes[i].parent == HTML_NONE ? i + 1 : i - nodes[i].parent);
	json_array_end(j);
	json_array_begin(j, "frame");
	for (u32 i = 0; i < t->nodes.nr; i++)
		json_u64(j, NULL, nodes[i].frame);
	json_array_end(j);
	json_array_begin(j, "turns");
	for (u32 i = 0; i < t->nodes.nr; i++) {
		if (nodes[i].turns.times <= 1)
			continue;
		json_array_begin(j, NULL);
		json_u64(j, NULL, i);
		json_u64(j, NULL, nodes[i].turns.nr);
		json_u64(j, NULL, nodes[i].turns.times);
		json_array_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

void html_tables_write(struct json *j, const struct html_tables *t)
{
	json_array_begin(j, "texts");
	for (size_t i = 0; i < t->texts.nr; i++)
		json_string(j, NULL, t->texts.list[i]);
	json_array_end(j);
	json_array_begin(j, "modules");
	for (u32 i = 0; i < t->nr_modules; i++) {
		json_object_begin(j, NULL);
		json_string(j, "path", module_name(t->modules[i]));
		report_json_build_id(j, t->modules[i]);
		json_object_end(j);
	}
	json_array_end(j);
	html_tables_write_frames(j, t);
	write_nodes(j, t);
}
