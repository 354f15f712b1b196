/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stack of a caller as a list of named frames, for formats that show graphs of callers. */
#pragma once

#include "user/lib/types.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"

/* One frame. Borrowed from the symbolizer and the modules. */
struct report_frame {
	struct code_ref ref;
	const struct symbol *symbol;
};

/* The stack of one caller. All zero: ready for report_frames(). */
struct report_frames {
	struct report_frame *list; /* owned; innermost first, with inlined functions */
	size_t nr, max;
	/* Why frames are missing: "cut: depth", "no stack taken", "stack lost"; "" for a complete stack. */
	char mark[64];
	char name[512]; /* of report_frame_name() */
};

/* Fill @f with the stack of @row. 0 or -ENOMEM. */
int report_frames(struct report_frames *f, const struct report *r, const struct report_process *p,
		  const struct report_row *row) __must_check;
void report_frames_fini(struct report_frames *f);

/* The allocator function of @row. */
const struct alloc_fn *report_alloc_fn(const struct report_process *p, const struct report_row *row);

/* The name of frame @i, not escaped: its function, or "file+0x18032". Valid until the next call. */
const char *report_frame_name(struct report_frames *f, const struct report *r, size_t i);

/* @nr frames that come @times times in a row; 1 and 1 = the frame stands for itself. */
struct turns {
	u32 nr, times;
};

/*
 * The turns that begin at the first of @nr frames: the shortest that come at least three times. @is_same: are frames
 * @a and @b, from 0 on, alike? Gets @ctx.
 */
struct turns turns_find(size_t nr, bool (*is_same)(const void *ctx, size_t a, size_t b), const void *ctx);
