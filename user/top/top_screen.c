/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the state to the lines of the screen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/report/estimate.h"
#include "user/report/report_rows.h"
#include "user/report/short_name.h"
#include "user/scan/leaks.h"
#include "user/top/top_state.h"

/* A row of the list, as cells see it. */
struct cell_row {
	const struct top_state *state;
	const struct top_row *row;
	const struct heap_row *heap;
};

struct cell {
	char text[80];
	enum top_style style;
};

static u64 top_screen_bytes_of(const struct cell_row *r)
{
	return r->state->rows.key->is_of_live ? r->heap->live_bytes : r->heap->alloc_bytes;
}

static struct cell text_cell(const char *text)
{
	struct cell c = { .style = TOP_PLAIN };

	snprintf(c.text, sizeof(c.text), "%s", text);
	return c;
}

/* "1,203,112", "12.0 M", "3.41 G" */
static struct cell top_screen_count_cell(const struct cell_row *r, u64 n)
{
	const char *mark = r->state->head.is_sampled ? "~" : "";
	struct cell c = { .style = TOP_PLAIN };

	if (n < 10000000)
		snprintf(c.text, sizeof(c.text), "%s%s", mark, human_count(n).text);
	else if (n < 1000000000)
		snprintf(c.text, sizeof(c.text), "%s%.1f M", mark, (double)n / 1e6);
	else
		snprintf(c.text, sizeof(c.text), "%s%.2f G", mark, (double)n / 1e9);
	return c;
}

static struct cell cell_bytes(const struct cell_row *r)
{
	return text_cell(estimate_if(r->state->head.is_sampled, human_bytes(top_screen_bytes_of(r))).text);
}

static struct cell cell_share(const struct cell_row *r)
{
	return text_cell(human_percent(top_screen_bytes_of(r), r->state->rows.whole).text);
}

static struct cell cell_blocks(const struct cell_row *r)
{
	return top_screen_count_cell(r,
				     r->state->rows.key->is_of_live ? r->heap->live_blocks : r->heap->allocs);
}

static struct cell cell_growth(const struct cell_row *r)
{
	s64 grown = r->row->row.grown;
	struct cell c = { .style = TOP_PLAIN };

	if (!grown)
		return text_cell("0");
	snprintf(c.text, sizeof(c.text), "%s%s", r->state->head.is_sampled ? "~" : "",
		 human_change(grown).text);
	return c;
}

static struct cell cell_rate(const struct cell_row *r)
{
	return top_screen_count_cell(r, r->row->allocs_per_s);
}

static struct cell cell_leaked(const struct cell_row *r)
{
	u64 lost = leaks_lost(&r->row->row.leaks).bytes;
	u64 possible = r->row->row.leaks.sums.of[SCAN_POSSIBLE].bytes;
	struct cell c = text_cell(r->state->rows.is_scanned ? "-" : "");

	if (lost) {
		c = text_cell(estimate_if(r->state->head.is_sampled, human_bytes(lost)).text);
		c.style = TOP_BAD;
	} else if (possible) {
		snprintf(c.text, sizeof(c.text), "? %s",
			 estimate_if(r->state->head.is_sampled, human_bytes(possible)).text);
		c.style = TOP_WARN;
	}
	return c;
}

static struct cell cell_key(const struct cell_row *r)
{
	const struct report_key *key = r->state->rows.key;

	return text_cell(
		estimate_if(r->state->head.is_sampled, key->human((u64)report_key_value(key, &r->row->row)))
			.text);
}

static struct cell cell_pid(const struct cell_row *r)
{
	struct cell c = { .style = TOP_PLAIN };

	snprintf(c.text, sizeof(c.text), "%d", (int)r->row->pid);
	return c;
}

/* A key that no other column shows. */
static bool has_own_column(const struct top_state *t)
{
	const struct report_key *key = t->rows.key;

	return key->label && !key->wants_scan && strcmp(key->name, "growth");
}

