/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of the text report that its files share, and nobody else. */
#pragma once

#include "user/report.h"

enum { TEXT_MAX_ANCHORS = 16 }; /* stacks that others may refer to */

enum tone { TONE_STRONG, TONE_FAINT, TONE_WARN, NR_TONES };

/* Where the text goes, and how. */
struct text {
	FILE *out;
	const struct report *report;
	u32 column;
	bool has_items; /* in the line of the head that is being written */
};

/* A colour, where colours are wanted, up to text_tone_end(). */
void text_tone_begin(struct text *t, enum tone tone);
void text_tone_end(struct text *t);

#define plural(n) ((n) == 1 ? "" : "s")

/* The last part of a path. */
const char *text_base_name(const char *path);

/* Stacks shown in full lately, for others to refer to. */
struct anchors {
	struct {
		const struct stack *stack;
		size_t row; /* number of its row, from 1 */
	} list[TEXT_MAX_ANCHORS];
	size_t nr; /* ever; the newest is list[(nr - 1) % TEXT_MAX_ANCHORS] */
};

/*
 * The frames of @row, number @number of the report; those at the outer end that one of @anchors has too are left out
 * with a reference. 0 or -ENOMEM.
 */
int text_row(struct text *t, const struct report_process *p, const struct report_row *row, size_t number,
	     struct anchors *anchors) __must_check;

/* What was released wrongly, each with its stacks; numbered on from *@nr_shown. 0 or -ENOMEM. */
int text_misuses(struct text *t, const struct report_process *p, size_t *nr_shown,
		 struct anchors *anchors) __must_check;
