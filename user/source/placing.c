/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From mapped files to probes: each file is searched once, each process gets the probes of the files that it maps. */
#include "user/source/placing.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/lib/path.h"
#include "user/lib/proc_memory.h"
#include "user/probe/ifunc.h"
#include "user/source/changed_code.h"
#include "user/source/placing_notes.h"

/* A file with probes for a process. */
struct placement {
	pid_t pid; /* 0 = for all processes */
	u32 module;
	taddr_t bias, start, end; /* with is_per_mapping */
	int result;		  /* of put_in() */
};

void placing_init(struct placing *p, const struct placing_ops *ops, void *ctx,
		  const struct placing_options *options)
{
	*p = (struct placing){ .ops = ops, .ctx = ctx, .options = *options };
	p->options.probes.is_partial = options->omit && *options->omit;
}

static void placing_free_file(struct probed_file *f)
{
	probe_list_fini(&f->list);
	free(f->points);
	free(f->notes);
	free(f->note_places);
	free(f->note_semaphores);
	*f = (struct probed_file){ 0 };
}

void placing_fini(struct placing *p)
{
	for (size_t i = 0; i < p->nr_files; i++)
		placing_free_file(&p->files[i]);
	free(p->files);
	free(p->placements);
	*p = (struct placing){ 0 };
}

static bool placing_leads_to(const char *path, const struct stat *file)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* Is @name of --omit @m: its path, its name, a path or link to it from here, or a link beside it? */
static bool is_name_of(const char *name, const struct module *m)
{
	const char *base = path_name(m->path);
	char beside[PATH_MAX];
	struct stat file;
	int len;

	if (!strcmp(name, m->path) || !strcmp(name, base))
		return true;
	if (m->fd < 0 || fstat(m->fd, &file))
		return false;
	if (placing_leads_to(name, &file))
		return true;
	len = snprintf(beside, sizeof(beside), "%s%.*s%s", m->root, (int)(base - m->path), m->path, name);
	return !strchr(name, '/') && len < (int)sizeof(beside) && placing_leads_to(beside, &file);
}

/* Also notes which names of --omit have their file. */
static bool is_omitted(struct placing *p, const struct module *m)
{
	const char *const *omit = p->options.omit;
	bool is_any = false;

	for (size_t i = 0; omit && omit[i]; i++) {
		if (!is_name_of(omit[i], m))
			continue;
		is_any = true;
		p->omit_found |= i < 64 ? 1ULL << i : 0;
	}
	return is_any;
}

/* Make room for the file of module @id. */
static int grow_files(struct placing *p, u32 id)
{
	int err = array_reserve(p->files, p->max_files, (size_t)id + 1);

	if (err || id < p->nr_files)
		return err;
	memset(p->files + p->nr_files, 0, (id + 1 - p->nr_files) * sizeof(*p->files));
	p->nr_files = id + 1;
	return 0;
}

/* Give the functions of @f their indexes, and describe them to the source. */
static int register_probes(struct placing *p, struct probed_file *f)
{
	auto_free struct call_probe *probes = calloc(f->list.nr + 1, sizeof(*probes));
	int err;

	if (!probes)
		return -ENOMEM;
	if (p->nr_probes + f->list.nr > p->ops->max_probes)
		return -ENOSPC;
	for (size_t i = 0; i < f->list.nr; i++)
		probes[i] = probe_site_describe(&f->list.sites[i]);
	f->first_probe = p->nr_probes;
	err = f->list.nr ? p->ops->add_probes(p->ctx, f->first_probe, probes, (u32)f->list.nr) : 0;
	if (!err)
		p->nr_probes += f->list.nr;
	return err;
}

static void placing_add_point(struct probed_file *f, enum probe_point_kind kind, u64 vaddr, size_t site)
{
	f->points[f->nr_points++] =
		(struct probe_point){ .vaddr = vaddr, .probe = f->first_probe + (u32)site, .kind = kind };
}

/* Points of @kind of function number @i. */
static void add_site_points(const struct placing *p, struct probed_file *f, enum probe_point_kind kind,
			    size_t i)
{
	const struct probe_site *site = &f->list.sites[i];

	if (!IS_AGENT && p->options.probes.only_workers && site->flags & PROBE_DELEGATES)
		return;
	if (kind == (alloc_kind_releases(site->row->kind) ? POINT_FREE : POINT_ALLOC))
		placing_add_point(f, kind, site->place, i);
	if (kind == POINT_RETURN && site->flags & PROBE_RETURNS && !site->nr_rets &&
	    !p->options.probes.has_return_places)
		placing_add_point(f, kind, site->place, i);
	for (size_t k = 0; kind == POINT_RET && k < site->nr_rets; k++)
		placing_add_point(f, kind, site->rets[k], i);
}

