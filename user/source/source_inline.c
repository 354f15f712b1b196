/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inline source: calls of functions are seen by a piece of code inside the target (inline/), all else (births,
 * ends, new libraries, markers) by the source below, which is the one by BPF or the one by ptrace.
 */
#include "user/source/inline_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/inject/left.h"
#include "user/inject/piece_object.h"
#include "user/inject/rings.h"
#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source/inline_count.h"
#include "user/source/inline_replaced.h"
#include "user/source/inline_room.h"
#include "user/source/inline_stacks.h"
#include "user/source/inline_life.h"
#include "user/source/inline_target.h"
#include "user/source/launch.h"
#include "user/source/record.h"
#include "user/unwind/cfi_ahead.h"

enum { MANY_RECORDS = PIECE_RING_RECORDS / 2 /* in a poll: another one follows at once */ };

static struct inline_source *source_inline_self(const struct source *s)
{
	return (struct inline_source *)(uintptr_t)s;
}

static const struct source_ops *life_of(const struct source *source)
{
	return source_inline_self(source)->life->ops;
}

/* ---- targets ---- */

struct inline_target *inline_source_find(const struct inline_source *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_targets; i++)
		if (s->targets[i]->pid == pid)
			return s->targets[i];
	return NULL;
}

/* List @new, which is this function's, too. */
static int list_target(struct inline_source *s, struct inline_target *new)
{
	int err;

	pthread_mutex_lock(&s->lock);
	err = array_extend(s->targets, s->nr_targets);
	if (!err)
		s->targets[s->nr_targets++] = new;
	pthread_mutex_unlock(&s->lock);
	if (err)
		inline_target_free(new);
	return err;
}

int inline_source_add(struct inline_source *s, pid_t pid, u64 start_time)
{
	struct inline_target *new;
	int err = inline_target_new(&new, s->guard, pid, start_time);

	return err ? err : list_target(s, new);
}

static void drop_target(struct inline_source *s, pid_t pid)
{
	struct inline_target *t = inline_source_find(s, pid);

	if (!t)
		return;
	s->life->number(s->below, pid, 0);
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->nr_targets; i++)
		if (s->targets[i] == t)
			s->targets[i] = s->targets[--s->nr_targets];
	pthread_mutex_unlock(&s->lock);
	inline_target_free(t);
}

/* The program of @t is gone. */
static void lose_target(struct inline_source *s, struct inline_target *t)
{
	s->life->number(s->below, t->pid, 0);
	pthread_mutex_lock(&s->lock);
	inline_target_lose(t);
	pthread_mutex_unlock(&s->lock);
}

/* Let forks and markers of @t be told together with the calls that came before them. */
static void number_calls(const struct inline_source *s, const struct inline_target *t)
{
	const taddr_t addr = t->in->region + PIECE_SHARED_OFFSET + offsetof(struct piece_shared, sequence);
	u64 number;

	if (!t->shared || !t->shared->is_sequence)
		return;
	s->life->number(s->below, t->pid, addr);
	/* BPF reads only pages that the target has touched, or that are read so. */
	if (pread(t->mem, &number, sizeof(number), (off_t)addr) != sizeof(number))
		debug("inline: PID %d: its page of numbers cannot be read", t->pid);
}

/* @parent, which may be NULL, has a forked child, which has the same probes. */
static int source_inline_add_copy(struct inline_source *s, const struct inline_target *parent, pid_t pid)
{
	struct inline_target *new;
	struct proc_stat stat;
	int err;

	/* An earlier process had this PID. */
	drop_target(s, pid);
	if (!parent || parent->sight == INLINE_REFUSED || proc_read_stat(&stat, pid) ||
	    (!parent->shared && parent->sight < INLINE_AWAITS_CODE))
		return 0;
	err = inline_target_copy(&new, s->guard, parent, pid, stat.start_time);
	return err ? err : list_target(s, new);
}

/* ---- waking ---- */

static enum inline_need any_needs_poll(void *ctx, u64 *nr_parts, size_t *nr_targets)
{
	struct inline_source *s = ctx;
	enum inline_need most;

