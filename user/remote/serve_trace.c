/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn records of a source into a stream. The stream may break off and begin again while the target runs. */
#include "user/remote/serve_trace_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/lib/random.h"
#include "user/source/caps.h"
#include "user/source/record.h"
#include "user/stream/stream_losses.h"
#include "user/stream/stream_write.h"
#include "user/stream/stream_record.h"

enum {
	FLUSH_NS = 100 * 1000 * 1000,
	CHUNK_BYTES = 32 * 1024,
	TIME_SHIFT = 10,
};

static int put_in_queue(void *ctx, const void *data, size_t len)
{
	struct serve_trace *t = ctx;

	return t->out ? wire_put(t->out, WIRE_STREAM, data, len) : 0;
}

void serve_tell(struct serve_trace *t, enum stream_kind kind, const void *rec)
{
	if (t->out && !t->err)
		t->err = stream_write(t->writer, kind, rec);
}

/* Is the queue filled to @eighths / 8? Heap events leave room for the records that explain them. */
static bool is_filled(const struct serve_trace *t, unsigned eighths)
{
	return !t->out || wire_out_pending(t->out) > t->out->limit / 8 * eighths;
}

struct served *serve_find(const struct serve_trace *t, u32 pid)
{
	for (size_t i = t->nr; i-- > 0;)
		if (!t->list[i].is_over && (u32)t->list[i].target->pid == pid)
			return &t->list[i];
	return NULL;
}

/* Write all mappings of @p, and the allocators in them. */
static void tell_maps(struct serve_trace *t, const struct served *p)
{
	if (t->out && !t->err)
		t->err = stream_write_maps(t->writer, &t->introduced, p->target);
}

struct losses serve_losses_of(const struct serve_trace *t, const struct served *p)
{
	struct losses l = t->options.ops->losses(t->options.source, p->target->pid);

	l.allocs += p->dropped.allocs;
	l.frees += p->dropped.frees;
	l.stacks += p->dropped.stacks;
	l.other += p->dropped.other;
	l.unfollowed += p->dropped.unfollowed;
	return l;
}

/* Are the probes still in its memory? */
static void look(const struct serve_trace *t, const struct served *p)
{
	if (t->options.ops->look && !p->is_over && !p->is_gone)
		t->options.ops->look(t->options.source, p->target);
}

void serve_tell_losses(struct serve_trace *t, struct served *p, const struct losses *l)
{
	struct stream_losses rec = stream_losses_put(p->target->pid, l, 0);

	if (!t->out || !memcmp(l, &p->told, sizeof(*l)))
		return;
	if (l->frees + l->other - l->abandoned > p->told.frees + p->told.other - p->told.abandoned)
		rec.flags |= STREAM_TAINT;
	if (l->allocs > p->told.allocs || l->overwritten > p->told.overwritten)
		rec.flags |= STREAM_GAPS;
	serve_tell(t, STREAM_LOSSES, &rec);
	p->told = *l;
}

/* Repeat the last totals, with other flags. */
static void tell_flags(struct serve_trace *t, const struct served *p, u8 flags)
{
	const struct stream_losses rec = stream_losses_put(p->target->pid, &p->told, flags);

	serve_tell(t, STREAM_LOSSES, &rec);
}

void serve_tell_left_out(const struct serve_trace *t, struct served *p)
{
	u8 data[12];
	struct wire_body b = { data, 0, sizeof(data), false };

	if (!t->out || p->left_out == p->told_left_out)
		return;
	wire_put_number(&b, p->target->pid, 4);
	wire_put_number(&b, p->left_out, 8);
	/* If the queue is full, try again at the next flush. */
	if (!wire_put(t->out, WIRE_LEFT_OUT, b.data, b.len))
		p->told_left_out = p->left_out;
}

