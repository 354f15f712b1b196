/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF source: uprobes on the allocators of each target, events through one ring. */
#include "user/source/source_bpf_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "user/lib/array.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source/alt_stacks.h"
#include "user/source/chosen_names.h"
#include "user/source/kernel_facts.h"
#include "user/source/kernel_ring.h"
#include "user/source/task_layout.h"
#include "user/unwind/unwind_tables.h"

enum { DEFAULT_RING_BYTES = 8 << 20, WAKE_FRACTION = 8 };

/*
 * Links with a PID filter spare all other processes, but each adds 25 to 45 ns to a pair of malloc and free in every
 * process with such a link on the file. From so many on, a pair costs 1.7 times what it costs with one link for all,
 * which costs processes that are not traced 1.3 us a pair (doc/probes.md).
 */
enum { SHARED_FROM = 32 };

/* As number of children: as many as if there were no room for more. */
enum { NO_MORE_FOLLOWED = INT32_MAX };

static struct bpf_source *source_bpf_self(const struct source *s)
{
	return (struct bpf_source *)(uintptr_t)s;
}

static void forget_links(struct bpf_source *s, pid_t pid, int (*drop)(struct link_set *set, pid_t pid))
{
	/* After detach no link is left, but records of exec may still come. Shared ones are no process's own. */
	int err = s->links && !(s->options.taker && s->is_shared) ? drop(s->links, pid) : 0;

	if (err)
		warn("bpf: PID %d: its probes stay until heaptap ends: %s", pid, strerror(-err));
	for (size_t i = 0; i < s->nr_linked;)
		if (s->linked[i].pid == pid)
			s->linked[i] = s->linked[--s->nr_linked];
		else
			i++;
}

void source_bpf_drop_probes(struct bpf_source *s, pid_t pid)
{
	forget_links(s, pid, link_set_drop);
	placing_forget(&s->placing, pid);
}

struct bpf_process *source_bpf_find(const struct bpf_source *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		if (s->processes[i].pid == pid)
			return &s->processes[i];
	return NULL;
}

/* Begin with process @pid. A copy of @parent (NULL = of none) has its mappings, as they were reported, and probes. */
static int source_bpf_add_process(struct bpf_source *s, pid_t pid, const struct bpf_process *parent,
				  bool is_image)
{
	const struct bpf_process p = { .pid = pid,
				       .is_image = is_image,
				       .removals = parent ? parent->removals : 0,
				       .is_declined = parent && !is_image && parent->is_declined };
	struct bpf_process *old = source_bpf_find(s, pid);
	int err = old ? 0 : array_reserve(s->processes, s->max_processes, s->nr_processes + 1);

	if (!err)
		*(old ? old : &s->processes[s->nr_processes++]) = p;
	if (!err && s->config.stops_at_maps && s->links)
		link_set_guard(s->links, pid);
	return err;
}

/* Another program has breakpoints of its own. @stays: those links see it that saw the one before. */
static void begin_image(struct bpf_process *t, u32 execs, bool stays)
{
	if (t->execs != execs) {
		t->overwritten += t->nr_overwritten;
		t->nr_overwritten = 0;
		t->is_declined &= stays;
		t->is_image = true;
		t->is_late = t->is_resting = false;
	}
	t->execs = execs;
}

/*
 * The mappings have changed, or are those of another program. From now on newer ones are read. False: the program has
 * been replaced since, which a later record tells.
 */
static bool note_change(struct bpf_source *s, const struct process_event *rec)
{
	struct bpf_process *t = source_bpf_find(s, (pid_t)rec->h.pid);
	struct process_state process;

	if (!t)
		return true;
	begin_image(t, rec->exit_status, s->options.begins_by_bpf);
	if (bpf_map_lookup_elem(s->programs.processes_fd, &rec->h.pid, &process))
		return true;
	t->removals = process.removals;
	t->epoch = process.epoch;
	return t->execs == process.execs;
}