	*nr_parts = 0;
	pthread_mutex_lock(&s->lock);
	*nr_targets = s->nr_targets;
	most = inline_limits_turn(&s->turn, s->targets, s->nr_targets); /* INLINE_NEEDS_POLL or nothing */
	for (size_t i = 0; i < s->nr_targets; i++) {
		enum inline_need need = inline_target_needs_poll(s->targets[i], nr_parts);

		most = need > most ? need : most;
	}
	pthread_mutex_unlock(&s->lock);
	return most;
}

/* ---- life ---- */

static int needs_piece(struct caps *caps, const char *instead)
{
	if (piece_object_bytes())
		return 0;
	snprintf(caps->reason, sizeof(caps->reason), "not on this CPU yet; use --backend %s", instead);
	return -EOPNOTSUPP;
}

static int source_inline_probe(struct caps *caps)
{
	int err = source_bpf.probe(caps), missing = needs_piece(caps, "bpf");

	return missing ? missing : err;
}

static int source_inline_new_source(struct source **out, const struct source_options *options,
				    const struct caps *caps, const struct inline_life *life)
{
	struct inline_source *s = calloc(1, sizeof(*s));
	struct source_options below = *options;
	int err;

	if (!s)
		return -ENOMEM;
	s->life = life;
	s->waker.event_fd = s->waker.wait_fd = -1;
	s->options = *options;
	s->taker = inline_place_taker(s);
	pthread_mutex_init(&s->lock, NULL);
	below.taker = &s->taker;
	err = inline_life_open(s, &below, caps);
	if (!err)
		err = inline_waker_init(&s->waker, life->ops->wait_fd(s->below),
					options->sample_bytes >= SAMPLE_FEW_BYTES, any_needs_poll, s);
	if (err) {
		source_inline.free((struct source *)s);
		return err;
	}
	s->may_decline = life->have_changed || caps->is_uretprobe_safe;
	*out = (struct source *)s;
	return 0;
}

static int source_inline_create(struct source **out, const struct source_options *options,
				const struct caps *caps)
{
	/* Only the ptracer of all processes can stop a child before its first instruction. */
	if (!options->max_followed || options->stops_at_maps)
		return source_inline_new_source(out, options, caps, &inline_life_bpf);
	error("inline: children are followed by run and attach only: leave --follow out, or use --backend bpf");
	return -EOPNOTSUPP;
}

static int source_inline_traced_probe(struct caps *caps)
{
	int err = source_ptrace.probe(caps);

	/* Breakpoints of ptrace are no probes of the kernel. */
	caps->is_uretprobe_safe = true;
	return err ? err : needs_piece(caps, "ptrace");
}

static int source_inline_traced_create(struct source **out, const struct source_options *options,
				       const struct caps *caps)
{
	int err = source_inline_new_source(out, options, caps, &inline_life_ptrace);

	/* The guardian stops each process at its exec, and where its libraries change. */
	if (!err)
		source_inline_self(*out)->options.stops_at_maps = true;
	return err;
}

/* The mappings of @target were read. Its calls are seen from now on. */
static int open_target(struct inline_source *s, struct target *target, struct cfi_ahead *ahead)
{
	struct inline_target *t = inline_source_find(s, target->pid);
	int err;

	if (!t || !t->shared || t->sight != INLINE_SEES)
		return 0;
	number_calls(s, t);
	err = inline_target_update(t, target, ahead);
	if (err == -EINPROGRESS) {
		target_read_again(target);
		return 0;
	}
	err = err ? err : inject_set_on(t->in, true);
	t->is_open = true;
	if (t->rate.calls)
		inline_count_tell(s, target, &t->rate);
	else if (s->options.is_auto && !s->options.begins_by_bpf && !s->is_used)
		info("auto: inline: by code in the program (%s: without it)", s->life->advice);
	s->is_used = true;
	t->rate.calls = 0;
	/* -ESRCH: it has executed a program, or has ended. */
	if (err && err != -ESRCH)
		error("inline: PID %d: its probes cannot be switched on: %s", t->pid, strerror(-err));
	return err;
}

