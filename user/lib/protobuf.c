/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Protocol buffers on the wire: each field is a key and a number, or a key, a length and bytes. */
#include "user/lib/protobuf.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/varint.h"

enum wire_type { TYPE_VARINT = 0, TYPE_FIXED64 = 1, TYPE_BYTES = 2 };

/* Make room for @len bytes. Returns where they go, NULL after an error. */
static u8 *protobuf_room(struct protobuf *p, size_t len)
{
	if (!p->err)
		p->err = array_reserve(p->data, p->max, p->len + len);
	return p->err ? NULL : p->data + p->len;
}

static void put_varint(struct protobuf *p, u64 value)
{
	u8 *to = protobuf_room(p, VARINT_MAX);

	if (to)
		p->len = (size_t)(varint_put(to, value) - p->data);
}

static void put_key(struct protobuf *p, u32 field, enum wire_type type)
{
	put_varint(p, (u64)field << 3 | type);
}

void protobuf_u64(struct protobuf *p, u32 field, u64 value)
{
	if (!value)
		return;
	put_key(p, field, TYPE_VARINT);
	put_varint(p, value);
}

/* Append @len bytes. */
static void put_bytes(struct protobuf *p, const void *data, size_t len)
{
	u8 *to = protobuf_room(p, len);

	if (!to || !len)
		return;
	memcpy(to, data, len);
	p->len += len;
}

void protobuf_fixed64(struct protobuf *p, u32 field, u64 value)
{
	u64 bytes = htole64(value);

	if (!value)
		return;
	put_key(p, field, TYPE_FIXED64);
	put_bytes(p, &bytes, sizeof(bytes));
}

void protobuf_append(struct protobuf *p, const struct protobuf *from)
{
	if (from->err)
		p->err = from->err;
	put_bytes(p, from->data, from->len);
}

void protobuf_bytes(struct protobuf *p, u32 field, const void *data, size_t len)
{
	put_key(p, field, TYPE_BYTES);
	put_varint(p, len);
	put_bytes(p, data, len);
}

void protobuf_string(struct protobuf *p, u32 field, const char *text)
{
	if (*text)
		protobuf_bytes(p, field, text, strlen(text));
}

void protobuf_packed(struct protobuf *p, u32 field, const u64 *values, size_t nr)
{
	size_t len = 0;

	if (!nr)
		return;
	for (size_t i = 0; i < nr; i++)
		len += varint_len(values[i]);
	put_key(p, field, TYPE_BYTES);
	put_varint(p, len);
	for (size_t i = 0; i < nr; i++)
		put_varint(p, values[i]);
}

size_t protobuf_begin(struct protobuf *p, u32 field)
{
	put_key(p, field, TYPE_BYTES);
	return p->len;
}

void protobuf_end(struct protobuf *p, size_t start)
{
	size_t len = p->len - start, head = varint_len(len);

	if (!protobuf_room(p, head))
		return;
	memmove(p->data + start + head, p->data + start, len);
	varint_put(p->data + start, len);
	p->len += head;
}

void protobuf_clear(struct protobuf *p)
{
	p->len = 0;
}

void protobuf_fini(struct protobuf *p)
{
	free(p->data);
	*p = (struct protobuf){ 0 };
}
