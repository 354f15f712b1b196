/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The notes of a core file: threads with their registers, mapped files, the auxiliary vector, the name. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/regs.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/snapshot_core_file.h"
#include "user/scan/snapshot_make.h"

#ifndef NT_386_TLS
#define NT_386_TLS 0x200
#endif
#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif
#ifndef NT_ARM_TLS
#define NT_ARM_TLS 0x401
#endif

enum {
	MAX_NOTES_BYTES = 256 << 20,
	NONE = -1,
	FP_MAX = REGS_MAX_BYTES - REGS_VECTOR,
};

/* Where NT_PRSTATUS has the PID and the registers; which of them are special. */
static const struct layout {
	u16 machine;
	u8 w;
	u16 pid, regs; /* offsets, bytes */
	s16 nr, sp, pc, fp, tp;
} layouts[] = {
	{ EM_X86_64, 8, 32, 112, 27, 19, 16, 4, 21 },	  { EM_386, 4, 24, 72, 17, 15, 12, 5, NONE },
	{ EM_AARCH64, 8, 32, 112, 34, 31, 32, 29, NONE }, { EM_ARM, 4, 24, 72, 18, 13, 15, 11, NONE },
	{ EM_RISCV, 8, 32, 112, 32, 2, 0, 8, 4 },	  { EM_PPC, 4, 24, 72, 48, 1, 32, NONE, 2 },
	{ EM_PPC64, 8, 32, 112, 48, 1, 32, NONE, 13 },
};

static const struct layout *layout_of(const struct core_file *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].machine == c->machine && layouts[i].w == c->w)
			return &layouts[i];
	return NULL;
}

/* Add the words of @len bytes of registers; @where: of the first one, for arch_reg_name(). */
static int add_words(struct core_file *c, const u8 *p, u64 len, u32 where)
{
	int err = 0;

	for (u64 at = 0; at + c->w <= len && !err; at += c->w) {
		const struct snapshot_word word = { .value = core_value(c, p + at, c->w),
						    .owner = (u32)c->snap->nr_threads - 1,
						    .where = where + (u32)at };

		if (word.value)
			err = snapshot_add_word(c->snap, &word);
	}
	return err;
}

static u64 snapshot_core_notes_reg(const struct core_file *c, const u8 *regs, s16 i)
{
	return i == NONE ? 0 : core_value(c, regs + (size_t)i * c->w, c->w);
}

static int take_status(struct core_file *c, const u8 *p, u64 len)
{
	const struct layout *l = layout_of(c);
	const u8 *regs = p + (l ? l->regs : 0);
	struct snapshot *s = c->snap;
	int err;

	if (!l || len < l->regs + (u64)l->nr * l->w) {
		c->facts->has_registers = false;
		return 0;
	}
	err = array_reserve(s->threads, c->max_threads, s->nr_threads + 1);
	if (err)
		return err;
	s->threads[s->nr_threads++] =
		(struct snapshot_thread){ .tid = (pid_t)core_value(c, p + l->pid, 4),
					  .sp = snapshot_core_notes_reg(c, regs, l->sp),
					  .tp = snapshot_core_notes_reg(c, regs, l->tp),
					  .pc = snapshot_core_notes_reg(c, regs, l->pc),
					  .fp = snapshot_core_notes_reg(c, regs, l->fp) };
	if (s->nr_threads == 1)
		s->pid = s->mem_tid = s->threads[0].tid;
	return add_words(c, regs, (u64)l->nr * l->w, 0);
}

static int take_vector(struct core_file *c, const u8 *p, u64 len)
{
	return c->snap->nr_threads ? add_words(c, p, len < FP_MAX ? len : FP_MAX, REGS_VECTOR) : 0;
}

static int take_arm_tls(struct core_file *c, const u8 *p, u64 len)
{
	if (c->snap->nr_threads && len >= c->w)
		c->snap->threads[c->snap->nr_threads - 1].tp = core_value(c, p, c->w);
	return 0;
}

/* Descriptors of 16 bytes: number, base, limit, flags. */
static int take_386_tls(struct core_file *c, const u8 *p, u64 len)
{
	for (u64 at = 0; at + 16 <= len && c->snap->nr_threads; at += 16) {
		u64 base = core_value(c, p + at + 4, 4);

		if (!base)
			continue;
		c->snap->threads[c->snap->nr_threads - 1].tp = base;
		break;
	}
	return 0;
}