/*
 * If a thread that was not the first one has called exec, the links, which hold the first one, see nothing of the new
 * image. The caller updates or forgets the process after this.
 */
static int source_bpf_on_exec(struct bpf_source *s, const struct process_event *rec)
{
	const struct bpf_process *known = source_bpf_find(s, (pid_t)rec->h.pid);
	/* Links see the new image from its start. */
	bool is_bpf = !s->options.taker || (s->options.begins_by_bpf && known && known->is_declined);
	struct process_event ev = *rec;

	bool is_gone = !note_change(s, rec), is_emulator = !is_gone && bystander_is_emulator((pid_t)ev.h.pid);

	if (is_gone)
		ev.h.flags |= EVENT_GONE;
	if (is_emulator && s->is_shared)
		bystanders_tell(&s->bystanders, (pid_t)ev.h.pid);
	if (is_emulator || (ev.child_pid && ev.child_pid != ev.h.pid) || !is_bpf)
		source_bpf_drop_probes(s, (pid_t)ev.h.pid);
	ev.child_pid = ev.exit_status = 0;
	return s->sink->record(s->sink->ctx, &ev.h, sizeof(ev));
}

/*
 * The dynamic linker has changed mappings. They are read once for all changes until now: a program that loads
 * thousands of libraries has as many records in the ring, and each reading is of thousands of lines.
 */
static int source_bpf_on_maps(struct bpf_source *s, const struct process_event *rec)
{
	const struct bpf_process *t = source_bpf_find(s, (pid_t)rec->h.pid);
	struct process_event ev = *rec;

	if (rec->h.flags & EVENT_ENDING) {
		ev.child_pid = ev.exit_status = 0;
		return s->sink->record(s->sink->ctx, &ev.h, sizeof(ev));
	}
	/* A thread that was stopped at its change waits for each answer. */
	if (t && t->execs == rec->exit_status && !s->config.stops_at_maps &&
	    (s32)(rec->child_pid - t->epoch) <= 0)
		return 0;
	if (!note_change(s, rec))
		return 0;
	ev.child_pid = ev.exit_status = 0;
	return s->sink->record(s->sink->ctx, &ev.h, sizeof(ev));
}

static int source_bpf_on_fork(struct bpf_source *s, const struct process_event *rec)
{
	pid_t parent = (pid_t)rec->h.pid, child = (pid_t)rec->child_pid;
	bool is_image = rec->h.flags & EVENT_NO_COPY, has_probes = s->options.taker && !is_image;
	int err = source_bpf_add_process(s, child, source_bpf_find(s, parent), is_image);

	/* Probes of a taker are in its copy of the memory. An earlier process may have had the PID. */
	if (s->options.taker)
		placing_forget(&s->placing, child);
	return err || !has_probes ? err : placing_copy(&s->placing, parent, child);
}

static int source_bpf_on_record(void *ctx, void *data, size_t len)
{
	const struct event_header *rec = data;
	const struct process_event *change = data; /* of these kinds, which only our programs send */
	struct bpf_source *s = ctx;
	struct heap_event mapping;

	source_bpf_samples_see(s, rec);
	if (rec->kind == EVENT_EXEC)
		return source_bpf_on_exec(s, change);
	if (rec->kind == EVENT_MAPS)
		return source_bpf_on_maps(s, change);
	if (rec->kind == EVENT_LOSSES)
		source_bpf_tell_of_copy(s, (pid_t)rec->pid);
	if (rec->kind == EVENT_FORK && source_bpf_on_fork(s, change))
		return -ENOMEM;
	rec = source_bpf_mapping_event(s, rec, &mapping);
	return rec ? s->sink->record(s->sink->ctx, rec, len) : 0;
}

static int source_bpf_probe(struct caps *caps)
{
	return caps_probe(caps, CAPS_QUICK);
}

