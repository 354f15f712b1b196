/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frames of exit() and abort() at the end of a process are no roots. For user/scan/scan_regions.c. */
#include <errno.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/scan/code_file.h"
#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"
#include "user/unwind/cfi_frame.h"

/*
 * When a process ends, the innermost frames of a thread are those of exit(), _exit() or abort(). They cover the frame
 * of main() that has returned, or of calls before, and old pointers survive in their unused slots. Dead is what lies
 * below the stack pointer at the call of the outermost of these functions, as far as all frames up to it belong to the
 * C library. Exceptions are the slots in which these frames keep registers of their callers: they may hold pointers
 * that a caller uses.
 */

enum {
	MAX_FRAMES = 24,
	MAX_THREADS = 64, /* threads whose stacks are walked */
	MAX_FRAME_BYTES = 1 << 20,
	MAX_SLOTS = MAX_FRAMES * CFI_FRAME_REGISTERS,
	MAX_ENDS = 16,
};

static const char *const end_names[] = { "exit", "_exit", "_Exit", "quick_exit", "abort" };

/* The C library of the process. */
struct c_library {
	const struct snapshot_map *map; /* borrowed; its code */
	struct code_file code;
	u64 ends[MAX_ENDS]; /* ELF virtual addresses of end_names */
	size_t nr_ends;
};

/* A walk up the stack of one thread. */
struct exit_walk {
	const struct scan *s;
	taddr_t pc, sp, fp, lr;
	taddr_t slots[MAX_SLOTS]; /* with registers of callers, ascending by frame */
	size_t nr_slots;
	taddr_t end; /* stack pointer at the call of the outermost function of end_names so far; 0 = none */
	size_t nr_kept; /* slots below end */
};

static void library_fini(struct c_library *c)
{
	code_file_fini(&c->code);
}

static int take_end(void *ctx, const struct elf_symbol *sym)
{
	struct c_library *c = ctx;

	for (size_t i = 0; i < ARRAY_SIZE(end_names); i++)
		if (sym->shndx != SHN_UNDEF && c->nr_ends < MAX_ENDS && strcmp(sym->name, end_names[i]) == 0)
			c->ends[c->nr_ends++] = sym->value;
	return 0;
}

static int library_open(struct c_library *c, const struct snapshot *snap, const struct snapshot_map *map)
{
	int err;

	*c = (struct c_library){ .map = map };
	err = code_file_open(&c->code, snap, map);
	if (err)
		return err;
	err = elf_each_symbol(c->code.elf, ELF_DYNSYM, take_end, c);
	if (err)
		library_fini(c);
	return err;
}

static bool is_end(const struct c_library *c, u64 start)
{
	for (size_t i = 0; i < c->nr_ends; i++)
		if (c->ends[i] == start)
			return true;
	return false;
}

static bool scan_exit_read_word(const struct exit_walk *w, taddr_t addr, u64 *value)
{
	u8 bytes[8];

	if (addr % w->s->word_size || snapshot_peek(w->s->snap, addr, bytes, w->s->word_size) != 0)
		return false;
	*value = region_word(w->s->snap, bytes);
	return true;
}

static int scan_exit_by_addr(const void *a, const void *b)
{
	const taddr_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Go to the caller of the frame at @pc of the C library. False at the end of what is known. */
static bool scan_exit_step(struct exit_walk *w, const struct c_library *c, bool is_first)
{
	struct cfi_frame frame;
	taddr_t cfa;
	u64 ra = w->lr;

	if (w->pc - c->map->start >= c->map->end - c->map->start ||
	    cfi_frames_find(c->code.frames, w->pc - c->code.bias - !is_first, &frame))
		return false;
	cfa = (frame.is_cfa_of_fp ? w->fp : w->sp) + (u64)frame.cfa_offset;
	if (cfa < w->sp || cfa - w->sp > MAX_FRAME_BYTES || (!frame.ra && !is_first))
		return false;
	for (size_t i = 0; i < CFI_FRAME_REGISTERS; i++)
		if (frame.saved[i])
			w->slots[w->nr_slots++] = cfa + (u64)(s64)frame.saved[i];
	if (is_end(c, frame.start)) {
		w->end = cfa;
		w->nr_kept = w->nr_slots;
	}
	if ((frame.ra && !scan_exit_read_word(w, cfa + (u64)(s64)frame.ra, &ra)) ||
	    (frame.fp && !scan_exit_read_word(w, cfa + (u64)(s64)frame.fp, &w->fp)))
		return false;
	w->pc = ra;
	w->sp = cfa;
	return true;
}

/* Add [start, walk->end) without the slots. */
static int scan_exit_add_frames(struct region_list *list, struct exit_walk *w, taddr_t start)
{
	int err = 0;

	qsort(w->slots, w->nr_kept, sizeof(*w->slots), scan_exit_by_addr);
	for (size_t i = 0; i < w->nr_kept && !err; i++) {
		if (w->slots[i] < start || w->slots[i] >= w->end)
			continue;
		err = region_add_dead(list, start, w->slots[i]);
		start = w->slots[i] + w->s->word_size;
	}
	return err ? err : region_add_dead(list, start, w->end);
}

static bool is_c_library(const struct snapshot_map *map)
{
	return map && map->is_executable && map->ino && region_is_libc(map);
}

static int scan_exit_walk(struct region_list *list, const struct scan *s, const struct c_library *c,
			  const struct snapshot_thread *thread)
{
	auto_free struct exit_walk *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->s = s;
	w->pc = thread->pc;
	w->sp = thread->sp;
	w->fp = thread->fp;
	w->lr = thread->lr;
	for (size_t i = 0; i < MAX_FRAMES && scan_exit_step(w, c, i == 0); i++)
		;
	return w->end ? scan_exit_add_frames(list, w, region_stack_end(s->snap, thread)) : 0;
}

int region_find_exit(struct region_list *list, const struct scan *s)
{
	const struct snapshot *snap = s->snap;
	struct c_library c = { .map = NULL };
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < snap->nr_threads && snap->is_ending && !err && nr < MAX_THREADS; i++) {
		const struct snapshot_map *map = snapshot_map_find(snap, snap->threads[i].pc);

		if (!is_c_library(map) || (c.map && c.map != map))
			continue;
		err = c.map ? 0 : library_open(&c, snap, map);
		if (err) {
			debug("scan: PID %d: frames of exit() are not known: %s", snap->pid, strerror(-err));
			return err == -ENOMEM ? err : 0;
		}
		err = scan_exit_walk(list, s, &c, &snap->threads[i]);
		nr++;
	}
	if (c.map)
		library_fini(&c);
	return err;
}
