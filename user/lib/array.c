/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arrays that grow. */
#include "user/lib/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ITEMS = 16 };

/* @items points to a pointer of any type: copied as bytes, because void ** would be another type. */
int array_grow_exact(void *items, size_t wanted, size_t size)
{
	void *old, *grown;
	size_t bytes;

	if (__builtin_mul_overflow(wanted, size, &bytes))
		return -ENOMEM;
	memcpy(&old, items, sizeof(old));
	grown = realloc(old, bytes);
	if (!grown)
		return -ENOMEM;
	memcpy(items, &grown, sizeof(grown));
	return 0;
}

size_t array_room(size_t max, size_t wanted)
{
	size_t room = max + max / 2 + FIRST_ITEMS;

	return room < wanted ? wanted : room;
}

int array_grow(void *items, size_t *max, size_t wanted, size_t size)
{
	size_t room = array_room(*max, wanted);
	int err = array_grow_exact(items, room, size);

	if (!err)
		*max = room;
	return err;
}

void array_clear(void *items, size_t bytes)
{
	for (u8 *p = items, *end = p + bytes; p < end; p++)
		if (*p)
			*p = 0;
}