void serve_tell_process(struct serve_trace *t, struct served *p)
{
	const struct target *target = p->target;
	struct proc_status status = { 0 };
	struct stream_process rec = stream_process_of(target, t->start_ns);
	const u16 one = 1;

	if (!*(const u8 *)&one)
		rec.flags |= STREAM_BIG_ENDIAN;
	if (!proc_read_status(&status, target->pid)) {
		rec.ppid = status.ppid;
		rec.uid = status.uid;
	}
	serve_tell(t, STREAM_PROCESS, &rec);
	if (t->tuning.is_paused || tuning_has_filter(&t->tuning))
		tell_flags(t, p, STREAM_GAPS);
	tell_maps(t, p);
}

void serve_note_unprobed(struct served *p, int nr)
{
	if (nr <= (int)p->nr_unprobed)
		return;
	p->dropped.other += (u32)nr - p->nr_unprobed;
	p->nr_unprobed = (u32)nr;
}

static void read_maps(struct serve_trace *t, struct served *p)
{
	int changed;

	if (p->is_gone)
		return;
	changed = target_read_maps(p->target, t->modules);
	if (!changed && t->options.ops->unchanged)
		changed = !t->options.ops->unchanged(t->options.source, p->target);
	if (changed > 0) {
		changed = t->options.ops->update(t->options.source, p->target);
		serve_note_unprobed(p, changed);
		if (changed >= 0)
			tell_maps(t, p);
	}
	if (changed < 0 && changed != -ESRCH)
		warn("PID %d: mappings: %s", p->target->pid, strerror(-changed));
}

/* Count @ev as an allocation, a free or both, as a source counts lost events. */
static void count(const struct heap_event *ev, u64 *allocs, u64 *frees)
{
	bool is_end = ev->h.kind == EVENT_REALLOC_END;

	*allocs += is_end || ev->h.kind == EVENT_ALLOC;
	*frees += ev->h.kind == EVENT_FREE || (is_end && ev->old_addr && (ev->addr || !ev->size));
}

void serve_tell_event(struct serve_trace *t, const struct event_header *rec, size_t len)
{
	if (t->out && !t->err)
		t->err = stream_write_event(t->writer, rec, len);
}

static void on_heap(struct serve_trace *t, struct served *p, const struct event_header *rec, size_t len)
{
	const struct heap_event *ev = (const struct heap_event *)rec;

	/* The event came before the pause was in force. */
	if (t->tuning.is_paused)
		return;
	if (!tuning_takes(&t->tuning, ev)) {
		p->left_out++;
		return;
	}
	if (t->watch)
		t->watch(t->watch_ctx, ev);
	if (is_filled(t, 6)) {
		count(ev, &p->dropped.allocs, &p->dropped.frees);
		return;
	}
	count(ev, &p->allocs, &p->frees);
	serve_tell_event(t, rec, len);
}

static void on_stack(struct serve_trace *t, struct served *p, const struct event_header *rec, size_t len)
{
	target_note_stack(p->target, (const struct stack_event *)rec);
	if (target_wants_maps(p->target))
		read_maps(t, p);
	if (!is_filled(t, 7)) {
		serve_tell_event(t, rec, len);
		return;
	}
	p->dropped.stacks++;
	t->misses_stacks = true;
}

static void on_maps(struct serve_trace *t, struct served *p, const struct event_header *rec, size_t len)
{
	(void)rec;
	(void)len;
	read_maps(t, p);
}

/* A marker of the program: the client acts on it. */
static void on_note(struct serve_trace *t, struct served *p, const struct event_header *rec, size_t len)
{
	static const u8 marks[NR_NOTES] = { [NOTE_MARK] = STREAM_MARK_PROGRAM,
					    [NOTE_PAUSE] = STREAM_MARK_PAUSE,
					    [NOTE_RESUME] = STREAM_MARK_RESUME,
					    [NOTE_LEAK_CHECK] = STREAM_MARK_CHECK };
	const struct note_event *ev = (const struct note_event *)rec;
	char name[NOTE_NAME_BYTES];
	const struct stream_mark_record mark = { .time_ns = ev->time_ns,
						 .what = ev->what < NR_NOTES ? marks[ev->what] : 0,
						 .text = name,
						 .pid = rec->pid };

	(void)len;
	snprintf(name, sizeof(name), "%.*s", NOTE_NAME_BYTES - 1, ev->name);
	if (!mark.what)
		return;
	if (is_filled(t, 7))
		p->dropped.other++;
	else
		serve_tell(t, STREAM_MARK, &mark);
}

