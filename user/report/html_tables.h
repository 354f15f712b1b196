/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of the HTML report: each text, file, frame and stack has a number and is written once.
 *
 * Stacks are paths in a tree: a node is a frame, and the node of the function that called it. Stacks with the same
 * outer frames share these nodes. The HTML report of a hundred thousand stacks stays small by this.
 */
#pragma once

#include "user/heap/stacks.h"
#include "user/lib/json.h"
#include "user/report/intern.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"

enum { HTML_NONE = UINT32_MAX /* no text, no file, no node */ };

enum html_frame_kind {
	HTML_FRAME,
	HTML_INLINED, /* into the next frame outwards */
	HTML_MARK,    /* no frame: says why the stack ends here */
};

/* One function on a stack. */
struct html_frame {
	u32 function, file; /* numbers of texts, HTML_NONE = unknown */
	u32 line;	    /* 0 = unknown */
	u32 module;	    /* number of the file, HTML_NONE = in no file */
	u64 offset;	    /* in the file; 0 if the function is known */
	u8 kind;	    /* enum html_frame_kind */
};

/* The tables. Texts are escaped as in the text report. */
struct html_tables {
	struct intern_strings texts;
	const struct module **modules; /* owned */
	u32 nr_modules, max_modules;
	struct html_frame *frames; /* owned */
	u32 nr_frames, max_frames;
	struct intern_table places, nodes; /* a parent comes before its children */
	u32 marks[NR_STACK_ENDS];	   /* number of the frame that marks this end, plus 1; 0 = none yet */
};

/* Empty tables. */
void html_tables_init(struct html_tables *t);
void html_tables_fini(struct html_tables *t);

/* The number of @text; HTML_NONE for NULL. 0 or -ENOMEM. */
int html_text(struct html_tables *t, const char *text, u32 *out) __must_check;

/*
 * The node of the innermost frame of the stack of @row, with the names that report_symbols() gives. A stack that is not
 * complete begins with a mark. HTML_NONE: there is no stack. *@truncated as from report_stack(). 0 or -ENOMEM.
 */
int html_stack(struct html_tables *t, const struct report *r, const struct report_process *p,
	       const struct report_row *row, u32 *node, const char **truncated) __must_check;

/* The node of a stack whose @frames are lines, innermost first. Not in tables that html_stack() fills. 0 or -ENOMEM. */
int html_lines(struct html_tables *t, const char *frames, u32 *node) __must_check;

/* Write the @nr numbers that @get gives: none if all are zero, one if all are equal, else a list. */
void html_numbers(struct json *j, const char *key, size_t nr, s64 (*get)(const void *ctx, size_t i),
		  const void *ctx);

/* Write the tables: keys "texts", "modules", "frames" and "nodes". */
void html_tables_write(struct json *j, const struct html_tables *t);
