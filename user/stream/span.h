/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --between: the moments of a recording that limit a report, and which of them have passed. */
#pragma once

#include "user/lib/types.h"

enum { SPAN_NAME_LEN = 64 };

/* A report counts blocks that are allocated between FROM and TO, and shows their state at AT. */
enum span_moment { SPAN_FROM, SPAN_TO, SPAN_AT, NR_SPAN_MOMENTS };

enum span_kind {
	SPAN_AT_TIME,  /* ns since the start */
	SPAN_AT_NAME,  /* the next marker of that name */
	SPAN_AT_END,   /* of the recording */
	SPAN_WITH_LAST /* at the same time as the moment before */
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

/* The moments that have passed. Begins with zeros, except span and start_ns. */
struct span_course {
	const struct span *span; /* borrowed */
	u64 start_ns, last_ns;	 /* set by the caller: start of the recording, time of the last record */
	u32 nr;			 /* moments that have passed */
	u64 times[NR_SPAN_MOMENTS];
};

/*
 * The time is @now_ns; @marker is set now, or NULL. True if the next moment has passed. Call again until false, because
 * several moments may pass at once.
 */
bool span_pass(struct span_course *c, u64 now_ns, const char *marker);

/* The recording has ended; @is_early: it breaks off. Returns like span_pass(). */
bool span_pass_end(struct span_course *c, bool is_early);
