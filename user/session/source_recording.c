/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the records of a recording to processes, heaps and verdicts of a session. */
#include "user/session/source_recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap.h"
#include "user/lib/human.h"
#include "user/session/session.h"
#include "user/session/session_fill.h"
#include "user/session/session_span.h"
#include "user/session/source_recording_scan.h"
#include "user/stream/seek.h"
#include "user/stream/stream_take.h"
#include "user/stream/stream_target.h"
#include "user/stream/stream_zstd.h"

enum {
	MAX_PROCESSES = 1 << 16,
	MAX_FILES = 1 << 16,
	PROCESS_COST = 16384,	/* bytes, with its first heap */
	CHECK_EVENTS = 1 << 12, /* between looks at the memory used */
};

struct recording_source {
	struct session *session; /* borrowed; owns this */
	struct stream_taker in;
	u32 part; /* of several files */
	u64 max_memory;
	u64 name_bytes; /* used by records, beside heaps and stacks */
	u64 nr_events;	/* that came in */
	struct stream_scan_state scan;
	bool halts, is_halted; /* at the end of the span */
	enum stream_kind held; /* the record that was not entered there; STREAM_MARK: none */
	union {
		struct heap_event event;
		struct process_event life;
	} held_record;
};

static struct recording_source *source_recording_self(const struct source *s)
{
	return (struct recording_source *)(uintptr_t)s;
}

/* Explain what is wrong with a record that could be read. */
static int source_recording_refuse(struct recording_source *src, const char *what)
{
	return stream_refuse(src->in.reader, -EBADMSG, true, "%s", what);
}

/* Charge @bytes of memory for the content of records. */
static int source_recording_charge(struct recording_source *src, u64 bytes)
{
	src->name_bytes += bytes;
	return src->name_bytes > src->max_memory
		       ? source_recording_refuse(src, "more names than there may be memory for")
		       : 0;
}

static int source_recording_charge_names(void *ctx, enum stream_kind kind, s64 bytes)
{
	(void)kind;
	return source_recording_charge(ctx, (u64)bytes);
}

static int source_recording_on_hello(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;
	const struct stream_hello *hello = rec;
	const char *why = session_fill_begin(src->session, hello);

	if (why)
		return stream_refuse(src->in.reader, -EOPNOTSUPP, false, "blocks are sampled: %s", why);
	src->part = hello->part;
	return 0;
}

/* Set the identity of @t by @rec. 0 or -errno. */
static int set_identity(struct recording_source *src, struct target *t, const struct stream_process *rec)
{
	int err = stream_process_take(t, rec);

	if (err)
		return err;
	t->is_started = t->is_started && !src->part;
	return source_recording_charge(src, strlen(t->exe));
}

static int source_recording_add_process(struct recording_source *src, u32 pid, struct process **out)
{
	int err = source_recording_charge(src, PROCESS_COST);

	if (!err && session_count(src->session) >= MAX_PROCESSES)
		err = source_recording_refuse(src, "too many processes");
	return err ? err : session_fill_process(src->session, pid, out);
}

static int source_recording_on_process(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;
	const struct stream_process *pr = rec;
	struct process *p = session_find(src->session, pr->pid);
	int err = 0;

	if (!p)
		err = source_recording_add_process(src, pr->pid, &p);
	if (!err)
		err = set_identity(src, session_target_of(p), pr);
	return err ? err : session_fill_identity(src->session, p, pr->time_ns);
}

static struct target *source_recording_target(void *ctx, u32 pid)
{
	const struct recording_source *src = ctx;
	struct process *p = session_find(src->session, pid);

	return p ? session_target_of(p) : NULL;
}

static int source_recording_changed(void *ctx, const struct target *changed)
{
	struct recording_source *src = ctx;

	session_fill_maps(src->session, session_find(src->session, (u32)changed->pid));
	return 0;
}

static int source_recording_on_thread(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;
	const struct stream_thread *t = rec;

	session_fill_thread(src->session, session_find(src->session, t->pid), t->tid, t->comm);
	return 0;
}

static int source_recording_on_losses(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;
	const struct stream_losses *l = rec;

	session_fill_losses(src->session, session_find(src->session, l->pid), &l->l, l->flags);
	return 0;
}

static int source_recording_on_mark(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;
	const struct stream_mark_record *m = rec;

	if (m->what == STREAM_MARK_REPORT)
		session_reported(src->session);
	else if (m->what == STREAM_MARK_USER)
		session_mark(src->session, m->time_ns, m->text);
	return 0;
}

static int source_recording_on_end(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;
	const struct stream_end *end = rec;

	if (end->reason != STREAM_END_ERROR)
		return 0;
	return stream_refuse(src->in.reader, -ENODATA, false, "its recording was broken off: %s", end->text);
}

