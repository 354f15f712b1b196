/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Put the probes of a file in: as links of BPF programs, or by the taker that the source works for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "arch/cpu.h"
#include "call/inflight.h"
#include "inline/layout.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source/changed_code.h"
#include "user/source/probe_taker.h"
#include "user/source/source_bpf_private.h"
#include "user/source/task_layout.h"
#include "user/unwind/unwind_tables.h"

/* Describe functions to the programs. */
static int source_bpf_place_add_probes(void *ctx, u32 first, const struct call_probe *probes, u32 nr)
{
	const struct bpf_source *s = ctx;

	for (u32 i = 0; i < nr; i++) {
		u32 index = first + i;

		if (bpf_map_update_elem(s->programs.probes_fd, &index, &probes[i], BPF_ANY))
			return -errno;
	}
	return 0;
}

static int source_bpf_place_add_notes(void *ctx, u32 first, const struct note_probe *notes, u32 nr)
{
	const struct bpf_source *s = ctx;

	for (u32 i = 0; i < nr; i++) {
		struct note_probe note = notes[i];
		u32 index = first + i;

		for (size_t k = 0; k < NOTE_MAX_ARGS; k++)
			note.args[k].reg =
				cpu_kernel_word(note.flags & PROBE_32BIT ? 4 : 8, note.args[k].reg);
		if (bpf_map_update_elem(s->programs.notes_fd, &index, &note, BPF_ANY))
			return -errno;
	}
	return 0;
}

static const enum program program_at[NR_POINT_KINDS] = {
	[POINT_INTERNAL_CALL] = PROGRAM_INTERNAL_CALL,
	[POINT_FREE] = PROGRAM_ENTER_FREE,
	[POINT_RETURN] = PROGRAM_LEAVE_CALL,
	[POINT_RET] = PROGRAM_AT_RET,
	[POINT_ALLOC] = PROGRAM_ENTER_ALLOC,
	[POINT_NOTE] = PROGRAM_AT_NOTE,
	[POINT_HOOK] = PROGRAM_MAPS_CHANGED,
	[POINT_PTRACE] = PROGRAM_BEFORE_PTRACE,
	[POINT_END] = PROGRAM_BEFORE_EXIT,
};

/* With fixed cookies: each cookie has a load of the program of its own, which its links keep. */
static int link_fixed(struct bpf_source *s, const struct link_group *group)
{
	struct source_config config = s->config;
	struct link_group g = *group;
	struct programs one;
	size_t next = 0;
	int err = 0;

	g.cookies = NULL;
	while (next < group->nr && !err) {
		g.offsets = &group->offsets[next];
		g.semaphores = group->semaphores ? &group->semaphores[next] : NULL;
		config.fixed_cookie = group->cookies[next];
		g.nr = 0;
		while (next < group->nr && group->cookies[next] == config.fixed_cookie) {
			next++;
			g.nr++;
		}
		err = programs_load_one(&one, g.program, &config, s->is_multi, &s->programs);
		if (err)
			break;
		err = link_set_add(s->links, &one, &g, s->is_multi);
		programs_unload(&one);
	}
	return err;
}

const struct programs *source_bpf_load(struct bpf_source *s, enum program which, int *err)
{
	struct programs *late = &s->late[which];

	*err = 0;
	if (programs_fd(&s->programs, which) >= 0)
		return &s->programs;
	if (!late->one_fd)
		*err = programs_load_one(late, which, &s->config, s->is_multi, &s->programs);
	return *err ? NULL : late;
}

/*
 * The kernel takes 20 to 50 ms to verify most programs on probes: each is loaded for its first place. While a busy
 * program runs into the first probes it would take longer, so the others are loaded by then.
 */
static int load_late(struct bpf_source *s, const struct probe_point *points, u32 nr)
{
	int err = 0;

	for (u32 i = 0; i < nr && !err; i++)
		if (!s->is_cookie_fixed)
			source_bpf_load(s, program_at[points[i].kind], &err);
	return err;
}

static int link_late(struct bpf_source *s, const struct link_group *group)
{
	int err;
	const struct programs *programs = source_bpf_load(s, group->program, &err);

	return err ? err : link_set_add(s->links, programs, group, s->is_multi);
}

/* The process whose calls the probes of @pid see; 0 = all: then the table of traced processes chooses. */
static pid_t source_bpf_place_scope_of(const struct bpf_source *s, pid_t pid)
{
	return s->is_shared ? 0 : pid;
}

