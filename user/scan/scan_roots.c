/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers from roots to blocks. Most roots are words side by side, in the order of addresses: a table of pointers. */
#include "user/scan/scan_roots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/varint.h"

enum {
	MAX_BYTES = 2 * VARINT_MAX + 4, /* of one */
	FIRST_BYTES = 64 << 10,
	/* Flags of the first number. */
	HAS_OFFSET = 1,
	IS_LONG = 2,
	OFFSET_0 = IS_AGENT ? 0 : 2, /* the number of offset 0: that of ROOT_END is 0 */
};

void roots_fini(struct root_store *r)
{
	free(r->bytes);
	memset(r, 0, sizeof(*r));
}

/* By an eighth, because large arrays move by remapping, and less room is wasted. */
static int scan_roots_grow(struct root_store *r)
{
	u64 larger = r->capacity ? r->capacity + r->capacity / 8 : FIRST_BYTES;
	u8 *bytes = realloc(r->bytes, larger);

	if (!bytes)
		return -ENOMEM;
	r->bytes = bytes;
	r->capacity = larger;
	return 0;
}

int roots_add(struct root_store *r, const struct root_ref *ref)
{
	int err = r->capacity - r->nr_bytes < MAX_BYTES ? scan_roots_grow(r) : 0;
	bool is_long = ref->block >> 24, is_other = ref->offset != (IS_AGENT ? 0 : r->last_offset);
	u8 *to = r->bytes + r->nr_bytes;

	if (err)
		return err;
	to = varint_put(to, to_zigzag(ref->where - r->last_where) << 2 | (is_long ? IS_LONG : 0) |
				    (is_other ? HAS_OFFSET : 0));
	le32_put(to, ref->block);
	to += is_long ? 4 : 3;
	if (is_other)
		to = varint_put(to, (u32)(ref->offset + OFFSET_0));
	if (!IS_AGENT)
		r->last_offset = ref->offset;
	r->nr_bytes = (u64)(to - r->bytes);
	r->last_where = ref->where;
	r->nr++;
	return 0;
}

void roots_finish(struct root_store *r)
{
	u8 *bytes = r->nr_bytes ? realloc(r->bytes, r->nr_bytes) : NULL;

	if (!bytes)
		return;
	r->bytes = bytes;
	r->capacity = r->nr_bytes;
}

static bool root_read(struct root_iter *it, struct root_ref *out)
{
	const u8 *at = it->roots->bytes + it->at, *end = it->roots->bytes + it->roots->nr_bytes;
	u64 head, number = OFFSET_0 + (IS_AGENT ? 0ULL : it->last_offset);

	if (it->at == it->roots->nr_bytes)
		return false;
	at = varint_get(at, end, &head);
	if (!at)
		return false;
	it->where += from_zigzag(head >> 2);
	*out = (struct root_ref){ .where = it->where, .block = (u32)le16_get(at) | (u32)at[2] << 16 };
	if (head & IS_LONG)
		out->block |= (u32)at[3] << 24;
	at += head & IS_LONG ? 4 : 3;
	if (head & HAS_OFFSET)
		at = varint_get(at, end, &number);
	if (!at)
		return false;
	out->offset = (u32)number - OFFSET_0;
	if (!IS_AGENT) {
		it->last_offset = out->offset;
		it->may_be_end = out->offset == ROOT_END;
	}
	it->at = (u64)(at - it->roots->bytes);
	return true;
}

bool root_next(struct root_iter *it, struct root_ref *out)
{
	const struct end_bits *ends = IS_AGENT ? NULL : it->roots->ends;

	while (root_read(it, out)) {
		if (!IS_AGENT && out->offset == ROOT_TAIL) {
			out->offset = 0;
			if (ends && end_bit(ends->tails, out->block))
				return true;
			continue;
		}
		if (IS_AGENT || !it->may_be_end)
			return true;
		out->offset = ends && end_bit(ends->may, out->block);
		if (!ends || !end_bit(ends->surely, out->block))
			return true;
	}
	return false;
}
