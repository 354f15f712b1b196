/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF source: uprobes on the allocators of each target, events through one ring. */
#include "user/source.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "user/ifunc.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/programs.h"
#include "user/task_layout.h"
#include "user/unwind_tables.h"

enum { DEFAULT_RING_BYTES = 8 << 20, WAKE_FRACTION = 8 };

_Static_assert((int)KIND_MALLOC == ALLOC_MALLOC && (int)KIND_REALLOC == ALLOC_REALLOC &&
		       (int)KIND_OUT == ALLOC_OUT && (int)KIND_FREE == ALLOC_FREE &&
		       (int)KIND_MMAP == ALLOC_MMAP && (int)KIND_MREMAP == ALLOC_MREMAP &&
		       (int)KIND_MUNMAP == ALLOC_MUNMAP,
	       "the programs and the table of allocators number kinds alike");

/* What is known of a file, for all processes that map it. */
struct file {
	bool is_scanned;
	struct probe_list list;
	u32 first_probe; /* index of its first site in the map of probes */
};

/* A file with probes for a process. */
struct placement {
	pid_t pid;
	u32 module;
};

struct source {
	struct source_options options;
	bool is_multi;	      /* uprobe_multi links */
	bool is_cookie_fixed; /* no cookies: each link has a load of its program */
	struct programs programs;
	struct source_config config;
	struct ring_buffer *ring;     /* owned */
	struct link_set *links;	      /* owned */
	struct unwind_tables *tables; /* owned; NULL without stacks */
	struct file *files;	      /* owned; by module id */
	size_t nr_files;
	struct placement *placements; /* owned */
	size_t nr_placements;
	u32 nr_probes;
	struct traced *traced; /* owned */
	size_t nr_traced;
	const struct sink *sink; /* during poll */
};

/* What the records have told of a process so far, for its mappings: those that are read from now on are not older. */
struct traced {
	pid_t pid;
	u32 removals, execs; /* as struct process_state */
};

/* Places of one file that get the same program. */
struct batch {
	enum program program;
	bool is_return;
	u64 *offsets, *cookies; /* owned */
	size_t nr;
};

/* Take out all that is placed for @pid: the next update places it anew. */
static void forget(struct source *s, pid_t pid)
{
	size_t nr = 0;

	link_set_drop(s->links, pid);
	for (size_t i = 0; i < s->nr_placements; i++)
		if (s->placements[i].pid != pid)
			s->placements[nr++] = s->placements[i];
	s->nr_placements = nr;
}

static struct traced *find_traced(const struct source *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_traced; i++)
		if (s->traced[i].pid == pid)
			return &s->traced[i];
	return NULL;
}

/* @pid, from now on with what @like has (NULL = nothing) been told of. */
static int note_traced(struct source *s, pid_t pid, const struct traced *like)
{
	struct traced known = { .pid = pid, .removals = like ? like->removals : 0 };
	struct traced *list = s->traced, *old = find_traced(s, pid);

	if (old) {
		*old = known;
		return 0;
	}
	list = reallocarray(list, s->nr_traced + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	list[s->nr_traced++] = known;
	s->traced = list;
	return 0;
}

/* The mappings have changed, or are another program's: what is read of them from now on is of after that. */
static void note_change(struct source *s, pid_t pid, bool is_exec)
{
	struct traced *t = find_traced(s, pid);
	struct process_state process;
	u32 key = pid;

	if (!t)
		return;
	t->execs += is_exec;
	if (!bpf_map_lookup_elem(s->programs.processes_fd, &key, &process))
		t->removals = process.removals;
}

/* Has the process a new program that must not see probes? */
static bool becomes_emulator(pid_t pid)
{
	auto_free char *exe = NULL;

	return !proc_exe(&exe, pid) && target_is_emulator(exe);
}

/*
 * A thread that was not the first one of the process has called exec: the links, which hold that one, see nothing of
 * the new image. Its update follows, or its end.
 */
static int on_exec(struct source *s, const struct process_event *rec)
{
	struct process_event ev = *rec;

	note_change(s, ev.h.pid, true);
	if ((ev.child_pid && ev.child_pid != ev.h.pid) || becomes_emulator(ev.h.pid))
		forget(s, ev.h.pid);
	ev.child_pid = 0;
	return s->sink->record(s->sink->ctx, &ev.h, sizeof(ev));
}

static int on_record(void *ctx, void *data, size_t len)
{
	const struct event_header *rec = data;
	struct source *s = ctx;

	if (rec->kind == EVENT_EXEC && len >= sizeof(struct process_event))
		return on_exec(s, data);
	if (rec->kind == EVENT_MAPS)
		note_change(s, rec->pid, false);
	if (rec->kind == EVENT_FORK &&
	    note_traced(s, ((const struct process_event *)data)->child_pid, find_traced(s, rec->pid)))
		return -ENOMEM;
	return s->sink->record(s->sink->ctx, data, len);
}

static int source_bpf_probe(struct caps *caps)
{
	return caps_probe(caps, CAPS_QUICK);
}

/* Children are taken in by their numbers. */
static int find_layout(const struct source *s)
{
	int err = task_layout_find(&s->programs);

	if (err)
		error("--follow: cannot tell the numbers of new processes here: %s", strerror(-err));
	return err;
}

/* In a container the kernel's numbers of processes are not ours. */
static void find_pid_namespace(struct source_config *config)
{
	enum { FIRST_PID_NS = 0xEFFFFFFC }; /* inode: PROC_PID_INIT_INO of the kernel */
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || st.st_ino == FIRST_PID_NS)
		return;
	/* As the kernel encodes devices. */
	config->pid_ns_dev = (u64)major(st.st_dev) << 20 | minor(st.st_dev);
	config->pid_ns_ino = st.st_ino;
}

