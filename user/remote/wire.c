/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn frames into bytes, and bytes into frames. */
#include "user/remote/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/log.h"
#include "user/lib/varint.h"

enum { FIRST_SIZE = 512, READ_SIZE = 65536 };

static u32 wire_le32(const u8 *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (u32)p[3] << 24;
}

void wire_in_init(struct wire_in *in, enum wire_side from)
{
	*in = (struct wire_in){ .from = from };
}

void wire_in_fini(struct wire_in *in)
{
	free(in->buf);
	wire_in_init(in, in->from);
}

/* Make room for @len more bytes at the end of the buffer. */
static int wire_make_room(u8 **buf, size_t *start, size_t *end, size_t *size, size_t len)
{
	size_t used = *end - *start, want = *size ? *size : FIRST_SIZE;
	u8 *grown;

	if (*size - *end >= len)
		return 0;
	if (*start && (*size - used >= len)) {
		memmove(*buf, *buf + *start, used);
		*start = 0;
		*end = used;
		return 0;
	}
	while (want - used < len)
		want *= 2;
	grown = malloc(want);
	if (!grown)
		return -ENOMEM;
	if (used)
		memcpy(grown, *buf + *start, used);
	free(*buf);
	*buf = grown;
	*size = want;
	*start = 0;
	*end = used;
	return 0;
}

int wire_in_read(struct wire_in *in, int fd)
{
	/* Before the handshake is done, a peer gets only the memory that its frames need. */
	size_t most = in->is_open ? READ_SIZE : FIRST_SIZE - (in->end - in->start);
	ssize_t n;

	if (!most)
		return 0;
	if (wire_make_room(&in->buf, &in->start, &in->end, &in->size, most))
		return -ENOMEM;
	n = read(fd, in->buf + in->end, most);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	in->end += n;
	return n ? (int)n : -EPIPE;
}

int wire_in_feed(struct wire_in *in, const void *data, size_t len)
{
	if (!len)
		return 0;
	if (wire_make_room(&in->buf, &in->start, &in->end, &in->size, len))
		return -ENOMEM;
	memcpy(in->buf + in->end, data, len);
	in->end += len;
	return 0;
}

int wire_in_next(struct wire_in *in, struct wire_frame *frame)
{
	size_t used = in->end - in->start;
	const u8 *p;

	if (used < WIRE_HEADER_LEN)
		return 0;
	p = in->buf + in->start;
	*frame = (struct wire_frame){ .kind = p[4], .len = wire_le32(p), .data = p + WIRE_HEADER_LEN };
	if (!wire_may_send(in->from, in->is_open, frame->kind, frame->len) || p[5] || p[6] || p[7]) {
		debug("wire: the peer may not send a frame of kind %u with %u bytes", frame->kind,
		      frame->len);
		return -EPROTO;
	}
	if (used - WIRE_HEADER_LEN < frame->len)
		return 0;
	in->start += WIRE_HEADER_LEN + frame->len;
	return 1;
}

void wire_out_init(struct wire_out *out, size_t limit)
{
	*out = (struct wire_out){ .limit = limit };
}

void wire_out_fini(struct wire_out *out)
{
	free(out->buf);
	wire_out_init(out, out->limit);
}

size_t wire_out_pending(const struct wire_out *out)
{
	return out->end - out->start;
}

bool wire_out_has_room(const struct wire_out *out, size_t len, size_t reserve)
{
	return wire_out_pending(out) + WIRE_HEADER_LEN + len + reserve <= out->limit;
}

int wire_put(struct wire_out *out, u8 kind, const void *data, size_t len)
{
	u8 header[WIRE_HEADER_LEN] = { len, len >> 8, len >> 16, len >> 24, kind };

	if (len > WIRE_MAX_BODY || !wire_out_has_room(out, len, 0))
		return -ENOBUFS;
	if (wire_make_room(&out->buf, &out->start, &out->end, &out->size, sizeof(header) + len))
		return -ENOMEM;
	memcpy(out->buf + out->end, header, sizeof(header));
	if (len)
		memcpy(out->buf + out->end + sizeof(header), data, len);
	out->end += sizeof(header) + len;
	return 0;
}

int wire_put_text(struct wire_out *out, u8 kind, const char *text)
{
	return wire_put(out, kind, text, strnlen(text, WIRE_MAX_TEXT));
}

int wire_out_write(struct wire_out *out, int fd)
{
	while (out->start < out->end) {
		ssize_t n = write(fd, out->buf + out->start, out->end - out->start);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		out->start += n;
	}
	out->start = out->end = 0;
	return 0;
}

void wire_put_number(struct wire_body *b, u64 value, int bytes)
{
	if (b->size - b->len < (size_t)bytes) {
		b->is_bad = true;
		return;
	}
	for (int i = 0; i < bytes; i++)
		b->data[b->len++] = value >> (8 * i);
}

void wire_put_varint(struct wire_body *b, u64 value)
{
	while (value >= 0x80) {
		wire_put_number(b, (value & 0x7f) | 0x80, 1);
		value >>= 7;
	}
	wire_put_number(b, value, 1);
}

void wire_put_signed(struct wire_body *b, s64 value)
{
	wire_put_varint(b, to_zigzag((u64)value));
}

u64 wire_get_number(struct wire_view *v, int bytes)
{
	u64 value = 0;

	if (v->is_bad || v->len < (size_t)bytes) {
		v->is_bad = true;
		return 0;
	}
	for (int i = 0; i < bytes; i++)
		value |= (u64)v->data[i] << (8 * i);
	v->data += bytes;
	v->len -= bytes;
	return value;
}

u64 wire_get_varint(struct wire_view *v)
{
	u64 value = 0;

	for (int shift = 0; shift < 64; shift += 7) {
		u64 byte = wire_get_number(v, 1);

		/* The tenth byte holds one bit. */
		if (shift == 63 && byte > 1)
			break;
		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	v->is_bad = true;
	return 0;
}

s64 wire_get_signed(struct wire_view *v)
{
	return (s64)from_zigzag(wire_get_varint(v));
}

char *wire_get_text(struct wire_view *v, char *buf, size_t size)
{
	size_t len = v->is_bad ? 0 : strnlen((const char *)v->data, v->len);

	if (len >= size)
		len = size - 1;
	if (len)
		memcpy(buf, v->data, len);
	buf[len] = '\0';
	v->len = 0;
	return buf;
}
