/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leaks and wrong releases as one list, for the formats of CI systems: JUnit, SARIF, annotations. */
#pragma once

#include "user/report/report.h"
#include "user/scan/scan_result.h"

enum finding_kind {
	FINDING_DEFINITE,
	FINDING_POSSIBLE,
	FINDING_INDIRECT,
	FINDING_MISMATCHED,
	FINDING_DOUBLE,
	FINDING_BAD_FREE,
	FINDING_BAD_REALLOC,
	FINDING_SIZE,
	FINDING_ALIGNMENT,
	NR_FINDING_KINDS
};

enum finding_level { LEVEL_ERROR, LEVEL_WARNING, LEVEL_NOTE };

/* A kind of findings, in the words that CI systems show. */
struct finding_rule {
	const char *id;	  /* "definite-leak" */
	const char *name; /* "DefiniteLeak" */
	const char *what; /* "definite leak" */
	const char *help; /* one or two sentences */
	enum finding_level level;
};

extern const struct finding_rule finding_rules[NR_FINDING_KINDS];

/* Blocks of one verdict of one caller, or wrong releases of one kind by the same callers. */
struct finding_item {
	enum finding_kind kind;
	const struct report_process *process; /* borrowed */
	u32 row;			      /* of the heap: the caller that leaks, or that releases */
	const struct misuse *misuse;	      /* NULL = a leak */
	u64 blocks, bytes;		      /* of a leak */
	struct scan_sum through;	      /* of a definite leak: lost through its blocks */
};

struct findings {
	const struct report *report; /* borrowed */
	struct finding_item *list;   /* owned; by process, leaks first, the worst first */
	size_t nr;
	char *root; /* owned; directory of the sources, "" = not known */
};

/*
 * The findings of @r. Names of source files that lie below GITHUB_WORKSPACE, or else below the working directory,
 * become relative. *@f is the caller's: findings_fini(), also after an error. 0 or -ENOMEM.
 */
int findings_init(struct findings *f, const struct report *r) __must_check;
void findings_fini(struct findings *f);

/* The source line to blame, all borrowed. Without a line *@file is the program, or NULL. */
struct finding_place {
	const char *function; /* NULL = unknown */
	const char *file;     /* relative to the root if it can be; NULL = unknown */
	u32 line;	      /* 0 = unknown */
};

/* The place of @item that all outputs name: user/report/own_code.h. 0 or -ENOMEM. */
int finding_place(const struct findings *f, const struct finding_item *item,
		  struct finding_place *place) __must_check;

/* @file relative to the root, or as it is. */
const char *finding_file(const struct findings *f, const char *file);

/*
 * One line of plain text, escaped: the kind and the innermost functions, which stay from run to run; and the same with
 * numbers. *@text is owned by the caller. 0 or -ENOMEM.
 */
int finding_title(const struct findings *f, const struct finding_item *item, char **text) __must_check;
int finding_message(const struct findings *f, const struct finding_item *item, char **text) __must_check;

/* A stack of a finding: the leak, or the release, the allocation, the first release. */
struct finding_stack {
	const char *what; /* "allocated by", "released by", "released before by" */
	u32 row;
};
enum { FINDING_MAX_STACKS = 3 };
size_t finding_stacks(const struct finding_item *item, struct finding_stack stacks[FINDING_MAX_STACKS]);
const struct stack *finding_stack_get(const struct finding_item *item,
				      u32 row); /* NULL = not taken, or lost */

/* The message and the stacks as lines of plain text, escaped but for line ends. Owned by the caller. 0 or -ENOMEM. */
int finding_text(const struct findings *f, const struct finding_item *item, char **text) __must_check;

/* Doubt number @i about process @p, escaped: why its list may not be whole. False if there are no more. */
bool finding_doubt(const struct report_process *p, size_t i, char *text, size_t size);
