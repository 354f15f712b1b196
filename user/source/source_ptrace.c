/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ptrace source: breakpoints on the allocators of each target, planted and served by the guardian. */
#include "user/source/source_ptrace_private.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fallback/guardian.h"
#include "fallback/ring.h"
#include "fallback/trial.h"
#include "user/unwind/cfi.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/lib/own_tracer.h"
#include "user/lib/proc.h"
#include "user/lib/random.h"
#include "user/lib/yama.h"
#include "user/source/changed_code.h"
#include "user/source/limits.h"
#include "user/source/source_tracer.h"

enum { DEFAULT_RING_BYTES = 8 << 20, MAX_PROBED = 65536, CHECK_POLLS = 50 /* a second */ };
static const u64 launch_wait_ns = 10ULL * 1000 * 1000 * 1000;

static struct ptrace_source *source_ptrace_self(const struct source *s)
{
	return (struct ptrace_source *)(uintptr_t)s;
}

/* Describe functions to the guardian. */
static int source_ptrace_add_probes(void *ctx, u32 first, const struct call_probe *probes, u32 nr)
{
	const struct ptrace_source *s = ctx;

	return guardian_set_probes(s->guardian, first, probes, nr);
}

static int source_ptrace_add_notes(void *ctx, u32 first, const struct note_probe *notes, u32 nr)
{
	const struct ptrace_source *s = ctx;

	return guardian_set_notes(s->guardian, first, notes, nr);
}

static bool has_taker(const struct ptrace_source *s)
{
	return !IS_AGENT && s->options.taker;
}

struct attached *source_ptrace_find(const struct ptrace_source *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_attached; i++)
		if (s->attached[i].pid == pid)
			return &s->attached[i];
	return NULL;
}

static int source_ptrace_put_in_file(void *ctx, const struct target *t, const struct mapping *map,
				     const struct probed_file *f, struct elf *elf)
{
	(void)elf;
	return source_ptrace_put_in(ctx, t, map, f, 0);
}

static int is_ptrace_call(void *ctx, const struct elf_symbol *sym)
{
	bool *calls = ctx;

	*calls |= sym->shndx == SHN_UNDEF && !strcmp(sym->name, "ptrace");
	return 0;
}

/* A debugger that is followed cannot trace what the guardian traces. */
static void warn_of_tracer(const struct module *m, struct elf *elf)
{
	bool calls = false;

	if (!elf_each_symbol(elf, ELF_DYNSYM, is_ptrace_call, &calls) && calls)
		warn("ptrace: %s: it calls ptrace(), which fails for processes that --follow traces by "
		     "ptrace" TEXT_OF_HOST("; use --backend bpf"),
		     m->path);
}