/* Nothing was judged yet: the names of callers have the room. */
static bool has_verdicts(const struct top_state *t)
{
	return t->head.nr_scanned || t->rows.key->wants_scan;
}

static bool has_processes(const struct top_state *t)
{
	return t->head.nr_processes > 1;
}

/* The columns of the list. */
static const struct top_column {
	const char *title, *title_of_total; /* the second one where the key is about all allocations */
	u32 width, min_columns;		    /* of the cell; of the screen that has room for it */
	const char *keys[2];		    /* sort keys that it shows */
	struct cell (*cell)(const struct cell_row *r);
	bool (*is_wanted)(const struct top_state *t); /* NULL = always */
} columns[] = {
	{ "LIVE", "TOTAL", 9, 0, { "live-bytes", "total-bytes" }, cell_bytes, NULL },
	{ "%", "%", 7, 110, { NULL }, cell_share, NULL },
	{ "BLOCKS", "BLOCKS", 10, 56, { "live-blocks", "total-blocks" }, cell_blocks, NULL },
	{ "GROWTH", "GROWTH", 10, 70, { "growth" }, cell_growth, NULL },
	{ "ALLOCS/S", "ALLOCS/S", 10, 96, { NULL }, cell_rate, NULL },
	{ "LEAKED", "LEAKED", 10, 40, { "leaked-bytes", "leaked-blocks" }, cell_leaked, has_verdicts },
	{ NULL, NULL, 12, 36, { NULL }, cell_key, has_own_column },
	{ "PID", "PID", 8, 64, { NULL }, cell_pid, has_processes },
};

static bool is_shown(const struct top_state *t, const struct top_column *c)
{
	return t->columns >= c->min_columns && (!c->is_wanted || c->is_wanted(t));
}

static bool is_sorted_by(const struct top_state *t, const struct top_column *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(c->keys); i++)
		if (c->keys[i] && !strcmp(c->keys[i], t->rows.key->name))
			return true;
	return !c->title;
}

static void write_cell(struct top_line *l, enum top_style style, u32 width, const char *text)
{
	if (l->columns)
		top_line_put(l, TOP_PLAIN, " ");
	top_line_cell(l, style, (int)width, text);
}

static void top_screen_heading(const struct top_state *t, struct top_line *l)
{
	for (const struct top_column *c = columns; c < columns + ARRAY_SIZE(columns); c++) {
		const char *title = t->rows.key->is_of_live ? c->title : c->title_of_total;

		if (is_shown(t, c))
			write_cell(l, is_sorted_by(t, c) ? TOP_STRONG : TOP_FAINT, c->width,
				   title ? title : t->rows.key->name);
	}
	top_line_put(l, TOP_FAINT, t->columns >= 36 ? "  CALLER" : " CALLER");
	if (t->columns >= 60)
		top_line_printf(l, TOP_FAINT, "  %s by %s", human_count(t->rows.nr).text, t->rows.key->what);
	if (*t->filter)
		top_line_printf(l, TOP_WARN, "  /%s", t->filter);
}

/* The own function comes first, and is seen whole as long as it can be. */
static void put_names(struct top_line *l, const char *names)
{
	size_t room = l->max_columns > l->columns ? l->max_columns - l->columns : 0;
	const char *end = strstr(names, " < ");
	char place[TOP_LINE_BYTES], fitting[TOP_LINE_BYTES];

	end = end ? end : strstr(names, ", by ");
	snprintf(place, sizeof(place), "%.*s", (int)(end ? end - names : (ptrdiff_t)strlen(names)), names);
	top_line_put(l, TOP_PLAIN,
		     strlen(place) > room ? fit_place(fitting, sizeof(fitting), place, room) : names);
}

