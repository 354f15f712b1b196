/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One run of heaptap: records come in, and go into the heaps of their processes. */
#include "user/lib/clock.h"
#include "user/scan/suppress.h"
#include "user/report/wrappers.h"
#include "user/session/session_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/session/session_process.h"
#include "user/source/caps.h"
#include "user/heap/heap_sample.h"
#include "user/heap/slices.h"
#include "user/heap/tape.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/flush.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/lib/status.h"
#include "user/session/control.h"
#include "user/session/session_chosen.h"
#include "user/session/session_ending.h"
#include "user/session/session_forward.h"
#include "user/session/session_heap.h"
#include "user/session/session_lent.h"
#include "user/session/session_live.h"
#include "user/session/session_losses.h"
#include "user/session/session_record.h"
#include "user/session/session_residence.h"
#include "user/session/session_span.h"
#include "user/session/session_unwatched.h"
#include "user/session/session_threads.h"
#include "user/session/session_told.h"
#include "user/source/record.h"
#include "user/source/source_open.h"
#include "user/heap/stacks.h"
#include "user/names/symbolize.h"
#include "user/source/source_tracer.h"
#include "user/target/allocator_kind.h"
#include "user/target/exit_status.h"

static struct process *__attribute__((noinline)) session_search(struct session *s, u32 pid)
{
	for (size_t i = s->nr_processes; i-- > 0;)
		if (!process_is_over(s->processes[i]) && (u32)s->processes[i]->target->pid == pid)
			return s->latest = s->processes[i];
	return NULL;
}

struct process *session_find(struct session *s, u32 pid)
{
	struct process *p = s->latest;

	return p && !process_is_over(p) && (u32)p->target->pid == pid ? p : session_search(s, pid);
}

void session_free_process(struct process *p)
{
	if (!p)
		return;
	target_free(p->target);
	heap_free(p->heap);
	free(p->notes.disabled);
	leaks_free(p->leaks);
	suppress_free(p->own_rules);
	leak_marks_fini(&p->marks);
	leak_marks_fini(&p->asked_marks);
	free(p->reported);
	free(p->texts);
	if (!IS_AGENT) {
		wrappers_free(p->wrappers);
		session_residence_free(p);
	}
	free(p);
}

int session_new_heap(const struct session *s, struct heap **out)
{
	int err = heap_new(out, s->fns);

	if (err)
		return err;
	if (HAS_SAMPLES)
		heap_set_sample(*out, s->sample_bytes);
	err = s->options->wants_tape ? heap_keep_tape(*out) : 0;
	err = HAS_SLICES && !err && s->options->wants_slices ? heap_keep_slices(*out) : err;
	if (err)
		heap_free(*out);
	return err;
}

int session_new_process(struct session *s, struct process **out)
{
	struct process *p;
	int err = array_reserve(s->processes, s->max_processes, s->nr_processes + 1);

	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	err = session_new_heap(s, &p->heap);
	if (err) {
		free(p);
		return err;
	}
	session_span_new_heap(s, p->heap);
	s->processes[s->nr_processes++] = p;
	*out = p;
	return 0;
}

void session_drop_last_process(struct session *s)
{
	session_free_process(s->processes[--s->nr_processes]);
	s->latest = NULL;
}

int session_begin_check(const struct session *s, struct process *p)
{
	bool is_started = p->target->is_started;

	if (session_forwards(s) || s->options->source.check == CHECK_NEVER || session_has_span(s) ||
	    (HAS_SAMPLES && heap_sample_bytes(p->heap)) ||
	    (s->options->source.check == CHECK_STARTED && !is_started))
		return 0;
	if (!IS_AGENT)
		session_heap_check_own(s, p);
	return heap_check(p->heap, is_started);
}

/* Add a process of this machine. */
static int session_add_process(struct session *s, struct process **out, pid_t pid, bool is_started)
{
	int err = session_new_process(s, out);

	if (err) {
		error("PID %d: %s", pid, strerror(-err));
		return err;
	}
	err = target_new(&(*out)->target, pid);
	if (err) {
		session_drop_last_process(s);
		return err;
	}
	(*out)->target->is_started = is_started;
	/* The past of an attached process is not known: memory that new blocks have covered has no old block. */
	if (!is_started && s->options->scan != SCAN_NEVER)
		heap_keep_cover((*out)->heap);
	err = session_begin_check(s, *out);
	if (err)
		session_drop_last_process(s);
	return err;
}