static int list_points(const struct placing *p, struct probed_file *f)
{
	const struct probe_list *list = &f->list;
	bool has_calls = IS_AGENT || !p->options.probes.only_sampler;
	size_t most =
		8 + ARRAY_SIZE(list->leak_checks) + 2 * list->nr + list->nr_internal_calls + f->nr_notes;

	for (size_t i = 0; i < list->nr; i++)
		most += list->sites[i].nr_rets;
	f->points = calloc(most, sizeof(*f->points));
	if (!f->points)
		return -ENOMEM;
	for (size_t i = 0; has_calls && i < list->nr_internal_calls; i++)
		placing_add_point(f, POINT_INTERNAL_CALL, list->internal_calls[i], list->internal_site);
	for (int kind = POINT_INTERNAL_CALL + 1; has_calls && kind < POINT_NOTE; kind++)
		for (size_t i = 0; i < list->nr; i++)
			add_site_points(p, f, kind, i);
	if (!IS_AGENT && list->end)
		placing_add_point(f, POINT_END, list->end, 0);
	for (u32 i = 0; i < f->nr_notes; i++)
		f->points[f->nr_points++] = (struct probe_point){ .vaddr = f->note_places[i],
								  .probe = f->first_note + i,
								  .kind = POINT_NOTE };
	if (list->linker_hook)
		placing_add_point(f, POINT_HOOK, list->linker_hook, 0);
	if (list->ptrace)
		placing_add_point(f, POINT_PTRACE, list->ptrace, 0);
	if (list->exit)
		placing_add_point(f, POINT_EXIT, list->exit, 0);
	if (list->clone)
		placing_add_point(f, POINT_CLONE, list->clone, 0);
	for (size_t i = 0; !IS_AGENT && i < ARRAY_SIZE(list->masks); i++)
		if (list->masks[i])
			placing_add_point(f, POINT_MASK, list->masks[i], 0);
	if (!IS_AGENT && list->action)
		placing_add_point(f, POINT_ACTION, list->action, 0);
	for (size_t i = 0; i < ARRAY_SIZE(list->leak_checks); i++)
		if (list->leak_checks[i])
			placing_add_point(f, POINT_LEAK_CHECK, list->leak_checks[i], 0);
	return 0;
}

/* Search the file of @map for allocators, once for all processes. @elf is open. */
static int scan_file(struct placing *p, const struct target *t, const struct mapping *map, struct elf *elf)
{
	struct probed_file *f = &p->files[map->module->id];
	int err = probe_list_init(&f->list, elf, path_name(map->module->path), &p->options.probes);

	if (err)
		return err;
	err = ifunc_resolve(&f->list, elf, t, map, &p->options.probes);
	if (!err)
		err = register_probes(p, f);
	if (!err)
		err = placing_find_notes(p, f, elf, map->module->path);
	if (!err)
		err = list_points(p, f);
	if (err)
		probe_list_fini(&f->list);
	return err;
}

/* Why nothing in @elf is probed. */
static const char *skip_reason(const struct elf *elf, int err)
{
	if (err != -ENOTSUP)
		return strerror(-err);
	return elf->machine == EM_ARM ? "32-bit ARM code, which the kernel would corrupt under probes"
				      : "code of another CPU";
}

/*
 * Like scan_file(). It is no error that a file is damaged, is of another CPU, or has more functions than there is room
 * for: the others can still be probed.
 */
static int scan_if_new(struct placing *p, const struct target *t, const struct mapping *map, struct elf *elf)
{
	struct probed_file *f = &p->files[map->module->id];
	int err = f->is_scanned ? 0 : scan_file(p, t, map, elf);

	if (err == -ENOMEM || err == -EPIPE)
		return err;
	if (err == -ENOSPC) {
		f->is_left_out = true;
		p->left_out = map->module->path;
		p->nr_left_out++;
	} else if (err)
		warn("probe: %s: not searched for allocators: %s", map->module->path, skip_reason(elf, err));
	f->is_scanned = true;
	return 0;
}

/* The process whose calls the probes of @pid see, 0 = all processes. */
static pid_t placing_scope_of(const struct placing *p, pid_t pid)
{
	return p->options.is_shared ? 0 : pid;
}

