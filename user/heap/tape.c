/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that came and went, in a temporary file, as the lines that the file of heaptrack has: so they need only be
 * copied there. Between them are lines that begin with a mark: "!k 1f 20" is a new kind, of row 31 and 32 bytes, and
 * "!t a" says that 10 ms went by. Numbers are hexadecimal.
 *
 * There may be many million events, so nothing slow is done for one. A table knows the lines of most kinds. Where it is
 * needed is not in the processor's cache: so events wait until there are some, and their places are fetched together.
 */
#include "user/heap/tape.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/digits.h"
#include "user/lib/file_at.h"
#include "user/lib/hash_index.h"
#include "user/lib/unnamed_file.h"

enum {
	WRITE_BYTES = 1 << 15,
	READ_BYTES = 1 << 16,
	LINE_BYTES = 2 + 2 * DIGITS_MAX + 4, /* the longest line */
	NR_WAITING = 64,
	ENTRY_BYTES = 3 * LINE_BYTES /* an event, its kind and its time */
};
_Static_assert(WRITE_BYTES > 2 * NR_WAITING * ENTRY_BYTES, "there is room for all events that wait");
enum { MARK = '!', NR_WAYS = 4, MIN_BITS = 6, MAX_BITS = 16 };
enum { ROW_BITS = 26, MAX_KINDS = 1 << 28 }; /* seven digits */

/* No kind has all bits. */
#define NO_KEY UINT64_MAX

/* A kind that was there lately. */
struct tape_kind {
	u64 key;      /* its bytes and row */
	char text[8]; /* its number and a line feed; the rest is 0 */
};

/* By the hash of the key: one of NR_WAYS kinds, which are side by side. */
struct tape_kinds {
	struct tape_kind *list; /* owned; NULL = none yet; NR_WAYS << bits */
	u32 bits;
	u32 nr;	    /* places that were filled since it has this size */
	u32 number; /* of the next kind */
};

/* One that reads a tape. */
struct tape_reader {
	char *bytes;	/* owned; READ_BYTES, a part of the tape */
	const char *at; /* the next line */
	char *end;	/* of the part */
	u64 offset;	/* of that end in the tape */
	u64 time_ms;
};

