/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys change the state of the screen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/report/report_rows.h"
#include "user/top/top_state.h"

static const char HELP[] =
	"Keys\n"
	"  up down, j k     select a caller; page up, page down, home, end go further\n"
	"  Enter            show the stack of the selected caller; Enter or Esc closes it\n"
	"  < >, left right  sort by the key before, by the next one\n"
	"  o                sort by a key whose name you type\n"
	"  /                show only callers whose names contain a text; an empty text shows all\n"
	"  space            freeze the screen; heaptap goes on counting\n"
	"  l                look for leaks now: the process is stopped for a moment\n"
	"  w                say who holds a block of the selected caller: stops the process too\n"
	"  b                growth counts from now on\n"
	"  s                save a report, with a new verdict; the ending of the name chooses the format\n"
	"  ?                this help\n"
	"  q, Ctrl-C        leave; the process runs on as before\n"
	"\n"
	"Columns\n"
	"  LIVE BLOCKS      allocated since heaptap attached, and not freed\n"
	"  %                share of all live bytes\n"
	"  GROWTH           change of live bytes since heaptap attached, or since b\n"
	"  ALLOCS/S         allocations a second\n"
	"  LEAKED           bytes lost by the last verdict; with ? perhaps lost\n"
	"  CALLER           the allocator function, and who called it\n"
	"\n"
	"Head\n"
	"  resident is the memory of the process that is in RAM, by /proc. It holds older blocks, code and\n"
	"  free memory of the allocator too.\n"
	"  Events are calls of the allocator that heaptap sees. Lost ones make the numbers inexact.\n"
	"  The target pays for each call: the time that is shown, which is measured each five seconds,\n"
	"  with BPF only.\n";

void top_state_fini(struct top_state *t)
{
	free(t->text);
	top_rows_fini(&t->rows);
}

void top_state_show(struct top_state *t, enum top_pane pane, char *text)
{
	/* The stack of the same caller is drawn again and again: do not scroll it back. */
	if (pane != TOP_STACK_PANE || t->pane != TOP_STACK_PANE)
		t->text_first = 0;
	free(t->text);
	t->text = text;
	t->pane = text ? pane : TOP_NO_PANE;
}

const struct top_row *top_state_row(const struct top_state *t)
{
	return t->selected < t->rows.nr ? &t->rows.list[t->selected] : NULL;
}

/* Keep the selected row among the shown ones. */
static void top_keys_scroll(struct top_state *t)
{
	u32 room = top_state_room(t);

	if (t->selected >= t->rows.nr)
		t->selected = t->rows.nr ? t->rows.nr - 1 : 0;
	if (t->first > t->selected)
		t->first = t->selected;
	if (room && t->selected >= t->first + room)
		t->first = t->selected - room + 1;
	if (t->first + room > t->rows.nr)
		t->first = t->rows.nr > room ? t->rows.nr - room : 0;
}

void top_state_reselect(struct top_state *t, const struct target *of, u32 id)
{
	if (t->is_pinned && of)
		t->selected = top_rows_find(&t->rows, of, id, t->selected);
	top_keys_scroll(t);
}

static enum top_action top_keys_move_to(struct top_state *t, s64 row)
{
	s64 last = (s64)t->rows.nr - 1;

	row = row > last ? last : row;
	t->selected = (size_t)(row < 0 ? 0 : row);
	/* At the top the selection stays at the top: there the worst caller is to be seen. */
	t->is_pinned = t->selected != 0;
	top_keys_scroll(t);
	if (t->pane == TOP_STACK_PANE)
		t->text_first = 0;
	return TOP_LOOK;
}

static enum top_action scroll_text(struct top_state *t, s64 lines)
{
	s64 last = (s64)top_state_text_lines(t) - (s64)top_state_layout(t).pane;
	s64 first = (s64)t->text_first + lines;

	first = first > last ? last : first;
	t->text_first = (size_t)(first < 0 ? 0 : first);
	return TOP_DRAW;
}

static enum top_action close_pane(struct top_state *t)
{
	top_state_show(t, TOP_NO_PANE, NULL);
	top_keys_scroll(t);
	return TOP_LOOK;
}

/* ---- prompts ---- */