static bool wants_bpf(const struct inline_source *s, pid_t pid)
{
	const struct inline_target *t = inline_source_find(s, pid);

	return t && t->sight == INLINE_WANTS_BPF;
}

/* Begin with @t, or read it again, as @of_bpf does. */
static int source_inline_place(struct inline_source *s, struct target *t,
			       int (*of_bpf)(struct source *s, struct target *t))
{
	int nr = wants_bpf(s, t->pid) ? -EOPNOTSUPP : of_bpf(s->below, t), err;

	if (nr != -EOPNOTSUPP || !wants_bpf(s, t->pid))
		return nr;
	err = inline_target_leave(inline_source_find(s, t->pid));
	if (err == -EINPROGRESS) {
		target_read_again(t);
		return 0;
	}
	if (err)
		return err;
	s->life->place_again(s->below, t->pid);
	return of_bpf(s->below, t);
}

/* Begin to read the tables by which stacks of @t are walked, if it will need any. NULL: nothing is begun. */
static struct cfi_ahead *source_inline_read_ahead(const struct inline_source *s, const struct target *t)
{
	const struct inline_target *known = inline_source_find(s, t->pid);

	if (!s->options.depth || (known && known->sight != INLINE_SEES))
		return NULL;
	return inline_stacks_ahead(known ? known->stacks : NULL, t);
}

/* source_inline_place(), then open_target(). Meanwhile tables of large files are read: the program waits for both. */
static int place_and_open(struct inline_source *s, struct target *t,
			  int (*of_bpf)(struct source *s, struct target *t))
{
	struct cfi_ahead *ahead = source_inline_read_ahead(s, t);
	int nr = source_inline_place(s, t, of_bpf), err = nr < 0 ? nr : open_target(s, t, ahead);

	cfi_ahead_end(ahead);
	return err ? err : nr;
}

static int source_inline_begin(struct inline_source *s, const struct target *t)
{
	if (proc_reader(t->pid) != t->pid) {
		error("inline: PID %d (%s): its main thread has ended, and no other one can be made to map memory: use "
		      "--backend bpf, or ptrace",
		      t->pid, t->comm);
		return -ESRCH;
	}
	if (!inline_waker_start(&s->waker))
		return 0;
	error("inline: PID %d (%s): heaptap cannot start a thread (ulimit -v?)", t->pid, t->comm);
	return -ENOMEM;
}

static int source_inline_attach(struct source *source, struct target *t)
{
	struct inline_source *s = source_inline_self(source);
	int nr;

	nr = s->options.begins_by_bpf ? inline_count_begin(s, t) : source_inline_begin(s, t);
	nr = nr ? nr : place_and_open(s, t, s->life->ops->attach);
	if (nr < 0 && inline_source_find(s, t->pid)) {
		inline_target_take_out(inline_source_find(s, t->pid));
		drop_target(s, t->pid);
	}
	if (nr < 0 && s->life->leave)
		s->life->leave(s->below, t->pid);
	return nr;
}

/* @t is stopped, and no thread of it is in a call. */
static int switch_over(struct inline_source *s, struct target *target, struct inline_target *t)
{
	int err = source_bpf_hand_over(s->below, target->pid), nr;

	if (err)
		return err;
	t->sight = INLINE_SEES;
	t->open_ns = clock_now_ns();
	nr = place_and_open(s, target, source_bpf.update);
	return nr < 0 ? nr : t->sight == INLINE_DECLINED ? -EOPNOTSUPP : 0;
}

static int source_inline_put_code(struct source *source, struct target *target)
{
	struct inline_source *s = source_inline_self(source);
	struct inline_target *t = inline_source_find(s, target->pid);
	int err;

	if (!t || t->sight != INLINE_AWAITS_CODE || proc_reader(target->pid) != target->pid)
		return -EOPNOTSUPP;
	err = inline_waker_start(&s->waker);
	err = err ? err : inline_switch_stop(&s->stopped, s->below, target);
	if (err)
		return err;
	err = switch_over(s, target, t);
	if (!err && s->options.joins_later)
		s->stopped.stay_options = launch_joined_options();
	stop_all_release(&s->stopped);
	return err;
}

