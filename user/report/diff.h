/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares two reports caller by caller: which callers hold more in the second report, and which hold less. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"
#include "user/report/saved.h"

/* A caller in both reports. If only one report has it, the numbers of the other one are zero. */
struct diff_row {
	char *function; /* owned; "malloc" */
	char *frames;	/* owned; one per line, innermost first: a function, or file+0xoffset */
	char *place; /* owned; in the later report that has it: "make_node (list.c:42)"; NULL = not known */
	struct saved_numbers of[2];
};

struct diff;
struct json;

int diff_new(struct diff **out) __must_check;
void diff_free(struct diff *d);

/*
 * Add the JSON report @text of @len bytes as the first (0) or second (1) @side. Callers of all its processes become one
 * row if the names of their frames are equal. 0; -ENOMEM; or -EBADMSG if @text is not a report: *@why says why, and
 * *@at is the position of the error.
 */
int diff_add(struct diff *d, u32 side, const char *text, size_t len, const char **why,
	     size_t *at) __must_check;

/* The number that sorts rows, and whose change counts. */
enum diff_key {
	DIFF_LIVE_BYTES,
	DIFF_LIVE_BLOCKS,
	DIFF_TOTAL_BYTES,
	DIFF_TOTAL_BLOCKS,
	DIFF_LEAKED_BYTES,
	DIFF_PEAK,
	DIFF_LOST_BYTES, /* no key of --sort */
	NR_DIFF_KEYS
};

/* The key that --sort names @name, or NR_DIFF_KEYS. */
enum diff_key diff_key_find(const char *name);

/*
 * The rows whose @key changed: the largest gain first, the largest loss last. @d owns the list, which is valid until
 * the next call.
 */
const struct diff_row *const *diff_rows(struct diff *d, enum diff_key key, size_t *nr);

/* All rows, changed or not, in no order; the caller owns *@rows, and @d what it points to. 0 or -ENOMEM. */
int diff_all(const struct diff *d, const struct diff_row ***rows, size_t *nr) __must_check;

struct saved_totals diff_totals(const struct diff *d, u32 side);

/* The number in the second report minus the number in the first one. */
s64 diff_change(const struct diff_row *row, enum diff_key key);

/*
 * The key for the text if @key is wanted. For live-bytes this is another key if no live bytes changed: live-blocks, or
 * total-bytes if no live blocks changed either, as in programs that free all blocks.
 */
enum diff_key diff_key_for(struct diff *d, enum diff_key key);

/* By how much more, or less, the second report has. Leaks are definite and indirect; they need both verdicts. */
struct diff_sums {
	s64 live_bytes, leaked_bytes, leaked_blocks;
	s64 definite_bytes, definite_blocks; /* included */
	bool has_leaks;
	bool is_estimate,
		is_noise; /* of live_bytes: one report or both are sampled; so that it may be nothing */
};
struct diff_sums diff_sums(const struct diff *d);

/*
 * Write the changes. The text has at most @top rows (0 = all) with gains and as many with losses, or for a screen
 * (@is_brief) the first ones without stacks. @names are the names of the two files. 0 or -errno.
 */
int diff_write_text(FILE *out, struct diff *d, enum diff_key key, u32 top, bool is_brief,
		    const char *const names[2]) __must_check;
int diff_write_json(FILE *out, struct diff *d, enum diff_key key, const char *const names[2]) __must_check;
/* A page for a browser. */
int diff_write_html(FILE *out, struct diff *d, const char *const names[2]) __must_check;

/* Write the keys "a" and "b" with the totals of both reports into the object that is open in @j. */
void diff_json_sides(struct json *j, const struct diff *d, const char *const names[2]);

/* Write @frames, one per line (struct diff_row): as lines of text; as the array "frames" of the object open in @j. */
void diff_print_frames(FILE *out, const char *frames);
void diff_json_frames(struct json *j, const char *frames);