static void row_line(const struct top_state *t, size_t number, struct top_line *l)
{
	const struct top_row *row = &t->rows.list[number];
	const struct cell_row r = { t, row, &row->row.row };

	for (const struct top_column *c = columns; c < columns + ARRAY_SIZE(columns); c++) {
		struct cell cell;

		if (!is_shown(t, c))
			continue;
		cell = c->cell(&r);
		write_cell(l, cell.style, c->width, cell.text);
	}
	top_line_put(l, TOP_PLAIN, t->columns >= 36 ? "  " : " ");
	put_names(l, top_rows_names(&t->rows, row));
	if (number == t->selected) {
		top_line_fill(l, TOP_SELECTED);
		top_line_restyle(l, TOP_SELECTED);
	}
}

/* ---- the parts of the screen ---- */

struct top_layout top_state_layout(const struct top_state *t)
{
	struct top_layout o = { .has_keys = t->lines >= 8, .has_heading = t->lines >= 4 };
	u32 head = 4U + (*t->head.note != '\0');
	/* The last line but the keys is for messages and prompts. */
	u32 rest = t->lines - (t->lines > 1) - o.has_keys - o.has_heading;

	o.head = t->lines >= 16 ? head : t->lines >= 10 ? 2 : t->lines > 2;
	/* An empty line below the head. */
	o.head += t->lines >= 20;
	rest = rest > o.head ? rest - o.head : 0;
	if (t->pane != TOP_NO_PANE)
		o.pane = t->pane == TOP_TEXT_PANE || rest < 12 ? rest : rest - rest / 3;
	o.list = rest - o.pane;
	if (!o.list && o.has_heading) {
		o.has_heading = false;
		o.pane++;
	}
	return o;
}

u32 top_state_room(const struct top_state *t)
{
	return top_state_layout(t).list;
}

/* The next line of the screen; there is one for each line of the terminal. */
static struct top_line *top_screen_next_line(struct top_screen *s)
{
	return &s->lines[s->nr++];
}

/* The list has no rows. */
static void why_empty(const struct top_state *t, struct top_line *l)
{
	if (!t->head.allocs)
		top_line_put(l, TOP_FAINT, "  nothing was allocated yet");
	else if (*t->filter)
		top_line_put(l, TOP_FAINT, "  no caller has this in its names");
	else if (t->rows.key)
		top_line_printf(l, TOP_FAINT, "  no caller has any: %s", t->rows.key->what);
}

static void draw_list(const struct top_state *t, u32 nr, struct top_screen *s)
{
	for (u32 i = 0; i < nr; i++) {
		struct top_line *l = top_screen_next_line(s);

		if (t->rows.key && t->first + i < t->rows.nr)
			row_line(t, t->first + i, l);
		else if (!i)
			why_empty(t, l);
	}
}

/* Go to the next line of the text of a pane, which is wrapped. The bytes of the line are in *@len. */
static const char *take_line(const struct top_state *t, const char *text, size_t *len)
{
	*len = top_wrap(text, t->columns);
	return text + *len + (text[*len] == '\n');
}

size_t top_state_text_lines(const struct top_state *t)
{
	const char *text = t->text ? t->text : "";
	size_t nr = 0, len;

	while (*text) {
		text = take_line(t, text, &len);
		nr++;
	}
	return nr;
}

/* Lines of the text of a pane, from text_first on. */
static void draw_text(const struct top_state *t, u32 nr, struct top_screen *s)
{
	const char *text = t->text ? t->text : "";
	size_t len;

	for (size_t i = 0; i < t->text_first && *text; i++)
		text = take_line(t, text, &len);
	for (u32 i = 0; i < nr; i++) {
		struct top_line *l = top_screen_next_line(s);
		const char *next = take_line(t, text, &len);
		char line[TOP_LINE_BYTES];

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		top_line_put(l, i || t->text_first ? TOP_PLAIN : TOP_STRONG, line);
		text = next;
	}
}

