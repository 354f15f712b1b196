/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes protocol buffer messages: numbers, byte strings and messages within messages. */
#pragma once

#include "user/lib/types.h"

/*
 * Bytes of a message. All zero: an empty one. After -ENOMEM in @err nothing more is written, so that the caller may
 * look at it once, at the end.
 */
struct protobuf {
	u8 *data; /* owned */
	size_t len, max;
	int err;
};

/* Write field @field. Zero is left out, because readers take a field that is missing for that. */
void protobuf_u64(struct protobuf *p, u32 field, u64 value);

/* Write the @len bytes at @data; an empty field is written too, for lists of strings. */
void protobuf_bytes(struct protobuf *p, u32 field, const void *data, size_t len);

/* Write @text; "" is left out. */
void protobuf_string(struct protobuf *p, u32 field, const char *text);

/* Write field @field, of the type fixed64: a number of eight bytes. Zero is left out. */
void protobuf_fixed64(struct protobuf *p, u32 field, u64 value);

/* Append the fields of @from, and its error. */
void protobuf_append(struct protobuf *p, const struct protobuf *from);

/* Write the @nr numbers of a packed list, zeros too. Nothing for an empty list. */
void protobuf_packed(struct protobuf *p, u32 field, const u64 *values, size_t nr);

/* Write a message within the message: its fields come between the two calls, which get the same @start. */
size_t protobuf_begin(struct protobuf *p, u32 field);
void protobuf_end(struct protobuf *p, size_t start);

/* protobuf_clear(): remove all bytes and keep the memory. protobuf_fini(): free the memory. */
void protobuf_clear(struct protobuf *p);
void protobuf_fini(struct protobuf *p);
