/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which threads use the red zone below their stack pointer? For user/scan/scan_regions.c. */
#include <errno.h>

#include "arch/insn.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/scan/code_file.h"
#include "user/scan/scan_regions.h"
#include "user/scan/snapshot.h"
#include "user/unwind/cfi_frame.h"

/*
 * Only a function that calls no other one may keep values below its stack pointer: a call would overwrite them. Old
 * pointers of earlier calls lie there, too, and would make lost blocks reachable. So the red zone of a thread is dead
 * if the function in which it is calls another one. Two kinds of calls prove nothing: one at the start of the function,
 * which a profiler has put there before the function's own code, and one to the next instruction, which only finds out
 * where it is. And no instruction of the function may name memory below the stack pointer: assembler code can do both.
 */

enum {
	MAX_THREADS = 64, /* that are looked at */
	MAX_FILES = 8,	  /* whose functions are known at the same time */
	MAX_FUNCTION = 8 << 10,
	MAX_SECTION =
		4 << 20, /* bytes of the file's frames: longer ones take too long while the process stands */
	MAX_START = 8,	 /* bytes before a profiler's call: endbr, or a nop */
};

struct leaf_finder {
	struct snapshot *snap;
	const struct snapshot_map *maps[MAX_FILES]; /* whose files were tried */
	struct code_file files[MAX_FILES];	    /* owned; without frames if it could not be opened */
	size_t nr_files;
};

/* Does the code of a function show that it has no red zone? */
static bool scan_leaf_is_caller(u16 machine, u64 start, const u8 *code, size_t len)
{
	bool has_call = false;
	struct insn insn;

	for (size_t at = 0; at < len; at += insn.length) {
		if (insn_decode(&insn, machine, start + at, code + at, len - at) || insn.is_below_sp)
			return false;
		has_call |=
			insn.kind == INSN_CALL && at > MAX_START && insn.target != start + at + insn.length;
	}
	return has_call;
}

static bool scan_leaf_is_short(const struct elf *elf)
{
	const struct elf_section *s = elf_section(elf, ".eh_frame");

	return s && s->size <= MAX_SECTION;
}

/* The functions of the file of @map, or NULL. */
static struct code_file *scan_leaf_file_of(struct leaf_finder *f, const struct snapshot_map *map)
{
	struct code_file *file;

	for (size_t i = 0; i < f->nr_files; i++)
		if (f->maps[i] == map)
			return f->files[i].frames ? &f->files[i] : NULL;
	if (f->nr_files == MAX_FILES)
		return NULL;
	f->maps[f->nr_files] = map;
	file = &f->files[f->nr_files++];
	if (code_file_open(file, f->snap, map))
		return NULL;
	if (scan_leaf_is_short(file->elf))
		return file;
	code_file_fini(file);
	return NULL;
}

static bool has_no_red_zone(struct leaf_finder *f, taddr_t pc)
{
	const struct snapshot_map *map = snapshot_map_find(f->snap, pc);
	struct code_file *file = map && map->is_executable && map->ino ? scan_leaf_file_of(f, map) : NULL;
	u8 code[MAX_FUNCTION];
	struct cfi_frame frame;
	int err;

	if (!file)
		return false;
	err = cfi_frames_find(file->frames, pc - file->bias, &frame);
	if ((err && err != -ENOTSUP) || !frame.end || frame.end - frame.start > sizeof(code) ||
	    elf_read_vaddr(file->elf, frame.start, code, frame.end - frame.start))
		return false;
	return scan_leaf_is_caller(file->elf->machine, frame.start, code, frame.end - frame.start);
}

/* Most threads wait in the same function as others. NULL: none of the first @nr threads is at @pc. */
static const struct snapshot_thread *scan_leaf_thread_at(const struct snapshot *snap, size_t nr, taddr_t pc)
{
	for (size_t i = 0; i < nr; i++)
		if (snap->threads[i].pc == pc)
			return &snap->threads[i];
	return NULL;
}

int region_find_callers(struct snapshot *snap)
{
	auto_free struct leaf_finder *f = snap->red_zone ? calloc(1, sizeof(*f)) : NULL;

	if (!f)
		return snap->red_zone ? -ENOMEM : 0;
	f->snap = snap;
	for (size_t i = 0; i < snap->nr_threads && i < MAX_THREADS; i++) {
		struct snapshot_thread *thread = &snap->threads[i];
		const struct snapshot_thread *other = scan_leaf_thread_at(snap, i, thread->pc);

		thread->has_no_red_zone = other ? other->has_no_red_zone : has_no_red_zone(f, thread->pc);
	}
	for (size_t i = 0; i < f->nr_files; i++)
		code_file_fini(&f->files[i]);
	return 0;
}