static int check_memory(struct recording_source *src)
{
	session_bound_memory(src->session);
	if (session_memory(src->session) <= src->max_memory)
		return 0;
	return stream_refuse(src->in.reader, -ENOMEM, false,
			     "its books need more than %s of memory: see --max-memory",
			     human_bytes(src->max_memory).text);
}

/*
 * A recording names the child of @birth behind it, and an older process of this PID has ended. A list of events has
 * named it before.
 */
static int source_recording_end_older(struct recording_source *src, const struct process_event *birth)
{
	const struct process_event end = { .h = { .kind = EVENT_EXIT, .pid = birth->child_pid },
					   .time_ns = birth->time_ns,
					   .exit_status = UINT32_MAX };
	struct process *older = session_find(src->session, birth->child_pid);

	return older && heap_totals(session_heap_of(older)).allocs
		       ? session_enter(src->session, &end.h, sizeof(end))
		       : 0;
}

static int source_recording_on_life(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;
	const struct process_event *ev = rec;
	const struct target *t = source_recording_target(src, ev->h.pid);
	int err = 0;

	/* A child and an image begin with a copy of the mappings. */
	if (ev->h.kind != EVENT_EXIT)
		err = source_recording_charge(src, PROCESS_COST + t->maps.nr * sizeof(struct mapping));
	if (!err && session_count(src->session) >= MAX_PROCESSES)
		err = source_recording_refuse(src, "too many processes");
	if (!err && ev->h.kind == EVENT_FORK)
		err = source_recording_end_older(src, ev);
	if (!err)
		err = session_enter(src->session, &ev->h, sizeof(*ev));
	/* A child has a copy of its parent's heap: a short record takes much memory. */
	return err || ev->h.kind != EVENT_FORK ? err : check_memory(src);
}

static int source_recording_on_event(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;

	if (++src->nr_events % CHECK_EVENTS == 0 && check_memory(src))
		return -ENOMEM;
	return session_enter(src->session, rec, sizeof(struct heap_event));
}

static int source_recording_on_stack(void *ctx, const void *rec)
{
	const struct recording_source *src = ctx;

	return session_enter(src->session, rec, sizeof(struct stack_event));
}

static int source_recording_on_scan(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;
	const struct stream_scan *scan = rec;

	return stream_scan_begin(&src->scan, src->session, session_find(src->session, scan->pid), scan);
}

static int source_recording_checked(struct recording_source *src, int err)
{
	return err == -EBADMSG ? source_recording_refuse(src, "verdicts that cannot be") : err;
}

static int on_scan_row(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;

	return source_recording_checked(src, stream_scan_row(&src->scan, src->in.names.fn_of, rec));
}

static int on_scan_link(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;
	int err = source_recording_charge(src, sizeof(struct leak_link));

	return err ? err
		   : source_recording_checked(src, stream_scan_link(&src->scan, src->in.names.fn_of, rec));
}

static int on_scan_why(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;
	int err = source_recording_charge(src,
					  sizeof(struct leak_why) + WHY_MAX_STEPS * sizeof(struct why_step));

	return err ? err
		   : source_recording_checked(src, stream_scan_why(&src->scan, src->in.names.fn_of, rec));
}

static int on_scan_step(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;

	return source_recording_checked(src, stream_scan_step(&src->scan, src->in.names.fn_of, rec));
}

static int on_scan_end(void *ctx, const void *rec)
{
	struct recording_source *src = ctx;

	(void)rec;
	return source_recording_checked(src, stream_scan_end(&src->scan, src->session));
}

static int (*const takers[NR_STREAM_KINDS])(void *ctx, const void *rec) = {
	[STREAM_HELLO] = source_recording_on_hello,
	[STREAM_STACK] = source_recording_on_stack,
	[STREAM_PROCESS] = source_recording_on_process,
	[STREAM_EXEC] = source_recording_on_life,
	[STREAM_FORK] = source_recording_on_life,
	[STREAM_EXIT] = source_recording_on_life,
	[STREAM_LOSSES] = source_recording_on_losses,
	[STREAM_SCAN] = source_recording_on_scan,
	[STREAM_SCAN_ROW] = on_scan_row,
	[STREAM_SCAN_LINK] = on_scan_link,
	[STREAM_SCAN_WHY] = on_scan_why,
	[STREAM_SCAN_STEP] = on_scan_step,
	[STREAM_SCAN_END] = on_scan_end,
	[STREAM_MARK] = source_recording_on_mark,
	[STREAM_END] = source_recording_on_end,
	[STREAM_THREAD] = source_recording_on_thread,
	[STREAM_EVENT] = source_recording_on_event,
};