struct tape {
	int fd;	     /* owned; -1 = all lines are in @bytes */
	u64 len;     /* bytes in the file */
	u32 nr;	     /* bytes in @bytes, which come behind those */
	int err;     /* of the first failure */
	u64 time_ms; /* of the last line */
	struct tape_kinds kinds;
	struct tape_reader reader;
	u32 nr_waiting;
	struct tape_entry waiting[NR_WAITING];
	char bytes[WRITE_BYTES];
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
	free(t->kinds.list);
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

static size_t nr_places(u32 bits)
{
	return (size_t)NR_WAYS << bits;
}

/* 0 or -ENOMEM. */
static int kinds_begin(struct tape_kinds *k, u32 bits)
{
	k->list = aligned_alloc(NR_WAYS * sizeof(*k->list), nr_places(bits) * sizeof(*k->list));
	if (!k->list)
		return -ENOMEM;
	for (size_t i = 0; i < nr_places(bits); i++)
		k->list[i].key = NO_KEY;
	k->bits = bits;
	k->nr = 0;
	return 0;
}

static u32 kinds_home(const struct tape_kinds *k, u64 key)
{
	return (u32)(hash_u64(key) >> (64 - k->bits)) * NR_WAYS;
}

/* Double the table. The kinds of one home go to two. 0 or -ENOMEM. */
static int kinds_grow(struct tape_kinds *k)
{
	struct tape_kinds old = *k;
	int err = kinds_begin(k, old.bits + 1);

	if (err) {
		*k = old;
		return err;
	}
	for (size_t i = 0; i < nr_places(old.bits); i++) {
		struct tape_kind *home;

		if (old.list[i].key == NO_KEY)
			continue;
		home = &k->list[kinds_home(k, old.list[i].key)];
		while (home->key != NO_KEY)
			home++;
		*home = old.list[i];
		k->nr++;
	}
	free(old.list);
	return 0;
}

/* Have a table with room for the events that wait. Once it is large enough, new kinds replace others. 0 or -ENOMEM. */
static int kinds_reserve(struct tape_kinds *k)
{
	if (!k->list)
		return kinds_begin(k, MIN_BITS);
	if (k->bits == MAX_BITS || k->nr + NR_WAITING < nr_places(k->bits) / 2)
		return 0;
	return kinds_grow(k);
}

static int tape_write_file(struct tape *t)
{
	int err;

	if (t->fd < 0) {
		int fd = unnamed_file("/tmp");

		if (fd < 0)
			return fd;
		t->fd = fd;
	}
	err = file_write_at(t->fd, t->bytes, t->nr, t->len);
	if (err)
		return err;
	t->len += t->nr;
	t->nr = 0;
	return 0;
}

static u64 key_of(const struct tape_entry *e)
{
	/* Sizes that have no room are taken as a new kind each time. */
	return e->bytes >> (63 - ROW_BITS) ? NO_KEY : e->bytes << ROW_BITS | e->row;
}

static void tape_put_mark(struct tape *t, char what)
{
	t->bytes[t->nr++] = MARK;
	t->bytes[t->nr++] = what;
}

static void tape_put_number(struct tape *t, u64 number)
{
	t->bytes[t->nr++] = ' ';
	t->nr += (u32)digits_bare_hex(t->bytes + t->nr, number);
}

/* Write the line of the new kind of @e, and fill @kind. */
static void __attribute__((noinline))
tape_put_kind(struct tape *t, struct tape_kind *kind, const struct tape_entry *e)
{
	size_t len;

	if (t->kinds.number == MAX_KINDS) {
		t->err = -EFBIG;
		return;
	}
	tape_put_mark(t, 'k');
	tape_put_number(t, e->row);
	tape_put_number(t, e->bytes);
	t->bytes[t->nr++] = '\n';
	*kind = (struct tape_kind){ .key = key_of(e) };
	len = digits_bare_hex(kind->text, t->kinds.number++);
	kind->text[len] = '\n';
}

static void __attribute__((noinline)) tape_put_time(struct tape *t, u64 time_ms)
{
	tape_put_mark(t, 't');
	tape_put_number(t, time_ms - t->time_ms);
	t->bytes[t->nr++] = '\n';
	t->time_ms = time_ms;
}

/* The place of @key, whose home is @home; or one to fill with it. */
static struct tape_kind *find_kind(struct tape_kinds *k, u32 home, u64 key)
{
	struct tape_kind *kind = &k->list[home];
	u32 way = (kind[1].key == key) + 2 * (kind[2].key == key) + 3 * (kind[3].key == key);

