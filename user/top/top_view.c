/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal of heaptap top. */
#include "user/top/top_view.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITHOUT_NCURSES

const bool top_view_is_built;

int top_view_open(struct top_view **out, bool has_colors)
{
	(void)out;
	(void)has_colors;
	return -EOPNOTSUPP;
}

void top_view_close(struct top_view *v)
{
	(void)v;
}

void top_view_size(const struct top_view *v, u32 *columns, u32 *lines)
{
	(void)v;
	*columns = *lines = 0;
}

void top_view_draw(struct top_view *v, const struct top_screen *screen)
{
	(void)v;
	(void)screen;
}

int top_view_key(struct top_view *v)
{
	(void)v;
	return 0;
}

#else

/* No macros with common names such as erase() and move(). */
#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <ncurses.h>

const bool top_view_is_built = true;

enum { ESCAPE_MS = 25 };

struct top_view {
	SCREEN *screen; /* owned */
	attr_t looks[NR_TOP_STYLES];
};

/* Colours say nothing that the text does not say too. */
static void choose_looks(struct top_view *v, bool wants_colors)
{
	attr_t red = A_BOLD, yellow = A_BOLD;

	if (wants_colors && has_colors() && start_color() == OK) {
		short back = use_default_colors() == OK ? -1 : COLOR_BLACK;

		init_pair(1, COLOR_RED, back);
		init_pair(2, COLOR_YELLOW, back);
		red |= COLOR_PAIR(1);
		yellow |= COLOR_PAIR(2);
	}
	v->looks[TOP_PLAIN] = A_NORMAL;
	v->looks[TOP_FAINT] = A_DIM;
	v->looks[TOP_STRONG] = A_BOLD;
	v->looks[TOP_WARN] = yellow;
	v->looks[TOP_BAD] = red;
	v->looks[TOP_BAR] = A_REVERSE | A_BOLD;
	v->looks[TOP_SELECTED] = A_REVERSE;
}

int top_view_open(struct top_view **out, bool wants_colors)
{
	struct top_view *v = calloc(1, sizeof(*v));
	sigset_t stop;

	if (!v)
		return -ENOMEM;
	/* Only characters follow the locale; numbers stay as they are. */
	setlocale(LC_CTYPE, "");
	v->screen = newterm(NULL, stdout, stdin);
	if (!v->screen) {
		free(v);
		return -EOPNOTSUPP;
	}
	if (!tigetstr("cup") || tigetstr("cup") == (char *)-1) {
		top_view_close(v);
		return -EOPNOTSUPP;
	}
	/* Ctrl-C and Ctrl-Z are keys: a stopped heaptap would lose events. SIGTSTP is for ncurses. */
	raw();
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	noecho();
	nonl();
	nodelay(stdscr, true);
	keypad(stdscr, true);
	set_escdelay(ESCAPE_MS);
	choose_looks(v, wants_colors);
	*out = v;
	return 0;
}

void top_view_close(struct top_view *v)
{
	if (!v)
		return;
	endwin();
	delscreen(v->screen);
	free(v);
}

void top_view_size(const struct top_view *v, u32 *columns, u32 *lines)
{
	int y, x;

	(void)v;
	getmaxyx(stdscr, y, x);
	*columns = x > 0 ? (u32)x : 1;
	*lines = y > 0 ? (u32)y : 1;
}

static void draw_line(const struct top_view *v, int y, const struct top_line *l)
{
	move(y, 0);
	for (u32 i = 0; i < l->nr_parts; i++) {
		const struct top_part *p = &l->parts[i];

		attrset((int)v->looks[p->style]);
		addnstr(l->text + p->begin, p->end - p->begin);
	}
	attrset(A_NORMAL);
}

void top_view_draw(struct top_view *v, const struct top_screen *s)
{
	u32 columns, lines;

	top_view_size(v, &columns, &lines);
	erase();
	for (u32 i = 0; i < s->nr && i < lines; i++)
		draw_line(v, (int)i, &s->lines[i]);
	/* A terminal may be unable to hide the cursor: no error. */
	curs_set(s->cursor_line != 0);
	if (s->cursor_line)
		move((int)s->cursor_line, (int)s->cursor_column);
	refresh();
}

int top_view_key(struct top_view *v)
{
	static const struct {
		int from, to;
	} keys[] = {
		{ KEY_UP, TOP_KEY_UP },		{ KEY_DOWN, TOP_KEY_DOWN },
		{ KEY_LEFT, TOP_KEY_LEFT },	{ KEY_RIGHT, TOP_KEY_RIGHT },
		{ KEY_PPAGE, TOP_KEY_PAGE_UP }, { KEY_NPAGE, TOP_KEY_PAGE_DOWN },
		{ KEY_HOME, TOP_KEY_HOME },	{ KEY_END, TOP_KEY_END },
		{ KEY_ENTER, TOP_KEY_ENTER },	{ '\n', TOP_KEY_ENTER },
		{ 8, TOP_KEY_BACKSPACE },	{ KEY_BACKSPACE, TOP_KEY_BACKSPACE },
		{ KEY_RESIZE, TOP_KEY_RESIZE },
	};
	int key = getch();

	(void)v;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].from == key)
			return keys[i].to;
	return key == ERR || key > 0xff ? 0 : key;
}

#endif
