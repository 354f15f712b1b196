/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal of heaptap top, by ncurses: lines out, keys in. Nothing here knows what they mean. */
#pragma once

#include "user/top/top_state.h"

/* Was heaptap built with ncurses? */
extern const bool top_view_is_built;

/* There can be only one, because ncurses keeps its state in globals. */
struct top_view;

/* Take the terminal of stdin and stdout. 0; -EOPNOTSUPP: it cannot place text; or -ENOMEM. */
int top_view_open(struct top_view **out, bool has_colors) __must_check;
/* Give the terminal back as it was. NULL is fine. */
void top_view_close(struct top_view *v);

/* Columns and lines of the terminal now. */
void top_view_size(const struct top_view *v, u32 *columns, u32 *lines);

void top_view_draw(struct top_view *v, const struct top_screen *screen);

/* The next key that has been typed, or 0. Does not wait. */
int top_view_key(struct top_view *v);
