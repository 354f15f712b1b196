/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the state of heaptap system to the lines of its screen. */
#include "user/system/screen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/system/answer.h"
#include "user/system/rows.h"
#include "user/top/top_state.h"

enum {
	HEAD_LINES = 2, /* sums, and the names of the columns */
	DETAIL_LINES = 3,
	KEYS_LINES = 1,
	MIN_LINES_OF_ALL = 16, /* fewer have no details, messages and keys */
};

void screen_say(struct screen *sc, enum log_level level, const char *text)
{
	snprintf(sc->messages[sc->nr_messages % SCREEN_MESSAGES].text, SCREEN_MESSAGE_BYTES, "%s", text);
	sc->messages[sc->nr_messages++ % SCREEN_MESSAGES].level = level;
}

static bool has_all(const struct screen *sc)
{
	return sc->lines >= MIN_LINES_OF_ALL;
}

/* Rows of processes that fit. */
static size_t screen_room(const struct screen *sc)
{
	u32 others = HEAD_LINES + (has_all(sc) ? DETAIL_LINES + SCREEN_MESSAGES + KEYS_LINES : 0);

	return sc->lines > others ? sc->lines - others : 0;
}

/* The number of the selected row. A process that has gone leaves the selection at the top. */
static size_t selected_row(const struct screen *sc, const struct watched *const *list, size_t nr)
{
	for (size_t i = 0; sc->selected && i < nr; i++)
		if (list[i]->pid == sc->selected)
			return i;
	return 0;
}

static void screen_scroll(struct screen *sc, size_t row, size_t nr)
{
	size_t fits = screen_room(sc);

	if (row < sc->first)
		sc->first = row;
	if (fits && row >= sc->first + fits)
		sc->first = row - fits + 1;
	if (sc->first >= nr)
		sc->first = 0;
}

static enum screen_action screen_move(struct screen *sc, const struct system_state *s, s64 by)
{
	auto_free const struct watched **list = NULL;
	size_t nr = s->watch.nr;
	s64 row;

	if (!nr || watch_rank(&s->watch, &list))
		return SCREEN_NOTHING;
	row = (s64)selected_row(sc, list, nr) + by;
	row = row < 0 ? 0 : row >= (s64)nr ? (s64)nr - 1 : row;
	sc->selected = row ? list[row]->pid : 0;
	return SCREEN_DRAW;
}

enum screen_action screen_key(struct screen *sc, const struct system_state *s, int key)
{
	const s64 page = (s64)screen_room(sc), all = (s64)s->watch.nr;
	const struct {
		int key;
		s64 by;
	} moves[] = {
		{ TOP_KEY_UP, -1 },	    { 'k', -1 },
		{ TOP_KEY_DOWN, 1 },	    { 'j', 1 },
		{ TOP_KEY_PAGE_UP, -page }, { TOP_KEY_PAGE_DOWN, page },
		{ TOP_KEY_HOME, -all },	    { TOP_KEY_END, all },
	};

	for (size_t i = 0; i < ARRAY_SIZE(moves); i++)
		if (moves[i].key == key)
			return screen_move(sc, s, moves[i].by);
	switch (key) {
	case 'q':
	case 3:	 /* Ctrl-C */
	case 28: /* Ctrl-\ */
		return SCREEN_QUIT;
	case 's':
		return SCREEN_REPORT;
	case TOP_KEY_RESIZE:
		return SCREEN_DRAW;
	case 26: /* Ctrl-Z */
		screen_say(sc, LOG_WARN, "a stopped heaptap would lose events; q leaves");
		return SCREEN_DRAW;
	default:
		return SCREEN_NOTHING;
	}
}

/* ---- lines ---- */

/* The columns of the list; the last one has the rest of the line. */
static const struct screen_column {
	const char *title;
	int width;	 /* negative: to the left */
	u32 min_columns; /* of the screen that has room for it */
} columns[] = {
	{ "PID", 8, 0 }, { "NAME", -15, 0 },  { "NEEDS", 10, 0 },      { "GROWS BY", 14, 50 },
	{ "", -8, 90 },	 { "SINCE", 9, 100 }, { "FULL IN", -22, 140 },
};

static void write_cells(struct top_line *l, enum top_style style,
			const char *const cells[ARRAY_SIZE(columns)], const char *rest)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (l->max_columns < columns[i].min_columns)
			continue;
		top_line_cell(l, style, columns[i].width, cells[i]);
		top_line_put(l, style, "  ");
	}
	top_line_put(l, style, rest);
}

static void screen_heading(struct top_line *l)
{
	const char *cells[ARRAY_SIZE(columns)];

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		cells[i] = columns[i].title;
	write_cells(l, TOP_FAINT, cells, "WHERE");
}

static enum top_style style_of(const struct system_state *s, const struct watched *p)
{
	const struct zoom_answer *a = zooms_answer(&s->zooms, p->pid, p->start_time);

	if (a && a->kind == ANSWER_LEAKS)
		return TOP_BAD;
	return p->state == WATCHED_GROWS ? TOP_WARN : TOP_PLAIN;
}

