/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ptrace source: breakpoints on the allocators of each target, planted and served by the guardian. */
#include "user/source.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bpf/maps.h"
#include "fallback/guardian.h"
#include "fallback/ring.h"
#include "fallback/trial.h"
#include "user/cfi.h"
#include "user/ifunc.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source_ptrace_watch.h"

enum { DEFAULT_RING_BYTES = 8 << 20, MAX_PROBED = 65536, CHECK_POLLS = 50 /* a second */ };
static const u64 launch_wait_ns = 10ULL * 1000 * 1000 * 1000;

_Static_assert((int)CALL_MALLOC == ALLOC_MALLOC && (int)CALL_REALLOC == ALLOC_REALLOC &&
		       (int)CALL_OUT == ALLOC_OUT && (int)CALL_FREE == ALLOC_FREE &&
		       (int)CALL_MMAP == ALLOC_MMAP && (int)CALL_MREMAP == ALLOC_MREMAP &&
		       (int)CALL_MUNMAP == ALLOC_MUNMAP,
	       "the tracer and the table of allocators number kinds alike");
_Static_assert((int)CALL_RETURNS == PROBE_RETURNS && (int)CALL_DELEGATES == PROBE_DELEGATES &&
		       (int)CALL_THROWS == PROBE_THROWS,
	       "and flags");

/* What is known of a file, for all processes that map it. */
struct file {
	bool is_scanned, has_table;
	struct probe_list list;
	u32 first_probe; /* index of its first site among the guardian's probes */
};

/* A file with breakpoints in a process. */
struct placement {
	pid_t pid;
	u32 module;
	taddr_t bias, start, end;
};

/* A process that is traced. */
struct attached {
	pid_t pid;
	struct trap_watch watch;
};

struct source {
	struct source_options options;
	struct guardian *guardian; /* owned */
	struct file *files;	   /* owned; by module id */
	size_t nr_files;
	struct placement *placements; /* owned */
	size_t nr_placements;
	struct attached *attached; /* owned */
	size_t nr_attached;
	u32 nr_probes;
	u32 nr_polls;
	bool is_detached, is_death_told;
};

static int source_ptrace_probe(struct caps *caps)
{
	int err = trial_ptrace();

	memset(caps, 0, sizeof(*caps));
	if (err)
		snprintf(caps->reason, sizeof(caps->reason), "%s",
			 err == -EPERM ? "ptrace(2) is not permitted here (a seccomp filter?)"
			 : err == -EACCES
				 ? "code cannot be written through /proc/PID/mem (proc_mem.force_override?)"
				 : strerror(-err));
	return err;
}

