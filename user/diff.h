/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two reports compared, caller by caller: what holds more in the second, what less. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

/* What one caller, or all of them, hold and did. */
struct diff_numbers {
	u64 live_bytes, live_blocks;
	u64 alloc_bytes, allocs;
	u64 leaked_bytes, leaked_blocks; /* definite and indirect */
	u64 peak_bytes;			 /* held when the process had its peak */
};

/* A caller in both reports; one that is in one only has zeros in the other. */
struct diff_row {
	char *function; /* owned; "malloc" */
	char *frames;	/* owned; one per line, innermost first: a function, or file+0xoffset */
	struct diff_numbers of[2];
};

struct diff_totals {
	struct diff_numbers numbers;
	size_t nr_processes, nr_scanned;
	char comm[32]; /* of the first one */
	u64 duration_ns;
	u64 lost; /* events */
};

struct diff;

int diff_new(struct diff **out) __must_check;
void diff_free(struct diff *d);

/*
 * Add the JSON report @text of @len bytes as the first (0) or second (1) @side; callers of all its processes are put
 * together by their frames' names. 0; -EBADMSG if it is none, then *@why says what and *@at where; -ENOMEM.
 */
int diff_add(struct diff *d, u32 side, const char *text, size_t len, const char **why,
	     size_t *at) __must_check;

/* What rows are sorted by, and what counts as a change. */
enum diff_key {
	DIFF_LIVE_BYTES,
	DIFF_LIVE_BLOCKS,
	DIFF_TOTAL_BYTES,
	DIFF_TOTAL_BLOCKS,
	DIFF_LEAKED_BYTES,
	DIFF_PEAK,
	NR_DIFF_KEYS
};

/* NR_DIFF_KEYS if @name, of --sort, is none. */
enum diff_key diff_key_find(const char *name);

/*
 * The rows that changed by @key, largest gain first, then losses, the largest last. The list is owned by @d, and valid
 * until the next call.
 */
const struct diff_row *const *diff_rows(struct diff *d, enum diff_key key, size_t *nr);

struct diff_totals diff_totals(const struct diff *d, u32 side);

/* Second minus first. */
s64 diff_change(const struct diff_row *row, enum diff_key key);

/*
 * What the text is sorted by when @key is wanted: total-bytes in place of live-bytes if nothing that is live has
 * changed, as in programs that free all they have.
 */
enum diff_key diff_key_for(struct diff *d, enum diff_key key);

/*
 * Both write all of it, the text at most @top rows (0 = all) of those that gained and as many of those that lost.
 * @names are those of the files. 0 or -errno.
 */
int diff_write_text(FILE *out, struct diff *d, enum diff_key key, u32 top,
		    const char *const names[2]) __must_check;
int diff_write_json(FILE *out, struct diff *d, enum diff_key key, const char *const names[2]) __must_check;