static int source_bpf_create(struct source **out, const struct source_options *options,
			     const struct caps *caps)
{
	struct source *s = calloc(1, sizeof(*s));
	u64 ring_bytes = options->ring_bytes ? options->ring_bytes : DEFAULT_RING_BYTES;
	int err;

	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->options.probes.no_uretprobe = !caps->is_uretprobe_safe;
	/* Where the multi link's pid filter is wrong, perf links are right. */
	s->is_multi = caps->has_uprobe_multi && caps->is_multi_pid_exact;
	s->is_cookie_fixed = !caps->has_cookie;
	s->config.depth = options->depth;
	find_pid_namespace(&s->config);
	s->config.stops_at_maps = options->stops_at_maps;
	s->config.max_followed = options->max_followed;
	if (s->config.pid_ns_ino && options->max_followed) {
		warn("bpf: children are not followed: heaptap is in a PID namespace, the kernel tells other "
		     "numbers");
		s->config.max_followed = 0;
	}
	s->config.has_free_stacks = options->want_free_stacks;
	s->config.wake_bytes = ring_bytes / WAKE_FRACTION;
	s->config.is_cookie_fixed = s->is_cookie_fixed;
	err = programs_load(&s->programs, &s->config, ring_bytes, s->is_multi);
	if (err)
		goto undo_source;
	err = link_set_new(&s->links);
	if (err)
		goto undo_programs;
	if (options->depth)
		err = unwind_tables_new(&s->tables, s->programs.shards_fd, s->programs.process_maps_fd);
	if (err)
		goto undo_links;
	s->ring = ring_buffer__new(s->programs.ring_fd, on_record, s, NULL);
	if (!s->ring) {
		err = -errno;
		goto undo_tables;
	}
	err = link_set_add_tracepoints(s->links, &s->programs);
	if (!err && s->config.max_followed)
		err = find_layout(s);
	if (err)
		goto undo_ring;
	s->programs.state->depth = options->depth;
	s->programs.state->is_on = 1;
	*out = s;
	return 0;
undo_ring:
	ring_buffer__free(s->ring);
undo_tables:
	unwind_tables_free(s->tables);
undo_links:
	link_set_free(s->links);
undo_programs:
	programs_unload(&s->programs);
undo_source:
	free(s);
	return err;
}