/* Give the guardian the rows for walks through @m. A file without rows is no error. */
static int source_ptrace_give_table(void *ctx, const struct module *m, struct elf *elf)
{
	const struct ptrace_source *s = ctx;
	struct cfi_table *cfi;
	struct command_table table = { .id = m->id };
	int err = s->options.depth ? cfi_load(&cfi, elf) : -ENOENT;

	if (s->options.max_followed)
		warn_of_tracer(m, elf);
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

static int source_ptrace_forget_range(void *ctx, pid_t pid, taddr_t start, taddr_t end)
{
	const struct ptrace_source *s = ctx;

	return guardian_do(s->guardian, COMMAND_REMOVE, pid, start, end);
}

const struct placing_ops ptrace_place = {
	.is_per_mapping = true,
	.max_probes = MAX_PROBED,
	.add_probes = source_ptrace_add_probes,
	.add_notes = source_ptrace_add_notes,
	.new_file = source_ptrace_give_table,
	.put_in = source_ptrace_put_in_file,
	.forget_range = source_ptrace_forget_range,
};

static int source_ptrace_probe(struct caps *caps)
{
	int err = trial_ptrace();
	char text[192];
	const char *tracer = !IS_AGENT && err == -EPERM ? own_tracer_reason(text, sizeof(text)) : NULL;

	memset(caps, 0, sizeof(*caps));
	if (err)
		snprintf(caps->reason, sizeof(caps->reason), "%s",
			 tracer		 ? tracer
			 : err == -EPERM ? "ptrace(2) is not permitted here (a seccomp filter?)"
			 : err == -EACCES
				 ? "code cannot be written through /proc/PID/mem (proc_mem.force_override?)"
				 : strerror(-err));
	return err;
}

/* A ring that is rounded up takes at most a quarter of the address space. */
static u64 source_ptrace_ring_bytes(void)
{
	struct rlimit space;

	if (getrlimit(RLIMIT_AS, &space) || space.rlim_cur / 8 > DEFAULT_RING_BYTES)
		return DEFAULT_RING_BYTES;
	return space.rlim_cur / 8;
}

static int source_ptrace_create(struct source **out, const struct source_options *options,
				const struct caps *caps)
{
	/* The libraries of a program that we start are read while it is stopped, which takes long on slow machines. */
	struct tracer_options to = { .depth = options->depth,
				     .max_wait_ns = options->stops_at_maps ? launch_wait_ns : 0,
				     .has_free_stacks = options->want_free_stacks,
				     .holds_ends = !IS_AGENT && options->wants_end,
				     .max_followed = options->max_followed,
				     .changer = IS_AGENT ? NULL : options->changer,
				     .sample_bytes =
					     !IS_AGENT && does_sample(options) ? options->sample_bytes : 0 };
	struct placing_options placing = { .probes = options->probes,
					   .omit = options->omit,
					   .usdt = options->usdt };
	u64 ring_bytes = options->ring_bytes ? options->ring_bytes : source_ptrace_ring_bytes();
	struct ptrace_source *s = calloc(1, sizeof(*s));
	int err;

	(void)caps;
	if (!s)
		return -ENOMEM;
	s->options = *options;
	/* Calls whose ret instructions are not known are seen to end at their return addresses. */
	placing.probes.no_uretprobe = !has_taker(s);
	placing.probes.has_return_places = !has_taker(s);
	placing.probes.rare_ends = !IS_AGENT && does_sample(options);
	placing.probes.wants_exits = true;
	if (!IS_AGENT)
		s->pace = (struct sample_pace){ .is_on = does_sample(options) && options->adapts_samples,
						.log = SAMPLE_FIRST_LOG,
						.crowd = 1 };
	placing_init(&s->placing, has_taker(s) ? &ptrace_place_for_taker : &ptrace_place, s, &placing);
	if (!IS_AGENT && to.sample_bytes && random_fill(&to.random, sizeof(to.random)))
		debug("ptrace: samples: a seed that can be guessed");
	err = guardian_new(&s->guardian, &to, ring_bytes);
	if (err) {
		free(s);
		return err;
	}
	*out = (struct source *)s;
	return 0;
}

static int give_maps(struct ptrace_source *s, const struct target *t)
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

/* Look for probes and breakpoints of others at our places in @a, and for those of ours that they have taken out. */
static void look_at_places(struct ptrace_source *s, struct attached *a)
{
	trap_watch_check(&a->watch, placing_function_of_others(&s->placing, a->pid));
	if (guardian_do(s->guardian, COMMAND_CHECK, a->pid, 0, 0))
		debug("ptrace: PID %d: has gone", a->pid);
}

static void look_at_process(struct ptrace_source *s, pid_t pid)
{
	struct attached *a = source_ptrace_find(s, pid);

	if (!a || s->is_detached)
		return;
	placing_look_for_others(&s->placing);
	look_at_places(s, a);
}

static void source_ptrace_look(struct source *source, const struct target *t)
{
	look_at_process(source_ptrace_self(source), t->pid);
}

static int source_ptrace_update(struct source *source, struct target *t)
{
	struct ptrace_source *s = source_ptrace_self(source);
	int nr = placing_update(&s->placing, t), err = nr < 0 ? nr : give_maps(s, t);

	if (nr >= 0 && err && err != -ESRCH)
		error("ptrace: PID %d: %s", t->pid, strerror(-err));
	look_at_process(s, t->pid);
	return err ? err : nr;
}

/* The process has executed another program. */
static void forget_image(struct ptrace_source *s, pid_t pid)
{
	struct attached *a = source_ptrace_find(s, pid);

	placing_forget(&s->placing, pid);
	if (!a)
		return;
	a->is_refused = false;
	trap_watch_new_image(&a->watch);
}

/* Report why @pid may not be traced. */
static void source_ptrace_explain_denied(pid_t pid)
{
	struct proc_status status = { 0 };
	struct proc_stat tracer = { .comm = "unknown" };
	const char *advice = caps_ptrace_advice(), *yama = yama_reason();

	if (!proc_read_status(&status, pid) && status.tracer_pid) {
		if (proc_read_stat(&tracer, status.tracer_pid))
			debug("ptrace: PID %d: its tracer has ended", pid);
		error("target: PID %d: the process is traced by %s (PID %d) already, and Linux allows one "
		      "tracer" TEXT_OF_HOST("; --backend bpf needs none"),
		      pid, tracer.comm, status.tracer_pid);
		return;
	}
	if (yama)
		error("target: PID %d: not permitted to trace it: %s", pid, yama);
	else
		error("target: PID %d: not permitted to trace it: it is another user's, its program may not be "
		      "read, or it has capabilities that heaptap has not%s%s",
		      pid, advice ? "; try: " : "", advice ? advice : "");
}

/* @was_running: as in trap_watch_begin(). */
static int note_attached(struct ptrace_source *s, pid_t pid, bool was_running)
{
	int err = array_extend(s->attached, s->nr_attached);

	if (err)
		return err;
	s->attached[s->nr_attached] = (struct attached){ .pid = pid };
	trap_watch_begin(&s->attached[s->nr_attached++].watch, pid, was_running);
	return 0;
}

void source_ptrace_leave(const struct ptrace_source *s, pid_t pid)
{
	if (guardian_do(s->guardian, COMMAND_DETACH, pid, 0, 0))
		debug("ptrace: PID %d: cannot be detached", pid);
}

static int source_ptrace_attach(struct source *source, struct target *t)
{
	struct ptrace_source *s = source_ptrace_self(source);
	int err, nr = 0;

	if (!IS_AGENT && !has_taker(s) && changed_code_is_in_use(t))
		return -EOPNOTSUPP;
	err = guardian_do(s->guardian, COMMAND_ATTACH, t->pid, 0, 0);
	if (err == -EPERM)
		source_ptrace_explain_denied(t->pid);
	else if (err)
		error("target: PID %d: %s", t->pid,
		      err == -ENOTSUP ? "a CPU that is not known" : strerror(-err));
	if (err)
		return err;
	/* A second time if a taker has declined the process. */
	if (!has_taker(s) || !source_ptrace_find(s, t->pid))
		err = note_attached(s, t->pid, true);
	if (!err)
		nr = source_ptrace_update(source, t);
	if (!err)
		err = nr < 0 ? nr : guardian_do(s->guardian, COMMAND_OPEN, t->pid, 0, 0);
	/* Without the taker, which says whether the process is to be attached again. */
	if (err && !has_taker(s))
		source_ptrace_leave(s, t->pid);
	return err ? err : nr;
}

static int source_ptrace_wait_fd(struct source *source)
{
	struct ptrace_source *s = source_ptrace_self(source);
	return ring_fd(guardian_ring(s->guardian));
}

static bool source_ptrace_is_alive(const struct ptrace_source *s)
{
	siginfo_t si = { .si_pid = 0 };

	return !guardian_state(s->guardian)->outlives &&
	       !waitid(P_PID, (id_t)guardian_pid(s->guardian), &si, WEXITED | WNOHANG | WNOWAIT) &&
	       !si.si_pid;
}

/* The guardian, which is dead, was asked to end, and has detached. */
static bool source_ptrace_has_ended(const struct ptrace_source *s)
{
	siginfo_t si = { .si_pid = 0 };

	return guardian_state(s->guardian)->outlives ||
	       (!waitid(P_PID, (id_t)guardian_pid(s->guardian), &si, WEXITED | WNOHANG | WNOWAIT) &&
		si.si_code == CLD_EXITED && !si.si_status);
}

/* Targets end by SIGTRAP at breakpoints now. Report it once, which ends the trace: -EPIPE. -ENODATA: none is left. */
static int report_death(struct ptrace_source *s)
{
	if (s->is_death_reported || s->is_detached)
		return 0;
	if (source_ptrace_has_ended(s)) {
		if (guardian_state(s->guardian)->is_out_of_time && limits_note_out_of_cpu_time())
			debug("ptrace: the guardian has said why it ended");
		return -ENODATA;
	}
	s->is_death_reported = true;
	error("ptrace: the guardian (PID %d) has died: breakpoints are left in the targets, which end at them",
	      guardian_pid(s->guardian));
	return -EPIPE;
}

/* A change was handled for which a thread is stopped. */
static void settle_change(struct ptrace_source *s, pid_t pid)
{
	if (!s->is_detached && guardian_do(s->guardian, COMMAND_ANSWERED, pid, 0, 0))
		debug("ptrace: PID %d: has gone", pid);
}

/* Is there room for one more? */
static bool source_ptrace_has_room(struct waiting *w)
{
	return !array_reserve(w->pids, w->max, w->nr + 1);
}

static void settle_all(struct ptrace_source *s, struct waiting *w)
{
	for (size_t i = 0; i < w->nr; i++)
		settle_change(s, w->pids[i]);
	w->nr = 0;
}

/* A thread of @pid waits for a leak check. */
static void begin_check(struct ptrace_source *s, pid_t pid)
{
	if (!s->options.stops_at_checks || !source_ptrace_has_room(&s->checked))
		settle_change(s, pid);
	else
		s->checked.pids[s->checked.nr++] = pid;
}

/* The record of a change in @pid was handled, or put aside: then the thread waits on. */
static void take_change(struct ptrace_source *s, pid_t pid, bool is_aside)
{
	if (is_aside)
		s->changed.pids[s->changed.nr++] = pid;
	else
		settle_change(s, pid);
}

/* Uprobes of others may have come to our places, and gone again with our breakpoints. */
static void check_places(struct ptrace_source *s)
{
	if (s->is_detached)
		return;
	placing_look_for_others(&s->placing);
	for (size_t i = 0; i < s->nr_attached; i++)
		look_at_places(s, &s->attached[i]);
}

static void forget_attached(struct ptrace_source *s, pid_t pid)
{
	struct attached *a = source_ptrace_find(s, pid);

	placing_forget(&s->placing, pid);
	if (a)
		*a = s->attached[--s->nr_attached];
}

static void source_ptrace_forget(struct source *source, pid_t pid)
{
	forget_attached(source_ptrace_self(source), pid);
}

/* @birth reports a new child, which is stopped until we have answered. A copy has its parent's breakpoints. */
static int note_child(struct ptrace_source *s, const struct process_event *birth)
{
	pid_t parent = (pid_t)birth->h.pid, pid = (pid_t)birth->child_pid;
	const struct attached *a;
	int err;

	/* Another process may have had its PID. */
	forget_attached(s, pid);
	err = note_attached(s, pid, false);
	if (err || birth->h.flags & EVENT_NO_COPY)
		return err;
	a = source_ptrace_find(s, parent);
	source_ptrace_find(s, pid)->is_refused = a && a->is_refused;
	return placing_copy(&s->placing, parent, pid);
}

static int source_ptrace_fork(struct source *source, struct target *t)
{
	struct ptrace_source *s = source_ptrace_self(source);
	int err = give_maps(s, t);

	if (!err)
		err = placing_note_allocators(&s->placing, t);
	return err == -ESRCH ? 0 : err;
}

/* @nr records have come: has the guardian to use another distance? */
static void adapt_samples(struct ptrace_source *s, int nr)
{
	u64 before = 1ULL << s->pace.log, bytes = sample_pace_next(&s->pace, (u64)nr, clock_now_ns());

	if (bytes != before && !s->is_detached && guardian_do(s->guardian, COMMAND_SAMPLE, 0, bytes, 0))
		debug("ptrace: the distance of samples stays");
}

static int source_ptrace_poll(struct source *source, const struct sink *sink)
{
	struct ptrace_source *s = source_ptrace_self(source);
	struct ring *ring = guardian_ring(s->guardian);
	_Alignas(8) u8 buf[RING_MAX_RECORD];
	int nr = 0, err = 0;
	size_t end;
	ssize_t len;

	if (!sink->is_aside)
		settle_all(s, &s->changed);
	ring_quiet(ring);
	end = ring_end(ring);
	/* Without memory for the wait of its thread, a record stays in the ring. */
	while (!err && (!sink->is_aside || source_ptrace_has_room(&s->changed)) &&
	       (len = ring_take(ring, end, buf)) > 0) {
		const struct event_header *h = (const void *)buf;
		const struct process_event *change = (const void *)buf;
		u8 kind = h->kind;
		/* The process of the stopped thread. The record itself may be changed on its way. */
		pid_t pid = (pid_t)(kind == EVENT_FORK ? change->child_pid : h->pid);
		int noted = kind == EVENT_FORK ? note_child(s, change) : 0;

		if (kind == EVENT_EXEC)
			forget_image(s, pid);
		if (kind == EVENT_EXIT)
			look_at_process(s, pid);
		if (!IS_AGENT && s->pace.is_on && kind <= EVENT_REALLOC_END)
			sample_pace_count(&s->pace, (const void *)buf);
		err = sink->record(sink->ctx, h, (size_t)len);
		err = err ? err : noted;
		if (source_waits_at(kind) || (has_taker(s) && kind == EVENT_LOSSES && h->flags & EVENT_TWIN))
			take_change(s, pid, sink->is_aside);
		if (kind == EVENT_NOTE && note_waits(((const struct note_event *)h)->what))
			begin_check(s, pid);
		nr++;
	}
	if (!IS_AGENT && s->pace.is_on)
		adapt_samples(s, nr);
	if (!source_ptrace_is_alive(s))
		err = err ? err : report_death(s);
	else if (++s->nr_polls % CHECK_POLLS == 0)
		check_places(s);
	return err ? err : nr;
}

static void source_ptrace_set_paused(struct ptrace_source *s, pid_t pid, bool is_paused)
{
	if (!s->is_detached && guardian_do(s->guardian, COMMAND_PAUSE, pid, is_paused, 0))
		debug("ptrace: PID %d: has gone", pid);
}

static void source_ptrace_pause(struct source *source, pid_t pid)
{
	struct ptrace_source *s = source_ptrace_self(source);
	source_ptrace_set_paused(s, pid, true);
}

static void source_ptrace_resume(struct source *source, pid_t pid)
{
	struct ptrace_source *s = source_ptrace_self(source);
	source_ptrace_set_paused(s, pid, false);
}

/* Without stacks no tables were made, so stacks cannot begin now. */
static int source_ptrace_set_depth(struct source *source, u32 depth)
{
	struct ptrace_source *s = source_ptrace_self(source);
	if (depth && !s->options.depth)
		return -EOPNOTSUPP;
	return s->is_detached ? -ESRCH : guardian_do(s->guardian, COMMAND_DEPTH, 0, depth, 0);
}

static struct losses source_ptrace_losses(struct source *source, pid_t pid)
{
	struct ptrace_source *s = source_ptrace_self(source);
	struct call_losses l = guardian_losses(s->guardian, pid);
	const struct attached *a = source_ptrace_find(s, pid);

	l.other += a && a->watch.is_overlaid;
	return (struct losses){ .allocs = l.allocs,
				.frees = l.frees,
				.stacks = l.stacks,
				.other = l.other + l.abandoned,
				.abandoned = l.abandoned,
				.unfollowed = l.unfollowed };
}

static void source_ptrace_forget_stacks(struct source *source)
{
	struct ptrace_source *s = source_ptrace_self(source);
	if (!s->is_detached && guardian_do(s->guardian, COMMAND_FORGET_STACKS, 0, 0, 0))
		debug("ptrace: stacks are not sent again");
}

static size_t source_ptrace_lifelines(struct source *source, int fds[SOURCE_MAX_LIFELINES])
{
	fds[0] = guardian_lifeline(source_ptrace_self(source)->guardian);
	return fds[0] >= 0;
}

static void source_ptrace_detach(struct source *source)
{
	struct ptrace_source *s = source_ptrace_self(source);
	if (!s->is_detached)
		placing_report_missing(&s->placing);
	if (!s->is_detached && guardian_do(s->guardian, COMMAND_DETACH, 0, 0, 0))
		debug("ptrace: nobody is traced any more");
	s->is_detached = true;
}

static void source_ptrace_free(struct source *source)
{
	struct ptrace_source *s = source_ptrace_self(source);
	if (!s)
		return;
	guardian_free(s->guardian);
	placing_fini(&s->placing);
	free(s->attached);
	free(s->checked.pids);
	free(s->changed.pids);
	if (!IS_AGENT)
		free(s->has_table);
	free(s);
}

static int source_ptrace_hold(struct source *source, pid_t pid, u64 max_ns)
{
	struct ptrace_source *s = source_ptrace_self(source);
	return s->is_detached ? -ESRCH : guardian_do(s->guardian, COMMAND_HOLD, pid, max_ns, 0);
}

static void source_ptrace_release(struct source *source, pid_t pid)
{
	struct ptrace_source *s = source_ptrace_self(source);
	if (!s->is_detached && guardian_do(s->guardian, COMMAND_RELEASE, pid, 0, 0))
		debug("ptrace: PID %d: has gone", pid);
}

static int source_ptrace_call(struct source *source, pid_t pid, struct thread_request *request)
{
	struct ptrace_source *s = source_ptrace_self(source);
	return s->is_detached ? -ESRCH : guardian_call(s->guardian, pid, request);
}

static int source_ptrace_read_regs(struct source *source, pid_t tid, struct arch_regs *regs)
{
	struct ptrace_source *s = source_ptrace_self(source);
	return guardian_regs(s->guardian, tid, regs);
}

static pid_t source_ptrace_tracer_pid(const struct source *source)
{
	const struct ptrace_source *s = source_ptrace_self(source);
	return guardian_pid(s->guardian);
}

static int source_ptrace_launch(struct source *source, pid_t pid)
{
	struct ptrace_source *s = source_ptrace_self(source);
	return guardian_do(s->guardian, COMMAND_LAUNCH, pid, 0, 0);
}

static int source_ptrace_is_launched(struct source *source, pid_t pid)
{
	struct ptrace_source *s = source_ptrace_self(source);
	if (__atomic_load_n(&guardian_state(s->guardian)->launched_pid, __ATOMIC_ACQUIRE) == pid)
		return 1;
	return source_ptrace_is_alive(s) ? 0 : -EPIPE;
}

static void source_ptrace_start(struct source *source, pid_t pid)
{
	struct ptrace_source *s = source_ptrace_self(source);
	if (guardian_do(s->guardian, COMMAND_START, pid, 0, 0))
		debug("ptrace: PID %d: has gone", pid);
}

static pid_t source_ptrace_exiting(struct source *source, int *status)
{
	struct ptrace_source *s = source_ptrace_self(source);
	pid_t pid = s->is_detached ? 0 : guardian_exiting(s->guardian, status);

	if (pid)
		look_at_process(s, pid);
	return pid;
}

static void source_ptrace_let_end(struct source *source, pid_t pid)
{
	struct ptrace_source *s = source_ptrace_self(source);
	if (guardian_do(s->guardian, COMMAND_LET_END, pid, 0, 0))
		debug("ptrace: PID %d: has gone", pid);
}

static void source_ptrace_checked(struct source *source)
{
	struct ptrace_source *s = source_ptrace_self(source);

	settle_all(s, &s->checked);
}

static const struct source_tracer tracer = {
	.pid = source_ptrace_tracer_pid,
	.launch = source_ptrace_launch,
	.is_launched = source_ptrace_is_launched,
	.start = source_ptrace_start,
	.hold = source_ptrace_hold,
	.release = source_ptrace_release,
	.call = source_ptrace_call,
	.read_regs = source_ptrace_read_regs,
	.checked = source_ptrace_checked,
	.exiting = source_ptrace_exiting,
	.let_end = source_ptrace_let_end,
};

const struct source_ops source_ptrace = {
	.name = "ptrace",
	.probe = source_ptrace_probe,
	.create = source_ptrace_create,
	.attach = source_ptrace_attach,
	.update = source_ptrace_update,
	.fork = source_ptrace_fork,
	.forget = source_ptrace_forget,
	.wait_fd = source_ptrace_wait_fd,
	.poll = source_ptrace_poll,
	.pause = source_ptrace_pause,
	.resume = source_ptrace_resume,
	.set_depth = source_ptrace_set_depth,
	.wait_for = IS_AGENT ? NULL : source_ptrace_wait_for,
	.losses = source_ptrace_losses,
	.look = source_ptrace_look,
	.forget_stacks = source_ptrace_forget_stacks,
	.lifelines = source_ptrace_lifelines,
	.detach = source_ptrace_detach,
	.free = source_ptrace_free,
	.tracer = &tracer,
};
