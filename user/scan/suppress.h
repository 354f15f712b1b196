/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Suppressions: leaks that reports leave out, in the syntax of LeakSanitizer, of valgrind, or as "ignore REGEX". */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"
#include "user/scan/scan.h"

struct suppress_list;

/* One frame of a stack, for matching with rules. NULL = unknown. */
struct suppress_frame {
	const char *function; /* name as reports print it, with or without arguments */
	const char *linkage;  /* name of the symbol (_Znwm), if it differs */
	const char *file;     /* source file */
	const char *object;   /* mapped file */
};

/* Bits of match-leak-kinds. */
#define SUPPRESS_KIND(verdict) (1U << (verdict))
#define SUPPRESS_ALL	       UINT32_MAX

int suppress_new(struct suppress_list **out) __must_check;
void suppress_free(struct suppress_list *list);

/*
 * Add the rules of the file @path: lines "leak:PATTERN" (LeakSanitizer: a part of a function, file or object,
 * with * ^ $), "ignore REGEX", comments with #, and valgrind's blocks in braces; those for other tools and other
 * errors are ignored. At most 1 MiB and 10000 rules. Returns 0, -EINVAL, -EFBIG, -ENOMEM or -errno; logged
 * with file and line. Rules before the bad one stay.
 */
int suppress_add_file(struct suppress_list *list, const char *path) __must_check;

/* Like suppress_add_file(), with @len bytes of text. Messages call it @name. */
int suppress_add_text(struct suppress_list *list, const char *name, const char *text,
		      size_t len) __must_check;

/* Rules for suppress_add_text(): leaks of allocators and C libraries themselves, which no program can mend. */
extern const char suppress_builtin[];

/*
 * Add "ignore @regex": a POSIX extended expression that matches function, source file or object of any frame. Messages
 * call it @where. Errors like suppress_add_file().
 */
int suppress_add_ignore(struct suppress_list *list, const char *regex, const char *where) __must_check;

/*
 * The number of the first rule that matches a block of @verdict with this stack, or -1. frames[0] is the allocator's
 * function itself, as in Valgrind's stacks; then its caller, and so on.
 */
int suppress_match(const struct suppress_list *list, enum scan_verdict verdict,
		   const struct suppress_frame *frames, size_t nr);

size_t suppress_count(const struct suppress_list *list);

/*
 * Write a Valgrind rule named @name that matches this stack, and no other stack of as many frames. Frames without a
 * function are written by object. 0 or -EIO.
 */
int suppress_write(FILE *out, const char *name, enum scan_verdict verdict,
		   const struct suppress_frame *frames, size_t nr) __must_check;
