/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for Graphviz: a graph of functions that call each other, the largest ones only. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/human.h"
#include "user/report/format.h"
#include "user/report/frames.h"
#include "user/report/intern.h"
#include "user/report/measure.h"
#include "user/report/report_rows.h"
#include "user/target/target.h"

/* More than these cannot be read in a picture. */
enum { MAX_NODES = 80, MAX_EDGES = 160, MAX_LABEL = 200, MIN_FONT = 9, MORE_FONT = 20 };

/* A function: its number is that of its name. */
struct node {
	u64 own, all;	/* of its own calls of the allocator; with what it calls */
	size_t seen_in; /* caller that counted last, from 1: a recursive function counts once */
	bool is_shown;
};

struct edge {
	struct {
		u64 from, to;	 /* nodes */
		u64 is_skipping; /* functions between them are not shown */
	} key;
	u64 value;
	size_t seen_in;
};

/* One caller: numbers of nodes, innermost first. */
struct path {
	u32 *nodes; /* owned */
	size_t nr, max;
	u64 value;
};

struct graph {
	const struct report *report;
	const struct report_measure *measure;
	struct intern_strings names;
	struct node *nodes; /* owned */
	size_t max_nodes;
	struct intern_table edges; /* of struct edge */
	struct path *paths;	   /* owned */
	size_t nr, max;
	struct report_frames stack; /* of the caller that is being read */
	u64 total;
};

static int add_node(struct graph *g, struct path *path, const char *name)
{
	size_t number = 0;
	bool is_new = false;
	int err = intern_string(&g->names, name, &number, &is_new);

	if (!err)
		err = array_reserve(g->nodes, g->max_nodes, g->names.nr);
	if (!err)
		err = array_reserve(path->nodes, path->max, path->nr + 1);
	if (err)
		return err;
	if (is_new)
		g->nodes[number] = (struct node){ 0 };
	path->nodes[path->nr++] = (u32)number;
	return 0;
}

static int add_path(struct graph *g, const struct report_process *p, const struct report_row *row)
{
	struct report_frames *f = &g->stack;
	char mark[sizeof(f->mark) + 2];
	struct path *path;
	int err = report_frames(f, g->report, p, row);

	if (!err)
		err = array_reserve(g->paths, g->max, g->nr + 1);
	if (err)
		return err;
	path = &g->paths[g->nr++];
	*path = (struct path){ .value = report_number(row, g->measure->number) };
	g->total += path->value;
	for (size_t i = 0; i < f->nr && !err; i++)
		err = add_node(g, path, report_frame_name(f, g->report, i));
	snprintf(mark, sizeof(mark), "[%s]", f->mark);
	if (!err && *f->mark)
		err = add_node(g, path, mark);
	return err;
}

static int report_dot_add_process(struct graph *g, const struct report_process *p)
{
	auto_free struct report_row *rows = NULL;
	size_t nr = 0;
	int err = report_rows(g->report, p, &rows, &nr, NULL);

	for (size_t i = 0; i < nr && !err; i++)
		if (report_number(&rows[i], g->measure->number))
			err = add_path(g, p, &rows[i]);
	return err;
}

static void count_nodes(struct graph *g)
{
	for (size_t i = 0; i < g->nr; i++) {
		const struct path *path = &g->paths[i];

		if (path->nr)
			g->nodes[path->nodes[0]].own += path->value;
		for (size_t k = 0; k < path->nr; k++) {
			struct node *n = &g->nodes[path->nodes[k]];

			if (n->seen_in != i + 1)
				n->all += path->value;
			n->seen_in = i + 1;
		}
	}
}

static int compare_nodes(const void *pa, const void *pb, void *nodes)
{
	const struct node *a = (const struct node *)nodes + *(const u32 *)pa;
	const struct node *b = (const struct node *)nodes + *(const u32 *)pb;

	if (a->all != b->all)
		return a->all < b->all ? 1 : -1;
	return a->own < b->own ? 1 : a->own > b->own ? -1 : (a > b) - (a < b);
}

static int choose_nodes(struct graph *g)
{
	auto_free u32 *order = calloc(g->names.nr + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < g->names.nr; i++)
		order[i] = (u32)i;
	qsort_r(order, g->names.nr, sizeof(*order), compare_nodes, g->nodes);
	for (size_t i = 0; i < g->names.nr && i < MAX_NODES; i++)
		g->nodes[order[i]].is_shown = true;
	return 0;
}

static int add_edge(struct graph *g, u32 from, u32 to, bool is_skipping, const struct path *path)
{
	struct edge key = { .key = { from, to, is_skipping } };
	struct edge *edge;
	size_t number;
	bool is_new;
	int err = intern_item(&g->edges, &key, &number, &is_new);

	if (err)
		return err;
	edge = intern_get(&g->edges, number);
	if (edge->seen_in != (size_t)(path - g->paths) + 1)
		edge->value += path->value;
	edge->seen_in = (size_t)(path - g->paths) + 1;
	return 0;
}