/* "remember (svc.c:19)  holds 7.07 MiB in 2,472 blocks": a narrow screen shows the function at least. */
static void screen_found(const struct row_text *t, char *text, size_t size)
{
	const char *place = t->place[0] ? strstr(t->zoom, t->place) : NULL;
	size_t len = place ? (size_t)(place - t->zoom) : 0;

	if (len > 2)
		snprintf(text, size, "%s  %.*s", t->place, (int)len - 2, t->zoom);
	else
		snprintf(text, size, "%s", t->zoom);
}

static void screen_row(const struct system_state *s, const struct watched *p, bool is_selected,
		       struct top_line *l)
{
	char pid[16], comm[4 * PROC_COMM_SIZE], found[sizeof(((struct row_text *)NULL)->zoom)];
	struct row_text t;

	row_describe(s, p, &t);
	screen_found(&t, found, sizeof(found));
	snprintf(pid, sizeof(pid), "%d", (int)p->pid);
	write_cells(l, style_of(s, p),
		    (const char *const[ARRAY_SIZE(columns)]){ pid, escape_buf(comm, sizeof(comm), p->comm),
							      t.needs.text, t.rate[0] ? t.rate : "-", t.error,
							      t.since.text, t.limit },
		    found[0] ? found : t.container);
	if (!is_selected)
		return;
	top_line_fill(l, TOP_SELECTED);
	top_line_restyle(l, TOP_SELECTED);
}

static struct top_line *screen_next_line(struct top_screen *out)
{
	return &out->lines[out->nr++];
}

/* More about the selected process than its row has room for. */
static void screen_details(const struct system_state *s, const struct watched *p, struct top_screen *out)
{
	struct top_line *memory = screen_next_line(out), *box = screen_next_line(out),
			*where = screen_next_line(out);
	char text[4 * CONTAINER_CGROUP_BYTES];
	struct row_text t;

	if (!p)
		return;
	row_describe(s, p, &t);
	top_line_put(memory, TOP_PLAIN, " ");
	top_line_item(memory, TOP_STRONG, "%s", escape_buf(text, sizeof(text), p->comm));
	top_line_join(memory, TOP_STRONG, "(pid %d)", (int)p->pid);
	top_line_item(memory, TOP_PLAIN, "resident %s", t.resident.text);
	if (p->swapped)
		top_line_item(memory, TOP_PLAIN, "swapped %s", human_bytes(p->swapped).text);
	if (p->limit.kind != LIMIT_NONE)
		top_line_item(memory, TOP_PLAIN, "%s left of %s (%s)", human_bytes(p->limit.left).text,
			      human_bytes(p->limit.max).text, limit_name(p->limit.kind));
	if (p->container.pid_inside)
		top_line_item(memory, TOP_PLAIN, "PID inside %d", (int)p->container.pid_inside);
	if (t.container[0])
		top_line_printf(box, TOP_PLAIN, " %s  ", t.container);
	else
		top_line_put(box, TOP_PLAIN, " ");
	top_line_put(box, TOP_FAINT, escape_buf(text, sizeof(text), p->container.cgroup));
	top_line_printf(where, TOP_PLAIN, " %s", t.zoom);
}

static void screen_messages(const struct screen *sc, struct top_screen *out)
{
	for (u32 i = 0; i < SCREEN_MESSAGES; i++) {
		u32 nr = sc->nr_messages + i;
		struct top_line *l = screen_next_line(out);

		/* The oldest at the top; before there are so many, some are empty. */
		if (sc->nr_messages < SCREEN_MESSAGES)
			nr = i;
		top_line_printf(l,
				sc->messages[nr % SCREEN_MESSAGES].level <= LOG_WARN ? TOP_WARN : TOP_FAINT,
				" %s", sc->messages[nr % SCREEN_MESSAGES].text);
	}
}

static void screen_head(const struct system_state *s, struct top_line *l)
{
	char text[320];

	rows_head(s, text, sizeof(text));
	top_line_printf(l, TOP_BAR, " %s", text);
	top_line_fill(l, TOP_BAR);
}

int screen_draw(struct screen *sc, const struct system_state *s, struct top_screen *out)
{
	auto_free const struct watched **list = NULL;
	size_t nr = s->watch.nr, selected, fits = screen_room(sc);

	if (array_reserve(out->lines, out->max, sc->lines + HEAD_LINES) || watch_rank(&s->watch, &list))
		return -ENOMEM;
	for (u32 i = 0; i < sc->lines + HEAD_LINES; i++)
		top_line_init(&out->lines[i], sc->columns);
	out->nr = out->cursor_line = out->cursor_column = 0;
	selected = selected_row(sc, list, nr);
	screen_scroll(sc, selected, nr);
	screen_head(s, screen_next_line(out));
	screen_heading(screen_next_line(out));
	for (size_t i = sc->first; i < sc->first + fits; i++) {
		struct top_line *l = screen_next_line(out);

		if (i < nr)
			screen_row(s, list[i], i == selected, l);
	}
	if (has_all(sc)) {
		screen_details(s, nr ? list[selected] : NULL, out);
		screen_messages(sc, out);
		top_line_put(screen_next_line(out), TOP_FAINT,
			     " up, down: select   s: reports on traced processes   q: leave");
	}
	return 0;
}