/* Handlers by role. Losses are read from the source itself. */
static void (*const takers[NR_RECORD_ROLES])(struct serve_trace *t, struct served *p,
					     const struct event_header *rec, size_t len) = {
	[RECORD_HEAP] = on_heap,       [RECORD_STACK] = on_stack,     [RECORD_EXEC] = serve_on_exec,
	[RECORD_FORK] = serve_on_fork, [RECORD_EXIT] = serve_on_exit, [RECORD_MAPS] = on_maps,
	[RECORD_NOTE] = on_note,
};

static int on_record(void *ctx, const struct event_header *rec, size_t len)
{
	enum record_role role = record_role(rec, len);
	struct serve_trace *t = ctx;
	struct served *p;

	if (!takers[role])
		return 0;
	p = serve_find(t, rec->pid);
	if (p)
		takers[role](t, p, rec, len);
	return 0;
}

int serve_trace_new(struct serve_trace **out, const struct serve_trace_options *o)
{
	struct serve_trace *t = calloc(1, sizeof(*t));
	const struct stream_writer_options wo = {
		.fns = o->fns, .ctx = t, .write = put_in_queue, .chunk_bytes = CHUNK_BYTES
	};
	int err;

	if (!t)
		return -ENOMEM;
	t->options = *o;
	t->tuning = o->tuning;
	if (random_fill(&t->id, sizeof(t->id)))
		t->id = clock_ns(CLOCK_REALTIME);
	err = module_table_new(&t->modules);
	if (!err)
		err = stream_writer_new(&t->writer, &wo);
	if (err) {
		serve_trace_free(t);
		return err;
	}
	*out = t;
	return 0;
}

void serve_trace_free(struct serve_trace *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr; i++)
		target_free(t->list[i].target);
	stream_writer_free(t->writer);
	module_table_free(t->modules);
	stream_modules_fini(&t->introduced);
	free(t->list);
	free(t->ends);
	free(t);
}

int serve_add(struct serve_trace *t, struct target *target, struct served **out)
{
	if (t->nr == SERVE_MAX_PROCESSES)
		return -E2BIG;
	if (array_extend(t->list, t->nr))
		return -ENOMEM;
	*out = &t->list[t->nr++];
	**out = (struct served){ .target = target };
	return 0;
}

int serve_trace_attach(struct serve_trace *t, pid_t pid, bool is_started)
{
	struct target *target;
	struct served *p;
	int nr_unprobed, err = t->nr == SERVE_MAX_PROCESSES ? -E2BIG : target_new(&target, pid);

	if (err)
		return err;
	target->is_started = is_started;
	err = target_read_maps(target, t->modules);
	if (err < 0)
		error("serve: PID %d (%s): cannot read its mappings: %s", pid, target->comm, strerror(-err));
	else
		err = t->options.ops->attach(t->options.source, target);
	nr_unprobed = err;
	if (err >= 0)
		err = serve_add(t, target, &p);
	if (err < 0) {
		target_free(target);
		return err;
	}
	serve_note_unprobed(p, nr_unprobed);
	if (t->tuning.is_paused)
		t->options.ops->pause(t->options.source, pid);
	if (!t->start_ns)
		t->start_ns = clock_now_ns();
	serve_tell_process(t, p);
	return 0;
}

void serve_trace_update(struct serve_trace *t, pid_t pid)
{
	struct served *p;

	if (serve_trace_poll(t))
		debug("serve: the stream is broken");
	p = serve_find(t, pid);
	if (p)
		read_maps(t, p);
}

void serve_trace_born(struct serve_trace *t, pid_t pid)
{
	const struct source_ops *ops = t->options.ops;
	struct served *p;
	int err;

	if (!ops->born)
		return;
	if (serve_trace_poll(t))
		debug("serve: the stream is broken");
	p = serve_find(t, pid);
	if (!p || !p->is_copy)
		return;
	err = ops->born(t->options.source, p->target);
	if (err > 0)
		read_maps(t, p);
	else
		serve_note_unprobed(p, err);
}