void session_blur(const struct session *s, struct process *p)
{
	struct target *t = p->target;

	for (size_t i = 0; (session_told(s) || s->is_replayed) && i < t->nr_allocators; i++)
		if (allocator_is(t->allocators[i].kind, ALLOCATOR_JOINS_NAMES))
			memset(t->blurred, 0xff, sizeof(t->blurred));
	heap_check_blur(p->heap, t->blurred);
	if (s->options->scan != SCAN_NEVER && target_keeps_freed(t))
		heap_keep_cover(p->heap);
}

/* @nr of the files that @p has mapped have no probes, because there is no room for more. */
static void note_left_out(struct process *p, int nr)
{
	if (nr <= (int)p->lost.nr_left_out)
		return;
	p->lost.nr_unplaced += (u32)nr - p->lost.nr_left_out;
	p->lost.nr_left_out = (u32)nr;
}

void session_read_maps(struct session *s, struct process *p)
{
	int changed;

	p->maps_read_ns = clock_now_ns();
	/* The PIDs of a file belong to other processes on this machine. */
	if (s->is_replayed || p->is_gone)
		return;
	changed = session_told(s) ? 1 : target_read_maps(p->target, s->modules);
	if (!changed && s->ops->unchanged)
		changed = !s->ops->unchanged(s->source, p->target);
	if (changed > 0) {
		changed = s->ops->update(s->source, p->target);
		note_left_out(p, changed);
		recorder_maps(s->recorder, p->target);
	}
	session_blur(s, p);
	if (changed >= 0 || changed == -ESRCH)
		return;
	p->lost.nr_unplaced++;
	warn("PID %d: cannot update its mappings or probes: %s: new libraries are not seen", p->target->pid,
	     strerror(-changed));
}

static int session_on_stack(struct session *s, struct process *p, const struct event_header *rec)
{
	const struct stack_event *ev = (const struct stack_event *)rec;
	u16 nr = ev->nr_frames < STACK_MAX_FRAMES ? ev->nr_frames : STACK_MAX_FRAMES;
	u64 nr_false = stack_table_false(s->stacks);
	int err;

	if (!session_told(s) && !s->is_replayed)
		target_note_stack(p->target, ev);
	if (target_wants_maps(p->target))
		session_read_maps(s, p);
	if (session_forwards(s))
		return session_forward_stack(s, p, rec, offsetof(struct stack_event, ips) + nr * sizeof(u64));
	err = stack_table_add(s->stacks, ev, &p->target->maps);
	if (err == -ENOMEM && session_make_room(s))
		err = stack_table_add(s->stacks, ev, &p->target->maps);
	/* The recording has only canonical stacks, because events name only those. */
	if (!err && stack_canonical(s->stacks, ev->id) == ev->id)
		recorder_event(s->recorder, rec, offsetof(struct stack_event, ips) + nr * sizeof(u64));
	if (!nr_false && stack_table_false(s->stacks))
		warn("PID %u: two stacks, or two processes, use the same stack id: calls with this id show no stack",
		     rec->pid);
	if (err != -ENOMEM)
		return err;
	if (!s->has_lost_stacks)
		warn("PID %u: no room for more call stacks: calls with new stacks show no stack", rec->pid);
	s->has_lost_stacks = true;
	return 0;
}

/* Another image of the process @old; @is_gone: replaced, too. A file is all that is known of its processes. */
static int add_image(struct session *s, struct target *old, bool is_gone, struct process **out)
{
	int err = session_new_process(s, out);

	if (err)
		return err;
	(*out)->is_gone = is_gone;
	if (s->is_replayed)
		err = target_copy(&(*out)->target, old);
	else
		err = target_new_image(&(*out)->target, old, is_gone);
	if (!err)
		err = session_begin_check(s, *out);
	if (err)
		session_drop_last_process(s);
	return err;
}