/* Tell the kernel side about the probes of @f. */
static int register_probes(struct source *s, struct file *f)
{
	f->first_probe = s->nr_probes;
	if (s->nr_probes + f->list.nr > MAX_PROBES)
		return -ENOSPC;
	for (size_t i = 0; i < f->list.nr; i++) {
		const struct probe_site *site = &f->list.sites[i];
		const struct alloc_fn *fn = alloc_fn(site->fn);
		struct probe_info info = {
			.fn = site->fn,
			.kind = fn->kind,
			.flags = site->flags | (fn->can_throw && !site->has_unseen_end ? PROBE_THROWS : 0),
			.size_arg = site->arg_at[fn->size_arg],
			.count_arg = site->arg_at[fn->count_arg],
			.old_arg = site->arg_at[fn->old_arg],
			.out_arg = site->arg_at[fn->out_arg],
			.own_before = site->place - site->own_start,
			.own_after = site->own_end - site->place
		};
		u32 index = f->first_probe + i;

		if (bpf_map_update_elem(s->programs.probes_fd, &index, &info, BPF_ANY))
			return -errno;
	}
	s->nr_probes += f->list.nr;
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

/* Look for allocators in @m, once for all processes. @elf is open. */
static int scan_file(struct source *s, const struct target *t, const struct mapping *map, struct elf *elf)
{
	struct file *f = &s->files[map->module->id];
	const char *slash = strrchr(map->module->path, '/');
	int err;

	err = probe_list_init(&f->list, elf, slash ? slash + 1 : map->module->path, &s->options.probes);
	if (err)
		return err;
	err = ifunc_resolve(&f->list, elf, t, map, &s->options.probes);
	if (!err)
		err = register_probes(s, f);
	if (err) {
		probe_list_fini(&f->list);
		return err;
	}
	f->is_scanned = true;
	return 0;
}

static int batch_add(struct batch *b, const struct elf *elf, u64 vaddr, u64 cookie)
{
	int err = elf_vaddr_to_offset(elf, vaddr, &b->offsets[b->nr]);

	if (!err)
		b->cookies[b->nr++] = cookie;
	return err;
}

enum { BATCH_INTERNAL, BATCH_FREES, BATCH_RETURNS, BATCH_RETS, BATCH_ALLOCS, BATCH_HOOK, NR_BATCHES };

/* Which program goes where. */
static int fill_batches(struct batch *batches, const struct file *f, const struct elf *elf, pid_t pid)
{
	int err = 0;

	for (size_t i = 0; i < f->list.nr && !err; i++) {
		const struct probe_site *site = &f->list.sites[i];
		enum alloc_kind kind = alloc_fn(site->fn)->kind;
		bool is_free = kind == ALLOC_FREE || kind == ALLOC_MUNMAP;
		u64 cookie = (u64)pid << 32 | (f->first_probe + i);

		err = batch_add(&batches[is_free ? BATCH_FREES : BATCH_ALLOCS], elf, site->place, cookie);
		for (size_t k = 0; k < site->nr_rets && !err; k++)
			err = batch_add(&batches[BATCH_RETS], elf, site->rets[k], cookie);
		if (!err && site->flags & PROBE_RETURNS && !site->nr_rets)
			err = batch_add(&batches[BATCH_RETURNS], elf, site->place, cookie);
	}
	for (size_t i = 0; i < f->list.nr_internal_calls && !err; i++)
		err = batch_add(&batches[BATCH_INTERNAL], elf, f->list.internal_calls[i],
				(u64)pid << 32 | (f->first_probe + f->list.internal_site));
	if (!err && f->list.linker_hook)
		err = batch_add(
			&batches[BATCH_HOOK], elf, f->list.linker_hook,
			(u64)pid << 32 |
				(u32)(f->list.linker_state ? f->list.linker_state - f->list.linker_hook : 0));
	return err;
}

/* With fixed cookies: for each cookie a load of the program, which the links keep. */
static int link_fixed(struct source *s, const struct batch *b, struct link_group *g)
{
	struct source_config config = s->config;
	struct programs one;
	size_t next = 0;
	int err = 0;

	while (next < b->nr && !err) {
		g->offsets = &b->offsets[next];
		config.fixed_cookie = b->cookies[next];
		g->nr = 0;
		while (next < b->nr && b->cookies[next] == config.fixed_cookie) {
			next++;
			g->nr++;
		}
		err = programs_load_one(&one, b->program, &config, s->is_multi, &s->programs);
		if (err)
			break;
		err = link_set_add(s->links, &one, g, s->is_multi);
		programs_unload(&one);
	}
	return err;
}

static int link_batch(struct source *s, const struct batch *b, int fd, pid_t pid)
{
	struct link_group g = { .program = b->program,
				.is_return = b->is_return,
				.fd = fd,
				.pid = pid,
				.offsets = b->offsets,
				.cookies = b->cookies,
				.nr = b->nr };

	if (!s->is_cookie_fixed)
		return link_set_add(s->links, &s->programs, &g, s->is_multi);
	g.cookies = NULL;
	return link_fixed(s, b, &g);
}

/* Put the probes of a file in for a process. Frees first: a block must not be missed when it goes. */
static int place_file(struct source *s, const struct file *f, const struct elf *elf, int fd, pid_t pid)
{
	struct batch batches[NR_BATCHES] = {
		[BATCH_INTERNAL] = { .program = PROGRAM_INTERNAL_CALL },
		[BATCH_FREES] = { .program = PROGRAM_ENTER_FREE },
		[BATCH_RETURNS] = { .program = PROGRAM_LEAVE_CALL, .is_return = true },
		[BATCH_RETS] = { .program = PROGRAM_AT_RET },
		[BATCH_ALLOCS] = { .program = PROGRAM_ENTER_ALLOC },
		[BATCH_HOOK] = { .program = PROGRAM_MAPS_CHANGED },
	};
	size_t most = 1 + f->list.nr + f->list.nr_internal_calls;
	int err = 0;

	for (size_t i = 0; i < f->list.nr; i++)
		most += f->list.sites[i].nr_rets;
	for (int i = 0; i < NR_BATCHES; i++) {
		batches[i].offsets = calloc(most, sizeof(u64));
		batches[i].cookies = calloc(most, sizeof(u64));
		if (!batches[i].offsets || !batches[i].cookies)
			err = -ENOMEM;
	}
	if (!err)
		err = fill_batches(batches, f, elf, pid);
	for (int i = 0; i < NR_BATCHES; i++) {
		if (!err)
			err = link_batch(s, &batches[i], fd, pid);
		free(batches[i].offsets);
		free(batches[i].cookies);
	}
	return err;
}

/* Whose calls probes see. Where children are followed everybody's: the table of traced processes chooses. */
static pid_t scope_of(const struct source *s, pid_t pid)
{
	return s->config.max_followed ? 0 : pid;
}

static bool is_omitted(const struct source *s, const char *path)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; s->options.omit && s->options.omit[i]; i++)
		if (!strcmp(s->options.omit[i], path) || (slash && !strcmp(s->options.omit[i], slash + 1)))
			return true;
	return false;
}

