/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of the text report. For user/report/report_text*.c only. */
#pragma once

#include <stdio.h>

#include "user/report/report.h"
#include "user/report/report_rows.h"

enum {
	TEXT_MAX_ANCHORS = 16,	 /* stacks that others may refer to */
	TEXT_DEFAULT_WIDTH = 80, /* columns */
};

enum tone { TONE_STRONG, TONE_FAINT, TONE_WARN, NR_TONES };

/* The text that is being written. */
struct text {
	FILE *out;
	const struct report *report;
	const struct report_process *first; /* the process that is written first */
	u32 column;
	u32 nameless;	 /* module of which most frames were shown without a name, so far */
	u32 nr_nameless; /* how many more than of others: a vote */
	bool is_one;	 /* one process, which may have executed one program after the other */
	bool has_items;	 /* in the line of the head that is being written */
};

/* Is the text for a screen, and short: the answer, and at most BRIEF_ROWS callers? */
enum { BRIEF_ROWS = 3, BRIEF_NOTES = 2, BRIEF_PROCESSES = 10 };
bool text_is_brief(const struct text *t);
/* How many of @nr rows have room, behind @nr_shown others. */
size_t text_room(const struct text *t, size_t nr_shown, size_t nr);

/* Write in a colour, if colours are wanted, until text_tone_end(). */
void text_tone_begin(struct text *t, enum tone tone);
void text_tone_end(struct text *t);

/* Write a process as "redis-server (pid 26933)  /usr/bin/redis-server". And how it ended, as item() of a line. */
void text_name(struct text *t, const struct target *target);
void text_fate(struct text *t, const struct report_process *p);

/* A line about growth, with @before in front of it, if there was any. @trend may be NULL. */
void text_growth(struct text *t, const struct report_process *p, const char *before);

/* The first notes, for a short text. */
void text_doubts(struct text *t, const struct report_process *p);

/* The details of a process: a table of labels. @rows as report_rows() gives them. */
int text_details(struct text *t, const struct report_process *p, const struct report_row *rows,
		 size_t nr) __must_check;

#define plural(n) ((n) == 1 ? "" : "s")

/* The stacks that were shown in full last. Later stacks refer to them. */
struct anchors {
	struct {
		const struct stack *stack;
		size_t row; /* number of its row, from 1 */
	} list[TEXT_MAX_ANCHORS];
	size_t nr; /* so far; the newest is list[(nr - 1) % TEXT_MAX_ANCHORS] */
};

/* A section of the report. Numbers of rows continue through all sections. */
struct section {
	const struct report_process *process;
	struct anchors anchors;
	size_t nr_shown; /* so far */
};

/*
 * Write the frames of @row, number @number of the report. If a stack of @anchors has the same outer frames, a reference
 * to its row replaces them. 0 or -ENOMEM.
 */
int text_row(struct text *t, const struct report_process *p, const struct report_row *row, size_t number,
	     struct anchors *anchors) __must_check;

/*
 * Add up callers of @rows that have one line in a short text, and one function: a loop that the compiler unrolled. Of
 * many rows only the first are looked at; they are in the order of @key again. 0, -ENOMEM or -ECANCELED.
 */
int text_merge(struct text *t, const struct report_process *p, struct report_row *rows, size_t *nr,
	       const struct report_key *key) __must_check;

/* Write each wrong release with its stacks, numbered from *@nr_shown + 1. 0 or -ENOMEM. */
int text_misuses(struct text *t, const struct report_process *p, size_t *nr_shown,
		 struct anchors *anchors) __must_check;
/* Calls that are allowed, and mistakes nevertheless. 0 or -errno. */
int text_notices(struct text *t, const struct report_process *p, size_t *nr_shown,
		 struct anchors *anchors) __must_check;

/* Write the callers with leaks of @rows, worst first. 0 or -ENOMEM. */
int text_leaks(struct text *t, struct section *s, const struct report_row *rows, size_t nr,
	       const struct report_key *key) __must_check;

/* Name the holder of one block of @row with @verdict, as an example, if one was found. 0 or -ENOMEM. */
int text_why(struct text *t, const struct report_process *p, const struct report_row *row,
	     enum scan_verdict verdict) __must_check;

/* With --blocks, write leaked blocks of each caller. 0 or -ENOMEM. */
int text_samples(struct text *t, const struct report_process *p) __must_check;

/* With --gen-suppressions, write a suppression for each caller with leaks. 0 or -ENOMEM. */
int text_suppressions(struct text *t, const struct report_process *p) __must_check;
