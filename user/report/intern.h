/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbered items of which each is kept once, for formats that write names and places once and then refer to them. */
#pragma once

#include "user/lib/hash_index.h"

/* Items that begin with a key of fixed size, without padding. With @item_size and @key_size set: an empty table. */
struct intern_table {
	size_t item_size, key_size; /* bytes */
	u8 *items;		    /* owned */
	size_t nr, max;
	struct hash_index index;
};

/*
 * The item with the key @key, *@number of the table. *@is_new: it was added, and its bytes behind the key are zero.
 * Pointers to items are valid until the next call. 0 or -ENOMEM.
 */
int intern_item(struct intern_table *t, const void *key, size_t *number, bool *is_new) __must_check;

static inline void *intern_get(const struct intern_table *t, size_t number)
{
	return t->items + number * t->item_size;
}

void intern_fini(struct intern_table *t);

/* Strings, escaped as by escape_text(), or with @is_raw as they come. Otherwise all zero: none. */
struct intern_strings {
	bool is_raw;
	char **list; /* owned, and its strings */
	size_t nr, max;
	struct hash_index index;
};

/* The number of @text. *@is_new (may be NULL): it was added. 0 or -ENOMEM. */
int intern_string(struct intern_strings *s, const char *text, size_t *number, bool *is_new) __must_check;
void intern_strings_fini(struct intern_strings *s);