/* Link each shown function of @path to the next shown one inwards. */
static int add_edges(struct graph *g, const struct path *path)
{
	size_t outer = path->nr;
	int err = 0;

	for (size_t i = path->nr; i-- > 0 && !err;) {
		if (!g->nodes[path->nodes[i]].is_shown)
			continue;
		if (outer < path->nr)
			err = add_edge(g, path->nodes[outer], path->nodes[i], outer != i + 1, path);
		outer = i;
	}
	return err;
}

static int compare_edges(const void *pa, const void *pb)
{
	const struct edge *a = pa, *b = pb;

	if (a->value != b->value)
		return a->value < b->value ? 1 : -1;
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

/* Write @text, which is valid UTF-8 and escaped for terminals, in a quoted string of dot. Long text is cut. */
static void report_dot_put_quoted(FILE *out, const char *text)
{
	size_t len = strlen(text);
	size_t end = len < MAX_LABEL ? len : MAX_LABEL;

	while (end < len && (text[end] & 0xc0) == 0x80)
		end--;
	for (const char *s = text; s < text + end; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', out);
		putc(*s, out);
	}
	if (end < len)
		fputs("...", out);
}

static struct human report_dot_amount(const struct graph *g, u64 value)
{
	return g->measure->is_bytes ? human_bytes(value) : human_count(value);
}

static void report_dot_put_head(FILE *out, const struct graph *g)
{
	const struct report *r = g->report;
	char comm[4 * TARGET_COMM_LEN] = "";

	fputs("digraph heap {\n\tnode [shape=box, fontname=\"sans-serif\"]\n\tedge [fontname=\"sans-serif\", "
	      "fontsize=10]\n\tlabelloc=t\n\tlabel=\"",
	      out);
	if (r->nr_processes)
		report_dot_put_quoted(out, escape_buf(comm, sizeof(comm), r->processes[0].target->comm));
	if (r->nr_processes > 1)
		fprintf(out, " and %zu other processes", r->nr_processes - 1);
	fprintf(out, ": %" PRIu64 " %s", g->total, g->measure->what);
	if (g->names.nr > MAX_NODES)
		fprintf(out, "\\n%d of %zu functions are shown", MAX_NODES, g->names.nr);
	fputs("\"\n", out);
}

/* The size of the text grows with the part of the whole that the function itself has. */
static void put_node(FILE *out, const struct graph *g, size_t number)
{
	const struct node *n = &g->nodes[number];

	fprintf(out, "\tn%zu [label=\"", number);
	report_dot_put_quoted(out, g->names.list[number]);
	fprintf(out, "\\n%s (%s)", report_dot_amount(g, n->own).text, human_percent(n->own, g->total).text);
	if (n->all != n->own)
		fprintf(out, "\\nof %s (%s)", report_dot_amount(g, n->all).text,
			human_percent(n->all, g->total).text);
	fprintf(out, "\", fontsize=%.1f, tooltip=\"%" PRIu64 " here, %" PRIu64 " with callees\"]\n",
		MIN_FONT + MORE_FONT * (double)n->own / (double)g->total, n->own, n->all);
}

static void put_edge(FILE *out, const struct graph *g, const struct edge *e)
{
	fprintf(out, "\tn%" PRIu64 " -> n%" PRIu64 " [label=\"%s\", penwidth=%.1f%s]\n", e->key.from,
		e->key.to, report_dot_amount(g, e->value).text, 1 + 4 * (double)e->value / (double)g->total,
		e->key.is_skipping ? ", style=dashed" : "");
}

static int put_graph(FILE *out, struct graph *g)
{
	int err = choose_nodes(g);

	for (size_t i = 0; i < g->nr && !err; i++)
		err = add_edges(g, &g->paths[i]);
	if (err)
		return err;
	if (g->edges.nr)
		qsort(g->edges.items, g->edges.nr, sizeof(struct edge), compare_edges);
	report_dot_put_head(out, g);
	for (size_t i = 0; i < g->names.nr; i++)
		if (g->nodes[i].is_shown)
			put_node(out, g, i);
	for (size_t i = 0; i < g->edges.nr && i < MAX_EDGES; i++)
		put_edge(out, g, intern_get(&g->edges, i));
	fputs("}\n", out);
	return 0;
}

int report_dot(FILE *out, const struct report *r)
{
	struct graph g = { .report = r,
			   .measure = report_measure_for(r),
			   .edges = { .item_size = sizeof(struct edge),
				      .key_size = sizeof(((struct edge *)0)->key) } };
	int err = 0;

	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = report_dot_add_process(&g, &r->processes[i]);
	if (!err) {
		count_nodes(&g);
		err = put_graph(out, &g);
	}
	for (size_t i = 0; i < g.nr; i++)
		free(g.paths[i].nodes);
	free(g.paths);
	free(g.nodes);
	report_frames_fini(&g.stack);
	intern_fini(&g.edges);
	intern_strings_fini(&g.names);
	return err ? err : flush_stream(out);
}