/* Have the probes of the file not been put in? */
static bool placement_has_failed(const struct placing *p, pid_t pid, u32 module)
{
	for (size_t i = 0; i < p->nr_placements; i++) {
		const struct placement *at = &p->placements[i];

		if (at->result && at->pid == placing_scope_of(p, pid) && at->module == module)
			return true;
	}
	return false;
}

static int note_allocator(const struct placing *p, struct target *t, const struct module *m)
{
	const struct probed_file *f = m->id < p->nr_files ? &p->files[m->id] : NULL;
	int err;

	if (!f || !f->list.nr || f->is_left || placement_has_failed(p, t->pid, m->id))
		return 0;
	probe_list_note_blurred(&f->list, t->blurred);
	if (f->list.lacks_own)
		t->half_watched = f->list.own_kind;
	err = f->list.own_kind ? target_add_allocator(t, m, f->list.own_kind) : 0;
	return err ? err : target_add_allocator(t, m, f->list.kind);
}

/* @map's file is new in @t. @elf is open. */
static int put_in_file(struct placing *p, struct target *t, const struct mapping *map, struct elf *elf)
{
	const struct module *m = map->module;
	struct probed_file *f = &p->files[m->id];
	int err = f->is_known || !p->ops->new_file ? 0 : p->ops->new_file(p->ctx, m, elf);

	f->is_known = true;
	f->code = *map;
	f->machine = elf->machine;
	if (err || is_omitted(p, m))
		return err;
	err = scan_if_new(p, t, map, elf);
	/* With only_sampler, allocators have no probes, and are there all the same. */
	if (err || !f->nr_points)
		return err ? err : note_allocator(p, t, m);
	if (f->list.nr)
		debug("probe: PID %d: %zu functions of %s (%s)", t->pid, f->list.nr, m->path, f->list.kind);
	/* Breakpoints in memory run the code of memory. */
	err = IS_AGENT || p->ops->is_per_mapping ? 0 : changed_code_refuse(t, map, f, elf);
	if (!err)
		err = p->ops->put_in(p->ctx, t, map, f, elf);
	return err ? err : note_allocator(p, t, m);
}

static struct placement *find_placement(const struct placing *p, pid_t pid, const struct mapping *map)
{
	for (size_t i = 0; i < p->nr_placements; i++) {
		struct placement *at = &p->placements[i];

		if (at->pid == placing_scope_of(p, pid) && at->module == map->module->id &&
		    (!p->ops->is_per_mapping || at->bias == map->bias))
			return at;
	}
	return NULL;
}

static int add_placement(struct placing *p, const struct placement *at)
{
	int err = array_reserve(p->placements, p->max_placements, p->nr_placements + 1);

	if (!err)
		p->placements[p->nr_placements++] = *at;
	return err;
}

static int place_new(struct placing *p, struct target *t, const struct mapping *map)
{
	const struct placement at = {
		placing_scope_of(p, t->pid), map->module->id, map->bias, map->start, map->end, 0
	};
	struct elf *elf;
	int err = add_placement(p, &at);

	if (!err)
		err = grow_files(p, at.module);
	if (err)
		return err;
	err = elf_open(&elf, map->module->fd);
	if (err) {
		debug("probe: %s: %s", map->module->path, strerror(-err));
		return err == -ENOMEM ? err : 0;
	}
	err = put_in_file(p, t, map, elf);
	elf_close(elf);
	if (err == -EINPROGRESS)
		p->nr_placements--;
	else
		p->placements[p->nr_placements - 1].result = err;
	return err < 0 ? err : 0;
}

/* A file may have several executable mappings. */
static void placing_widen(struct placement *at, const struct mapping *map)
{
	at->start = map->start < at->start ? map->start : at->start;
	at->end = map->end > at->end ? map->end : at->end;
}

static int update_mapping(struct placing *p, struct target *t, const struct mapping *map)
{
	struct placement *at;
	bool is_left_out;
	int err;

	if (!map->module)
		return 0;
	is_left_out = is_omitted(p, map->module);
	if (map->module->fd < 0 || (!p->ops->new_file && is_left_out))
		return 0;
	at = find_placement(p, t->pid, map);
	if (at) {
		placing_widen(at, map);
		/* The probes may be those of an earlier image of the process, or shared. */
		err = note_allocator(p, t, map->module);
	} else {
		err = place_new(p, t, map);
	}
	if (err && err != -ESRCH && err != -EOPNOTSUPP && err != -EINPROGRESS)
		error("probe: %s: PID %d: %s", map->module->path, t->pid,
		      !IS_AGENT && err == -EPIPE ? "the process that makes probes was killed"
						 : strerror(-err));
	return err;
}