static int source_ptrace_create(struct source **out, const struct source_options *options,
				const struct caps *caps)
{
	/* A program that we start has its libraries read while it stands, which takes slow machines long. */
	const struct tracer_options to = { .depth = options->depth,
					   .max_wait_ns = options->stops_at_maps ? launch_wait_ns : 0,
					   .has_free_stacks = options->want_free_stacks,
					   .max_followed = options->max_followed };
	u64 ring_bytes = options->ring_bytes ? options->ring_bytes : DEFAULT_RING_BYTES;
	struct source *s = calloc(1, sizeof(*s));
	int err;

	(void)caps;
	if (!s)
		return -ENOMEM;
	s->options = *options;
	/* Where the ends of calls are not known they are seen at their return addresses. */
	s->options.probes.no_uretprobe = true;
	s->options.probes.has_return_places = true;
	err = guardian_new(&s->guardian, &to, ring_bytes);
	if (err) {
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

static int grow_files(struct source *s, u32 id)
{
	struct file *files;

	if (id < s->nr_files)
		return 0;
	files = reallocarray(s->files, id + 64, sizeof(*files));
	if (!files)
		return -ENOMEM;
	memset(files + s->nr_files, 0, (id + 64 - s->nr_files) * sizeof(*files));
	s->files = files;
	s->nr_files = id + 64;
	return 0;
}

/* Tell the guardian about the functions of @f. */
static int register_probes(struct source *s, struct file *f)
{
	auto_free struct call_probe *probes = calloc(f->list.nr + 1, sizeof(*probes));

	if (!probes)
		return -ENOMEM;
	if (s->nr_probes + f->list.nr > MAX_PROBED)
		return -ENOSPC;
	for (size_t i = 0; i < f->list.nr; i++) {
		const struct probe_site *site = &f->list.sites[i];
		const struct alloc_fn *fn = alloc_fn(site->fn);
		u8 flags = site->flags & (PROBE_RETURNS | PROBE_DELEGATES);

		if (fn->can_throw && !site->has_unseen_end)
			flags |= CALL_THROWS;
		if (flags & CALL_RETURNS && !site->nr_rets)
			flags |= CALL_AT_RETURN;
		probes[i] = (struct call_probe){ .fn = site->fn,
						 .kind = fn->kind,
						 .flags = flags,
						 .size_arg = site->arg_at[fn->size_arg],
						 .count_arg = site->arg_at[fn->count_arg],
						 .old_arg = site->arg_at[fn->old_arg],
						 .out_arg = site->arg_at[fn->out_arg],
						 .own_before = (u32)(site->place - site->own_start),
						 .own_after = (u32)(site->own_end - site->place) };
	}
	f->first_probe = s->nr_probes;
	s->nr_probes += f->list.nr;
	return guardian_set_probes(s->guardian, f->first_probe, probes, (u32)f->list.nr);
}

/* Look for allocators in @map's file, once for all processes. @elf is open. */
static int scan_file(struct source *s, struct file *f, const struct target *t, const struct mapping *map,
		     struct elf *elf)
{
	const char *slash = strrchr(map->module->path, '/');
	int err = probe_list_init(&f->list, elf, slash ? slash + 1 : map->module->path, &s->options.probes);

	if (err)
		return err;
	err = ifunc_resolve(&f->list, elf, t, map, &s->options.probes);
	if (!err)
		err = register_probes(s, f);
	if (err)
		probe_list_fini(&f->list);
	return err;
}

struct place_list {
	struct place *places; /* owned */
	u32 nr;
	taddr_t bias;
};

static void add_place(struct place_list *l, u64 vaddr, enum place_kind kind, u32 probe)
{
	l->places[l->nr++] = (struct place){ .addr = l->bias + vaddr, .probe = probe, .kind = kind };
}

static void add_sites(struct place_list *l, const struct file *f, bool is_release)
{
	for (size_t i = 0; i < f->list.nr; i++) {
		const struct probe_site *site = &f->list.sites[i];
		enum alloc_kind kind = alloc_fn(site->fn)->kind;
		u32 probe = f->first_probe + (u32)i;

		if ((kind == ALLOC_FREE || kind == ALLOC_MUNMAP) != is_release)
			continue;
		for (size_t k = 0; k < site->nr_rets; k++)
			add_place(l, site->rets[k], PLACE_RET, probe);
		add_place(l, site->place, is_release ? PLACE_ENTER_FREE : PLACE_ENTER_ALLOC, probe);
	}
}

/* Frees first: a block must not be missed when it goes. */
static int list_places(struct place_list *l, const struct file *f)
{
	size_t most = 1 + f->list.nr + f->list.nr_internal_calls;

	for (size_t i = 0; i < f->list.nr; i++)
		most += f->list.sites[i].nr_rets;
	l->places = calloc(most, sizeof(*l->places));
	if (!l->places)
		return -ENOMEM;
	for (size_t i = 0; i < f->list.nr_internal_calls; i++)
		add_place(l, f->list.internal_calls[i], PLACE_INTERNAL_CALL,
			  f->first_probe + (u32)f->list.internal_site);
	add_sites(l, f, true);
	add_sites(l, f, false);
	if (f->list.linker_hook)
		add_place(l, f->list.linker_hook, PLACE_HOOK, 0);
	return 0;
}

static void explain_place(const struct target *t, const struct module *m, const struct place *place, int err)
{
	warn("probe: %s: PID %d: no breakpoint at 0x%" PRIx64 ": %s", m->path, t->pid, place->addr,
	     err == -EEXIST ? "there is one of somebody else's"
	     : err == -EIO  ? "the code is shared with other processes, or cannot be written"
			    : strerror(-err));
}

/* A place that cannot be had is left out, and told. */
static int place_file(struct source *s, const struct target *t, const struct mapping *map,
		      const struct file *f)
{
	struct place_list l = { .bias = map->bias };
	u32 done = 0, nr;
	int err = list_places(&l, f);

	while (!err && done < l.nr) {
		err = guardian_add_places(s->guardian, t->pid, l.places + done, l.nr - done, &nr);
		done += nr;
		if (!err || err == -EPIPE || err == -ESRCH || err == -ENOMEM)
			continue;
		explain_place(t, map->module, &l.places[done++], err);
		err = 0;
	}
	free(l.places);
	return err;
}

/* Rows for walks through @m. No rows are no error. */
static int give_table(struct source *s, const struct module *m, struct elf *elf)
{
	struct cfi_table *cfi;
	struct command_table table = { .id = m->id };
	int err = cfi_load(&cfi, elf);

	if (err)
		return err == -ENOMEM ? err : 0;
	table.machine = cfi->machine;
	table.word_size = cfi->word_size;
	table.text_base = cfi->text_base;
	table.nr_rows = cfi->nr_rows;
	err = guardian_set_table(s->guardian, &table, cfi->rows, cfi->nr_rows * sizeof(*cfi->rows));
	cfi_free(cfi);
	return err;
}

static bool is_omitted(const struct source *s, const char *path)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; s->options.omit && s->options.omit[i]; i++)
		if (!strcmp(s->options.omit[i], path) || (slash && !strcmp(s->options.omit[i], slash + 1)))
			return true;
	return false;
}