static int snapshot_core_notes_take_process(struct core_file *c, const u8 *p, u64 len)
{
	size_t pid = c->w == 8 ? 24 : 12, name = c->w == 8 ? 40 : 28;

	if (len < name + 16)
		return 0;
	c->snap->pid = c->snap->mem_tid = (pid_t)core_value(c, p + pid, 4);
	memcpy(c->facts->comm, p + name, 16);
	return 0;
}

static int take_auxv(struct core_file *c, const u8 *p, u64 len)
{
	for (u64 at = 0; at + 2U * c->w <= len; at += 2U * c->w)
		if (core_value(c, p + at, c->w) == AT_RANDOM)
			c->stack = core_value(c, p + at + c->w, c->w);
	return 0;
}

/* Name the mappings within [@start, @end) of a file. */
static int name_maps(struct core_file *c, taddr_t start, taddr_t end, u64 offset, const char *name)
{
	struct snapshot *s = c->snap;

	for (size_t i = array_search(n, 0, s->nr_maps, s->maps[n].end <= start); i < s->nr_maps; i++) {
		struct snapshot_map *map = &s->maps[i];

		if (map->start >= end)
			break;
		free(map->path);
		map->path = strdup(name);
		if (!map->path)
			return -ENOMEM;
		map->ino = 1;
		map->file_offset = offset + (map->start - start);
	}
	return 0;
}

/* A number of files, the unit of their offsets, three words for each, then their names. */
static int take_files(struct core_file *c, const u8 *p, u64 len)
{
	u64 w = c->w, nr = len >= 2 * w ? core_value(c, p, c->w) : 0,
	    unit = nr ? core_value(c, p + w, c->w) : 0;
	const u8 *names, *end = p + len;

	if (nr > len / (3 * w) || (nr + 1) * 3 * w > len + w)
		return -EINVAL;
	names = p + 2 * w + nr * 3 * w;
	for (u64 i = 0; i < nr; i++) {
		const u8 *entry = p + 2 * w + i * 3 * w;
		const u8 *zero = names < end ? memchr(names, 0, (size_t)(end - names)) : NULL;
		int err;

		if (!zero)
			return -EINVAL;
		err = name_maps(c, core_value(c, entry, c->w), core_value(c, entry + w, c->w),
				core_value(c, entry + 2 * w, c->w) * unit, (const char *)names);
		if (err)
			return err;
		names = zero + 1;
	}
	return 0;
}

static const struct taker {
	u32 type;
	int (*take)(struct core_file *c, const u8 *p, u64 len);
} takers[] = {
	{ NT_PRSTATUS, take_status },	{ NT_FPREGSET, take_vector },
	{ NT_X86_XSTATE, take_vector }, { NT_386_TLS, take_386_tls },
	{ NT_ARM_TLS, take_arm_tls },	{ NT_PRPSINFO, snapshot_core_notes_take_process },
	{ NT_AUXV, take_auxv },		{ NT_FILE, take_files },
};

static int snapshot_core_notes_take_note(struct core_file *c, u32 type, const u8 *p, u64 len)
{
	for (size_t i = 0; i < ARRAY_SIZE(takers); i++)
		if (takers[i].type == type)
			return takers[i].take(c, p, len);
	return 0;
}

int core_take_notes(struct core_file *c, u64 offset, u64 len)
{
	auto_free u8 *notes = NULL;
	int err = 0;

	if (len > MAX_NOTES_BYTES)
		return -EINVAL;
	notes = malloc(len + 1);
	if (!notes)
		return -ENOMEM;
	err = core_read_at(c, offset, notes, len);
	for (u64 at = 0; at + 12 <= len && !err;) {
		u64 name = (core_value(c, notes + at, 4) + 3) & ~3ULL,
		    size = core_value(c, notes + at + 4, 4);
		u32 type = (u32)core_value(c, notes + at + 8, 4);
		u64 body = at + 12 + name;

		if (body > len || size > len - body)
			return -EINVAL;
		err = snapshot_core_notes_take_note(c, type, notes + body, size);
		at = body + ((size + 3) & ~3ULL);
	}
	return err;
}