/* The old image is gone: close its heap, and open another one for the new image. */
static int session_on_exec(struct session *s, struct process *p, const struct event_header *rec)
{
	struct losses lost = session_source_losses(s, p);
	struct process *image;
	int err;

	if (!session_told(s) && target_is_reused(p->target)) {
		session_ended(s, rec->pid, -1);
		return 0;
	}
	session_read_losses(s, p);
	recorder_event(s->recorder, rec, sizeof(struct process_event));
	if (!IS_AGENT)
		session_note_exec(p);
	p->life = PROCESS_REPLACED;
	heap_end(p->heap);
	s->latest = NULL;
	/* The source will name the new image: session_adopt(). */
	if (session_told(s)) {
		session_hide(p);
		return 0;
	}
	err = add_image(s, p->target, rec->flags & EVENT_GONE, &image);
	if (err)
		return err;
	image->origin = PROCESS_IMAGE;
	image->parent = p->parent;
	image->parent_pid = p->parent_pid;
	/* A scan may read the heap of a session that forwards, which is empty. */
	if (!session_forwards(s))
		session_hide(p);
	if (!image->is_gone)
		session_name(s, image);
	image->lost.before = image->lost.stated = lost;
	session_carry_losses(s, p, image);
	/* Some of the later losses may be the new image's. */
	image->lost.nr_unseen = p->lost.nr_unseen;
	debug("target: PID %u executed %s", rec->pid, image->target->exe);
	recorder_process(s->recorder, image->target, ((const struct process_event *)rec)->time_ns);
	session_read_maps(s, image);
	session_tune_image(s, p, image);
	return 0;
}

static int session_on_maps(struct session *s, struct process *p, const struct event_header *rec)
{
	/* A process that stops for this is looked at then (session_update()). */
	if (IS_AGENT || !(rec->flags & EVENT_STOPS) || !proc_is_our_tracee(p->target->pid))
		session_read_maps(s, p);
	p->is_ending |= (rec->flags & EVENT_ENDING) != 0;
	return 0;
}

static void end_process(struct session *s, pid_t pid, int status, u64 time_ns)
{
	struct process_event end = { .h = { .kind = EVENT_EXIT, .pid = (u32)pid, .tid = (u32)pid },
				     .time_ns = time_ns,
				     .exit_status = (u32)status };
	struct process *p = session_find(s, pid);

	if (!p)
		return;
	if (!IS_AGENT && status == -1 && !s->is_replayed && !session_told(s))
		end.exit_status = (u32)(status = target_exit_status(p->target));
	heap_end(p->heap);
	session_read_losses(s, p);
	recorder_event(s->recorder, &end.h, sizeof(end));
	if (session_forwards(s))
		session_forward_end(s, p, status);
	p->target->has_exited = true;
	p->target->exit_status = status;
	target_close_pidfd(p->target);
	p->life = PROCESS_ENDED;
	if (!IS_AGENT && !s->has_judged)
		session_note_end(s, p);
	session_hide_unseen(s, p);
	if (s->ops->forget)
		s->ops->forget(s->source, pid);
}

static int session_on_end(struct session *s, struct process *p, const struct event_header *rec)
{
	const struct process_event *ev = (const struct process_event *)rec;

	end_process(s, p->target->pid, (int)ev->exit_status,
		    s->is_replayed ? ev->time_ns : session_source_ns(s));
	return 0;
}

static int (*const takers[NR_RECORD_ROLES])(struct session *s, struct process *p,
					    const struct event_header *rec) = {
	[RECORD_HEAP] = session_heap_event,	[RECORD_STACK] = session_on_stack,
	[RECORD_EXEC] = session_on_exec,	[RECORD_FORK] = session_fork,
	[RECORD_EXIT] = session_on_end,		[RECORD_MAPS] = session_on_maps,
	[RECORD_LOSSES] = session_enter_losses, [RECORD_NOTE] = session_note,
};

/* Add a process, or an image of one, that the source names for the first time. */
static struct process *session_adopt(struct session *s, u32 pid)
{
	const struct process *old = NULL;
	struct process *p;

