/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stack of a caller as a list of named frames, for formats that show graphs of callers. */
#pragma once

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