static void source_inline_expect(struct source *source, size_t nr)
{
	struct inline_source *s = source_inline_self(source);

	if (s->options.begins_by_bpf)
		source_bpf.expect(s->below, nr);
}

/* After an error the code that it has from its parent stays in it, without effect. */
static int source_inline_born(struct source *source, struct target *target)
{
	struct inline_source *s = source_inline_self(source);
	struct inline_target *t = inline_source_find(s, target->pid);
	pid_t owner;
	int err;

	if (!t)
		return inject_find_left(target->pid, &owner) == INJECT_LEFT_NOTHING ? 0 : -ENOSPC;
	if (!t->unborn)
		return 0;
	pthread_mutex_lock(&s->lock);
	err = inline_target_born(t, &s->options);
	pthread_mutex_unlock(&s->lock);
	err = err ? err : open_target(s, target, NULL);
	if (err && *t->in->why)
		debug("inline: PID %d: %s", target->pid, t->in->why);
	if (err)
		drop_target(s, target->pid);
	return err ? err : t->wants_update;
}

static int source_inline_fork(struct source *source, struct target *t)
{
	struct inline_source *s = source_inline_self(source);
	int err = life_of(source)->fork(s->below, t);

	/* By ptrace, the child waits until this is over; else it stops for source_inline_born(). */
	if (err || !s->life->have_changed)
		return err;
	err = source_inline_born(source, t);
	if (err < 0)
		warn("inline: PID %d: a child that cannot be followed until it executes a program: %s",
		     t->pid, strerror(-err));
	return err < 0 ? err : 0;
}

static void source_inline_copying(struct source *source, pid_t pid, bool is_on)
{
	source_bpf.copying(source_inline_self(source)->below, pid, is_on);
}

static void source_inline_follow(struct source *source, bool is_on)
{
	source_bpf.follow(source_inline_self(source)->below, is_on);
}

static int source_inline_update(struct source *source, struct target *t)
{
	struct inline_source *s = source_inline_self(source);
	struct inline_target *known = inline_source_find(s, t->pid);
	int nr;

	if (known && known->unborn) {
		known->wants_update = true;
		return 0;
	}
	nr = s->is_detached ? 0 : place_and_open(s, t, s->life->ops->update);
	known = inline_source_find(s, t->pid);
	if (known && known->sight == INLINE_REFUSED && known->in->state == INJECT_IN)
		inline_target_take_out(known);
	return nr;
}

static bool source_inline_unchanged(struct source *source, const struct target *t)
{
	const struct inline_source *s = source_inline_self(source);

	return s->life->unchanged ? s->life->unchanged(s->below, t->pid) : source_bpf.unchanged(s->below, t);
}

/* ---- records ---- */

/* A child that cannot be listed goes on untraced: source_inline_born() says so. */
static int source_inline_on_fork(struct inline_source *s, const struct process_event *rec)
{
	struct inline_target *parent = inline_source_find(s, (pid_t)rec->h.pid);
	bool is_copy = !(rec->h.flags & EVENT_NO_COPY);
	int nr = parent ? inline_target_poll_until(parent, s->sink, rec->time_ns, rec->h.call_number) : 0;
	struct process_event ev = *rec;
	int err = nr < 0 ? nr : source_inline_add_copy(s, is_copy ? parent : NULL, (pid_t)rec->child_pid);

	if (nr < 0)
		return nr;
	if (err)
		debug("inline: PID %u: %s", rec->child_pid, strerror(-err));
	ev.h.call_number = 0;
	nr = s->sink->record(s->sink->ctx, &ev.h, sizeof(ev));
	if (!is_copy && !s->is_detached)
		inline_place_note_late(s, (pid_t)rec->child_pid);
	return nr;
}

/*
 * Deliver the calls that came before @rec, which the target @t has caused. Calls may have come since, so the moment of
 * a marker counts. Where that is a time, the kernel has read its clock while the thread waited in the marker, which
 * takes longer than the two clocks differ.
 */
