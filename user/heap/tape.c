/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that came and went, in a temporary file. An entry is a head of three bytes: flags, and the number of a slot.
 * Most events have a row and a size that were there lately: a table keeps these in slots. Else both follow the head as
 * varints. There may be many million entries, so nothing slow is done for one.
 */
#include "user/heap/tape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/varint.h"

enum {
	WRITE_BYTES = 1 << 14,
	READ_BYTES = 1 << 16,
	HEAD_BYTES = 3,
	ENTRY_BYTES = HEAD_BYTES + 3 * VARINT_MAX
};
enum { IS_FREE = 1, HAS_TIME = 2, IS_NEW = 4, FLAG_BITS = 3 };

/* For each slot by row there are some by row and size. */
enum { BY_SIZE = 8, MIN_BY_ROW = 1 << 7, MAX_BY_ROW = TAPE_SLOTS_MAX / (1 + BY_SIZE) };
_Static_assert(TAPE_SLOTS_MAX << FLAG_BITS <= 1 << 8 * HEAD_BYTES, "a head has room for each slot");

#define NO_ROW UINT32_MAX

/* A number in the file stands for the row and the size of its slot. Larger sizes have no slot. */
struct tape_slot {
	u32 row; /* NO_ROW = none yet */
	u32 bytes;
};

/* First a slot for each row, for its first size; then slots for other sizes, by a hash of row and size. */
struct tape_slots {
	struct tape_slot *list; /* owned; NULL = none yet */
	u32 nr_by_row;		/* a power of two; when it grows, all slots are forgotten */
	u32 nr_new;		/* slots that were filled, or filled anew */
};

/* One that reads a tape. */
struct tape_reader {
	u8 *bytes;    /* owned; READ_BYTES and one more, a part of the tape */
	const u8 *at; /* the next entry */
	u8 *end;      /* of the part */
	u64 offset;   /* of that end in the tape */
	u64 time_ms;
};

struct tape {
	int fd;	     /* owned; -1 = all entries are in @bytes */
	u64 len;     /* bytes in the file */
	u32 nr;	     /* bytes in @bytes, which come behind those */
	int err;     /* of the first failure */
	u64 time_ms; /* of the last entry */
	struct tape_slots slots;
	struct tape_reader reader;
	u8 bytes[WRITE_BYTES];
};

int tape_new(struct tape **out)
{
	struct tape *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->fd = -1;
	*out = t;
	return 0;
}

static void tape_fini(struct tape *t)
{
	if (t->fd >= 0)
		close(t->fd);
	free(t->slots.list);
	free(t->reader.bytes);
}

void tape_free(struct tape *t)
{
	if (!t)
		return;
	tape_fini(t);
	free(t);
}

void tape_reset(struct tape *t)
{
	tape_fini(t);
	memset(t, 0, sizeof(*t));
	t->fd = -1;
}

static u32 nr_slots(const struct tape_slots *s)
{
	return s->nr_by_row * (1 + BY_SIZE);
}

/* Forget all slots, and have @nr by row. 0 or -ENOMEM. */
static int slots_begin(struct tape_slots *s, u32 nr)
{
	free(s->list);
	*s = (struct tape_slots){ .list = malloc(nr * (1 + BY_SIZE) * sizeof(*s->list)), .nr_by_row = nr };
	if (!s->list)
		return -ENOMEM;
	for (u32 i = 0; i < nr_slots(s); i++)
		s->list[i] = (struct tape_slot){ .row = NO_ROW };
	return 0;
}

static bool is_in(const struct tape_slot *slot, const struct tape_entry *e)
{
	return slot->row == e->row && slot->bytes == e->bytes;
}

/* The slot that has @e, or that is to be filled with it. */
static u32 slots_find(const struct tape_slots *s, const struct tape_entry *e)
{
	u32 nr = s->nr_by_row, first = e->row & (nr - 1), second;
	u64 hash;

	if (is_in(&s->list[first], e))
		return first;
	hash = (e->row * 0x9e3779b97f4a7c15ULL) ^ (e->bytes * 0xd6e8feb86659fd93ULL);
	second = nr + ((u32)(hash >> 40) & (nr * BY_SIZE - 1));
	return s->list[first].row == NO_ROW && !is_in(&s->list[second], e) ? first : second;
}

/* Fill slot @at. 0 or -ENOMEM. */
static int slots_fill(struct tape_slots *s, u32 at, const struct tape_entry *e)
{
	s->list[at] = (struct tape_slot){ e->bytes <= UINT32_MAX ? e->row : NO_ROW, (u32)e->bytes };
	if (++s->nr_new <= nr_slots(s) || s->nr_by_row >= MAX_BY_ROW)
		return 0;
	return slots_begin(s, 2 * s->nr_by_row);
}

/* A file without a name. O_TMPFILE is not known to every file system; tmpfile() knows no TMPDIR. */
static int open_unnamed(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir == '/' ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	FILE *file;

	if (fd >= 0)
		return fd;
	file = tmpfile();
	if (!file)
		return -errno;
	fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		fd = -errno;
	fclose(file);
	return fd;
}

