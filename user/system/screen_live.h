/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The screen of heaptap system on its terminal. */
#pragma once

#include "user/system/screen.h"

struct control;
struct output_options;
struct screen_live;

/* Are standard input and output a terminal that can have a screen? */
bool screen_is_possible(void);

/* Take the terminal, and all messages from now on. *@out is owned by the caller. 0; -EOPNOTSUPP; or -ENOMEM. */
int screen_live_open(struct screen_live **out, const struct output_options *look,
		     struct control *c) __must_check;

/* Give the terminal back, and print the warnings that were on it. NULL is fine. */
void screen_live_close(struct screen_live *live, struct control *c);

/* Take the keys that were typed. @is_ready: the terminal has said that there are some. */
enum screen_action screen_live_keys(struct screen_live *live, const struct system_state *s, bool is_ready);

void screen_live_draw(struct screen_live *live, const struct system_state *s);
