/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A snapshot whose memory is a core file. Contents of mapped files that it left out come from these files. */
#include "user/scan/snapshot_core.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "arch/regs.h"
#include "user/lib/cleanup.h"
#include "user/lib/file_at.h"
#include "user/scan/snapshot_core_file.h"
#include "user/scan/snapshot_make.h"

enum {
	MAX_SEGMENTS = 4 << 20,
	MANY = 0xffff, /* PN_XNUM: the number is in the first section header */
	HEAD = 4096,   /* bytes of a mapped file that are compared */
	NO_HEAD = UINT32_MAX,
};

/* One PT_LOAD; the mappings of the snapshot are in the same order. */
struct core_part {
	u64 offset; /* in the core */
	u64 size;   /* bytes that are in the core */
	u32 head;   /* index of the part with the first bytes of the same file, NO_HEAD = there is none */
	/* With a head of its own: */
	int file; /* owned; the mapped file, -1 = not kept open */
	bool was_refused;
};

struct core_snapshot {
	struct snapshot base;
	struct core_file file;
	struct core_part *parts; /* owned */
	char *sysroot;		 /* owned; NULL = none */
	u64 nr_open, max_open;	 /* files that are kept open */
};

u64 core_value(const struct core_file *c, const u8 *p, u32 len)
{
	u64 value = 0;

	for (u32 i = 0; i < len; i++)
		value = value << 8 | p[c->is_big ? i : len - 1 - i];
	return value;
}

int core_read_at(const struct core_file *c, u64 offset, void *buf, size_t len)
{
	ssize_t n = file_read_at(c->fd, buf, len, offset);

	return n < 0 ? (int)n : n == (ssize_t)len ? 0 : -EIO;
}

/* ---- memory ---- */

/* Does the file @fd begin with @head? These bytes have the headers, and mostly the build ID. */
static bool is_same_file(int fd, const u8 *head, size_t len)
{
	u8 bytes[HEAD];

	return file_read_at(fd, bytes, len, 0) == (ssize_t)len && memcmp(bytes, head, len) == 0;
}

/* Find the heads of all parts: the first bytes of a file are mapped before its others. */
static void find_heads(struct core_snapshot *cs)
{
	const struct snapshot_map *maps = cs->base.maps, *last = NULL;
	u32 head = NO_HEAD;

	for (u32 i = 0; i < cs->base.nr_maps; i++) {
		if (!maps[i].ino)
			continue;
		if (last && strcmp(last->path, maps[i].path) != 0)
			head = NO_HEAD;
		if (!maps[i].file_offset)
			head = i;
		cs->parts[i].head = head;
		last = &maps[i];
	}
}

static int open_below(const char *root, const char *path)
{
	auto_free char *whole = NULL;

	return asprintf(&whole, "%s%s", root, path) < 0 ? -1 : open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Open the file of mapping @head, which has its first bytes, if it is the one that was mapped. */
static int snapshot_core_open_file(const struct core_snapshot *cs, u32 head)
{
	const struct snapshot_map *m = &cs->base.maps[head];
	const struct core_part *part = &cs->parts[head];
	auto_close int fd = -1;
	struct stat st;
	u8 bytes[HEAD];
	size_t len = part->size < HEAD ? part->size : HEAD;

	if (m->path[0] != '/')
		return -1;
	fd = cs->sysroot ? open_below(cs->sysroot, m->path) : -1;
	if (fd < 0)
		fd = open_below("", m->path);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -1;
	/* Without these bytes nothing proves that the file is the same. */
	if (!len || core_read_at(&cs->file, part->offset, bytes, len) || !is_same_file(fd, bytes, len))
		return -1;
	return take_fd(fd);
}

/* Read from the file of a mapping what the core left out. Past the end of the file are zeros. */
static int snapshot_core_read_file(struct core_snapshot *cs, size_t map, taddr_t addr, u8 *buf, size_t len)
{
	const struct snapshot_map *m = &cs->base.maps[map];
	u32 head = cs->parts[map].head;
	struct core_part *file = head == NO_HEAD ? NULL : &cs->parts[head];
	auto_close int once = -1;
	ssize_t n;

	if (!m->ino || m->is_shared || !file || file->was_refused)
		return -ENODATA;
	if (file->file < 0) {
		once = snapshot_core_open_file(cs, head);
		file->was_refused = once < 0;
		if (once < 0)
			return -ENODATA;
	}
	n = file_read_at(once < 0 ? file->file : once, buf, len, m->file_offset + (addr - m->start));
	if (n < 0)
		return (int)n;
	memset(buf + n, 0, len - (size_t)n);
	/* Beyond the limit a file is opened for each read. */
	if (once >= 0 && cs->nr_open < cs->max_open) {
		file->file = take_fd(once);
		cs->nr_open++;
	}
	return 0;
}

static int core_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	struct core_snapshot *cs = (struct core_snapshot *)s;
	u8 *to = buf;

	while (len) {
		const struct snapshot_map *m = snapshot_map_find(s, addr);
		const struct core_part *part = m ? &cs->parts[m - s->maps] : NULL;
		u64 at = m ? addr - m->start : 0, room;
		int err;

		if (!m)
			return -ENODATA;
		room = at < part->size ? part->size - at : m->end - addr;
		room = room < len ? room : len;
		err = at < part->size ? core_read_at(&cs->file, part->offset + at, to, room)
				      : snapshot_core_read_file(cs, (size_t)(m - s->maps), addr, to, room);
		if (err)
			return err;
		addr += room;
		to += room;
		len -= room;
	}
	return 0;
}