	_Static_assert(NR_WAYS == 4, "all ways are looked at");
	if (kind[way].key == key)
		return &kind[way];
	for (way = 0; way < NR_WAYS; way++)
		if (kind[way].key == NO_KEY) {
			k->nr++;
			return &kind[way];
		}
	/* Frequent kinds come early: they stay, and have short numbers. */
	return &kind[NR_WAYS - 1];
}

static void tape_put_event(struct tape *t, const struct tape_entry *e, u32 home)
{
	struct tape_kind big = { .key = NO_KEY }, *kind = &big;
	u64 key = key_of(e), text;

	if (e->time_ms > t->time_ms)
		tape_put_time(t, e->time_ms);
	if (key != NO_KEY)
		kind = find_kind(&t->kinds, home, key);
	if (kind->key != key || key == NO_KEY)
		tape_put_kind(t, kind, e);
	memcpy(t->bytes + t->nr, e->is_free ? "- " : "+ ", 2);
	memcpy(t->bytes + t->nr + 2, kind->text, sizeof(kind->text));
	memcpy(&text, kind->text, sizeof(text));
	t->nr += 2 + (71 - (u32)__builtin_clzll(le64toh(text))) / 8;
}

/* Write the lines of the events that wait. */
static void __attribute__((noinline)) put_waiting(struct tape *t)
{
	u32 homes[NR_WAITING], nr;

	if (!t->err)
		t->err = kinds_reserve(&t->kinds);
	if (!t->err && t->nr > WRITE_BYTES / 2)
		t->err = tape_write_file(t);
	nr = t->err ? 0 : t->nr_waiting;
	for (u32 i = 0; i < nr; i++) {
		homes[i] = kinds_home(&t->kinds, key_of(&t->waiting[i]));
		__builtin_prefetch(&t->kinds.list[homes[i]]);
	}
	for (u32 i = 0; i < nr && !t->err; i++)
		tape_put_event(t, &t->waiting[i], homes[i]);
	t->nr_waiting = 0;
}

void tape_put(struct tape *t, const struct tape_entry *e)
{
	t->waiting[t->nr_waiting++] = *e;
	if (t->nr_waiting == NR_WAITING)
		put_waiting(t);
}

int tape_rewind(struct tape *t)
{
	struct tape_reader *r = &t->reader;

	put_waiting(t);
	if (t->err)
		return t->err;
	if (!r->bytes)
		r->bytes = malloc(READ_BYTES);
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

/* Read a number of the line that ends at @end, and what is before it. NULL: there is none. */
static const char *tape_get_number(const char *at, const char *end, u64 *number)
{
	return at && at < end && *at == ' ' ? digits_get_bare_hex(at + 1, end, number) : NULL;
}

/* Read a line with a mark. 1 or -EIO. */
static int read_mark(struct tape_reader *r, struct tape_part *p)
{
	const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at)), *at;
	bool is_time = r->at[1] == 't';
	u64 first, second = 0;

	if (!end || end < r->at + 2)
		return -EIO;
	at = tape_get_number(r->at + 2, end, &first);
	if (!is_time)
		at = tape_get_number(at, end, &second);
	if (at != end)
		return -EIO;
	r->at = end + 1;
	if (is_time)
		*p = (struct tape_part){ .what = TAPE_TIME, .time_ms = r->time_ms += first };
	else
		*p = (struct tape_part){ .what = TAPE_KIND, .row = (u32)first, .bytes = second };
	return 1;
}

int tape_next(struct tape *t, struct tape_part *p)
{
	struct tape_reader *r = &t->reader;
	const char *end;

	if (r->end - r->at < LINE_BYTES && read_more(t, r))
		return -EIO;
	if (r->at == r->end)
		return 0;
	if (*r->at == MARK)
		return read_mark(r, p);
	end = memchr(r->at, MARK, (size_t)(r->end - r->at));
	if (!end) {
		end = memrchr(r->at, '\n', (size_t)(r->end - r->at));
		if (!end)
			return -EIO;
		end++;
	}
	*p = (struct tape_part){ .what = TAPE_EVENTS, .lines = r->at, .len = (size_t)(end - r->at) };
	r->at = end;
	return 1;
}

/* Append the file of @from to that of @to. 0 or -errno. */
static int tape_copy_file(struct tape *to, const struct tape *from)
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
		n = tape_write_file(to);
		if (n)
			return (int)n;
	}
	return 0;
}

static int heap_tape_copy(struct tape *to, struct tape *from)
{
	int err;

	put_waiting(from);
	err = from->err ? from->err : tape_copy_file(to, from);
	if (!err && from->kinds.list)
		err = kinds_begin(&to->kinds, from->kinds.bits);
	if (err)
		return err;
	if (from->kinds.list)
		memcpy(to->kinds.list, from->kinds.list,
		       nr_places(from->kinds.bits) * sizeof(*from->kinds.list));
	to->kinds.nr = from->kinds.nr;
	to->kinds.number = from->kinds.number;
	memcpy(to->bytes, from->bytes, from->nr);
	to->nr = from->nr;
	to->time_ms = from->time_ms;
	return 0;
}

int tape_copy(struct tape **out, struct tape *t)
{
	int err = tape_new(out);

	if (!err)
		(*out)->err = heap_tape_copy(*out, t);
	return err;
}
