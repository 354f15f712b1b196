/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the targets: they print what they really did, as "expect ..." lines for the tests. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * expect calls SYMBOL N                calls of an allocator function in the whole program
 * expect live BLOCKS BYTES FUNCTION    held at the end by stacks with this function in them
 * expect allocs BLOCKS BYTES FUNCTION  ever allocated by them
 * expect failed N                      allocations that failed
 * expect unknown N                     frees of blocks never handed out
 */

/* A function that keeps its name and its frame. */
#define FN __attribute__((noipa))

/* The compiler must not see through the allocation. */
#define keep(p) __asm__ volatile("" : "+r"(p) : : "memory")

/* stdio must not allocate: its buffer would be in the counts. */
static inline void truth_begin(void)
{
	static char out[1 << 15];

	setvbuf(stdout, out, _IOFBF, sizeof(out));
}

__attribute__((format(printf, 1, 2))) static inline void expect(const char *fmt, ...)
{
	va_list ap;

	fputs("expect ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* Say how far the program is; if @waits, go on after a line of input. */
static inline void reached(const char *word, bool waits)
{
	char c = 0;

	puts(word);
	fflush(stdout);
	while (waits && c != '\n' && read(0, &c, 1) == 1)
		;
}

/* No function's frame keeps what an earlier one left there. */
__attribute__((unused, noinline)) static void scrub(void) /* clang has no noipa */
{
	volatile char dead[16384];

	for (size_t i = 0; i < sizeof(dead); i++)
		dead[i] = 0;
}

static inline long arg_or(int argc, char **argv, int i, long value)
{
	return i < argc ? atol(argv[i]) : value;
}