/* The argument of the program at @point. For the hook: the distance from there to the state of the linker. */
static u64 cookie_of(const struct probed_file *f, const struct probe_point *point, pid_t scope)
{
	u64 hook = f->list.linker_hook, state = f->list.linker_state;
	u32 low = point->probe;

	if (point->kind == POINT_HOOK)
		low = (u32)(state ? state - hook : 0);
	return (u64)scope << 32 | low;
}

/* Where in the file the semaphores of the markers @points are: into @out. -errno: one is in no part of it. */
static int semaphores_of(const struct probed_file *f, const struct elf *elf, const struct probe_point *points,
			 size_t nr, u64 *out)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		u64 vaddr = f->note_semaphores[points[i].probe - f->first_note];

		if (vaddr)
			err = elf_vaddr_to_offset(elf, vaddr, &out[i]);
	}
	return err;
}

/* Put probes in at @nr points of one kind. */
static int link_points(struct bpf_source *s, const struct probed_file *f, const struct elf *elf,
		       const struct probe_point *points, size_t nr, struct link_group *g)
{
	auto_free u64 *offsets = calloc(nr, sizeof(*offsets)), *cookies = calloc(nr, sizeof(*cookies)),
		      *semaphores = calloc(nr, sizeof(*semaphores));

	if (!offsets || !cookies || !semaphores)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		int err = elf_vaddr_to_offset(elf, points[i].vaddr, &offsets[i]);

		if (err)
			return err;
		cookies[i] = cookie_of(f, &points[i], g->pid);
	}
	g->program = program_at[points->kind];
	g->is_return = points->kind == POINT_RETURN;
	g->offsets = offsets;
	g->cookies = cookies;
	g->nr = nr;
	if (points->kind == POINT_NOTE) {
		int err = semaphores_of(f, elf, points, nr, semaphores);

		if (err)
			return err;
		g->semaphores = semaphores;
	}
	if (s->is_cookie_fixed)
		return link_fixed(s, g);
	if (s->is_multi && g->pid && copies_note(&s->copies, g))
		return -ENOMEM;
	return link_late(s, g);
}

static struct linked_file *find_linked(const struct bpf_source *s, pid_t pid, u32 module)
{
	for (size_t i = 0; i < s->nr_linked; i++)
		if (s->linked[i].pid == pid && s->linked[i].module == module)
			return &s->linked[i];
	return NULL;
}

/* With a taker: links of file @m go in for @pid, with calls if it @has_calls. *@had: these were in already. */
static int note_links(struct bpf_source *s, const struct module *m, pid_t pid, bool has_calls,
		      struct linked_file *had)
{
	struct linked_file *f = find_linked(s, source_bpf_place_scope_of(s, pid), m->id);

	if (!f && array_reserve(s->linked, s->max_linked, s->nr_linked + 1))
		return -ENOMEM;
	if (!f) {
		f = &s->linked[s->nr_linked++];
		*f = (struct linked_file){ .pid = source_bpf_place_scope_of(s, pid), .module = m->id };
	}
	*had = *f;
	f->has_calls |= has_calls;
	f->has_notes = true;
	return 0;
}

/* The first markers or breakpoints beside a taker: from now on stacks are walked in the kernel. */
static int source_bpf_place_begin_walks(struct bpf_source *s, const struct target *t)
{
	s->walks_stacks = true;
	return s->options.taker && s->tables ? source_bpf_update_tables(s, t) : 0;
}

static bool has_notes(const struct probed_file *f)
{
	for (u32 i = 0; i < f->nr_points; i++)
		if (f->points[i].kind == POINT_NOTE)
			return true;
	return false;
}

/* Has heaptap, as the ptracer, stopped @known where its mappings change? */
static bool source_bpf_place_is_held(const struct bpf_source *s, const struct bpf_process *known)
{
	return s->config.stops_at_maps && (!s->options.joins_later || proc_is_our_tracee(known->pid));
}

/* Probes of a file go in for the first time while a program runs that nobody has stopped: count it. */
static void note_late(struct bpf_source *s, struct bpf_process *known, const struct probed_file *f)
{
	if (!known || !known->is_image || known->is_late || source_bpf_place_is_held(s, known) ||
	    (s->options.taker && !s->options.begins_by_bpf) || f->points[0].kind >= POINT_NOTE)
		return;
	known->is_late = true;
	known->late++;
	s->nr_late++;
}

enum { KERNEL_ENOTSUPP = 524 }; /* errno.h has no name for it */

