/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pack the chunks of a connection where zstd has no room: each bit with the probability that it had in places like this
 * one. Both ends learn from all packed chunks, so that short ones pack as well as long ones, and a reader needs each.
 */
#pragma once

#include "user/lib/types.h"

/*
 * A byte is coded as two halves, each of four bits from the top. Bits have probabilities by their column
 * (user/stream/stream_split.h), the place in a varint, and: op bytes by the last op byte; times and first bytes of
 * addresses by the op byte, times also by the last byte of a time; bytes of other records by the two before.
 */
enum { CODER_BITS = 12 };

struct stream_coder {
	u16 places[1 << CODER_BITS];	      /* by hash of a context: of its slots; 0 = not used yet */
	u16 slots[1 + (1 << CODER_BITS)][16]; /* probabilities of the bits of a half byte, 0x8000 apart */
	u16 nr_slots;
	u8 op, time; /* the last ones */
	bool is_packing;
	u8 *p, *end;	     /* records: what is left of them */
	u8 *code, *code_end; /* the packed side: what is left of it, or of the room for it */
	u32 low, high;	     /* the coded number is between them */
	u32 number;	     /* when unpacking */
};

/* All bytes 0 is a coder that has learned nothing: the first one, and the one after records that are not coded. */

/* Pack @len bytes at @data, which stay as they are, into @out. Returns the bytes written, 0 if @room is not enough. */
size_t stream_coder_pack(struct stream_coder *c, u8 *out, size_t room, u8 *data, size_t len);

/* Unpack into exactly @len bytes at @out, whatever comes. */
void stream_coder_unpack(struct stream_coder *c, u8 *out, size_t len, const u8 *data, size_t stored);