	for (size_t i = 0; i < s->nr_processes; i++)
		if ((u32)s->processes[i]->target->pid == pid)
			old = s->processes[i];
	session_fill_sample(s, session_told(s)->sample_bytes(s->source));
	if (session_new_process(s, &p))
		return NULL;
	if (session_told(s)->target(s->source, pid, &p->target)) {
		session_drop_last_process(s);
		return NULL;
	}
	if (old && old->life == PROCESS_REPLACED) {
		p->lost.before = s->ops->losses(s->source, pid);
		p->origin = PROCESS_IMAGE;
		p->parent = old->parent;
		p->lost.nr_unseen = old->lost.nr_unseen;
	}
	session_tune_told(s, p);
	if (!p->target->is_started && s->options->scan != SCAN_NEVER)
		heap_keep_cover(p->heap);
	if (session_begin_check(s, p))
		warn("PID %u: not enough memory: the releases of this process are not checked", pid);
	if (!s->start_ns)
		session_set_start(s, session_source_ns(s));
	/* The clock of the other side is known only now. */
	if (!recorder_has_begun(s->recorder))
		recorder_begin(s->recorder, s->ops->name, s->wants_notes,
			       session_told(s)->began_ns(s->source));
	recorder_process(s->recorder, p->target, session_source_ns(s));
	return p;
}

int session_enter(struct session *s, const struct event_header *rec, size_t len)
{
	enum record_role role = record_role(rec, len);
	struct process *p;

	if (role == RECORD_NONE)
		return 0;
	if (session_has_span(s) && role != RECORD_STACK) {
		session_span_go_on(s, record_time(rec), NULL);
		/* Processes go on: they may execute programs and end. */
		if (session_span_is_over(s) && (s->is_replayed || role == RECORD_HEAP))
			return 0;
	}
	if (role == RECORD_FORK && !rec->pid)
		return session_take_chosen(s, rec);
	p = session_find(s, rec->pid);
	if (!p && session_told(s))
		p = session_adopt(s, rec->pid);
	if (!p) {
		s->nr_strays++;
		return 0;
	}
	return takers[role](s, p, rec);
}

static int session_on_record(void *ctx, const struct event_header *rec, size_t len)
{
	return session_enter(ctx, rec, len);
}

static int session_make_tables(struct session *s)
{
	int err = alloc_table_new(&s->fns);

	if (!err)
		err = module_table_new(&s->modules);
	if (!err)
		err = stack_table_new(&s->stacks);
	return err;
}

int session_alloc(struct session **out, const struct session_options *o, struct outputs *outs)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->options = o;
	s->tuned.now = o->tuning;
	s->outs = outs;
	s->sample_bytes = o->source.sample_bytes;
	s->sink = (struct sink){ s, session_on_record, session_heap_events };
	err = session_make_tables(s);
	if (!err)
		err = recorder_new(&s->recorder, &o->recorder, s->fns);
	if (err) {
		session_free(s);
		return err;
	}
	if (HAS_SAMPLES)
		recorder_set_sample(s->recorder, s->sample_bytes);
	session_begin_bound(s, o->max_memory);
	*out = s;
	return 0;
}

/* The source is open, and has no target yet. */
static void session_begin(struct session *s)
{
	s->wants_notes = s->options->scan != SCAN_NEVER;
	if (!session_told(s) && !session_forwards(s))
		recorder_begin(s->recorder, s->ops->name, s->wants_notes, clock_now_ns());
}

int session_new(struct session **out, const struct session_options *o, struct outputs *outs, bool is_launch)
{
	struct session *s;
	int err = session_alloc(&s, o, outs);

	if (err) {
		error("%s: %s", o->command, strerror(-err));
		return err;
	}
	err = source_open(&s->source, &s->ops, &s->custom, s->fns, &o->source, is_launch);
	if (err) {
		session_free(s);
		return err;
	}
	stack_table_check_ids(s->stacks);
	session_begin(s);
	recorder_set_local(s->recorder);
	*out = s;
	return 0;
}

int session_new_told(struct session **out, const struct session_options *o, struct outputs *outs,
		     const struct source_ops *ops, session_open_fn open, void *ctx)
{
	struct session *s;
	int err = session_alloc(&s, o, outs);

	if (err)
		return err;
	s->ops = ops;
	err = open(ctx, &s->source, s->modules, s->fns);
	if (err) {
		session_free(s);
		return err;
	}
	session_begin(s);
	*out = s;
	return 0;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_processes; i++)
		session_free_process(s->processes[i]);
	if (s->source)
		s->ops->free(s->source);
	if (s->halted_fd)
		close(s->halted_fd);
	free(s->processes);
	recorder_free(s->recorder);
	backlog_fini(&s->backlog);
	symbolizer_free(s->symbolizer);
	stack_table_free(s->stacks);
	module_table_free(s->modules);
	free(s->custom);
	free(s->marks.list);
	free(s->forward.ends);
	free(s->forward.sent);
	session_lend_end(s);
	free(s->left);
	alloc_table_free(s->fns);
	free(s);
}