static struct placement *find_placement(const struct source *s, pid_t pid, const struct mapping *map)
{
	for (size_t i = 0; i < s->nr_placements; i++) {
		struct placement *p = &s->placements[i];

		if (p->pid == pid && p->module == map->module->id && p->bias == map->bias)
			return p;
	}
	return NULL;
}

static int note_placed(struct source *s, pid_t pid, const struct mapping *map)
{
	struct placement *list = reallocarray(s->placements, s->nr_placements + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	list[s->nr_placements++] =
		(struct placement){ pid, map->module->id, map->bias, map->start, map->end };
	s->placements = list;
	return 0;
}

/* One mapped file of @t that is new in it. */
static int place_module(struct source *s, struct target *t, const struct mapping *map, struct elf *elf)
{
	const struct module *m = map->module;
	struct file *f = &s->files[m->id];
	int err = f->is_scanned ? 0 : scan_file(s, f, t, map, elf);

	f->is_scanned = true;
	if (err == -ENOMEM || err == -ENOSPC || err == -EPIPE)
		return err;
	if (err)
		warn("probe: %s: not looked at for allocators: %s", m->path, strerror(-err));
	if (err || (!f->list.nr && !f->list.linker_hook))
		return 0;
	if (f->list.nr)
		debug("probe: PID %d: %zu functions of %s (%s)", t->pid, f->list.nr, m->path, f->list.kind);
	err = place_file(s, t, map, f);
	target_note_blurred(t, &f->list);
	return err || !f->list.nr ? err : target_add_allocator(t, m, f->list.kind);
}

static int update_module(struct source *s, struct target *t, const struct mapping *map)
{
	const struct module *m = map->module;
	struct placement *placed = find_placement(s, t->pid, map);
	struct elf *elf;
	int err;

	if (placed) {
		placed->start = map->start < placed->start ? map->start : placed->start;
		placed->end = map->end > placed->end ? map->end : placed->end;
		return 0;
	}
	err = note_placed(s, t->pid, map);
	if (!err)
		err = grow_files(s, m->id);
	if (err)
		return err;
	err = elf_open(&elf, m->fd);
	if (err) {
		debug("probe: %s: %s", m->path, strerror(-err));
		return err == -ENOMEM ? err : 0;
	}
	if (s->options.depth && !s->files[m->id].has_table)
		err = give_table(s, m, elf);
	s->files[m->id].has_table = true;
	if (!err && !is_omitted(s, m->path))
		err = place_module(s, t, map, elf);
	elf_close(elf);
	return err;
}

static bool is_mapped(const struct placement *p, const struct mapping_list *maps)
{
	for (size_t i = 0; i < maps->nr; i++)
		if (maps->maps[i].module && maps->maps[i].module->id == p->module &&
		    maps->maps[i].bias == p->bias)
			return true;
	return false;
}

/* Breakpoints of what is no longer mapped are gone; other code may come to their places. */
static int forget_unmapped(struct source *s, const struct target *t)
{
	int err = 0;

	for (size_t i = 0; i < s->nr_placements && !err;) {
		const struct placement *p = &s->placements[i];

		if (p->pid != t->pid || is_mapped(p, &t->maps)) {
			i++;
			continue;
		}
		err = guardian_do(s->guardian, COMMAND_REMOVE, t->pid, p->start, p->end);
		s->placements[i] = s->placements[--s->nr_placements];
	}
	return err;
}

static int give_maps(struct source *s, const struct target *t)
{
	auto_free struct tracer_map *maps = calloc(t->maps.nr + 1, sizeof(*maps));

	if (!maps)
		return -ENOMEM;
	for (size_t i = 0; i < t->maps.nr; i++) {
		const struct mapping *m = &t->maps.maps[i];

		maps[i] = (struct tracer_map){ .start = m->start,
					       .end = m->end,
					       .bias = m->bias,
					       .table = m->module ? m->module->id : 0 };
	}
	return guardian_set_maps(s->guardian, t->pid, maps, (u32)t->maps.nr);
}

static struct attached *find_attached(const struct source *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_attached; i++)
		if (s->attached[i].pid == pid)
			return &s->attached[i];
	return NULL;
}