/* Keep the record of @kind, at which the span has ended, for source_recording_go_on(). */
static int source_recording_hold(struct recording_source *src, enum stream_kind kind, const void *rec)
{
	src->held = STREAM_MARK;
	if (takers[kind] == source_recording_on_event)
		src->held_record.event = *(const struct heap_event *)rec;
	else if (takers[kind] == source_recording_on_life)
		src->held_record.life = *(const struct process_event *)rec;
	else
		return STREAM_HALT;
	src->held = kind;
	return STREAM_HALT;
}

static int source_recording_on_record(void *ctx, enum stream_kind kind, const void *rec)
{
	struct recording_source *src = ctx;
	bool is_verdict = kind >= STREAM_SCAN && kind <= STREAM_SCAN_END;
	int err;

	/* Verdicts are about all blocks, not only about those of a span. */
	if (session_has_span(src->session) && (is_verdict || session_span_is_over(src->session)))
		return 0;
	err = stream_take(&src->in, kind, rec);
	return !err && src->halts && session_span_is_over(src->session)
		       ? source_recording_hold(src, kind, rec)
		       : err;
}

int source_recording_new(struct source **out, struct session *s, u64 max_memory, const u64 *line)
{
	struct recording_source *src = calloc(1, sizeof(*src));
	const struct stream_handler handler = { .ctx = src,
						.line = line,
						.record = source_recording_on_record };
	int err;

	if (!src)
		return -ENOMEM;
	src->session = s;
	src->in = (struct stream_taker){ .names = { .modules = session_modules(s),
						    .fns = session_functions(s),
						    .max_modules = MAX_FILES,
						    .owner = { src, source_recording_target,
							       source_recording_charge_names } },
					 .takers = takers,
					 .changed = source_recording_changed };
	src->max_memory = max_memory;
	err = stream_reader_new(&src->in.reader, &handler, &stream_zstd);
	if (err) {
		free(src);
		return err;
	}
	*out = (struct source *)src;
	return 0;
}

int source_recording_feed(struct source *source, const void *data, size_t len)
{
	struct recording_source *src = source_recording_self(source);
	int err = stream_feed(src->in.reader, data, len);

	src->is_halted = err == STREAM_HALT;
	return err;
}

void source_recording_halt(struct source *source)
{
	source_recording_self(source)->halts = true;
}

int source_recording_go_on(struct source *source, u64 *offset)
{
	struct recording_source *src = source_recording_self(source);
	struct heap_event event = src->held_record.event;
	struct process_event life = src->held_record.life;
	int err = 0;

	if (src->held == STREAM_EVENT)
		err = source_recording_on_record(src, src->held, &event);
	else if (src->held != STREAM_MARK)
		err = source_recording_on_record(src, src->held, &life);
	if (!err)
		err = stream_go_on(src->in.reader, offset);
	src->is_halted = err == STREAM_HALT;
	return err;
}

int source_recording_resume(struct source *source, const struct seek_point *p)
{
	return stream_reader_resume(source_recording_self(source)->in.reader, &p->cut, p->number, p->offset);
}

int source_recording_finish(struct source *source)
{
	struct recording_source *src = source_recording_self(source);
	int err = src->is_halted ? 0 : stream_finish(src->in.reader);

	session_fill_end(src->session, src->in.last_ns, src->in.nr_strays);
	src->in.nr_strays = 0;
	return err;
}

const char *source_recording_why(const struct source *source)
{
	return stream_why(source_recording_self(source)->in.reader);
}

u64 source_recording_unknown(const struct source *source)
{
	return stream_progress(source_recording_self(source)->in.reader).nr_unknown;
}

static int source_recording_poll_records(struct source *source, const struct sink *sink)
{
	(void)source;
	(void)sink;
	return 0;
}

static void ignore_pid(struct source *source, pid_t pid)
{
	(void)source;
	(void)pid;
}

static struct losses source_recording_losses_of(struct source *source, pid_t pid)
{
	struct recording_source *src = source_recording_self(source);

	return session_filled_losses(src->session, pid);
}

static void source_recording_detach(struct source *source)
{
	(void)source;
}

static void source_recording_free_source(struct source *source)
{
	struct recording_source *src = source_recording_self(source);

	if (!src)
		return;
	stream_scan_fini(&src->scan);
	stream_reader_free(src->in.reader);
	stream_names_fini(&src->in.names);
	free(src);
}

const struct source_ops source_recording = {
	.name = "replay",
	.update = session_fill_update,
	.wait_fd = session_fill_wait_fd,
	.poll = source_recording_poll_records,
	.pause = ignore_pid,
	.resume = ignore_pid,
	.losses = source_recording_losses_of,
	.detach = source_recording_detach,
	.free = source_recording_free_source,
};
