/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Find the seek point of a recording where a part of it begins, and read the state there. */
#include "user/stream/seek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/crc32c.h"
#include "user/lib/varint.h"
#include "user/stream/span.h"

enum {
	HAS_ALL_MARKS = 1,
	/* A state takes about 6 bytes a block, and its writing some 0.2 us: neither may be much. */
	BYTES_PER_BLOCK = 128,
	MAX_BLOCKS = 16000000,
};

_Static_assert(SEEK_NAME_LEN == (int)SPAN_NAME_LEN, "names of markers are compared");

bool seek_is_worth(u64 bytes, u64 nr_blocks)
{
	return nr_blocks <= MAX_BLOCKS && bytes >= nr_blocks * BYTES_PER_BLOCK;
}

size_t seek_put(u8 *out, const struct seek_head *head)
{
	u8 *p = out;

	p = varint_put(p, head->cut.time);
	p = varint_put(p, head->cut.addr);
	p = varint_put(p, head->cut.nr_stacks);
	p = varint_put(p, head->time_ns);
	p = varint_put(p, head->start_ns);
	p = varint_put(p, head->has_all ? HAS_ALL_MARKS : 0);
	p = varint_put(p, head->nr_marks);
	for (u32 i = 0; i < head->nr_marks; i++) {
		size_t len = strnlen(head->marks[i].name, SEEK_NAME_LEN - 1);

		p = varint_put(p, head->marks[i].time_ns);
		p = varint_put(p, len);
		memcpy(p, head->marks[i].name, len);
		p += len;
	}
	return (size_t)(p - out);
}

static const u8 *get_mark(struct seek_mark *mark, const u8 *p, const u8 *end)
{
	u64 len = 0;

	p = varint_get(p, end, &mark->time_ns);
	p = varint_get(p, end, &len);
	if (!p || len >= SEEK_NAME_LEN || len > (size_t)(end - p))
		return NULL;
	memcpy(mark->name, p, len);
	mark->name[len] = '\0';
	return p + len;
}

bool seek_get(struct seek_head *out, const u8 *data, size_t len)
{
	const u8 *p = data, *end = data + len;
	u64 flags = 0, nr = 0;

	out->time_ns = out->start_ns = 0;
	p = varint_get(p, end, &out->cut.time);
	p = varint_get(p, end, &out->cut.addr);
	p = varint_get(p, end, &out->cut.nr_stacks);
	p = varint_get(p, end, &out->time_ns);
	p = varint_get(p, end, &out->start_ns);
	p = varint_get(p, end, &flags);
	p = varint_get(p, end, &nr);
	if (!p || nr > SEEK_MAX_MARKS)
		return false;
	out->has_all = flags & HAS_ALL_MARKS;
	out->nr_marks = (u32)nr;
	for (u32 i = 0; i < out->nr_marks && p; i++)
		p = get_mark(&out->marks[i], p, end);
	return p && out->start_ns && out->start_ns <= out->time_ns && out->cut.nr_stacks >= STACK_FIRST_ID &&
	       out->cut.nr_stacks - STACK_FIRST_ID <= STREAM_MAX_STACKS;
}

/* Does @span begin behind the seek point? */
static bool seek_is_before(const struct seek_head *head, const struct span *span)
{
	const struct span_mark *from = &span->marks[SPAN_FROM];

	if (from->kind == SPAN_AT_TIME)
		return head->time_ns - head->start_ns < from->ns;
	if (from->kind != SPAN_AT_NAME || !head->has_all)
		return false;
	for (u32 i = 0; i < head->nr_marks; i++)
		if (!strcmp(head->marks[i].name, from->name))
			return false;
	return true;
}

/* A chunk of a file. */
struct seek_chunk {
	u8 head[STREAM_HEADER_LEN];
	u64 stored; /* bytes behind the header */
	u8 kind;
};

/* Read the header of the chunk at byte @at, which has the number @number. False at the end, or if it is none. */
static bool read_header(int fd, u64 at, u64 number, struct seek_chunk *c)
{
	if (pread(fd, c->head, sizeof(c->head), (off_t)at) != (ssize_t)sizeof(c->head))
		return false;
	c->stored = le32_get(c->head + 4);
	c->kind = c->head[16];
	return c->stored <= STREAM_MAX_RAW && le32_get(c->head + 12) == (u32)number;
}

/* Read what is behind the header of @c, at byte @at, into @out, which has room for it. */
static bool read_stored(int fd, u64 at, const struct seek_chunk *c, u8 *out)
{
	u32 crc;

	if (pread(fd, out, c->stored, (off_t)(at + STREAM_HEADER_LEN)) != (ssize_t)c->stored)
		return false;
	crc = crc32c(0, c->head + 4, STREAM_HEADER_LEN - 4);
	return crc32c(crc, out, c->stored) == le32_get(c->head);
}

bool seek_find(int fd, const struct span *span, struct seek_point *out)
{
	auto_free struct seek_head *head = malloc(sizeof(*head));
	auto_free u8 *data = malloc(SEEK_MAX_BYTES);
	u64 at = STREAM_PREAMBLE_LEN, state = 0, next;
	bool is_found = false;
	struct seek_chunk c;

	if (!head || !data)
		return false;
	for (u64 number = 0; read_header(fd, at, number, &c); number++, at = next) {
		next = at + STREAM_HEADER_LEN + c.stored;
		if (c.kind == STREAM_CHUNK_STATE && !state)
			state = at;
		if (c.kind == STREAM_CHUNK_SEEK && state && c.stored <= SEEK_MAX_BYTES) {
			if (!read_stored(fd, at, &c, data) || !seek_get(head, data, c.stored) ||
			    !seek_is_before(head, span))
				break;
			*out = (struct seek_point){ head->cut, head->start_ns, state, next, number + 1 };
			is_found = true;
		}
		if (c.kind != STREAM_CHUNK_STATE)
			state = 0;
	}
	return is_found;
}

int seek_read_state(int fd, const struct seek_point *p, int (*feed)(void *ctx, const void *data, size_t len),
		    void *ctx)
{
	auto_free u8 *data = malloc(STREAM_MAX_RAW);
	struct seek_chunk c;
	int err = data ? 0 : -ENOMEM;

	for (u64 at = p->state; !err && at < p->offset; at += STREAM_HEADER_LEN + c.stored) {
		if (pread(fd, c.head, sizeof(c.head), (off_t)at) != (ssize_t)sizeof(c.head))
			return -EIO;
		c.stored = le32_get(c.head + 4);
		if (c.head[16] != STREAM_CHUNK_STATE)
			break;
		if (c.stored > STREAM_MAX_RAW || !read_stored(fd, at, &c, data))
			return -EBADMSG;
		err = feed(ctx, data, c.stored);
	}
	return err;
}