static bool is_placed(const struct source *s, pid_t pid, u32 module)
{
	for (size_t i = 0; i < s->nr_placements; i++)
		if (s->placements[i].pid == pid && s->placements[i].module == module)
			return true;
	return false;
}

static int note_placed(struct source *s, pid_t pid, u32 module)
{
	struct placement *list = reallocarray(s->placements, s->nr_placements + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	list[s->nr_placements++] = (struct placement){ pid, module };
	s->placements = list;
	return 0;
}

/* Why nothing in @elf is probed. */
static const char *skip_reason(const struct elf *elf, int err)
{
	if (err != -ENOTSUP)
		return strerror(-err);
	return elf->machine == EM_ARM ? "32-bit ARM code, which the kernel would corrupt under probes"
				      : "code of another CPU";
}

/* One mapped file of @t: scan it if it is new, place its probes if it has any. */
static int update_module(struct source *s, struct target *t, const struct mapping *map)
{
	const struct module *m = map->module;
	struct elf *elf;
	struct file *f;
	int err;

	err = elf_open(&elf, m->fd);
	if (err == -ENOMEM)
		error("probe: %s: %s", m->path, strerror(-err));
	else if (err)
		debug("probe: %s: %s", m->path, strerror(-err));
	if (err)
		return err == -ENOMEM ? err : 0;
	err = grow_files(s, m->id);
	if (err)
		goto out;
	f = &s->files[m->id];
	err = f->is_scanned ? 0 : scan_file(s, t, map, elf);
	if (err && err != -ENOMEM && err != -ENOSPC) {
		/* A damaged file, or one of another CPU: nothing can be probed in it, but in the others. */
		warn("probe: %s: not looked at for allocators: %s", m->path, skip_reason(elf, err));
		f->is_scanned = true;
		err = 0;
	}
	if (err)
		goto out;
	if (f->list.nr)
		debug("probe: PID %d: %zu functions of %s (%s)", t->pid, f->list.nr, m->path, f->list.kind);
	if (f->list.nr || f->list.linker_hook)
		err = place_file(s, f, elf, m->fd, scope_of(s, t->pid));
	target_note_blurred(t, &f->list);
	if (!err && f->list.nr)
		err = target_add_allocator(t, m, f->list.kind);
out:
	if (err)
		error("probe: %s: PID %d: %s", m->path, t->pid, strerror(-err));
	elf_close(elf);
	return err;
}

/* Tables for the walk through what @t has mapped now. */
static int update_tables(struct source *s, const struct target *t)
{
	const struct traced *told = find_traced(s, t->pid);
	struct proc_stat stat;
	const struct unwind_mappings maps = { .list = &t->maps,
					      .start_sp = proc_read_stat(&stat, t->pid) ? 0 : stat.start_sp,
					      .word = t->is_32bit ? 4 : 8,
					      .removals = told ? told->removals : 0,
					      .execs = told ? told->execs : 0 };
	int err = unwind_tables_set(s->tables, t->pid, &maps);

	/* What threads remember of their last walk may have ended where there was no table yet. */
	__atomic_fetch_add(&s->programs.state->generation, 1, __ATOMIC_RELEASE);
	if (err)
		error("unwind: PID %d: %s", t->pid, strerror(-err));
	return err;
}

/* Probes of an earlier image of the process serve this one too. */
static int note_allocator(const struct source *s, struct target *t, const struct module *m)
{
	const struct file *f = m->id < s->nr_files ? &s->files[m->id] : NULL;

	if (!f || !f->list.nr)
		return 0;
	target_note_blurred(t, &f->list);
	return target_add_allocator(t, m, f->list.kind);
}

static int source_bpf_update(struct source *s, struct target *t)
{
	int err = s->tables ? update_tables(s, t) : 0;

	/* A child whose program it is; others are refused. */
	if (err || target_is_emulator(t->exe))
		return err;
	for (size_t i = 0; i < t->maps.nr; i++) {
		const struct mapping *map = &t->maps.maps[i];

		if (!map->module || map->module->fd < 0 || is_omitted(s, map->module->path))
			continue;
		if (is_placed(s, scope_of(s, t->pid), map->module->id)) {
			err = note_allocator(s, t, map->module);
		} else {
			err = note_placed(s, scope_of(s, t->pid), map->module->id);
			if (err)
				error("probe: PID %d: %s", t->pid, strerror(-err));
			else
				err = update_module(s, t, map);
		}
		if (err)
			return err;
	}
	return 0;
}

static void source_bpf_unchanged(struct source *s, const struct target *t)
{
	const struct traced *told = find_traced(s, t->pid);

	/* Stacks of before are doubtful, those of from now on are not. */
	if (s->tables && told && unwind_tables_confirm(s->tables, t->pid, told->removals))
		__atomic_fetch_add(&s->programs.state->generation, 1, __ATOMIC_RELEASE);
}

static int source_bpf_attach(struct source *s, struct target *t)
{
	struct process_state process = { 0 };
	u32 pid = t->pid;
	int err = note_traced(s, t->pid, NULL);

	if (err)
		error("bpf: PID %d: %s", t->pid, strerror(-err));
	else
		err = source_bpf_update(s, t);
	if (err) {
		forget(s, t->pid);
		return err;
	}
	/* From here on its calls are seen: all probes are in. */
	if (!bpf_map_update_elem(s->programs.processes_fd, &pid, &process, BPF_ANY))
		return 0;
	err = -errno;
	error("bpf: PID %d: %s", t->pid,
	      err == -E2BIG ? "as many processes as can be are traced" : strerror(-err));
	return err;
}

static int source_bpf_fork(struct source *s, struct target *t)
{
	int err = s->tables ? update_tables(s, t) : 0;

	for (size_t i = 0; i < t->maps.nr && !err; i++)
		if (t->maps.maps[i].module)
			err = note_allocator(s, t, t->maps.maps[i].module);
	return err;
}

static void source_bpf_comm(struct source *s, pid_t pid, char comm[TARGET_COMM_LEN])
{
	struct process_state p;
	u32 key = pid;

	if (!bpf_map_lookup_elem(s->programs.processes_fd, &key, &p))
		snprintf(comm, TARGET_COMM_LEN, "%.*s", TARGET_COMM_LEN - 1, p.comm);
}

static void source_bpf_forget(struct source *s, pid_t pid)
{
	u32 key = pid;

	struct traced *t = find_traced(s, pid);

	bpf_map_delete_elem(s->programs.processes_fd, &key);
	if (s->tables)
		unwind_tables_forget(s->tables, pid);
	if (t)
		*t = s->traced[--s->nr_traced];
}

static int source_bpf_wait_fd(struct source *s)
{
	return ring_buffer__epoll_fd(s->ring);
}

static int source_bpf_poll(struct source *s, const struct sink *sink)
{
	s->sink = sink;
	return ring_buffer__consume(s->ring);
}

static void source_bpf_pause(struct source *s, pid_t pid)
{
	u32 key = pid;
	u8 yes = 1;

	if (!bpf_map_update_elem(s->programs.paused_fd, &key, &yes, BPF_NOEXIST))
		s->programs.state->nr_paused++;
}

static void source_bpf_resume(struct source *s, pid_t pid)
{
	u32 key = pid;

	if (!bpf_map_delete_elem(s->programs.paused_fd, &key))
		s->programs.state->nr_paused--;
}

static int source_bpf_set_depth(struct source *s, u32 depth)
{
	if (depth && !s->tables)
		return -EOPNOTSUPP;
	s->programs.state->depth = depth;
	/* What threads remember of their last stacks was cut elsewhere. */
	__atomic_fetch_add(&s->programs.state->generation, 1, __ATOMIC_RELEASE);
	return 0;
}

static struct losses source_bpf_losses(struct source *s, pid_t pid)
{
	struct process_state p;
	u32 key = pid;

	if (bpf_map_lookup_elem(s->programs.processes_fd, &key, &p))
		return (struct losses){ 0 };
	return (struct losses){ .allocs = p.lost_allocs,
				.frees = p.lost_frees,
				.stacks = p.lost_stacks,
				.other = p.lost_other + p.abandoned,
				.abandoned = p.abandoned,
				.unfollowed = p.unfollowed,
				.sharers = p.sharers };
}

static void source_bpf_forget_stacks(struct source *s)
{
	u64 id;

	for (u32 i = 0; i < MAX_STACKS_SEEN; i++)
		if (bpf_map_get_next_key(s->programs.stacks_seen_fd, NULL, &id) ||
		    bpf_map_delete_elem(s->programs.stacks_seen_fd, &id))
			break;
	/* A thread that repeats its last stack does not look there. */
	__atomic_fetch_add(&s->programs.state->generation, 1, __ATOMIC_RELEASE);
}

static void source_bpf_detach(struct source *s)
{
	struct unwind_stats stats = s->tables ? unwind_tables_stats(s->tables) : (struct unwind_stats){ 0 };

	s->programs.state->is_on = 0;
	link_set_free(s->links);
	s->links = NULL;
	debug("unwind: %" PRIu64 " files, %" PRIu64 " rows, %" PRIu64 " KiB in the kernel", stats.nr_files,
	      stats.nr_rows, stats.kernel_bytes >> 10);
}

static void source_bpf_free(struct source *s)
{
	if (!s)
		return;
	link_set_free(s->links);
	ring_buffer__free(s->ring);
	unwind_tables_free(s->tables);
	programs_unload(&s->programs);
	for (size_t i = 0; i < s->nr_files; i++)
		probe_list_fini(&s->files[i].list);
	free(s->files);
	free(s->placements);
	free(s->traced);
	free(s);
}

const struct source_ops source_bpf = {
	.name = "bpf",
	.probe = source_bpf_probe,
	.create = source_bpf_create,
	.attach = source_bpf_attach,
	.update = source_bpf_update,
	.unchanged = source_bpf_unchanged,
	.fork = source_bpf_fork,
	.comm = source_bpf_comm,
	.forget = source_bpf_forget,
	.wait_fd = source_bpf_wait_fd,
	.poll = source_bpf_poll,
	.pause = source_bpf_pause,
	.resume = source_bpf_resume,
	.set_depth = source_bpf_set_depth,
	.losses = source_bpf_losses,
	.forget_stacks = source_bpf_forget_stacks,
	.detach = source_bpf_detach,
	.free = source_bpf_free,
};