/* Children are followed by their PIDs: find out where the kernel keeps those. Others are chosen by @names. */
static int begin_following(const struct bpf_source *s, const struct chosen_names *names,
			   struct kernel_facts *facts)
{
	int err = 0;
	u32 zero = 0;

	if (facts->pid_at)
		s->programs.state->task_pid_at = facts->pid_at;
	else
		err = task_layout_find(&s->programs);
	facts->pid_at = s->programs.state->task_pid_at;
	if (err)
		error("--follow: cannot find the PIDs of new processes here: %s", strerror(-err));
	else if (s->config.has_chosen && bpf_map_update_elem(s->programs.chosen_fd, &zero, names, BPF_ANY))
		err = -errno;
	return err;
}

/* Which programs are traced from their exec on; false = none. A taker wants to stop a process first. */
static bool find_chosen(const struct bpf_source *s, struct chosen_names *names)
{
	if (!s->options.chosen || s->options.taker || !s->config.max_followed)
		return false;
	return !chosen_names_make(names, s->options.chosen);
}

/* Find the fields by which a thread is seen that blocks signals, or that is traced. */
static void find_stop_fields(const struct bpf_source *s, struct kernel_facts *facts)
{
	struct source_state *state = s->programs.state;

	if (facts->has_stop_at) {
		state->task_blocked_at = facts->blocked_at;
		state->task_ptrace_at = facts->ptrace_at;
	} else if (!s->config.stops_at_maps && !s->options.wants_end) {
		return;
	} else if (task_layout_find_stop(&s->programs)) {
		if (s->config.stops_at_maps)
			warn("bpf: cannot see which threads block SIGCHLD: calls right after their dlopen may be "
			     "missed");
	} else {
		facts->has_stop_at = true;
		facts->blocked_at = state->task_blocked_at;
		facts->ptrace_at = state->task_ptrace_at;
	}
}

static void look_up_types(struct bpf_source *s, struct kernel_facts *facts)
{
	if (!facts->has_types)
		kernel_facts_add_types(facts);
	if (s->config.stops_at_maps)
		s->programs.state->pending = facts->pending;
	/* Without it, a child in the memory of a target that waits for it is not counted. */
	if (s->is_multi && !s->config.max_followed)
		s->programs.state->task = facts->task;
	if (alt_stacks_new(&s->alt_stacks, &facts->alt_stack, s->config.pid_ns_ino != 0))
		debug("bpf: the kernel does not list signal stacks: blocks that are such stacks may be called lost");
}

static void choose_probes(const struct bpf_source *s, struct placing_options *placing,
			  const struct caps *caps)
{
	const struct source_options *o = &s->options;

	placing->probes.wants_tracers = o->stops_at_maps && o->max_followed;
	/* Without --follow, a child in the memory of its parent that comes to a probe counts as unseen. */
	placing->probes.wants_exec = o->probes.wants_exec && s->config.max_followed &&
				     (o->stops_at_maps || (s->config.waits_at_end && s->programs.has_loop));
	placing->probes.no_uretprobe = !o->taker && !caps->is_uretprobe_safe;
	placing->probes.sees_system_calls = s->config.mapping.mmap_fn;
	placing->probes.wants_end = s->config.waits_at_end && s->programs.has_loop;
	/* A taker's probes are each process's own. */
	placing->is_shared = s->is_shared && !o->taker;
}

