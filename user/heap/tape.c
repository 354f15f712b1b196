/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks that came and went, as varints in a temporary file. */
#include "user/heap/tape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <unistd.h>

#include "user/lib/varint.h"

enum { COPY_CHUNK = 1 << 16 };
enum { IS_FREE = 1, HAS_TIME = 2, FLAG_BITS = 2 };

struct tape {
	FILE *file; /* owned; NULL = no entry yet */
	u64 last_ms, read_ms;
	bool is_read; /* the file is not at its end */
	int err;      /* of the first failure */
};

int tape_new(struct tape **out)
{
	struct tape *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*out = t;
	return 0;
}

void tape_free(struct tape *t)
{
	if (!t)
		return;
	if (t->file)
		fclose(t->file);
	free(t);
}

/* A file without a name. O_TMPFILE is not known to every file system; tmpfile() knows no TMPDIR. */
static FILE *open_unnamed(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir == '/' ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? tmpfile() : fdopen(fd, "w+");

	if (!file) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	__fsetlocking(file, FSETLOCKING_BYCALLER);
	return file;
}

/* Make the file ready to be appended to. */
static int begin_writing(struct tape *t)
{
	if (t->err)
		return t->err;
	if (!t->file)
		t->file = open_unnamed();
	if (!t->file || (t->is_read && fseeko(t->file, 0, SEEK_END)))
		t->err = errno ? -errno : -EIO;
	t->is_read = false;
	return t->err;
}

void tape_put(struct tape *t, const struct tape_entry *e)
{
	u64 gone_ms = e->time_ms > t->last_ms ? e->time_ms - t->last_ms : 0;
	u64 flags = (e->is_free ? IS_FREE : 0) | (gone_ms ? HAS_TIME : 0);
	u8 bytes[3 * VARINT_MAX];
	u8 *end;

	if ((!t->file || t->is_read || t->err) && begin_writing(t))
		return;
	end = varint_put(bytes, (u64)e->row << FLAG_BITS | flags);
	end = varint_put(end, e->bytes);
	if (gone_ms)
		end = varint_put(end, gone_ms);
	t->last_ms += gone_ms;
	if (fwrite(bytes, 1, (size_t)(end - bytes), t->file) != (size_t)(end - bytes))
		t->err = errno ? -errno : -EIO;
}

void tape_reset(struct tape *t)
{
	if (t->file)
		fclose(t->file);
	*t = (struct tape){ 0 };
}

int tape_rewind(struct tape *t)
{
	if (t->err || !t->file)
		return t->err;
	if (fflush(t->file) || fseeko(t->file, 0, SEEK_SET))
		t->err = errno ? -errno : -EIO;
	t->is_read = true;
	t->read_ms = 0;
	return t->err;
}

/* 1, 0 at the end of the file, or -EIO. */
static int get_varint(FILE *file, u64 *value)
{
	u64 v = 0;

	for (u32 shift = 0; shift < 64; shift += 7) {
		int c = getc_unlocked(file);

		if (c == EOF)
			return shift || ferror(file) ? -EIO : 0;
		v |= (u64)(c & 0x7f) << shift;
		if (c < 0x80) {
			*value = v;
			return 1;
		}
	}
	return -EIO;
}

int tape_next(struct tape *t, struct tape_entry *e)
{
	u64 head, gone_ms = 0;
	int got = t->file ? get_varint(t->file, &head) : 0;

	if (got != 1)
		return got;
	if (get_varint(t->file, &e->bytes) != 1 || (head & HAS_TIME && get_varint(t->file, &gone_ms) != 1))
		return -EIO;
	t->read_ms += gone_ms;
	e->row = (u32)(head >> FLAG_BITS);
	e->is_free = head & IS_FREE;
	e->time_ms = t->read_ms;
	return 1;
}

static int copy_bytes(struct tape *to, struct tape *from)
{
	char *bytes = malloc(COPY_CHUNK);
	size_t len;
	int err = bytes ? tape_rewind(from) : -ENOMEM;

	if (!err)
		err = begin_writing(to);
	while (!err && (len = fread(bytes, 1, COPY_CHUNK, from->file)) > 0)
		if (fwrite(bytes, 1, len, to->file) != len)
			err = errno ? -errno : -EIO;
	if (!err && ferror(from->file))
		err = -EIO;
	free(bytes);
	return err;
}

int tape_copy(struct tape **out, struct tape *t)
{
	int err = tape_new(out);

	if (err)
		return err;
	(*out)->err = t->file ? copy_bytes(*out, t) : t->err;
	(*out)->last_ms = t->last_ms;
	return 0;
}