/* Is the mapping one that may hold pointers to blocks? Relocated data is read only now. */
static bool snapshot_core_is_wanted(const struct snapshot_map *m)
{
	return m->is_writable || (m->ino && m->is_readable && !m->is_executable);
}

static int show_map(struct core_snapshot *cs, u32 map, u8 *buffer, const struct snapshot_visitor *visitor)
{
	const struct snapshot_map *m = &cs->base.maps[map];
	u64 size = cs->parts[map].size;
	int err = 0;

	for (u64 at = 0; at < size && !err; at += SNAPSHOT_MAX_CHUNK) {
		struct snapshot_chunk chunk = { .addr = m->start + at, .data = buffer, .map = map };

		chunk.len = size - at < SNAPSHOT_MAX_CHUNK ? size - at : SNAPSHOT_MAX_CHUNK;
		err = core_read_at(&cs->file, cs->parts[map].offset + at, buffer, chunk.len);
		if (!err)
			err = visitor->look(visitor->ctx, 0, &chunk);
		if (!err)
			err = visitor->done(visitor->ctx, 0);
		cs->base.read_bytes += chunk.len;
	}
	return err;
}

static int core_read(struct snapshot *s, const struct snapshot_visitor *visitor)
{
	struct core_snapshot *cs = (struct core_snapshot *)s;
	auto_free u8 *buffer = malloc(SNAPSHOT_MAX_CHUNK);
	int err = buffer ? 0 : -ENOMEM;

	for (u32 i = 0; i < s->nr_maps && !err; i++)
		if (snapshot_core_is_wanted(&s->maps[i]))
			err = show_map(cs, i, buffer, visitor);
	return err;
}

static void core_resume(struct snapshot *s)
{
	(void)s;
}

static void core_free(struct snapshot *s)
{
	struct core_snapshot *cs = (struct core_snapshot *)s;

	for (size_t i = 0; cs->parts && i < s->nr_maps; i++)
		if (cs->parts[i].file >= 0)
			close(cs->parts[i].file);
	snapshot_fini(s);
	free(cs->parts);
	free(cs->sysroot);
	free(cs);
}

static const struct snapshot_ops core_ops = {
	.name = "core",
	.read = core_read,
	.peek = core_peek,
	.resume = core_resume,
	.free = core_free,
};

/* ---- headers ---- */

/* Places in the headers, for words of 4 and 8 bytes. */
struct header_layout {
	u8 phoff, shoff, phentsize, phnum, info, segment;
	u8 flags, offset, vaddr, filesz, memsz;
};

static const struct header_layout header_32 = { 28, 32, 42, 44, 28, 32, 24, 4, 8, 16, 20 };
static const struct header_layout header_64 = { 32, 40, 54, 56, 44, 56, 4, 8, 16, 32, 40 };

static int snapshot_core_add_map(struct core_snapshot *cs, const struct header_layout *l, const u8 *p,
				 u64 *last)
{
	const struct core_file *c = &cs->file;
	u32 flags = (u32)core_value(c, p + l->flags, 4);
	u64 start = core_value(c, p + l->vaddr, c->w), len = core_value(c, p + l->memsz, c->w);
	u64 offset = core_value(c, p + l->offset, c->w), size = core_value(c, p + l->filesz, c->w);
	struct snapshot_map *map = &cs->base.maps[cs->base.nr_maps];
	struct core_part *part = &cs->parts[cs->base.nr_maps];

	if (!len)
		return 0;
	if (start < *last || start + len < start || size > len)
		return -EINVAL;
	*last = start + len;
	*part = (struct core_part){ .offset = offset, .size = size, .head = NO_HEAD, .file = -1 };
	if (offset >= c->size || size > c->size - offset) {
		part->size = offset >= c->size ? 0 : c->size - offset;
		c->facts->truncated_bytes += size - part->size;
	}
	*map = (struct snapshot_map){ .start = start,
				      .end = start + len,
				      .path = strdup(""),
				      .is_readable = flags & PF_R,
				      .is_writable = flags & PF_W,
				      .is_executable = flags & PF_X };
	cs->base.nr_maps++;
	return map->path ? 0 : -ENOMEM;
}

/* gdb writes the notes last: a file that is cut has none. */
static int take_notes(struct core_file *c, u64 offset, u64 len)
{
	int err = core_take_notes(c, offset, len);

	if (err != -EIO)
		return err;
	c->facts->truncated_bytes += len;
	return 0;
}