static int tell_hello(struct serve_trace *t)
{
	struct utsname name = { 0 };
	struct stream_hello rec = { .id = t->id,
				    .role = STREAM_ROLE_TARGET,
				    .time_shift = TIME_SHIFT,
				    .mono_ns = clock_now_ns(),
				    .real_ns = clock_ns(CLOCK_REALTIME),
				    .start_ns = t->start_ns,
				    .depth = t->tuning.depth,
				    .producer = t->options.producer,
				    .backend = t->options.ops->name,
				    .machine = name.machine,
				    .release = name.release };

	if (uname(&name))
		debug("serve: uname: %s", strerror(errno));
	serve_tell(t, STREAM_HELLO, &rec);
	return t->err;
}

int serve_trace_connect(struct serve_trace *t, struct wire_out *out, const struct serve_received *had)
{
	int err;

	t->out = out;
	t->err = 0;
	if (!out)
		return 0;
	stream_writer_restart(t->writer);
	stream_modules_clear(&t->introduced);
	err = tell_hello(t);
	if (!err)
		serve_tell_all_again(t, had);
	if (t->nr && t->options.ops->forget_stacks)
		t->options.ops->forget_stacks(t->options.source);
	return err ? err : t->err;
}

int serve_trace_poll(struct serve_trace *t)
{
	const struct sink sink = { t, on_record };
	auto_free struct losses *before = NULL;
	size_t nr;
	int got;

	serve_sweep(t);
	caps_reap();
	nr = t->nr;
	before = calloc(nr + 1, sizeof(*before));
	if (!before)
		return -ENOMEM;
	if (t->misses_stacks && !is_filled(t, 1) && t->options.ops->forget_stacks) {
		t->misses_stacks = false;
		t->options.ops->forget_stacks(t->options.source);
	}
	/* Losses until now are of blocks whose own events come now or came before: so read losses before events. */
	for (size_t i = 0; i < nr; i++)
		if (!t->list[i].is_over)
			before[i] = t->options.ops->losses(t->options.source, t->list[i].target->pid);
	got = t->options.ops->poll(t->options.source, &sink);
	for (size_t i = 0; i < nr; i++) {
		struct served *p = &t->list[i];

		before[i].allocs += p->dropped.allocs;
		before[i].frees += p->dropped.frees;
		before[i].stacks += p->dropped.stacks;
		before[i].other += p->dropped.other;
		before[i].unfollowed += p->dropped.unfollowed;
		if (!p->is_over)
			serve_tell_losses(t, p, &before[i]);
		if (!p->is_over && target_wants_maps(p->target))
			read_maps(t, p);
	}
	if (got < 0 && got != -ENODATA)
		return got;
	if (clock_now_ns() - t->flush_ns >= FLUSH_NS)
		return serve_trace_flush(t);
	return t->out ? t->err : 0;
}

int serve_trace_flush(struct serve_trace *t)
{
	t->flush_ns = clock_now_ns();
	if (t->out && !t->err)
		t->err = stream_flush(t->writer);
	for (size_t i = 0; i < t->nr; i++)
		serve_tell_left_out(t, &t->list[i]);
	return t->out ? t->err : 0;
}

size_t serve_trace_running(struct serve_trace *t)
{
	size_t running = 0, nr_dead = 0;

	for (size_t i = 0; i < t->nr; i++) {
		struct served *p = &t->list[i];

		p->is_dead = !p->is_over && !target_is_alive(p->target);
		running += !p->is_over && !p->is_dead;
		nr_dead += p->is_dead;
	}
	/* The last events of the dead may still wait in the ring. */
	if (!nr_dead || serve_trace_poll(t))
		return running;
	for (size_t i = 0; i < t->nr; i++)
		if (t->list[i].is_dead && !t->list[i].is_over)
			serve_end(t, &t->list[i], clock_now_ns(), -1);
	return running;
}

void serve_trace_ended(struct serve_trace *t, pid_t pid, int status)
{
	struct served *p = serve_find(t, pid);

	if (p)
		serve_end(t, p, clock_now_ns(), status);
}

