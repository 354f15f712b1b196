/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The screen of heaptap system, without a terminal: what is selected, what keys do, and its lines. */
#pragma once

#include "user/lib/log.h"

struct system_state;
struct top_screen;

enum { SCREEN_MESSAGES = 6, SCREEN_MESSAGE_BYTES = 400 };

enum screen_action {
	SCREEN_NOTHING, /* no key, or one without a meaning */
	SCREEN_DRAW,
	SCREEN_REPORT, /* on all traced processes, now */
	SCREEN_QUIT,
};

struct screen {
	u32 columns, lines; /* of the terminal */
	pid_t selected;	    /* 0 = the first row, whoever that is */
	size_t first;	    /* number of the row at the top */
	struct {
		char text[SCREEN_MESSAGE_BYTES];
		enum log_level level;
	} messages[SCREEN_MESSAGES]; /* in turn */
	u32 nr_messages;
};

/* A message, shown until others take its place. */
void screen_say(struct screen *sc, enum log_level level, const char *text);

/* Change the screen as @key says (enum top_key, or a byte). */
enum screen_action screen_key(struct screen *sc, const struct system_state *s, int key);

/* Draw it. @out must be zero or of an earlier call; top_screen_fini(). 0 or -ENOMEM. */
int screen_draw(struct screen *sc, const struct system_state *s, struct top_screen *out) __must_check;