static int snapshot_core_read_headers(struct core_snapshot *cs)
{
	struct core_file *c = &cs->file;
	const struct header_layout *l = c->w == 8 ? &header_64 : &header_32;
	auto_free u8 *headers = NULL;
	u64 nr, at, last = 0;
	u8 head[64] = { 0 }, section[64];
	int err = core_read_at(c, 0, head, c->w == 8 ? 64 : 52);

	if (err)
		return err;
	nr = core_value(c, head + l->phnum, 2);
	at = core_value(c, head + l->phoff, c->w);
	if (nr == MANY && !core_read_at(c, core_value(c, head + l->shoff, c->w), section, l->info + 4U))
		nr = core_value(c, section + l->info, 4);
	if (core_value(c, head + l->phentsize, 2) != l->segment || !nr || nr > MAX_SEGMENTS)
		return -EINVAL;
	/* Only gdb describes the parts by sections, too. The kernel has one at most, heaptap none. */
	c->facts->may_have_gaps = core_value(c, head + l->phnum + 4, 2) > 1;
	headers = malloc(nr * l->segment);
	cs->base.maps = calloc(nr, sizeof(*cs->base.maps));
	cs->parts = calloc(nr, sizeof(*cs->parts));
	if (!headers || !cs->base.maps || !cs->parts)
		return -ENOMEM;
	err = core_read_at(c, at, headers, nr * l->segment);
	for (u64 i = 0; i < nr && !err; i++)
		if (core_value(c, headers + i * l->segment, 4) == PT_LOAD)
			err = snapshot_core_add_map(cs, l, headers + i * l->segment, &last);
	for (u64 i = 0; i < nr && !err; i++) {
		const u8 *p = headers + i * l->segment;

		if (core_value(c, p, 4) == PT_NOTE)
			err = take_notes(c, core_value(c, p + l->offset, c->w),
					 core_value(c, p + l->filesz, c->w));
	}
	return err;
}

static int read_ident(struct core_file *c)
{
	u8 head[20];
	struct stat st;

	if (fstat(c->fd, &st))
		return -errno;
	c->size = (u64)st.st_size;
	if (core_read_at(c, 0, head, sizeof(head)) || memcmp(head, ELFMAG, SELFMAG) != 0 ||
	    (head[EI_CLASS] != ELFCLASS32 && head[EI_CLASS] != ELFCLASS64))
		return -ENOEXEC;
	c->w = head[EI_CLASS] == ELFCLASS64 ? 8 : 4;
	c->is_big = head[EI_DATA] == ELFDATA2MSB;
	c->machine = (u16)core_value(c, head + 18, 2);
	return core_value(c, head + 16, 2) == ET_CORE ? 0 : -ENOEXEC;
}

/* Memory of the process that is nowhere: the leak verdicts must know of it. */
static void count_missing(struct core_snapshot *cs)
{
	struct core_facts *facts = cs->file.facts;

	for (size_t i = 0; i < cs->base.nr_maps; i++) {
		const struct snapshot_map *m = &cs->base.maps[i];
		u64 missing = m->end - m->start - cs->parts[i].size;
		u8 byte;

		if (!missing || !m->is_writable)
			continue;
		/* Data of a file that was never written is as in the file. */
		if (m->ino && !core_peek(&cs->base, m->start + cs->parts[i].size, &byte, 1))
			continue;
		facts->nr_files_missing += m->ino != 0;
		facts->missing_bytes += missing;
	}
	cs->base.skipped_bytes[SKIP_FAULT] = facts->missing_bytes;
}

/* The main thread's stack, which /proc would name. */
static int name_stack(struct core_snapshot *cs)
{
	const struct snapshot_map *found = snapshot_map_find(&cs->base, cs->file.stack);
	struct snapshot_map *map = found ? &cs->base.maps[found - cs->base.maps] : NULL;

	if (!map || map->ino || !map->is_writable)
		return 0;
	free(map->path);
	map->path = strdup("[stack]");
	return map->path ? 0 : -ENOMEM;
}

int snapshot_core_new(struct snapshot **out, int fd, const char *sysroot, struct core_facts *facts)
{
	struct core_snapshot *cs = calloc(1, sizeof(*cs));
	struct rlimit limit;
	int err;

	if (!cs)
		return -ENOMEM;
	*facts = (struct core_facts){ .has_registers = true };
	cs->base.ops = &core_ops;
	cs->file = (struct core_file){ .fd = fd, .snap = &cs->base, .facts = facts };
	cs->max_open = getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur / 2;
	cs->sysroot = sysroot ? strdup(sysroot) : NULL;
	err = sysroot && !cs->sysroot ? -ENOMEM : read_ident(&cs->file);
	if (!err) {
		cs->base.word_size = cs->file.w;
		cs->base.is_big_endian = cs->file.is_big;
		cs->base.red_zone = arch_red_zone(cs->file.w);
		err = snapshot_core_read_headers(cs);
	}
	if (!err) {
		find_heads(cs);
		err = name_stack(cs);
	}
	if (err) {
		core_free(&cs->base);
		return err;
	}
	count_missing(cs);
	facts->has_registers &= cs->base.nr_threads > 0;
	cs->base.nr_unstopped = facts->has_registers ? 0 : 1;
	*out = &cs->base;
	return 0;
}
