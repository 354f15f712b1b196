/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of the text report. For user/report/report_text*.c only. */
#pragma once

#include "user/report/report.h"

enum { TEXT_MAX_ANCHORS = 16 }; /* stacks that others may refer to */

enum tone { TONE_STRONG, TONE_FAINT, TONE_WARN, NR_TONES };

/* The text that is being written. */
struct text {
	FILE *out;
	const struct report *report;
	u32 column;
	bool has_items; /* in the line of the head that is being written */
};

/* Write in a colour, if colours are wanted, until text_tone_end(). */
void text_tone_begin(struct text *t, enum tone tone);
void text_tone_end(struct text *t);

#define plural(n) ((n) == 1 ? "" : "s")

/* The last part of a path. */
const char *text_base_name(const char *path);

/* The stacks that were shown in full last. Later stacks refer to them. */
struct anchors {
	struct {
		const struct stack *stack;
		size_t row; /* number of its row, from 1 */
	} list[TEXT_MAX_ANCHORS];
	size_t nr; /* so far; the newest is list[(nr - 1) % TEXT_MAX_ANCHORS] */
};

/*
 * Write the frames of @row, number @number of the report. If a stack of @anchors has the same outer frames, a reference
 * to its row replaces them. 0 or -ENOMEM.
 */
int text_row(struct text *t, const struct report_process *p, const struct report_row *row, size_t number,
	     struct anchors *anchors) __must_check;

/* Write each wrong release with its stacks, numbered from *@nr_shown + 1. 0 or -ENOMEM. */
int text_misuses(struct text *t, const struct report_process *p, size_t *nr_shown,
		 struct anchors *anchors) __must_check;