static int source_ptrace_update(struct source *s, struct target *t)
{
	int err = forget_unmapped(s, t);

	for (size_t i = 0; i < t->maps.nr && !err; i++)
		if (t->maps.maps[i].module && t->maps.maps[i].module->fd >= 0)
			err = update_module(s, t, &t->maps.maps[i]);
	if (!err)
		err = give_maps(s, t);
	if (find_attached(s, t->pid))
		trap_watch_check(&find_attached(s, t->pid)->watch);
	if (err && err != -ESRCH)
		error("ptrace: PID %d: %s", t->pid, strerror(-err));
	return err;
}

static void forget_placements(struct source *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_placements;)
		if (s->placements[i].pid == pid)
			s->placements[i] = s->placements[--s->nr_placements];
		else
			i++;
}

/* Another program has come in its place. */
static void forget_image(struct source *s, pid_t pid)
{
	struct attached *a = find_attached(s, pid);

	forget_placements(s, pid);
	if (a)
		trap_watch_new_image(&a->watch);
}

/* Why we may not trace it. */
static void explain_denied(pid_t pid)
{
	struct proc_status status = { 0 };
	struct proc_stat tracer = { .comm = "unknown" };
	struct caps_env env;

	if (!proc_read_status(&status, pid) && status.tracer_pid) {
		if (proc_read_stat(&tracer, status.tracer_pid))
			debug("ptrace: PID %d: its tracer has ended", pid);
		error("target: PID %d: it is traced by %s (PID %d) already, and Linux allows one tracer; "
		      "--backend bpf needs none",
		      pid, tracer.comm, status.tracer_pid);
		return;
	}
	caps_read_env(&env);
	if (env.ptrace_scope > 0 && !env.is_root)
		error("target: PID %d: not permitted to trace it: kernel.yama.ptrace_scope is %d: be root, "
		      "or "
		      "start it with \"heaptap run\"",
		      pid, env.ptrace_scope);
	else
		error("target: PID %d: not permitted to trace it: it is another user's, or its program may "
		      "not "
		      "be read; be root",
		      pid);
}