static int source_bpf_create(struct source **out, const struct source_options *options,
			     const struct caps *caps)
{
	struct bpf_source *s = calloc(1, sizeof(*s));
	struct placing_options placing = { .probes = options->probes,
					   .omit = options->omit,
					   .usdt = options->usdt };
	struct kernel_facts_file facts = caps->facts;
	struct chosen_names chosen;
	u64 ring_bytes = options->ring_bytes ? options->ring_bytes : DEFAULT_RING_BYTES;
	int err;

	if (!s)
		return -ENOMEM;
	s->options = *options;
	/* Where the multi link's pid filter is wrong, perf links are right. */
	s->is_multi = caps->has_uprobe_multi && caps->is_multi_pid_exact;
	s->is_cookie_fixed = !caps->has_cookie;
	s->way = caps->way;
	s->stats_fd = -1;
	s->config.depth = options->depth;
	programs_find_pid_namespace(&s->config);
	s->config.stops_at_maps = options->stops_at_maps;
	s->config.max_followed = options->max_followed;
	if (s->config.pid_ns_ino && options->max_followed) {
		warn("bpf: children are not followed: heaptap is in a PID namespace, where PIDs are others");
		s->config.max_followed = 0;
	}
	/* A thread that waits has one CPU, and heaptap needs another one. */
	s->config.waits_at_end = options->wants_end && sysconf(_SC_NPROCESSORS_ONLN) > 1;
	s->config.has_chosen = find_chosen(s, &chosen);
	s->config.has_free_stacks = options->want_free_stacks;
	s->config.has_numbers = options->taker != NULL;
	s->config.seen_sets = options->taker && !options->begins_by_bpf ? FEW_SEEN_SETS : SEEN_SETS;
	s->config.wake_bytes = ring_bytes / WAKE_FRACTION;
	s->config.is_cookie_fixed = s->is_cookie_fixed;
	s->config.mapping = source_bpf_mapping_rows(options);
	s->programs.has_loop = facts.now.has_loop;
	err = source_bpf_samples_load(s, ring_bytes);
	if (err)
		goto undo_source;
	err = link_set_new(&s->links, &s->programs, options->changer);
	if (err)
		goto undo_programs;
	if (options->depth)
		err = unwind_tables_new(&s->tables, &(struct unwind_kernel_maps){ s->programs.shards_fd,
										  s->programs.slabs_fd,
										  s->programs.slots_fd });
	if (err)
		goto undo_links;
	err = kernel_ring_new(&s->ring, s->programs.ring_fd, source_bpf_on_record, s);
	if (err)
		goto undo_tables;
	err = link_set_add_in_kernel(s->links, &s->programs, s->config.mapping.mmap_fn);
	if (!err && s->config.max_followed)
		err = begin_following(s, &chosen, &facts.now);
	if (err)
		goto undo_ring;
	find_stop_fields(s, &facts.now);
	look_up_types(s, &facts.now);
	facts.now.has_loop = s->programs.has_loop;
	kernel_facts_keep(&facts, KERNEL_FACTS_BASE);
	s->programs.state->depth = options->depth;
	if (options->follows_later)
		s->programs.state->nr_followed = NO_MORE_FOLLOWED;
	s->programs.state->is_on = 1;
	s->is_shared = s->config.max_followed != 0;
	choose_probes(s, &placing, caps);
	placing_init(&s->placing, options->taker ? &bpf_place_for_taker : &bpf_place, s, &placing);
	*out = (struct source *)s;
	return 0;
undo_ring:
	kernel_ring_free(s->ring);
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

/* Beside a taker, stacks are walked at markers and in processes that it declines: else nobody needs tables here. */
static bool needs_tables(const struct bpf_source *s)
{
	return s->tables && (!s->options.taker || s->walks_stacks);
}

int source_bpf_update_tables(struct bpf_source *s, const struct target *t)
{
	const struct bpf_process *known = source_bpf_find(s, t->pid);
	struct proc_stat stat;
	const struct unwind_mappings maps = { .list = &t->maps,
					      .start_sp = proc_read_stat(&stat, t->pid) ? 0 : stat.start_sp,
					      .word = t->is_32bit ? 4 : 8,
					      .removals = known ? known->removals : 0,
					      .execs = known ? known->execs : 0 };
	int err = unwind_tables_set(s->tables, t->pid, &maps);

	/* The last walk of a thread, which the programs remember, may have ended where there was no table yet. */
	__atomic_fetch_add(&s->programs.state->generation, 1, __ATOMIC_RELEASE);
	if (err)
		error("unwind: PID %d: %s", t->pid, strerror(-err));
	return err;
}

int source_bpf_update(struct source *source, struct target *t)
{
	struct bpf_source *s = source_bpf_self(source);
	const struct bpf_process *known = source_bpf_find(s, t->pid);
	int err = needs_tables(s) ? source_bpf_update_tables(s, t) : 0;

	/* No probes after detach, nor in a child that has become an emulator: as a target it would be refused. */
	if (err || !s->links || (known && known->is_resting) || target_is_emulator(t->exe))
		return err;
	err = placing_update(&s->placing, t);
	if (err == -ESRCH)
		error("bpf: PID %d: %s", t->pid, strerror(-err));
	if (err >= 0)
		source_bpf_watch_code(s, t);
	source_bpf_mapping_note(s, t);
	return err;
}

static bool source_bpf_unchanged(struct source *source, const struct target *t)
{
	struct bpf_source *s = source_bpf_self(source);
	const struct bpf_process *known = source_bpf_find(s, t->pid);

	/* Earlier stacks are doubtful, stacks from now on are not. */
	if (s->tables && known && unwind_tables_confirm(s->tables, t->pid, known->removals))
		__atomic_fetch_add(&s->programs.state->generation, 1, __ATOMIC_RELEASE);
	return placing_is_intact(&s->placing, t->pid);
}

/* From now on probes see the calls of all processes. Those of a taker are each process's own. */
static void source_bpf_share(struct bpf_source *s)
{
	s->is_shared = true;
	s->placing.options.is_shared = !s->options.taker;
}

static void source_bpf_expect(struct source *source, size_t nr)
{
	struct bpf_source *s = source_bpf_self(source);

	if (nr < SHARED_FROM || s->placing.nr_placements)
		return;
	source_bpf_share(s);
}

/*
 * The kernel finds the memory of a process by its main thread. Where that has ended, probes must see all processes.
 * 0, or -ESRCH, logged: other probes are in already that do not.
 */
static int expect_no_leader(struct bpf_source *s, const struct target *t)
{
	if (s->is_shared || proc_reader(t->pid) == t->pid)
		return 0;
	if (s->placing.nr_placements) {
		error("bpf: PID %d (%s): its main thread has ended: trace it alone", t->pid, t->comm);
		return -ESRCH;
	}
	source_bpf_share(s);
	return 0;
}

static int source_bpf_attach(struct source *source, struct target *t)
{
	struct bpf_source *s = source_bpf_self(source);
	struct process_state process = { 0 };
	u32 pid = t->pid;
	int err = expect_no_leader(s, t), nr;

	if (err)
		return err;
	err = source_bpf_add_process(s, t->pid, NULL, false);
	if (err)
		error("bpf: PID %d: %s", t->pid, strerror(-err));
	else
		source_bpf_find(s, t->pid)->tracers = bystander_traces(t->pid);
	process.brk = source_bpf_mapping_brk(s, t->pid);
	nr = err ? err : source_bpf_update(source, t);
	if (nr < 0) {
		source_bpf_drop_probes(s, t->pid);
		return nr;
	}
	/* All probes are in: from here on its calls are seen. */
	if (!bpf_map_update_elem(s->programs.processes_fd, &pid, &process, BPF_ANY))
		return nr;
	err = -errno;
	error("bpf: PID %d: %s", t->pid,
	      err == -E2BIG ? "as many processes as can be are traced" : strerror(-err));
	return err;
}

static int source_bpf_fork(struct source *source, struct target *t)
{
	struct bpf_source *s = source_bpf_self(source);
	int err = needs_tables(s) ? source_bpf_update_tables(s, t) : 0;

	return err ? err : placing_note_allocators(&s->placing, t);
}

static void source_bpf_comm(struct source *source, pid_t pid, char comm[TARGET_COMM_LEN])
{
	struct bpf_source *s = source_bpf_self(source);
	struct process_state p;
	u32 key = pid;

	if (!bpf_map_lookup_elem(s->programs.processes_fd, &key, &p))
		snprintf(comm, TARGET_COMM_LEN, "%.*s", TARGET_COMM_LEN - 1, p.comm);
}

static void source_bpf_forget(struct source *source, pid_t pid)
{
	struct bpf_source *s = source_bpf_self(source);
	struct bpf_process *t = source_bpf_find(s, pid);

	s->samples.has_gone = true;
	programs_drop_process(&s->programs, pid);
	if (s->tables)
		unwind_tables_forget(s->tables, pid);
	if (s->options.taker)
		placing_forget(&s->placing, pid);
	forget_links(s, pid, link_set_leave);
	if (t)
		*t = s->processes[--s->nr_processes];
}

static int source_bpf_wait_fd(struct source *source)
{
	return kernel_ring_fd(source_bpf_self(source)->ring);
}

static int source_bpf_poll(struct source *source, const struct sink *sink)
{
	struct bpf_source *s = source_bpf_self(source);
	bool is_alive = !s->links || link_set_is_alive(s->links), has_ended;
	u32 pid;
	int nr;

	s->sink = sink;
	pid = s->programs.state->hyphen_pid;
	s->programs.state->hyphen_pid = 0;
	if (pid && s->is_shared && bystander_is_emulator((pid_t)pid))
		bystanders_tell(&s->bystanders, (pid_t)pid);
	nr = kernel_ring_poll(s->ring);
	source_bpf_samples_poll(s);
	if (s->links && is_alive)
		copies_sweep(&s->copies, s->links, &s->programs, s->programs.state->nr_copies);
	if (nr < 0 || is_alive)
		return nr;
	has_ended = link_set_has_ended(s->links);
	if (!has_ended)
		error("bpf: the process that held the probes was killed or has failed: nothing is traced any more");
	link_set_free(s->links);
	s->links = NULL;
	return has_ended ? -ENODATA : -EPIPE;
}

static size_t source_bpf_lifelines(struct source *source, int fds[SOURCE_MAX_LIFELINES])
{
	struct bpf_source *s = source_bpf_self(source);

	fds[0] = s->links ? link_set_lifeline(s->links) : -1;
	return fds[0] >= 0;
}

static void source_bpf_pause(struct source *source, pid_t pid)
{
	programs_pause(&source_bpf_self(source)->programs, pid, true);
}

static void source_bpf_resume(struct source *source, pid_t pid)
{
	programs_pause(&source_bpf_self(source)->programs, pid, false);
}

static int source_bpf_leave(struct source *source, const struct module *m)
{
	struct bpf_source *s = source_bpf_self(source);
	int err = s->links && s->is_shared ? link_set_drop_group(s->links, m->id + 1) : -EOPNOTSUPP;

	if (err)
		return err;
	placing_leave(&s->placing, m);
	for (size_t i = 0; i < s->nr_processes; i++)
		bpf_map_delete_elem(s->programs.watched_codes_fd, &s->processes[i].pid);
	return 0;
}

static void source_bpf_copying(struct source *source, pid_t pid, bool is_on)
{
	struct source_state *state = source_bpf_self(source)->programs.state;

	__atomic_store_n(&state->copied_pid, is_on ? (u32)pid : 0, __ATOMIC_SEQ_CST);
}

static bool source_bpf_wait_for(struct source *source, const struct call_wish *wish)
{
	return call_wish_set(&source_bpf_self(source)->programs.state->wish, wish);
}

static void source_bpf_follow(struct source *source, bool is_on)
{
	struct bpf_source *s = source_bpf_self(source);

	__atomic_store_n(&s->programs.state->nr_followed, is_on ? 0 : NO_MORE_FOLLOWED, __ATOMIC_SEQ_CST);
}

static int source_bpf_set_depth(struct source *source, u32 depth)
{
	struct bpf_source *s = source_bpf_self(source);
	if (depth && !s->tables)
		return -EOPNOTSUPP;
	s->programs.state->depth = depth;
	/* The last stacks of threads, which the programs remember, have the former depth. */
	__atomic_fetch_add(&s->programs.state->generation, 1, __ATOMIC_RELEASE);
	return 0;
}

static struct losses source_bpf_losses(struct source *source, pid_t pid)
{
	struct bpf_source *s = source_bpf_self(source);
	const struct bpf_process *known = source_bpf_find(s, pid);
	u64 overwritten = known ? known->overwritten + known->nr_overwritten : 0;
	struct process_state p;
	u32 key = pid;

	if (bpf_map_lookup_elem(s->programs.processes_fd, &key, &p))
		return (struct losses){ 0 };
	/* Places that a look found may be among those of the end, and in a copy that is where the code was. */
	overwritten = overwritten > p.overwritten ? overwritten : p.overwritten;
	if (known && overwritten < known->nr_copied)
		overwritten = known->nr_copied;
	return (struct losses){ .allocs = p.lost_allocs,
				.frees = p.lost_frees,
				.stacks = p.lost_stacks,
				.other = p.lost_other + p.abandoned + overwritten,
				.abandoned = p.abandoned,
				.unfollowed = p.unfollowed,
				.sharers = p.sharers,
				.overwritten = overwritten,
				.late = known ? known->late : 0,
				.tracers = known ? known->tracers : 0 };
}

static void source_bpf_look(struct source *source, const struct target *t)
{
	struct bpf_source *s = source_bpf_self(source);
	struct bpf_process *known = source_bpf_find(s, t->pid);
	const char *function = NULL;
	bool is_ours = s->links && source_bpf_has_breakpoints(s, known);
	size_t nr = is_ours ? placing_look(&s->placing, t, &function) : 0;
	bool is_over = is_ours && (!s->programs.state->is_on || !link_set_is_alive(s->links));

	if (is_over || !nr || nr <= known->nr_overwritten)
		return;
	s->nr_overwritten += nr - known->nr_overwritten;
	known->nr_overwritten = (u32)nr;
	bystander_tell_overwritten(t->pid, function);
}

static u64 source_bpf_nr_losses(struct source *source)
{
	struct bpf_source *s = source_bpf_self(source);

	return __atomic_load_n(&s->programs.state->nr_losses, __ATOMIC_ACQUIRE) + s->nr_overwritten +
	       s->nr_late;
}

static bool source_bpf_nr_unchosen(struct source *source, u64 *nr)
{
	struct bpf_source *s = source_bpf_self(source);

	*nr = __atomic_load_n(&s->programs.state->nr_unchosen, __ATOMIC_ACQUIRE);
	return s->config.has_chosen;
}

static void stop_measuring(struct bpf_source *s)
{
	if (s->stats_fd >= 0)
		close(s->stats_fd);
	s->stats_fd = -1;
}

static int source_bpf_measure(struct source *source, bool is_on, struct probe_runs *out)
{
	struct bpf_source *s = source_bpf_self(source);
	struct source_state *state = s->programs.state;
	struct probe_runs now = { .nr_own = state->nr_own_runs,
				  .nr_own_steps = state->nr_own_steps,
				  .nr_calls = state->nr_own_calls,
				  .inside_ns = state->inside_ns,
				  .nr_inside = state->nr_inside,
				  .least_inside_ns = state->least_inside_ns };
	int err;

	/* Each place has a program of its own, which nobody keeps. */
	if (s->is_cookie_fixed || (!is_on && s->stats_fd < 0))
		return -EOPNOTSUPP;
	err = programs_add_runs(&s->programs, &now);
	for (int i = 0; i < PROGRAM_THREAD_EXIT && !err; i++)
		err = programs_add_runs(&s->late[i], &now);
	if (!is_on)
		stop_measuring(s);
	if (is_on)
		state->least_inside_ns = 0;
	state->is_measured = is_on;
	if (err)
		return err;
	probe_runs_between(out, &s->runs, &now, &s->way);
	s->runs = now;
	return is_on && s->stats_fd < 0 ? programs_measure(&s->stats_fd) : 0;
}

static struct thread_stop source_bpf_stop_reason(struct source *source, pid_t tid)
{
	struct bpf_source *s = source_bpf_self(source);
	struct thread_stop why = { .why = THREAD_STOP_LOOK };
	u32 key = tid;

	if (!bpf_map_lookup_elem(s->programs.stops_fd, &key, &why))
		bpf_map_delete_elem(s->programs.stops_fd, &key);
	return why;
}

static void source_bpf_forget_stacks(struct source *source)
{
	struct bpf_source *s = source_bpf_self(source);

	programs_forget_stacks(&s->programs, &s->config);
	/* A thread that repeats its last stack does not look into that map: make it forget the stack. */
	__atomic_fetch_add(&s->programs.state->generation, 1, __ATOMIC_RELEASE);
}

static int source_bpf_kernel_words(const struct source *source, pid_t pid,
				   int (*add)(void *ctx, taddr_t word), void *ctx)
{
	const struct bpf_source *s = source_bpf_self(source);

	return s->alt_stacks ? alt_stacks_read(s->alt_stacks, pid, add, ctx) : 0;
}

static void source_bpf_detach(struct source *source)
{
	struct bpf_source *s = source_bpf_self(source);
	struct unwind_stats stats = s->tables ? unwind_tables_stats(s->tables) : (struct unwind_stats){ 0 };

	if (s->links)
		placing_report_missing(&s->placing);
	s->programs.state->is_on = 0;
	link_set_free(s->links);
	s->links = NULL;
	debug("unwind: %" PRIu64 " files, %" PRIu64 " rows, %" PRIu64 " KiB in the kernel", stats.nr_files,
	      stats.nr_rows, stats.kernel_bytes >> 10);
}

static void source_bpf_free(struct source *source)
{
	struct bpf_source *s = source_bpf_self(source);
	if (!s)
		return;
	stop_measuring(s);
	link_set_free(s->links);
	kernel_ring_free(s->ring);
	unwind_tables_free(s->tables);
	alt_stacks_free(s->alt_stacks);
	for (int i = 0; i < PROGRAM_THREAD_EXIT; i++)
		programs_unload(&s->late[i]);
	programs_unload(&s->programs);
	placing_fini(&s->placing);
	copies_fini(&s->copies);
	free(s->linked);
	free(s->processes);
	free(s);
}

const struct source_ops source_bpf = {
	.name = "bpf",
	.probe = source_bpf_probe,
	.create = source_bpf_create,
	.expect = source_bpf_expect,
	.attach = source_bpf_attach,
	.update = source_bpf_update,
	.unchanged = source_bpf_unchanged,
	.fork = source_bpf_fork,
	.comm = source_bpf_comm,
	.forget = source_bpf_forget,
	.keep_files = IS_AGENT ? NULL : source_bpf_place_keep_files,
	.wait_fd = source_bpf_wait_fd,
	.poll = source_bpf_poll,
	.pause = source_bpf_pause,
	.resume = source_bpf_resume,
	.leave = source_bpf_leave,
	.rest = source_bpf_rest,
	.way = source_bpf_way,
	.copying = source_bpf_copying,
	.wait_for = source_bpf_wait_for,
	.follow = source_bpf_follow,
	.set_depth = source_bpf_set_depth,
	.losses = source_bpf_losses,
	.nr_losses = source_bpf_nr_losses,
	.nr_unchosen = source_bpf_nr_unchosen,
	.look = source_bpf_look,
	.measure = source_bpf_measure,
	.stop_reason = source_bpf_stop_reason,
	.trapped = source_bpf_trapped,
	.forget_stacks = source_bpf_forget_stacks,
	.kernel_words = source_bpf_kernel_words,
	.lifelines = source_bpf_lifelines,
	.detach = source_bpf_detach,
	.free = source_bpf_free,
};