static int poll_before(struct inline_source *s, struct inline_target *t, const struct event_header *rec)
{
	if (rec->kind == EVENT_STACK)
		return 0; /* it belongs to no moment */
	if (rec->kind == EVENT_NOTE || record_kinds[rec->kind].role == RECORD_HEAP)
		return inline_target_poll_until(t, s->sink, record_time(rec), rec->call_number);
	return inline_target_poll(t, s->sink, rec->kind == EVENT_EXIT);
}

/* Pass @rec on without the number, which it needs here only. */
static int send_unnumbered(const struct inline_source *s, const struct event_header *rec, size_t len)
{
	union {
		struct note_event note;
		struct heap_event heap;
	} ev;

	memcpy(&ev, rec, len);
	ev.note.h.call_number = 0;
	return s->sink->record(s->sink->ctx, &ev.note.h, len);
}

/*
 * @t, which may be NULL, has executed a program. Our memory is still there if the process has executed one more
 * meanwhile: then the code has come into the program that the record tells of, or a later one, and what is in the rings
 * belongs to that. The code is put in again as for each new program.
 */
static int source_inline_on_exec(struct inline_source *s, struct inline_target *t,
				 const struct event_header *rec, size_t len)
{
	bool is_early = t && inject_is_there(t->in), awaits_code;
	struct proc_stat stat;
	int nr = t && !is_early ? inline_target_poll(t, s->sink, true) : 0;

	if (nr < 0)
		return nr;
	if (!t && s->options.joins_later && !proc_read_stat(&stat, (pid_t)rec->pid) &&
	    !inline_source_add(s, (pid_t)rec->pid, stat.start_time))
		t = inline_source_find(s, (pid_t)rec->pid);
	awaits_code =
		t && s->options.begins_by_bpf && (s->options.joins_later || t->sight >= INLINE_AWAITS_CODE);
	if (is_early && guard_take_out(s->guard, t->in))
		debug("inline: PID %d: %s", t->pid, t->in->why);
	if (t)
		lose_target(s, t);
	if (awaits_code)
		t->sight = INLINE_AWAITS_CODE;
	nr = s->sink->record(s->sink->ctx, rec, len);
	if (!awaits_code && !s->is_detached)
		inline_place_note_late(s, (pid_t)rec->pid);
	return nr;
}

/* A record of the BPF source. Calls of the target that came before it are delivered before it. */
static int source_inline_on_record(void *ctx, const struct event_header *rec, size_t len)
{
	struct inline_source *s = ctx;
	struct inline_target *t = inline_source_find(s, (pid_t)rec->pid);
	int nr;

	if (rec->kind == EVENT_FORK)
		return source_inline_on_fork(s, (const struct process_event *)rec);
	if (rec->kind == EVENT_EXEC)
		return source_inline_on_exec(s, t, rec, len);
	if (t && rec->kind == EVENT_LOSSES && rec->flags & EVENT_TWIN)
		inline_limits_twin(t);
	nr = t ? poll_before(s, t, rec) : 0;
	if (nr < 0)
		return nr;
	if (t && rec->kind == EVENT_EXIT)
		lose_target(s, t);
	if (rec->call_number && len <= sizeof(struct note_event))
		return send_unnumbered(s, rec, len);
	return s->sink->record(s->sink->ctx, rec, len);
}

/*
 * Threads whose rings are full spin: the kernel would let them, while the reader, who can help, waits for its turn.
 * Where few calls are recorded, the waker pushes the reader when that happens, and all else waits for the program.
 */
static void go_first(struct inline_source *s)
{
	if (!s->hurry.is_on && s->is_used && !s->is_detached && s->options.sample_bytes < SAMPLE_FEW_BYTES)
		courtesy_hurry(&s->hurry, COURTESY_FIRST);
}

static int source_inline_wait_fd(struct source *source)
{
	return source_inline_self(source)->waker.wait_fd;
}