static enum top_action top_keys_ask(struct top_state *t, enum top_prompt prompt, const char *answer)
{
	t->prompt = prompt;
	snprintf(t->answer, sizeof(t->answer), "%s", answer);
	t->message[0] = '\0';
	return TOP_DRAW;
}

static enum top_action top_keys_tell(struct top_state *t, const char *what, const char *about)
{
	snprintf(t->message, sizeof(t->message), "%s%s", what, about);
	t->message_level = LOG_WARN;
	return TOP_DRAW;
}

/* The first key whose name begins with the answer. */
static enum top_action sort_by_answer(struct top_state *t)
{
	size_t len = strlen(t->answer);

	for (const struct report_key *k = report_keys; len && k->name; k++) {
		if (strncmp(k->name, t->answer, len))
			continue;
		t->sort = k;
		return TOP_LOOK;
	}
	return len ? top_keys_tell(t, "no such sort key: ", t->answer) : TOP_DRAW;
}

static enum top_action top_keys_answered(struct top_state *t)
{
	enum top_prompt prompt = t->prompt;

	t->prompt = TOP_NO_PROMPT;
	if (prompt == TOP_ASK_SORT)
		return sort_by_answer(t);
	if (prompt == TOP_ASK_FILE)
		return *t->answer ? TOP_SAVE : TOP_DRAW;
	snprintf(t->filter, sizeof(t->filter), "%s", t->answer);
	t->selected = t->first = 0;
	return TOP_LOOK;
}

/* Remove the last character, which may have several bytes. */
static void top_keys_erase(char *text)
{
	size_t len = strlen(text);

	while (len && ((u8)text[len - 1] & 0xc0) == 0x80)
		len--;
	if (len)
		text[len - 1] = '\0';
}

static enum top_action prompt_key(struct top_state *t, int key)
{
	size_t len = strlen(t->answer);

	switch (key) {
	case TOP_KEY_ESCAPE:
	case 3: /* Ctrl-C */
		t->prompt = TOP_NO_PROMPT;
		return TOP_DRAW;
	case TOP_KEY_ENTER:
		return top_keys_answered(t);
	case TOP_KEY_BACKSPACE:
		top_keys_erase(t->answer);
		return TOP_DRAW;
	case 21: /* Ctrl-U */
		t->answer[0] = '\0';
		return TOP_DRAW;
	default:
		break;
	}
	if (key < 0x20 || key > 0xff || len + 1 >= sizeof(t->answer))
		return TOP_NOTHING;
	t->answer[len] = (char)key;
	t->answer[len + 1] = '\0';
	return TOP_DRAW;
}

/* ---- all other keys ---- */

static enum top_action sort_by_next(struct top_state *t, int step)
{
	size_t nr = 1;

	while (report_keys[nr].name)
		nr++;
	t->sort = &report_keys[((size_t)(t->sort - report_keys) + nr + (size_t)step) % nr];
	return TOP_LOOK;
}

static enum top_action sort_before(struct top_state *t)
{
	return sort_by_next(t, -1);
}

static enum top_action sort_after(struct top_state *t)
{
	return sort_by_next(t, 1);
}

static enum top_action top_keys_freeze(struct top_state *t)
{
	t->is_frozen = !t->is_frozen;
	return t->is_frozen ? TOP_DRAW : TOP_LOOK;
}

static enum top_action top_keys_help(struct top_state *t)
{
	top_state_show(t, TOP_TEXT_PANE, strdup(HELP));
	return TOP_DRAW;
}

static enum top_action ask_filter(struct top_state *t)
{
	return top_keys_ask(t, TOP_ASK_FILTER, t->filter);
}

static enum top_action ask_sort(struct top_state *t)
{
	return top_keys_ask(t, TOP_ASK_SORT, "");
}

static enum top_action ask_file(struct top_state *t)
{
	return top_keys_ask(t, TOP_ASK_FILE, "");
}

/* The stack is that of the next TOP_LOOK. */
static enum top_action top_keys_expand(struct top_state *t)
{
	if (t->pane != TOP_NO_PANE)
		return close_pane(t);
	if (!top_state_row(t))
		return TOP_NOTHING;
	top_state_show(t, TOP_STACK_PANE, strdup(""));
	top_keys_scroll(t);
	return TOP_LOOK;
}

