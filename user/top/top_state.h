/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The model of heaptap top, without a terminal: state, keys, and the lines of the screen. */
#pragma once

#include "user/lib/log.h"
#include "user/top/meter.h"
#include "user/top/top_head.h"
#include "user/top/top_rows.h"

/* A key: a byte of UTF-8, or one of these. */
enum top_key {
	TOP_KEY_ESCAPE = 27,
	TOP_KEY_ENTER = 13,
	TOP_KEY_BACKSPACE = 127,
	TOP_KEY_UP = 0x100,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_RESIZE,
};

/* A key may ask this of the session. */
enum top_action {
	TOP_NOTHING, /* no key, or one without a meaning */
	TOP_DRAW,
	TOP_LOOK,     /* take the rows again: another order, filter or part of them */
	TOP_SCAN,     /* find a leak verdict */
	TOP_WHY,      /* show who holds a block of the selected caller */
	TOP_BASELINE, /* growth counts from now on */
	TOP_SAVE,     /* write a report to the file in answer */
	TOP_QUIT,
};

enum top_prompt { TOP_NO_PROMPT, TOP_ASK_FILTER, TOP_ASK_SORT, TOP_ASK_FILE };

/* A text in the lower part of the screen. */
enum top_pane {
	TOP_NO_PANE,
	TOP_STACK_PANE, /* of the selected caller, as long as it is open */
	TOP_TEXT_PANE,	/* help, or an answer */
};

struct top_state {
	struct top_head head;
	struct top_rows rows;
	struct meter meter;
	const struct report_key *sort; /* wanted */
	u64 verdict_ns;		       /* time of the last verdict; 0 = none */
	bool is_frozen;
	size_t selected, first; /* numbers of rows: the selected one, the one at the top of the list */
	bool is_pinned;		/* the selection stays with its caller, else in its place */
	char filter[256];
	enum top_prompt prompt;
	char answer[256]; /* to the prompt; after TOP_SAVE the name of a file */
	enum top_pane pane;
	char *text; /* owned; of the pane */
	size_t text_first;
	char message[320]; /* "" = none */
	enum log_level message_level;
	u32 columns, lines;
};

/* The lines of the screen. */
struct top_screen {
	struct top_line *lines; /* owned */
	u32 nr, max;
	u32 cursor_line, cursor_column; /* of a prompt; line 0 = no cursor */
};

void top_state_fini(struct top_state *t);

/* Change the state as @key says. */
enum top_action top_state_key(struct top_state *t, int key);

/* The lines of the text of the pane, wrapped. */
size_t top_state_text_lines(const struct top_state *t);

/* Show @text, which top_state_fini() frees, in the pane. */
void top_state_show(struct top_state *t, enum top_pane pane, char *text);

/* The selected row, NULL = there is none. */
const struct top_row *top_state_row(const struct top_state *t);

/* The rows have changed: keep the selection. @of, @id: the caller that was selected; NULL: nothing was. */
void top_state_reselect(struct top_state *t, const struct target *of, u32 id);

/* How many rows the list has room for. */
u32 top_state_room(const struct top_state *t);

/* How the lower part of the screen is divided. */
struct top_layout {
	u32 head, list, pane; /* lines; list is without its heading */
	bool has_heading, has_keys;
};
struct top_layout top_state_layout(const struct top_state *t);

/* Draw the screen. @now_ns is CLOCK_MONOTONIC. 0 or -ENOMEM. */
int top_state_draw(const struct top_state *t, u64 now_ns, struct top_screen *screen) __must_check;
void top_screen_fini(struct top_screen *screen);