static bool source_placing_is_intact(const struct placing *p, const struct placement *at)
{
	return !p->ops->is_intact || p->ops->is_intact(p->ctx, at->pid, at->start, at->end);
}

bool placing_is_intact(const struct placing *p, pid_t pid)
{
	for (size_t i = 0; i < p->nr_placements; i++)
		if (p->placements[i].pid == pid && !source_placing_is_intact(p, &p->placements[i]))
			return false;
	return true;
}

static bool placing_is_mapped(const struct placement *at, const struct mapping_list *maps)
{
	for (size_t i = 0; i < maps->nr; i++)
		if (maps->maps[i].module && maps->maps[i].module->id == at->module &&
		    maps->maps[i].bias == at->bias)
			return true;
	return false;
}

/* Probes in what is no longer mapped are gone, and other code may be mapped there, or the same. */
static int forget_unmapped(struct placing *p, const struct target *t)
{
	int err = 0;

	for (size_t i = 0; i < p->nr_placements && !err;) {
		const struct placement *at = &p->placements[i];

		if (at->pid != t->pid ||
		    (placing_is_mapped(at, &t->maps) && source_placing_is_intact(p, at))) {
			i++;
			continue;
		}
		err = p->ops->forget_range(p->ctx, t->pid, at->start, at->end);
		p->placements[i] = p->placements[--p->nr_placements];
	}
	if (err && err != -ESRCH)
		error("probe: PID %d: %s", t->pid, strerror(-err));
	return err;
}

/* How many of the files of @t have no probes, because there was no room, or because the source has left them out. */
static int count_left_out(const struct placing *p, const struct target *t)
{
	const struct module *last = NULL;
	int nr = 0;

	for (size_t i = 0; p->nr_left_out && i < t->maps.nr; i++) {
		const struct module *m = t->maps.maps[i].module;

		if (!m || m == last)
			continue;
		nr += m->id < p->nr_files && p->files[m->id].is_left_out;
		last = m;
	}
	for (size_t i = 0; i < p->nr_placements; i++)
		nr += p->placements[i].pid == t->pid && p->placements[i].result == PLACING_LEAVES_OUT;
	return nr;
}

int placing_update(struct placing *p, struct target *t)
{
	size_t nr_before = p->nr_left_out, nr;
	int err = p->ops->is_per_mapping ? forget_unmapped(p, t) : 0;

	for (size_t i = 0; i < t->maps.nr && !err; i++) {
		err = update_mapping(p, t, &t->maps.maps[i]);
		if (err != -EINPROGRESS)
			continue;
		target_read_again(t);
		err = 0;
	}
	nr = p->nr_left_out - nr_before;
	if (nr)
		warn("probe: PID %d: %zu file%s with allocators (the last one is %s) left out, because there is no "
		     "room: calls in them are not seen",
		     t->pid, nr, nr == 1 ? "" : "s", p->left_out);
	return err ? err : count_left_out(p, t);
}

int placing_note_allocators(const struct placing *p, struct target *t)
{
	int err = 0;

	for (size_t i = 0; i < t->maps.nr && !err; i++)
		if (t->maps.maps[i].module)
			err = note_allocator(p, t, t->maps.maps[i].module);
	return err;
}

int placing_copy(struct placing *p, pid_t parent, pid_t child)
{
	size_t nr = p->nr_placements;
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		struct placement at = p->placements[i];

		if (at.pid != parent)
			continue;
		at.pid = child;
		err = add_placement(p, &at);
	}
	return err;
}

void placing_leave(struct placing *p, const struct module *m)
{
	if (m->id < p->nr_files)
		p->files[m->id].is_left = true;
}

void placing_keep(struct placing *p, bool *is_used)
{
	size_t nr = 0;

	for (size_t id = 1; id < p->nr_files; id++) {
		/* Functions and markers have their indexes for good. */
		is_used[id] |= p->files[id].list.nr || p->files[id].nr_notes || p->files[id].nr_points;
		if (!is_used[id])
			placing_free_file(&p->files[id]);
	}
	for (size_t i = 0; i < p->nr_placements; i++)
		if (is_used[p->placements[i].module])
			p->placements[nr++] = p->placements[i];
	p->nr_placements = nr;
}

void placing_forget(struct placing *p, pid_t pid)
{
	size_t nr = 0;

	for (size_t i = 0; i < p->nr_placements; i++)
		if (p->placements[i].pid != pid)
			p->placements[nr++] = p->placements[i];
	p->nr_placements = nr;
}