static int write_file(struct tape *t)
{
	if (t->fd < 0) {
		int fd = open_unnamed();

		if (fd < 0)
			return fd;
		t->fd = fd;
	}
	for (u32 done = 0; done < t->nr;) {
		ssize_t n = pwrite(t->fd, t->bytes + done, t->nr - done, (off_t)t->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (u32)n;
		t->len += (u64)n;
	}
	t->nr = 0;
	return 0;
}

/* Make the tape ready for one more entry. False: it has failed. */
static bool __attribute__((noinline)) make_room(struct tape *t)
{
	if (!t->err && !t->slots.list)
		t->err = slots_begin(&t->slots, MIN_BY_ROW);
	if (!t->err && t->nr > WRITE_BYTES - ENTRY_BYTES)
		t->err = write_file(t);
	return !t->err;
}

void tape_put(struct tape *t, const struct tape_entry *e)
{
	u64 gone_ms = e->time_ms > t->time_ms ? e->time_ms - t->time_ms : 0;
	bool is_new;
	u8 *end;
	u32 at;

	if ((t->err || !t->slots.list || t->nr > WRITE_BYTES - ENTRY_BYTES) && !make_room(t))
		return;
	at = slots_find(&t->slots, e);
	is_new = !is_in(&t->slots.list[at], e);
	le32_put(t->bytes + t->nr, at << FLAG_BITS | (is_new ? IS_NEW : 0) | (gone_ms ? HAS_TIME : 0) |
					   (e->is_free ? IS_FREE : 0));
	end = t->bytes + t->nr + HEAD_BYTES;
	if (is_new) {
		end = varint_put(end, e->row);
		end = varint_put(end, e->bytes);
		t->err = slots_fill(&t->slots, at, e);
	}
	if (gone_ms)
		end = varint_put(end, gone_ms);
	t->time_ms += gone_ms;
	t->nr = (u32)(end - t->bytes);
}

int tape_rewind(struct tape *t)
{
	struct tape_reader *r = &t->reader;

	if (t->err)
		return t->err;
	if (!r->bytes)
		r->bytes = calloc(1, READ_BYTES + 1);
	r->at = r->end = r->bytes;
	r->offset = r->time_ms = 0;
	return r->bytes ? 0 : -ENOMEM;
}

/* Add the next bytes of the tape to those that are there. 0 or -EIO. */
static int read_more(const struct tape *t, struct tape_reader *r)
{
	u32 left = (u32)(r->end - r->at);
	ssize_t n;

	memmove(r->bytes, r->at, left);
	r->at = r->bytes;
	r->end = r->bytes + left;
	while (r->end < r->bytes + READ_BYTES && r->offset < t->len) {
		n = pread(t->fd, r->end, (size_t)(r->bytes + READ_BYTES - r->end), (off_t)r->offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		r->end += n;
		r->offset += (u64)n;
	}
	if (r->offset >= t->len) {
		u64 from = r->offset - t->len, room = (u64)(r->bytes + READ_BYTES - r->end);
		u64 nr = t->nr - from < room ? t->nr - from : room;

		memcpy(r->end, t->bytes + from, nr);
		r->end += nr;
		r->offset += nr;
	}
	return 0;
}

int tape_next(struct tape *t, struct tape_entry *e)
{
	struct tape_reader *r = &t->reader;
	u64 gone_ms = 0;
	const u8 *p;
	u32 head;

	if (r->end - r->at < ENTRY_BYTES && read_more(t, r))
		return -EIO;
	if (r->at == r->end)
		return 0;
	if (r->end - r->at < HEAD_BYTES)
		return -EIO;
	/* The buffer has room behind its end. */
	head = le32_get(r->at) & ((1U << 8 * HEAD_BYTES) - 1);
	p = r->at + HEAD_BYTES;
	if (head & IS_NEW) {
		u64 row = 0;

		p = varint_get(varint_get(p, r->end, &row), r->end, &e->bytes);
		e->row = (u32)row;
	}
	if (p && head & HAS_TIME)
		p = varint_get(p, r->end, &gone_ms);
	if (!p)
		return -EIO;
	r->at = p;
	r->time_ms += gone_ms;
	e->time_ms = r->time_ms;
	e->slot = head >> FLAG_BITS;
	e->is_new = head & IS_NEW;
	e->is_free = head & IS_FREE;
	return 1;
}

/* Append the file of @from to that of @to. 0 or -errno. */
static int copy_file(struct tape *to, const struct tape *from)
{
	while (to->len < from->len) {
		u64 left = from->len - to->len;
		ssize_t n =
			pread(from->fd, to->bytes, left < WRITE_BYTES ? left : WRITE_BYTES, (off_t)to->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		to->nr = (u32)n;
		n = write_file(to);
		if (n)
			return (int)n;
	}
	return 0;
}

static int copy(struct tape *to, const struct tape *from)
{
	int err = from->err ? from->err : copy_file(to, from);

	if (!err && from->slots.list)
		err = slots_begin(&to->slots, from->slots.nr_by_row);
	if (err)
		return err;
	if (from->slots.list)
		memcpy(to->slots.list, from->slots.list, nr_slots(&from->slots) * sizeof(*from->slots.list));
	to->slots.nr_new = from->slots.nr_new;
	memcpy(to->bytes, from->bytes, from->nr);
	to->nr = from->nr;
	to->time_ms = from->time_ms;
	return 0;
}

int tape_copy(struct tape **out, struct tape *t)
{
	int err = tape_new(out);

	if (!err)
		(*out)->err = copy(*out, t);
	return err;
}