static int source_inline_poll(struct source *source, const struct sink *sink)
{
	struct inline_source *s = source_inline_self(source);
	const struct sink ours = { .ctx = s, .record = source_inline_on_record };
	int nr, more;

	inline_waker_seen(&s->waker);
	if (s->stopped.nr)
		stop_all_release(&s->stopped);
	s->sink = sink;
	go_first(s);
	for (size_t i = 0; i < s->nr_targets; i++) {
		s->targets[i]->pace.crowd = (u32)s->nr_targets;
		inline_target_begin_poll(s->targets[i], s->sample_sum);
	}
	nr = s->life->ops->poll(s->below, &ours);
	for (size_t i = 0; i < s->nr_targets && nr >= 0; i++) {
		more = s->is_detached ? inline_target_poll(s->targets[i], sink, true)
				      : inline_target_poll_begun(s->targets[i], sink);
		nr = more < 0 ? more : nr + more;
		if (!s->is_detached) {
			inline_room_look(s->targets[i]);
			inline_limits_look(s->targets[i], &s->lock);
		}
	}
	if (nr >= MANY_RECORDS && !s->is_detached)
		inline_waker_again(&s->waker);
	inline_waker_read(&s->waker);
	return nr;
}

static struct losses source_inline_losses(struct source *source, pid_t pid)
{
	struct inline_source *s = source_inline_self(source);
	struct losses sum = s->life->ops->losses(s->below, pid);
	const struct inline_target *t = inline_source_find(s, pid);
	struct losses ours = t ? inline_target_losses(t) : (struct losses){ 0 };

	losses_add(&sum, &ours);
	sum.by_probes = s->options.is_auto && !s->is_used ? 0 : ours.by_probes;
	sum.late = ours.late;
	/* A process that shares the memory is seen like a thread. */
	if (!t || t->sight < INLINE_AWAITS_CODE)
		sum.sharers = 0;
	return sum;
}

static void source_inline_comm(struct source *source, pid_t pid, char comm[TARGET_COMM_LEN])
{
	if (life_of(source)->comm)
		life_of(source)->comm(source_inline_self(source)->below, pid, comm);
}

static struct thread_stop source_inline_stop_reason(struct source *source, pid_t tid)
{
	return source_bpf.stop_reason(source_inline_self(source)->below, tid);
}

static void source_inline_forget(struct source *source, pid_t pid)
{
	life_of(source)->forget(source_inline_self(source)->below, pid);
	drop_target(source_inline_self(source), pid);
}

static const char *source_inline_kind(const struct source *source)
{
	const struct inline_source *s = source_inline_self(source);
	bool is_by_breakpoints =
		s->options.is_auto && (s->has_declined || s->options.begins_by_bpf) && !s->is_used;

	return is_by_breakpoints ? life_of(source)->name : source_inline.name;
}

/* Breakpoints are in processes that were declined. */
static bool source_inline_trapped(struct source *source, pid_t pid, pid_t tid)
{
	return source_bpf.trapped(source_inline_self(source)->below, pid, tid);
}

static void source_inline_look(struct source *source, const struct target *t)
{
	struct inline_target *ours = inline_source_find(source_inline_self(source), t->pid);

	life_of(source)->look(source_inline_self(source)->below, t);
	if (ours)
		inline_replaced_look(ours);
}

/* ---- settings ---- */

static void source_inline_set_paused(struct inline_source *s, pid_t pid, bool is_paused)
{
	struct inline_target *t = inline_source_find(s, pid);

	if (t)
		t->is_paused = is_paused;
	if (t && t->shared)
		__atomic_store_n(&t->shared->is_paused, is_paused, __ATOMIC_SEQ_CST);
}

static void source_inline_pause(struct source *source, pid_t pid)
{
	life_of(source)->pause(source_inline_self(source)->below, pid);
	source_inline_set_paused(source_inline_self(source), pid, true);
}

static void source_inline_resume(struct source *source, pid_t pid)
{
	life_of(source)->resume(source_inline_self(source)->below, pid);
	source_inline_set_paused(source_inline_self(source), pid, false);
}

static int source_inline_set_depth(struct source *source, u32 depth)
{
	struct inline_source *s = source_inline_self(source);
	int err = s->life->ops->set_depth(s->below, depth);

	for (size_t i = 0; i < s->nr_targets && !err; i++)
		if (s->targets[i]->shared)
			err = inline_target_set_depth(s->targets[i], depth);
	if (!err)
		s->options.depth = depth;
	return err;
}