const struct source_tracer *session_tracer(const struct session *s, struct source **source)
{
	*source = s->source;
	return s->ops->tracer;
}

void session_expect(struct session *s, size_t nr)
{
	if (s->ops->expect)
		s->ops->expect(s->source, nr);
}

static void refuse_process(const struct session *s, const struct process *p, int err)
{
	bool is_denied = err == -EACCES || err == -EPERM;
	const char *advice = is_denied ? caps_ptrace_advice() : NULL;

	error("%s: PID %d (%s): cannot read its mappings: %s%s%s", s->options->command, p->target->pid,
	      p->target->comm, strerror(-err),
	      advice		       ? "; try: "
	      : is_denied && !IS_AGENT ? ": the kernel protects it"
				       : "",
	      advice ? advice : "");
}

int session_attach(struct session *s, pid_t pid, bool is_started)
{
	struct process *p;
	int err;

	if (session_find(s, pid))
		return 0;
	err = session_add_process(s, &p, pid, is_started);
	if (err)
		return err;
	err = target_read_maps(p->target, s->modules);
	if (err < 0)
		refuse_process(s, p, err);
	else
		err = s->ops->attach(s->source, p->target);
	note_left_out(p, err);
	session_blur(s, p);
	p->maps_read_ns = clock_now_ns();
	if (err >= 0) {
		recorder_process(s->recorder, p->target, p->maps_read_ns);
		session_tune_process(s, p);
	}
	if (!IS_AGENT && err >= 0)
		session_residence_begin(s, p);
	/* Mappings may have changed before the probe that reports changes was in place. */
	if (err >= 0)
		session_read_maps(s, p);
	if (err < 0)
		session_drop_last_process(s);
	else if (!s->start_ns)
		session_set_start(s, p->maps_read_ns);
	return err < 0 ? err : 0;
}

void session_update(struct session *s, pid_t pid)
{
	struct process *p;

	/* Stacks that were taken before belong to the old mappings. */
	if (session_poll(s))
		debug("source: %s is at its end", s->ops->name);
	p = session_find(s, pid);
	if (p)
		session_read_maps(s, p);
}

bool session_has_no_allocator(const struct session *s)
{
	bool is_none = true;

	for (size_t i = 0; i < s->nr_processes; i++) {
		const struct target *t = s->processes[i]->target;
		const char *help;

		if (t->nr_allocators) {
			is_none = false;
			continue;
		}
		help = session_explain_unwatched(s, s->processes[i]);
		error("%s: PID %d (%s): nothing could be watched: %s%s%s", s->options->command, t->pid,
		      t->comm, s->processes[i]->unwatched, help ? "; " : "", help ? help : "");
	}
	return is_none;
}

bool session_has_kind(const struct session *s, const char *kind)
{
	for (size_t i = 0; i < s->nr_processes; i++) {
		const struct target *t = s->processes[i]->target;

		for (size_t k = 0; k < t->nr_allocators; k++)
			if (!strcmp(t->allocators[k].kind, kind))
				return true;
	}
	return false;
}

int session_wait_fd(const struct session *s)
{
	return s->ops->wait_fd(s->source);
}

/*
 * A free that was lost before the events are read belongs to a block whose allocation is among them or before them.
 * Count the losses first, and taint all blocks that are live after reading.
 */
