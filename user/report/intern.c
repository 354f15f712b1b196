/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbered items of which each is kept once. */
#include "user/report/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/hash.h"

int intern_item(struct intern_table *t, const void *key, size_t *number, bool *is_new)
{
	u64 hash = hash_bytes(key, t->key_size, 0);
	u32 item, at = 0;
	int err = 0;

	*is_new = false;
	while ((item = hash_index_next(&t->index, hash, &at)) != HASH_NO_ITEM) {
		*number = item;
		if (!memcmp(intern_get(t, item), key, t->key_size))
			return 0;
	}
	if (t->nr >= HASH_NO_ITEM)
		return -ENOMEM;
	if (t->nr == t->max)
		err = array_grow(&t->items, &t->max, t->nr + 1, t->item_size);
	if (!err)
		err = hash_index_add(&t->index, hash, (u32)t->nr);
	if (err)
		return err;
	*is_new = true;
	*number = t->nr++;
	memset(intern_get(t, *number), 0, t->item_size);
	memcpy(intern_get(t, *number), key, t->key_size);
	return 0;
}

void intern_fini(struct intern_table *t)
{
	free(t->items);
	hash_index_fini(&t->index);
	*t = (struct intern_table){ .item_size = t->item_size, .key_size = t->key_size };
}

int intern_string(struct intern_strings *s, const char *text, size_t *number, bool *is_new)
{
	auto_free char *own = s->is_raw ? NULL : escape_new(text);
	const char *wanted = s->is_raw ? text : own;
	u64 hash;
	u32 item, at = 0;
	int err;

	if (!wanted)
		return -ENOMEM;
	if (is_new)
		*is_new = false;
	hash = hash_bytes(wanted, strlen(wanted), 0);
	while ((item = hash_index_next(&s->index, hash, &at)) != HASH_NO_ITEM) {
		*number = item;
		if (!strcmp(s->list[item], wanted))
			return 0;
	}
	if (s->nr >= HASH_NO_ITEM)
		return -ENOMEM;
	if (s->is_raw)
		own = strdup(text);
	if (!own)
		return -ENOMEM;
	err = array_reserve(s->list, s->max, s->nr + 1);
	if (!err)
		err = hash_index_add(&s->index, hash, (u32)s->nr);
	if (err)
		return err;
	if (is_new)
		*is_new = true;
	*number = s->nr++;
	s->list[*number] = take_ptr(own);
	return 0;
}

void intern_strings_fini(struct intern_strings *s)
{
	for (size_t i = 0; i < s->nr; i++)
		free(s->list[i]);
	free(s->list);
	hash_index_fini(&s->index);
	*s = (struct intern_strings){ .is_raw = s->is_raw };
}