static void source_inline_forget_stacks(struct source *source)
{
	struct inline_source *s = source_inline_self(source);

	s->life->ops->forget_stacks(s->below);
	for (size_t i = 0; i < s->nr_targets; i++)
		inline_target_forget_stacks(s->targets[i]);
}

/* Programs that heaptap itself traces by ptrace keep the code until heaptap ends: nobody else can stop them. */
static size_t source_inline_lifelines(struct source *source, int fds[SOURCE_MAX_LIFELINES])
{
	struct inline_source *s = source_inline_self(source);

	if (s->options.stops_at_maps && !s->options.begins_by_bpf && !s->life->have_changed)
		return 0;
	return s->life->ops->lifelines(s->below, fds);
}

static void source_inline_detach(struct source *source)
{
	struct inline_source *s = source_inline_self(source);

	if (s->is_detached)
		return;
	inline_life_take_out(s);
	s->is_detached = true;
	guard_end(s->guard);
	s->life->ops->detach(s->below);
}

static void source_inline_free(struct source *source)
{
	struct inline_source *s = source_inline_self(source);

	if (!s)
		return;
	inline_life_take_out(s);
	inline_waker_fini(&s->waker);
	while (s->nr_targets)
		inline_target_free(s->targets[--s->nr_targets]);
	if (s->guard)
		guard_end(s->guard);
	if (s->below)
		s->life->ops->free(s->below);
	guard_free(s->guard);
	pthread_mutex_destroy(&s->lock);
	free(s->targets);
	free(s);
}

const struct source_ops source_inline = {
	.name = "inline",
	.probe = source_inline_probe,
	.create = source_inline_create,
	.expect = source_inline_expect,
	.attach = source_inline_attach,
	.put_code = source_inline_put_code,
	.rest = inline_life_rest,
	.way = inline_life_way,
	.update = source_inline_update,
	.unchanged = source_inline_unchanged,
	.fork = source_inline_fork,
	.born = source_inline_born,
	.copying = source_inline_copying,
	.follow = source_inline_follow,
	.wait_for = inline_life_wait_for,
	.measure = inline_life_measure,
	.comm = source_inline_comm,
	.forget = source_inline_forget,
	.keep_files = inline_life_keep_files,
	.wait_fd = source_inline_wait_fd,
	.poll = source_inline_poll,
	.pause = source_inline_pause,
	.resume = source_inline_resume,
	.set_depth = source_inline_set_depth,
	.limit_samples = inline_life_limit_samples,
	.forget_stacks = source_inline_forget_stacks,
	.losses = source_inline_losses,
	.kind = source_inline_kind,
	.sleep = inline_life_sleep,
	.stop_reason = source_inline_stop_reason,
	.trapped = source_inline_trapped,
	.look = source_inline_look,
	.kernel_words = inline_life_kernel_words,
	.lifelines = source_inline_lifelines,
	.detach = source_inline_detach,
	.free = source_inline_free,
};

/* Nothing that only BPF can do. */
const struct source_ops source_inline_traced = {
	.name = "inline",
	.probe = source_inline_traced_probe,
	.create = source_inline_traced_create,
	.attach = source_inline_attach,
	.update = source_inline_update,
	.unchanged = source_inline_unchanged,
	.fork = source_inline_fork,
	.comm = source_inline_comm,
	.forget = source_inline_forget,
	.wait_fd = source_inline_wait_fd,
	.poll = source_inline_poll,
	.pause = source_inline_pause,
	.resume = source_inline_resume,
	.set_depth = source_inline_set_depth,
	.forget_stacks = source_inline_forget_stacks,
	.losses = source_inline_losses,
	.kind = source_inline_kind,
	.sleep = inline_life_sleep,
	.look = source_inline_look,
	.lifelines = source_inline_lifelines,
	.detach = source_inline_detach,
	.free = source_inline_free,
	.tracer = &inline_tracer,
};