void serve_trace_pause(struct serve_trace *t, pid_t pid)
{
	struct served *p = serve_find(t, pid);

	if (!p || p->is_paused)
		return;
	p->is_paused = true;
	t->options.ops->pause(t->options.source, pid);
	/* Frees from now on are not seen. */
	tell_flags(t, p, STREAM_TAINT);
}

/* Pause or resume all processes. */
static void switch_all(struct serve_trace *t, void (*to)(struct source *s, pid_t pid))
{
	for (size_t i = 0; i < t->nr; i++)
		if (!t->list[i].is_over)
			to(t->options.source, t->list[i].target->pid);
}

static void tell_all(struct serve_trace *t, u8 flags)
{
	for (size_t i = 0; i < t->nr; i++)
		if (!t->list[i].is_over)
			tell_flags(t, &t->list[i], flags);
}

int serve_trace_tune(struct serve_trace *t, const struct tuning *now)
{
	const struct source_ops *ops = t->options.ops;
	int err = 0;

	if (now->depth != t->tuning.depth)
		err = ops->set_depth ? ops->set_depth(t->options.source, now->depth) : -EOPNOTSUPP;
	if (err)
		return err;
	if (now->is_paused && !t->tuning.is_paused)
		switch_all(t, ops->pause);
	/* Events in the ring are from before the change. */
	err = serve_trace_poll(t);
	/* While paused, frees and allocations are not seen. */
	if (now->is_paused && !t->tuning.is_paused)
		tell_all(t, STREAM_TAINT | STREAM_GAPS);
	if (tuning_has_filter(now))
		tell_all(t, STREAM_GAPS);
	if (!now->is_paused && t->tuning.is_paused)
		switch_all(t, ops->resume);
	t->tuning = *now;
	return err ? err : serve_trace_flush(t);
}

int serve_trace_stop(struct serve_trace *t)
{
	struct stream_end rec = { .time_ns = clock_now_ns(), .reason = STREAM_END_DONE };

	if (t->is_stopped)
		return 0;
	t->is_stopped = true;
	for (size_t i = 0; i < t->nr; i++)
		look(t, &t->list[i]);
	for (size_t i = 0; i < t->nr; i++)
		if (!t->list[i].is_over && !t->list[i].is_paused)
			t->options.ops->pause(t->options.source, t->list[i].target->pid);
	t->options.ops->detach(t->options.source);
	if (serve_trace_poll(t))
		debug("serve: the stream is broken");
	for (size_t i = 0; i < t->nr; i++) {
		struct losses l = serve_losses_of(t, &t->list[i]);

		if (!t->list[i].is_over)
			serve_tell_losses(t, &t->list[i], &l);
	}
	rec.duration_ns = t->start_ns ? rec.time_ns - t->start_ns : 0;
	serve_tell(t, STREAM_END, &rec);
	return serve_trace_flush(t);
}

u64 serve_trace_id(const struct serve_trace *t)
{
	return t->id;
}

pid_t serve_trace_pid(const struct serve_trace *t, size_t i)
{
	if (i >= t->nr)
		return 0;
	return t->list[i].is_over ? -1 : t->list[i].target->pid;
}

const struct target *serve_trace_target(const struct serve_trace *t, pid_t pid)
{
	const struct served *p = serve_find(t, pid);

	return p ? p->target : NULL;
}

bool serve_trace_has_no_allocator(const struct serve_trace *t)
{
	for (size_t i = 0; i < t->nr; i++)
		if (t->list[i].target->nr_allocators)
			return false;
	return true;
}

void serve_trace_watch(struct serve_trace *t, void (*watch)(void *ctx, const struct heap_event *ev),
		       void *ctx)
{
	t->watch = watch;
	t->watch_ctx = ctx;
}

struct losses serve_trace_losses(struct serve_trace *t, pid_t pid)
{
	const struct served *p = serve_find(t, pid);

	if (!p)
		return (struct losses){ 0 };
	look(t, p);
	return serve_losses_of(t, p);
}