static enum top_action top_keys_escape(struct top_state *t)
{
	t->message[0] = '\0';
	return t->pane != TOP_NO_PANE ? close_pane(t) : TOP_DRAW;
}

static enum top_action top_keys_quit(struct top_state *t)
{
	/* In a text "q" is expected to close the text. */
	return t->pane == TOP_TEXT_PANE ? close_pane(t) : TOP_QUIT;
}

static enum top_action top_keys_leave(struct top_state *t)
{
	(void)t;
	return TOP_QUIT;
}

static enum top_action top_keys_stay(struct top_state *t)
{
	return top_keys_tell(t, "a stopped heaptap would lose events; q leaves", "");
}

static enum top_action top_keys_scan(struct top_state *t)
{
	(void)t;
	return TOP_SCAN;
}

static enum top_action top_keys_why(struct top_state *t)
{
	return top_state_row(t) ? TOP_WHY : TOP_NOTHING;
}

static enum top_action top_keys_baseline(struct top_state *t)
{
	(void)t;
	return TOP_BASELINE;
}

static enum top_action top_keys_up(struct top_state *t)
{
	return t->pane == TOP_TEXT_PANE ? scroll_text(t, -1) : top_keys_move_to(t, (s64)t->selected - 1);
}

static enum top_action top_keys_down(struct top_state *t)
{
	return t->pane == TOP_TEXT_PANE ? scroll_text(t, 1) : top_keys_move_to(t, (s64)t->selected + 1);
}

static enum top_action page_up(struct top_state *t)
{
	if (t->pane != TOP_NO_PANE)
		return scroll_text(t, -(s64)top_state_layout(t).pane);
	return top_keys_move_to(t, (s64)t->selected - top_state_room(t));
}

static enum top_action page_down(struct top_state *t)
{
	if (t->pane != TOP_NO_PANE)
		return scroll_text(t, top_state_layout(t).pane);
	return top_keys_move_to(t, (s64)t->selected + top_state_room(t));
}

static enum top_action top_keys_home(struct top_state *t)
{
	return top_keys_move_to(t, 0);
}

static enum top_action top_keys_end(struct top_state *t)
{
	return top_keys_move_to(t, (s64)t->rows.nr - 1);
}

static enum top_action top_keys_resize(struct top_state *t)
{
	top_keys_scroll(t);
	return TOP_LOOK;
}

static const struct {
	int key;
	enum top_action (*act)(struct top_state *t);
} keys[] = {
	{ 'q', top_keys_quit },
	{ 3, top_keys_leave },	/* Ctrl-C */
	{ 28, top_keys_leave }, /* Ctrl-\ */
	{ 26, top_keys_stay },	/* Ctrl-Z */
	{ ' ', top_keys_freeze },
	{ TOP_KEY_ENTER, top_keys_expand },
	{ TOP_KEY_ESCAPE, top_keys_escape },
	{ '/', ask_filter },
	{ 'o', ask_sort },
	{ 's', ask_file },
	{ '<', sort_before },
	{ '>', sort_after },
	{ TOP_KEY_LEFT, sort_before },
	{ TOP_KEY_RIGHT, sort_after },
	{ 'l', top_keys_scan },
	{ 'w', top_keys_why },
	{ 'b', top_keys_baseline },
	{ '?', top_keys_help },
	{ 'h', top_keys_help },
	{ 'k', top_keys_up },
	{ TOP_KEY_UP, top_keys_up },
	{ 'j', top_keys_down },
	{ TOP_KEY_DOWN, top_keys_down },
	{ TOP_KEY_PAGE_UP, page_up },
	{ TOP_KEY_PAGE_DOWN, page_down },
	{ TOP_KEY_HOME, top_keys_home },
	{ TOP_KEY_END, top_keys_end },
	{ TOP_KEY_RESIZE, top_keys_resize },
};

enum top_action top_state_key(struct top_state *t, int key)
{
	if (t->prompt != TOP_NO_PROMPT && key != TOP_KEY_RESIZE)
		return prompt_key(t, key);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].key == key)
			return keys[i].act(t);
	return TOP_NOTHING;
}