/* The kernel refuses instructions that it cannot run elsewhere: with the prefix lock, and rare ones. */
static int refuse_instruction(const struct target *t, const struct mapping *map)
{
	error("probe: %s: PID %d: the kernel cannot put a breakpoint on the first instruction of an allocator "
	      "function: use --backend ptrace",
	      map->module->path, t->pid);
	return -EOPNOTSUPP;
}

/* Put the probes of a file in: for each kind of points one group of links. */
static int source_bpf_place_put_in(void *ctx, const struct target *t, const struct mapping *map,
				   const struct probed_file *f, struct elf *elf)
{
	struct bpf_source *s = ctx;
	const struct probe_taker *taker = s->options.taker;
	int err = taker ? taker->put_in(taker->ctx, t, map, f, elf) : 0;
	struct bpf_process *known = source_bpf_find(s, t->pid);
	bool is_taken = taker && err != PROBE_TAKER_DECLINES;
	struct linked_file had = { 0 };
	u32 next = 0, nr = f->nr_points;

	if (err == PROBE_TAKER_COUNTS)
		return call_count_add(&s->count, map->module, f, elf);
	if (taker && !is_taken) {
		err = changed_code_refuse(t, map, f, elf);
		if (known)
			known->is_declined = true;
	}
	if (!err && taker)
		err = note_links(s, map->module, t->pid, !is_taken, &had);
	if (!err && !s->walks_stacks && (!is_taken || has_notes(f)))
		err = source_bpf_place_begin_walks(s, t);
	if (err)
		return err;
	note_late(s, known, f);
	s->programs.state->is_shared = s->is_shared;
	if (s->is_shared)
		bystanders_tell_all(&s->bystanders, !is_taken);
	while ((is_taken || had.has_calls) && next < nr && f->points[next].kind < POINT_NOTE)
		next++;
	while (had.has_notes && nr > next && f->points[nr - 1].kind >= POINT_NOTE)
		nr--;
	err = load_late(s, f->points + next, nr - next);
	while (next < nr && !err) {
		struct link_group g = { .fd = map->module->fd,
					.pid = source_bpf_place_scope_of(s, t->pid),
					.group = s->is_shared ? map->module->id + 1 : 0 };
		u32 first = next;

		while (next < nr && f->points[next].kind == f->points[first].kind)
			next++;
		err = link_points(s, f, elf, f->points + first, next - first, &g);
	}
	return err == -KERNEL_ENOTSUPP ? refuse_instruction(t, map) : err;
}

void source_bpf_place_keep_files(struct source *source, bool *is_used)
{
	struct bpf_source *s = (struct bpf_source *)(void *)source;

	placing_keep(&s->placing, is_used);
	if (s->tables)
		unwind_tables_keep(s->tables, is_used);
}

const struct placing_ops bpf_place = {
	.has_semaphores = true,
	.max_probes = MAX_PROBES,
	.add_probes = source_bpf_place_add_probes,
	.add_notes = source_bpf_place_add_notes,
	.put_in = source_bpf_place_put_in,
};

static int source_bpf_place_new_file(void *ctx, const struct module *m, struct elf *elf)
{
	const struct bpf_source *s = ctx;

	return s->options.taker->new_file(s->options.taker->ctx, m, elf);
}

static int source_bpf_place_forget_range(void *ctx, pid_t pid, taddr_t start, taddr_t end)
{
	const struct bpf_source *s = ctx;

	s->options.taker->forget_range(s->options.taker->ctx, pid, start, end);
	return 0;
}

static bool source_bpf_place_is_intact(void *ctx, pid_t pid, taddr_t start, taddr_t end)
{
	const struct bpf_source *s = ctx;

	return s->options.taker->is_intact(s->options.taker->ctx, pid, start, end);
}

void source_bpf_watch_code(const struct bpf_source *s, const struct target *t)
{
	const struct bpf_process *known = source_bpf_find(s, t->pid);
	struct watched_code code = { 0 };
	u32 key = t->pid;

	if (s->options.taker && (!known || !known->is_declined))
		s->options.taker->watch(s->options.taker->ctx, t->pid, &code);
	else
		placing_watch(&s->placing, t, &code);
	if (bpf_map_update_elem(s->programs.watched_codes_fd, &key, &code, BPF_ANY))
		debug("bpf: PID %d: its code is not looked at when it ends: %s", t->pid, strerror(errno));
}

/* With a taker. */
const struct placing_ops bpf_place_for_taker = {
	.has_semaphores = true,
	.is_per_mapping = true,
	.max_probes = PIECE_MAX_PROBES,
	.add_probes = source_bpf_place_add_probes,
	.add_notes = source_bpf_place_add_notes,
	.new_file = source_bpf_place_new_file,
	.put_in = source_bpf_place_put_in,
	.forget_range = source_bpf_place_forget_range,
	.is_intact = source_bpf_place_is_intact,
};