/* The table of the file of @map, if it has probes in @t; NULL = it has none. */
static const struct probed_file *placed_file(const struct placing *p, const struct target *t,
					     const struct mapping *map)
{
	return map->module && map->module->id < p->nr_files && map->module->fd >= 0 &&
			       !p->files[map->module->id].is_left && find_placement(p, t->pid, map)
		       ? &p->files[map->module->id]
		       : NULL;
}

/*
 * The file of @at, which has probes in @t, is not mapped there any more: where it was. A program may have put a copy of
 * the code there, before or while its probes came. False: it is mapped, or unknown.
 */
static bool placing_was_mapped(const struct placing *p, const struct target *t, const struct placement *at,
			       struct mapping *out)
{
	const struct probed_file *f = at->module < p->nr_files ? &p->files[at->module] : NULL;

	if (!f || at->pid != t->pid || f->is_left || !f->code.module || f->code.module->fd < 0 ||
	    placing_is_mapped(at, &t->maps))
		return false;
	*out = f->code;
	out->start += at->bias - out->bias;
	out->end += at->bias - out->bias;
	out->bias = at->bias;
	return true;
}

/* The next mapping where a file has probes in @t, or had them: *@at is 0 at first. NULL: that is all. */
static const struct probed_file *placing_next(const struct placing *p, const struct target *t, size_t *at,
					      struct mapping *out)
{
	while (*at < p->nr_placements) {
		const struct placement *placed = &p->placements[(*at)++];

		if (placing_was_mapped(p, t, placed, out))
			return &p->files[placed->module];
	}
	while (*at < p->nr_placements + t->maps.nr) {
		const struct mapping *map = &t->maps.maps[(*at)++ - p->nr_placements];
		const struct probed_file *f = placed_file(p, t, map);

		if (!f)
			continue;
		*out = *map;
		return f;
	}
	return NULL;
}

void placing_watch(const struct placing *p, const struct target *t, struct watched_code *out)
{
	const struct probed_file *f;
	size_t at = 0, nr = 0;
	struct mapping map;

	while ((f = placing_next(p, t, &at, &map)))
		nr = changed_code_watch(out, nr, &map, f);
}

size_t placing_look(const struct placing *p, const struct target *t, const char **function)
{
	const struct probed_file *f;
	struct proc_memory mem;
	size_t at = 0, nr = 0;
	struct mapping map;

	if (proc_memory_open(&mem, t->pid))
		return 0;
	while ((f = placing_next(p, t, &at, &map))) {
		const char *first = NULL;
		size_t found = changed_code_overwritten(&mem, &map, f, &first);

		if (!nr)
			*function = first;
		nr += found;
	}
	proc_memory_close(&mem);
	return nr;
}

/* Where the function begins in whose first instructions @point is; @point where it is elsewhere. */
static u64 placing_start_of(const struct probed_file *f, const struct probe_point *point)
{
	bool is_entry =
		point->kind == POINT_FREE || point->kind == POINT_RETURN || point->kind == POINT_ALLOC;

	return is_entry ? f->list.sites[point->probe - f->first_probe].start : point->vaddr;
}

bool placing_is_at_start(const struct placing *p, const struct target *t, taddr_t pc)
{
	/* A jump and the instruction that its last byte lies in, on x86. */
	enum { START_BYTES = 20 };

	for (size_t i = 0; i < t->maps.nr; i++) {
		const struct mapping *map = &t->maps.maps[i];
		const struct probed_file *f =
			pc >= map->start && pc < map->end ? placed_file(p, t, map) : NULL;

		for (u32 k = 0; f && k < f->nr_points && f->points[k].kind < POINT_NOTE; k++) {
			u64 start = placing_start_of(f, &f->points[k]);

			if (pc - start - map->bias - 1 < f->points[k].vaddr - start + START_BYTES)
				return true;
		}
	}
	return false;
}

void placing_look_for_others(struct placing *p)
{
	for (size_t i = 0; i < p->nr_files; i++)
		p->files[i].function_of_others =
			p->files[i].nr_points ? changed_code_of_others(&p->files[i]) : NULL;
}

const char *placing_function_of_others(const struct placing *p, pid_t pid)
{
	for (size_t i = 0; i < p->nr_placements; i++) {
		const struct placement *at = &p->placements[i];

		if (at->pid == pid && !at->result && p->files[at->module].function_of_others)
			return p->files[at->module].function_of_others;
	}
	return NULL;
}
