/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --between: the moments of a recording that a report is about, and which of them have passed. */
#pragma once

#include "user/lib/types.h"

enum { SPAN_NAME_LEN = 64 };

/* What is allocated from FROM on and before TO is counted, as it is at AT. */
enum span_moment { SPAN_FROM, SPAN_TO, SPAN_AT, NR_SPAN_MOMENTS };

enum span_kind {
	SPAN_AT_TIME,  /* ns since the start */
	SPAN_AT_NAME,  /* the next marker of that name */
	SPAN_AT_END,   /* of the recording */
	SPAN_WITH_LAST /* when the moment before it is */
};

struct span_mark {
	u8 kind; /* enum span_kind */
	u64 ns;
	char name[SPAN_NAME_LEN]; /* as it was typed */
};

struct span {
	struct span_mark marks[NR_SPAN_MOMENTS];
};

/*
 * "FROM,TO" or "FROM,TO,AT", each a time since the start ("10s", "1m30s"), "start", "end", or the name of a marker.
 * 0, or -EINVAL: *@why says what is wrong, without full stop.
 */
int span_parse(struct span *out, const char *text, const char **why) __must_check;

/* Zeros, with span and start_ns filled in, are a course that has not begun. */
struct span_course {
	const struct span *span; /* borrowed */
	u64 start_ns, last_ns;	 /* the caller's: of the recording, and of what has come */
	u32 nr;			 /* moments that have passed */
	u64 times[NR_SPAN_MOMENTS];
};

/*
 * It is @now_ns, and @marker (or NULL) is set: true if the next moment has come; then it has passed. Again, until
 * false: several may come at once.
 */
bool span_pass(struct span_course *c, u64 now_ns, const char *marker);

/* The recording is at its end, @is_early: before it should have been. As span_pass(). */
bool span_pass_end(struct span_course *c, bool is_early);
