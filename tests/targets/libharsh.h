/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The allocator of tests/targets/harsh.c: a part of that program, or of a library that has one page of code. */
#pragma once

#include <stddef.h>

enum { NR_COROUTINES = 8, SLOT = 64 };

struct harsh {
	volatile int current; /* the coroutine that runs */
	volatile unsigned long nr_begun, nr_freed;
};

struct harsh *harsh_state(void);
/* Allocate and release. */
void harsh_pair(size_t size);
