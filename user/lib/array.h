/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arrays that grow: a pointer to the items, their number, and how many there is room for. */
#pragma once

#include "user/lib/types.h"

/*
 * Give the array *@items (NULL = none yet) room for @wanted items of @size bytes each. *@max is the room that it has,
 * and is changed. Room grows by half at least, so that adding items one by one costs little. Added room is not
 * zeroed. 0, or -ENOMEM: the array is as before. Use array_reserve().
 */
int array_grow(void *items, size_t *max, size_t wanted, size_t size) __must_check;

/* The room that array_grow() makes, for a caller that keeps a budget. @wanted is more than @max. */
size_t array_room(size_t max, size_t wanted);

/* Make room for @wanted items in @items, whose room is @max: two lvalues, @max of any unsigned type. 0 or -ENOMEM. */
#define array_reserve(items, max, wanted)                                                                    \
	({                                                                                                   \
		size_t room_ = (max), wanted_ = (wanted);                                                    \
		int err_ = 0;                                                                                \
		if (wanted_ > room_) {                                                                       \
			err_ = array_grow(&(items), &room_, wanted_, sizeof(*(items)));                      \
			(max) = (__typeof__(max))room_;                                                      \
		}                                                                                            \
		err_;                                                                                        \
	})

/*
 * Make room for exactly one more item in @items, which has @nr: for short lists that do not keep their room. 0 or
 * -ENOMEM: the list is as before.
 */
#define array_extend(items, nr)                                                                              \
	({                                                                                                   \
		size_t exact_ = (nr);                                                                        \
		array_grow_exact(&(items), exact_ + 1, sizeof(*(items)));                                    \
	})
int array_grow_exact(void *items, size_t wanted, size_t size) __must_check;

/*
 * Zero @bytes, and write to none that is zero already: a page that nobody has written to takes no memory, here or in a
 * process that is forked later.
 */
void array_clear(void *items, size_t bytes);

/*
 * Binary search: the first index from @from to @to - 1 for which @is_before is false, or @to. @is_before is an
 * expression of @i, an index that the macro declares. Items for which it is true come before all others.
 */
#define array_search(i, from, to, is_before)                                                                 \
	({                                                                                                   \
		size_t low_ = (from), high_ = (to);                                                          \
		while (low_ < high_) {                                                                       \
			const size_t i = low_ + (high_ - low_) / 2;                                          \
			if (is_before)                                                                       \
				low_ = i + 1;                                                                \
			else                                                                                 \
				high_ = i;                                                                   \
		}                                                                                            \
		low_;                                                                                        \
	})