static int note_attached(struct source *s, pid_t pid)
{
	struct attached *list = reallocarray(s->attached, s->nr_attached + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	s->attached = list;
	list[s->nr_attached].pid = pid;
	trap_watch_begin(&list[s->nr_attached++].watch, pid);
	return 0;
}

static int source_ptrace_attach(struct source *s, struct target *t)
{
	int err = guardian_do(s->guardian, COMMAND_ATTACH, t->pid, 0, 0);

	if (err == -EPERM)
		explain_denied(t->pid);
	else if (err)
		error("target: PID %d: %s", t->pid,
		      err == -ENOTSUP ? "a CPU that is not known" : strerror(-err));
	if (err)
		return err;
	err = note_attached(s, t->pid);
	if (!err)
		err = source_ptrace_update(s, t);
	if (!err)
		err = guardian_do(s->guardian, COMMAND_OPEN, t->pid, 0, 0);
	if (err && guardian_do(s->guardian, COMMAND_DETACH, t->pid, 0, 0))
		debug("ptrace: PID %d: cannot be let go", t->pid);
	return err;
}

static int source_ptrace_wait_fd(struct source *s)
{
	return ring_fd(guardian_ring(s->guardian));
}

static bool is_alive(const struct source *s)
{
	siginfo_t si = { .si_pid = 0 };

	return !waitid(P_PID, (id_t)guardian_pid(s->guardian), &si, WEXITED | WNOHANG | WNOWAIT) &&
	       !si.si_pid;
}

/* Targets that run into breakpoints now end by SIGTRAP; all that can still be done is to say so. */
static void tell_death(struct source *s)
{
	if (s->is_death_told || s->is_detached)
		return;
	s->is_death_told = true;
	error("ptrace: the guardian (PID %d) has died: breakpoints are left in the targets, which end at "
	      "them",
	      guardian_pid(s->guardian));
}

/* A change for which a thread stands. */
static void settle_change(struct source *s, pid_t pid)
{
	if (!s->is_detached && guardian_do(s->guardian, COMMAND_GO_ON, pid, 0, 0))
		debug("ptrace: PID %d: has gone", pid);
}

/* Uprobes of others may have come to our places, and gone. */
static void check_places(struct source *s)
{
	for (size_t i = 0; i < s->nr_attached && !s->is_detached; i++) {
		trap_watch_check(&s->attached[i].watch);
		if (guardian_do(s->guardian, COMMAND_CHECK, s->attached[i].pid, 0, 0))
			debug("ptrace: PID %d: has gone", s->attached[i].pid);
	}
}

static void forget_process(struct source *s, pid_t pid)
{
	struct attached *a = find_attached(s, pid);

	forget_placements(s, pid);
	if (a)
		*a = s->attached[--s->nr_attached];
}

/* @birth tells of a new child, which stands until we have answered. A copy has its parent's breakpoints. */
static int note_child(struct source *s, const struct process_event *birth)
{
	pid_t parent = (pid_t)birth->h.pid, pid = (pid_t)birth->child_pid;
	struct placement *list;
	size_t nr = s->nr_placements;
	int err;

	/* Another one may have had its number. */
	forget_process(s, pid);
	err = note_attached(s, pid);
	if (err || birth->h.flags & EVENT_NO_COPY)
		return err;
	list = reallocarray(s->placements, 2 * nr + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	s->placements = list;
	for (size_t i = 0; i < nr; i++) {
		if (list[i].pid != parent)
			continue;
		list[s->nr_placements] = list[i];
		list[s->nr_placements++].pid = pid;
	}
	return 0;
}

static int source_ptrace_fork(struct source *s, struct target *t)
{
	int err = give_maps(s, t);

	for (size_t i = 0; i < t->maps.nr && !err; i++) {
		const struct module *m = t->maps.maps[i].module;
		const struct file *f = m && m->id < s->nr_files ? &s->files[m->id] : NULL;

		if (f && f->list.nr && !is_omitted(s, m->path))
			err = target_add_allocator(t, m, f->list.kind);
	}
	return err == -ESRCH ? 0 : err;
}

static int source_ptrace_poll(struct source *s, const struct sink *sink)
{
	struct ring *ring = guardian_ring(s->guardian);
	_Alignas(8) u8 buf[RING_MAX_RECORD];
	int nr = 0, err = 0;
	ssize_t len;

	ring_quiet(ring);
	while (!err && (len = ring_take(ring, buf)) > 0) {
		const struct event_header *h = (const void *)buf;
		const struct process_event *change = (const void *)buf;
		u8 kind = h->kind;
		/* Who stands for it; the record may be changed on its way. */
		pid_t pid = (pid_t)(kind == EVENT_FORK ? change->child_pid : h->pid);
		int noted = kind == EVENT_FORK ? note_child(s, change) : 0;

		if (kind == EVENT_EXEC)
			forget_image(s, pid);
		err = sink->record(sink->ctx, h, (size_t)len);
		err = err ? err : noted;
		if (kind == EVENT_EXEC || kind == EVENT_MAPS || kind == EVENT_FORK)
			settle_change(s, pid);
		nr++;
	}
	if (!is_alive(s))
		tell_death(s);
	else if (++s->nr_polls % CHECK_POLLS == 0)
		check_places(s);
	return err ? err : nr;
}

static void set_paused(struct source *s, pid_t pid, bool is_paused)
{
	if (!s->is_detached && guardian_do(s->guardian, COMMAND_PAUSE, pid, is_paused, 0))
		debug("ptrace: PID %d: has gone", pid);
}

static void source_ptrace_pause(struct source *s, pid_t pid)
{
	set_paused(s, pid, true);
}

static void source_ptrace_resume(struct source *s, pid_t pid)
{
	set_paused(s, pid, false);
}

/* Tables are made with the probes, so not without stacks. */
static int source_ptrace_set_depth(struct source *s, u32 depth)
{
	if (depth && !s->options.depth)
		return -EOPNOTSUPP;
	return s->is_detached ? -ESRCH : guardian_do(s->guardian, COMMAND_DEPTH, 0, depth, 0);
}

static struct losses source_ptrace_losses(struct source *s, pid_t pid)
{
	struct call_losses l = guardian_losses(s->guardian, pid);
	const struct attached *a = find_attached(s, pid);

	l.other += a && a->watch.is_overlaid;
	return (struct losses){ .allocs = l.allocs,
				.frees = l.frees,
				.stacks = l.stacks,
				.other = l.other + l.abandoned,
				.abandoned = l.abandoned,
				.unfollowed = l.unfollowed };
}

static void source_ptrace_forget_stacks(struct source *s)
{
	if (!s->is_detached && guardian_do(s->guardian, COMMAND_FORGET_STACKS, 0, 0, 0))
		debug("ptrace: stacks are not sent again");
}

static void source_ptrace_detach(struct source *s)
{
	for (size_t i = 0; i < s->nr_attached && !s->is_detached; i++)
		trap_watch_check(&s->attached[i].watch);
	if (!s->is_detached && guardian_do(s->guardian, COMMAND_DETACH, 0, 0, 0))
		debug("ptrace: nobody is traced any more");
	s->is_detached = true;
}

static void source_ptrace_free(struct source *s)
{
	if (!s)
		return;
	guardian_free(s->guardian);
	for (size_t i = 0; i < s->nr_files; i++)
		probe_list_fini(&s->files[i].list);
	free(s->files);
	free(s->placements);
	free(s->attached);
	free(s);
}

static int hold(struct source *s, pid_t pid, u64 max_ns)
{
	return s->is_detached ? -ESRCH : guardian_do(s->guardian, COMMAND_HOLD, pid, max_ns, 0);
}

static void release(struct source *s, pid_t pid)
{
	if (!s->is_detached && guardian_do(s->guardian, COMMAND_RELEASE, pid, 0, 0))
		debug("ptrace: PID %d: has gone", pid);
}

static int read_regs(struct source *s, pid_t tid, struct arch_regs *regs)
{
	return guardian_regs(s->guardian, tid, regs);
}

static pid_t tracer_pid(const struct source *s)
{
	return guardian_pid(s->guardian);
}

static int launch(struct source *s, pid_t pid)
{
	return guardian_do(s->guardian, COMMAND_LAUNCH, pid, 0, 0);
}

static int is_launched(struct source *s, pid_t pid)
{
	if (__atomic_load_n(&guardian_state(s->guardian)->launched_pid, __ATOMIC_ACQUIRE) == pid)
		return 1;
	return is_alive(s) ? 0 : -EPIPE;
}

static void start(struct source *s, pid_t pid)
{
	if (guardian_do(s->guardian, COMMAND_START, pid, 0, 0))
		debug("ptrace: PID %d: has gone", pid);
}

static pid_t exiting(struct source *s, int *status)
{
	return s->is_detached ? 0 : guardian_exiting(s->guardian, status);
}

static void let_end(struct source *s, pid_t pid)
{
	if (guardian_do(s->guardian, COMMAND_LET_END, pid, 0, 0))
		debug("ptrace: PID %d: has gone", pid);
}

static const struct source_tracer tracer = {
	.pid = tracer_pid,
	.launch = launch,
	.is_launched = is_launched,
	.start = start,
	.hold = hold,
	.release = release,
	.read_regs = read_regs,
	.exiting = exiting,
	.let_end = let_end,
};

const struct source_ops source_ptrace = {
	.name = "ptrace",
	.probe = source_ptrace_probe,
	.create = source_ptrace_create,
	.attach = source_ptrace_attach,
	.update = source_ptrace_update,
	.fork = source_ptrace_fork,
	.forget = forget_process,
	.wait_fd = source_ptrace_wait_fd,
	.poll = source_ptrace_poll,
	.pause = source_ptrace_pause,
	.resume = source_ptrace_resume,
	.set_depth = source_ptrace_set_depth,
	.losses = source_ptrace_losses,
	.forget_stacks = source_ptrace_forget_stacks,
	.detach = source_ptrace_detach,
	.free = source_ptrace_free,
	.tracer = &tracer,
};