int source_bpf_rest(struct source *source, struct target *t, bool is_on)
{
	struct bpf_source *s = (struct bpf_source *)(uintptr_t)source;
	struct bpf_process *known = source_bpf_find(s, t->pid);
	int nr;

	/* Shared links see other processes, too. */
	if (!known || !s->links || s->is_shared || !source_bpf_has_breakpoints(s, known))
		return -EOPNOTSUPP;
	known->is_resting = is_on;
	if (!is_on) {
		nr = source_bpf_update(source, t);
		return nr < 0 ? nr : 0;
	}
	bpf_map_delete_elem(s->programs.watched_codes_fd, &known->pid);
	source_bpf_drop_probes(s, t->pid);
	programs_drop_calls(&s->programs, t->pid);
	return 0;
}

enum source_way source_bpf_way(const struct source *source, pid_t pid)
{
	const struct bpf_source *s = (const struct bpf_source *)source;

	(void)pid;
	return s->links && !s->is_shared ? SOURCE_BY_PROBES : SOURCE_BY_OTHERS;
}

/* ---- for a taker ---- */

static struct bpf_source *source_bpf_place_source_of(const struct source *bpf)
{
	return (struct bpf_source *)(uintptr_t)bpf;
}

bool source_bpf_has_shared(const struct source *bpf, const struct module *m)
{
	const struct linked_file *f = find_linked(source_bpf_place_source_of(bpf), 0, m->id);

	return f && f->has_calls;
}

void source_bpf_place_again(const struct source *bpf, pid_t pid)
{
	source_bpf_place_source_of(bpf)->walks_stacks = true;
	source_bpf_drop_probes(source_bpf_place_source_of(bpf), pid);
}

bool source_bpf_is_in_call(const struct source *bpf, const struct target *t, pid_t tid, taddr_t pc,
			   taddr_t sp)
{
	const struct bpf_source *s = source_bpf_place_source_of(bpf);
	struct inflight calls;
	u32 key = tid;

	/* Not each release is listed below. */
	if (placing_is_at_start(&s->placing, t, pc))
		return true;
	if (bpf_map_lookup_elem(s->programs.threads_fd, &key, &calls))
		return errno != ENOENT;
	/* A call that has ended may still be listed: its frame is gone. On another stack it may go on. */
	for (u32 i = 0; i < calls.nr && i < INFLIGHT_LEVELS; i++)
		if (calls.levels[i].sp >= sp || calls.levels[i].state == LEVEL_BUSY)
			return true;
	return false;
}

void source_bpf_leave_calls(const struct source *bpf, pid_t pid, bool is_on)
{
	struct bpf_source *s = source_bpf_place_source_of(bpf);

	/* The field that tells whether a thread is ptraced. */
	if (is_on && !s->programs.state->task_ptrace_at && task_layout_find_stop(&s->programs))
		debug("bpf: cannot see which threads are traced");
	__atomic_store_n(&s->programs.state->leaving_pid, is_on ? (u32)pid : 0, __ATOMIC_SEQ_CST);
}

void source_bpf_unwatch_code(const struct source *bpf, pid_t pid)
{
	u32 key = pid;

	bpf_map_delete_elem(source_bpf_place_source_of(bpf)->programs.watched_codes_fd, &key);
}

int source_bpf_hand_over(const struct source *bpf, pid_t pid)
{
	struct bpf_source *s = source_bpf_place_source_of(bpf);
	struct bpf_process *known = source_bpf_find(s, pid);
	u32 key = pid;

	if (!known)
		return -EOPNOTSUPP;
	source_bpf_drop_probes(s, pid);
	known->is_declined = false;
	bpf_map_delete_elem(s->programs.watched_codes_fd, &key);
	programs_drop_calls(&s->programs, pid);
	return 0;
}

void source_bpf_number(const struct source *bpf, pid_t pid, taddr_t addr)
{
	const struct bpf_source *s = source_bpf_place_source_of(bpf);
	u32 key = pid;

	if (!addr)
		bpf_map_delete_elem(s->programs.sequences_fd, &key);
	else if (bpf_map_update_elem(s->programs.sequences_fd, &key, &addr, BPF_ANY))
		debug("bpf: PID %d: it is not known which calls come before a fork: %s", pid,
		      strerror(errno));
}
