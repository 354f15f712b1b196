/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocator functions of a static program without symbols, found by their code (--guess). */
#pragma once

#include "user/lib/types.h"

struct elf;

/* A function of a C library, or, with build set, the begin of another library's functions. */
struct signature {
	const char
		*fn; /* "malloc"; "" = glibc's code that calls free for itself; NULL = a build, or the end */
	u32 size;    /* of the function, in bytes */
	const char *bytes; /* its first bytes, two digits each; ?? = written by the linker */
	const char *build; /* "glibc 2.36-9+deb12u14"; the first word is the kind */
};

/* The last one has neither fn nor build. */
extern const struct signature signatures[];

enum { GUESS_MAX_FNS = 16 };

struct guess {
	const char *build; /* NULL = nothing was found */
	const char *kind;  /* "guessed glibc", "guessed musl" */
	struct {
		const struct signature *signature;
		u64 start; /* ELF virtual address */
	} fns[GUESS_MAX_FNS];
	size_t nr;
};

/*
 * Search the code of @elf, a static x86_64 program, for functions that are exactly in it as signatures[] has them. The
 * build with most of them is taken, if malloc and free are each in it once. A program that is not static has none.
 * 0, -ENOMEM, or -errno of reading.
 */
int guess_find(struct guess *out, struct elf *elf) __must_check;
