/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers of processes that only the kernel has, as a list that was made once. */
#pragma once

#include <errno.h>

#include "user/lib/array.h"
#include "user/lib/types.h"

enum listed_kind {
	LISTED_SIGNAL_STACK, /* the start of one: alt_stacks_list() */
	LISTED_REQUEST,	     /* what an io_uring request leads to: uring_words_list() */
};

struct listed_word {
	taddr_t word;
	enum listed_kind kind;
	pid_t pid;
};

struct listed_words {
	struct listed_word *items; /* owned: free() */
	size_t nr, max;
};

/* 0 or -ENOMEM. */
static inline int listed_words_add(struct listed_words *l, const struct listed_word *word)
{
	if (array_reserve(l->items, l->max, l->nr + 1))
		return -ENOMEM;
	l->items[l->nr++] = *word;
	return 0;
}
