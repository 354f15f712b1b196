/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code records bit by bit with what was learned from the records before: an arithmetic coder. */
#include "user/stream/stream_coder.h"

#include "user/stream/stream_split.h"

enum { RATE = 4, NR_FULL_NUMBERS = 7 };

/* The packed side has no byte left: what is read is 0. */
static void shift_number(struct stream_coder *c)
{
	if (!IS_AGENT && !c->is_packing)
		c->number = c->number << 8 | (c->code < c->code_end ? *c->code++ : 0);
	else if (c->code < c->code_end)
		*c->code++ = (u8)(c->high >> 24);
	else
		c->code = c->code_end = NULL;
	c->low <<= 8;
	c->high = c->high << 8 | 255;
}

/* Code half a byte, @value when packing, by the probabilities of @context. */
static u32 code_half(struct stream_coder *c, u32 context, u32 value)
{
	u16 *place = &c->places[context * 0x9e3779b1u >> (32 - CODER_BITS)], *slots;
	u32 node = 1;

	/* Most programs need few, which lie side by side. */
	if (!*place)
		*place = ++c->nr_slots;
	slots = c->slots[*place];
	while (node < 16) {
		u16 one = slots[node] ^ 0x8000;
		u32 middle = c->low + ((c->high - c->low) >> 12) * (one >> 4);
		bool bit = IS_AGENT || c->is_packing ? value & 8 : c->number <= middle;

		if (bit)
			c->high = middle;
		else
			c->low = middle + 1;
		slots[node] = (bit ? one + ((0xffff - one) >> RATE) : one - (one >> RATE)) ^ 0x8000;
		node = 2 * node + bit;
		value <<= 1;
		while (!((c->low ^ c->high) >> 24))
			shift_number(c);
	}
	return node & 15;
}

/* Code the next byte. Behind the last one all bytes are 0. */
static u8 code_byte(struct stream_coder *c, u32 column, u32 context)
{
	u32 half;

	if (c->p == c->end)
		return 0;
	context = (context * 32 + column) * 0x2c1b3c6du;
	context ^= context >> 15;
	half = code_half(c, context, *c->p >> 4);
	*c->p = (u8)(half << 4 | code_half(c, context + 0x85ebca6bu * (half + 1), *c->p));
	return *c->p++;
}

/* Returns the first byte. */
static u8 code_varint(struct stream_coder *c, u32 column, u32 context)
{
	const u8 first = code_byte(c, column, context);

	/* The contexts of second and further bytes are none of first ones. */
	context = 0x10000;
	for (u8 byte = first; byte & 0x80; context = 0x20000)
		byte = code_byte(c, column, context);
	return first;
}

/* An event in full, behind the op byte. */
static void code_full(struct stream_coder *c, u8 op)
{
	code_byte(c, STREAM_COLUMN_RECORDS, op);
	code_byte(c, STREAM_COLUMN_RECORDS, op);
	for (u32 i = 0; i < NR_FULL_NUMBERS + (u32)(op == OP_SAMPLED); i++)
		code_varint(c, STREAM_COLUMN_RECORDS, i);
}

/* A record with a body, behind the op byte. */
static void code_record(struct stream_coder *c)
{
	u32 last = code_byte(c, STREAM_COLUMN_RECORDS, 0), shift = 0;
	u64 len = 0;
	u8 byte;

	do {
		byte = code_byte(c, STREAM_COLUMN_RECORDS, last);
		len |= (u64)(byte & 0x7f) << (shift & 63);
		shift += 7;
	} while (byte & 0x80);
	for (; len && c->p < c->end; len--)
		last = last << 8 | code_byte(c, STREAM_COLUMN_RECORDS, last & 0xffff);
}

static void code_short(struct stream_coder *c, u8 op)
{
	c->time = code_varint(c, STREAM_COLUMN_TIMES, (op & 7u) | (u32)c->time << 8);
	if (op & OP_THREAD)
		code_varint(c, STREAM_COLUMN_CONTEXTS, 0);
	code_varint(c, stream_addr_column(op), op);
	for (u32 i = 0; i < 3; i++)
		if (op & OP_STACK << i)
			code_varint(c, STREAM_COLUMN_STACKS + i, 0);
}

static void code_records(struct stream_coder *c, u8 *records, size_t len)
{
	c->p = records;
	c->end = records + len;
	c->low = 0;
	c->high = UINT32_MAX;
	while (c->p < c->end) {
		u8 op = c->op = code_byte(c, STREAM_COLUMN_OPS, c->op);

		if ((op & 7) && (op & 7) < OP_SAMPLED)
			code_short(c, op);
		else if (op & 7)
			code_full(c, op & 7);
		else
			code_record(c);
	}
}

size_t stream_coder_pack(struct stream_coder *c, u8 *out, size_t room, u8 *data, size_t len)
{
	c->is_packing = true;
	c->code = out;
	c->code_end = out + room;
	code_records(c, data, len);
	/* The bits behind this byte are 0, and the number is between both: their highest bytes differ. */
	shift_number(c);
	return c->code ? (size_t)(c->code - out) : 0;
}

void stream_coder_unpack(struct stream_coder *c, u8 *out, size_t len, const u8 *data, size_t stored)
{
	c->is_packing = false;
	c->code = (u8 *)data; /* is not written to */
	c->code_end = c->code + stored;
	for (u32 i = 0; i < 4; i++)
		shift_number(c);
	code_records(c, out, len);
}