int session_poll(struct session *s)
{
	size_t nr_processes = s->nr_processes;
	int nr;

	for (size_t i = 0; i < nr_processes; i++)
		s->processes[i]->lost.may_be_unseen =
			process_is_over(s->processes[i]) ? 0 : session_count_unseen(s, s->processes[i]);
	session_bound_memory(s);
	session_look_at_load(s);
	caps_reap();
	s->is_awaited = false;
	nr = backlog_replay(&s->backlog, &s->sink);
	if (nr >= 0)
		nr = s->ops->poll(s->source, &s->sink);
	for (size_t i = 0; i < nr_processes; i++) {
		struct process *p = s->processes[i];

		session_taint_if_unseen(s, p, p->lost.may_be_unseen);
		if (!process_is_over(p) && target_wants_maps(p->target))
			session_read_maps(s, p);
	}
	session_threads_look(s, false);
	recorder_tick(s->recorder);
	if (!session_forwards(s)) {
		session_record_part(s);
		session_record_seek(s);
	}
	if (nr < 0 && nr != -ENODATA) {
		/* A source that has died has logged it. */
		if (nr != -EPIPE)
			error("%s: cannot read events: %s", s->ops->name, strerror(-nr));
		s->has_failed = true;
	}
	return nr < 0 ? nr : 0;
}

void session_ended(struct session *s, pid_t pid, int status)
{
	end_process(s, pid, status, session_source_ns(s));
}

/* Has @t ended, and has nobody to wait for it who would tell session_ended() how? */
static bool has_ended_untold(const struct target *t)
{
	return !target_is_alive(t) && !proc_is_our_tracee(t->pid);
}

size_t session_running(struct session *s)
{
	/* Twice in a row, because the record of an end may wait behind another one that is being written. */
	enum { DEAD = 2 };
	size_t running = 0, nr_dead = 0;
	bool is_read;

	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (process_is_over(p))
			continue;
		if (session_told(s) || !has_ended_untold(p->target))
			p->nr_dead = 0;
		else if (p->nr_dead < DEAD)
			p->nr_dead++;
		nr_dead += p->nr_dead > 0;
	}
	/* The last events of those may still wait in the ring. Once for all: there may be thousands. */
	is_read = nr_dead && !session_poll(s);
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (process_is_over(p))
			continue;
		if (p->nr_dead < DEAD)
			running++;
		else if (is_read)
			session_ended(s, p->target->pid, -1);
	}
	return running;
}

void session_stop(struct session *s)
{
	if (s->stop_ns)
		return;
	for (size_t i = 0; i < s->nr_processes; i++)
		session_look(s, s->processes[i]);
	for (size_t i = 0; i < s->nr_processes; i++) {
		if (process_is_over(s->processes[i]))
			continue;
		if (!IS_AGENT)
			session_residence_stop(s, s->processes[i]);
		s->ops->pause(s->source, s->processes[i]->target->pid);
	}
	s->stop_ns = session_source_ns(s);
	s->nr_missing = source_report_missing(s->custom, s->fns, s->options->command);
	s->ops->detach(s->source);
	debug("%s: probes are out", s->ops->name);
	/* Only after detach no BPF program can be writing a record. */
	if (session_poll(s))
		debug("source: %s is at its end", s->ops->name);
	for (size_t i = 0; i < s->nr_processes; i++)
		session_read_losses(s, s->processes[i]);
	session_threads_look(s, true);
	recorder_end(s->recorder, s->stop_ns, s->start_ns ? s->stop_ns - s->start_ns : 0);
	caps_settle();
}

int session_finish_events(struct session *s)
{
	int err;

	for (size_t i = 0; i < s->nr_processes; i++)
		session_read_losses(s, s->processes[i]);
	err = recorder_finish_list(s->recorder);
	if (err && err != -EPIPE) {
		error("%s: standard output: %s", s->options->command, strerror(-err));
		flush_forget(stdout);
	}
	return err;
}

/* Calls that never return leave no number wrong: the program cannot have their blocks. */
static bool is_number_wrong(const struct process *p)
{
	const struct losses *l = &p->lost.now;

	return l->allocs || l->frees || l->other > l->abandoned || heap_lost(p->heap);
}

bool session_has_losses(struct session *s)
{
	bool has_losses = s->has_failed || s->is_damaged || s->has_dropped_losses;

	for (size_t i = 0; i < s->nr_processes; i++) {
		session_read_losses(s, s->processes[i]);
		has_losses |= is_number_wrong(s->processes[i]);
	}
	return has_losses;
}

int session_status(struct session *s)
{
	if (session_has_losses(s) || recorder_has_failed(s->recorder) || s->nr_left_out)
		return STATUS_UNTRUSTED;
	return STATUS_DONE;
}