static void draw_prompt(const struct top_state *t, struct top_screen *s)
{
	static const char *const questions[] = { [TOP_ASK_FILTER] = "show only names with: ",
						 [TOP_ASK_SORT] = "sort by: ",
						 [TOP_ASK_FILE] = "save a report as: " };
	u32 line = s->nr;
	struct top_line *l = top_screen_next_line(s);
	const char *answer = t->answer;

	top_line_put(l, TOP_STRONG, t->columns < 40 ? "> " : questions[t->prompt]);
	/* The end of a long answer is what is being typed. */
	while (*answer && l->columns + top_columns(answer) + 1 > t->columns)
		answer++;
	top_line_put(l, TOP_PLAIN, answer);
	s->cursor_line = line;
	s->cursor_column = l->columns < t->columns ? l->columns : t->columns - 1;
	if (t->prompt == TOP_ASK_SORT)
		for (const struct report_key *k = report_keys; k->name; k++)
			if (!strncmp(k->name, t->answer, strlen(t->answer)))
				top_line_item(l, TOP_FAINT, "%s%s", l->has_items ? "" : "  ", k->name);
}

static void draw_message(const struct top_state *t, struct top_screen *s)
{
	struct top_line *l = top_screen_next_line(s);

	if (*t->message)
		top_line_put(l, t->message_level <= LOG_WARN ? TOP_WARN : TOP_PLAIN, t->message);
}

static void draw_keys(const struct top_state *t, struct top_screen *s)
{
	static const char *const keys[][2] = { { "q", "quit" },	      { "?", "help" },
					       { "<>", "sort" },      { "l", "leaks" },
					       { "enter", "stack" },  { "/", "filter" },
					       { "w", "why" },	      { "s", "save" },
					       { "space", "freeze" }, { "b", "growth from now" } };
	static const char *const in_text[][2] = { { "q", "close" }, { "up down", "scroll" } };
	bool is_text = t->pane == TOP_TEXT_PANE;
	struct top_line *l = top_screen_next_line(s);
	size_t nr = is_text ? ARRAY_SIZE(in_text) : ARRAY_SIZE(keys);

	for (size_t i = 0; i < nr; i++) {
		const char *const *k = is_text ? in_text[i] : keys[i];

		if (l->columns + 3 + strlen(k[0]) + 1 + strlen(k[1]) > t->columns)
			break;
		top_line_put(l, TOP_PLAIN, i ? "  " : " ");
		top_line_put(l, TOP_STRONG, k[0]);
		top_line_printf(l, TOP_FAINT, " %s", k[1]);
	}
}

int top_state_draw(const struct top_state *t, u64 now_ns, struct top_screen *s)
{
	const struct top_layout o = top_state_layout(t);
	const struct top_head_look look = {
		.meter = &t->meter,
		.verdict_age_ns = t->verdict_ns ? (now_ns > t->verdict_ns ? now_ns - t->verdict_ns : 1) : 0,
		.is_frozen = t->is_frozen,
	};

	/* A prompt on a terminal of one line makes two. */
	if (array_reserve(s->lines, s->max, t->lines + 1))
		return -ENOMEM;
	for (u32 i = 0; i <= t->lines; i++)
		top_line_init(&s->lines[i], t->columns);
	s->nr = s->cursor_line = s->cursor_column = 0;
	top_head_lines(&t->head, &look, s->lines, o.head);
	s->nr = o.head;
	if (o.has_heading) {
		struct top_line *l = top_screen_next_line(s);

		if (t->rows.key)
			top_screen_heading(t, l);
	}
	draw_list(t, o.list, s);
	draw_text(t, o.pane, s);
	if (t->prompt != TOP_NO_PROMPT)
		draw_prompt(t, s);
	else if (t->lines > 1)
		draw_message(t, s);
	if (o.has_keys)
		draw_keys(t, s);
	return 0;
}

void top_screen_fini(struct top_screen *s)
{
	free(s->lines);
	*s = (struct top_screen){ 0 };
}
