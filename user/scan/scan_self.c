/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects that do not begin where their block does, and keep an address by which to give it back. */
#include <errno.h>
#include <stdlib.h>

#include "user/lib/array.h"
#include "user/scan/scan_look.h"
#include "user/scan/scan_shapes.h"

/*
 * Whoever aligns an object by hand keeps where its block begins in the object (haproxy's pools). An object behind a few
 * words of its program keeps where it begins itself (a state of Lua). Either way, a pointer to the object leads to the
 * block. A list or a tree in the object that is empty leads to its own head, a few words away.
 */
enum {
	SELF_FIRST = 64,  /* bytes: an object begins in the first ones */
	SELF_BEYOND = 32, /* bytes from a place to the word that leads there */
};

int looker_list_add(struct looker_list *list, u32 block)
{
	int err = array_reserve(list->of, list->max, list->nr + 1);

	if (!err)
		list->of[list->nr++] = block;
	return err;
}

int looker_list_enter(struct looker_list *list, const struct scan *s, u64 **bits)
{
	if (list->nr && !*bits)
		*bits = calloc(s->nr / 64 + 1, sizeof(**bits));
	if (list->nr && !*bits)
		return -ENOMEM;
	for (size_t i = 0; i < list->nr; i++)
		(*bits)[list->of[i] / 64] |= 1ULL << list->of[i] % 64;
	list->nr = 0;
	return 0;
}

int looker_note_self(struct looker *r, const struct candidate *c, u32 block, u64 offset)
{
	if (c->at == NO_INDEX || offset > SELF_FIRST || !(r->facts->heuristics & SCAN_SELF) ||
	    r->base + (u64)c->at * 8 - r->s->blocks[block].addr < offset + SELF_BEYOND)
		return 0;
	return looker_list_add(&r->aware, block);
}

bool scan_knows_itself(const struct scan *s, u32 block, u64 offset)
{
	return offset <= SELF_FIRST && end_bit(s->aware, block);
}
