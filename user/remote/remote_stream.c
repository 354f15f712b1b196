/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn the stream of a connection into records for a session. Numbers of the stream become those of this heaptap. */
#include "user/remote/remote_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/stream/stream_take.h"
#include "user/stream/stream_target.h"

enum {
	MAX_PROCESSES = 2 * FORWARD_MAX_PROCESSES, /* with those of whose end the session has not heard yet */
	MAX_MODULES = 16384,
	TARGET_COST = 16384, /* bytes that a process takes in a session at first */
};

/* Limit of the memory for the processes that run, each with all the programs that it has executed. */
static const u64 MAX_TARGET_BYTES = 256 << 20;
static const u64 MAX_MAPPING_BYTES = (1 << 20) * sizeof(struct mapping); /* of the processes at a time */

/* A process of the stream. */
struct remote_process {
	struct target target;
	struct losses losses, before; /* before: of earlier streams that this one does not continue */
	u64 target_bytes;	      /* its part of remote_stream.target_bytes */
	u64 allocs, frees;	      /* events of this stream and of those that it continues */
	bool is_over;		      /* has ended; kept until remote_stream_forget() */
	bool is_replaced;	      /* STREAM_PROCESS has not named its program yet, or not since an exec */
	bool has_gap;		      /* events before this stream were missed; their number is not known */
	struct process_event birth;   /* EVENT_FORK, until STREAM_PROCESS has named its program; else zeros */
};

struct remote_stream {
	struct stream_taker in;
	const struct sink *sink; /* during remote_stream_feed() */
	struct remote_stream_hello hello;
	struct remote_process **processes; /* owned, and each of them */
	size_t nr_processes;
	struct remote_process *latest;
	u64 mapping_bytes; /* of all processes */
	u64 nr_ends;	   /* processes that have ended, on the streams that this one continues */
	u64 nr_breaks;	   /* number of streams that did not continue the one before */
	u64 target_bytes;
};

static struct remote_process *remote_stream_find(const struct remote_stream *s, u32 pid)
{
	for (size_t i = s->nr_processes; i-- > 0;)
		if ((u32)s->processes[i]->target.pid == pid)
			return s->processes[i];
	return NULL;
}

static int remote_stream_pass(const struct remote_stream *s, const void *rec, size_t len)
{
	return s->sink->record(s->sink->ctx, rec, len);
}

/* Send a record without data: mappings, losses or the program have changed. */
static int remote_stream_note(const struct remote_stream *s, u8 kind, u8 flags, u32 pid)
{
	const struct process_event ev = { .h = { .kind = kind, .flags = flags, .pid = pid, .tid = pid } };

	return remote_stream_pass(s, &ev, sizeof(ev));
}

static int remote_stream_on_hello(void *ctx, const void *rec)
{
	struct remote_stream *s = ctx;
	const struct stream_hello *hello = rec;

	s->hello.id = hello->id;
	s->hello.mono_ns = hello->mono_ns;
	s->hello.start_ns = hello->start_ns;
	s->hello.sample_bytes = hello->sample_bytes;
	snprintf(s->hello.backend, sizeof(s->hello.backend), "%s", hello->backend ? hello->backend : "");
	return 0;
}

static void process_free(struct remote_process *p)
{
	if (!p)
		return;
	mapping_list_fini(&p->target.maps);
	free(p->target.allocators);
	free(p->target.exe);
	free(p);
}

static int remote_stream_add_process(struct remote_stream *s, u32 pid, struct remote_process **out)
{
	struct remote_process *p;

	if (s->nr_processes == MAX_PROCESSES)
		return stream_refuse(s->in.reader, -E2BIG, true, "too many processes");
	if (array_extend(s->processes, s->nr_processes))
		return -ENOMEM;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->target = (struct target){ .pid = pid, .pidfd = -1, .exit_status = -1 };
	p->is_replaced = true;
	s->processes[s->nr_processes++] = p;
	s->latest = NULL; /* perhaps an older process of the PID */
	*out = p;
	return 0;
}

/* A child. The session hears of it when its program is known. An older process of its PID has ended. */
static int remote_stream_on_fork(void *ctx, const void *rec)
{
	struct remote_stream *s = ctx;
	const struct process_event *birth = rec;
	struct process_event end = { .h = { .kind = EVENT_EXIT, .pid = birth->child_pid },
				     .time_ns = birth->time_ns,
				     .exit_status = UINT32_MAX };
	struct remote_process *child = remote_stream_find(s, birth->child_pid);
	int err = 0;

	if (child && !child->is_over) {
		/* The session may forget it. */
		child->is_over = true;
		err = remote_stream_pass(s, &end, sizeof(end));
	}
	if (!err)
		err = remote_stream_add_process(s, birth->child_pid, &child);
	if (!err)
		child->birth = *birth;
	return err;
}

/* The program of @p has been named: tell its birth, unless its parent has ended meanwhile. */
static int remote_stream_tell_birth(const struct remote_stream *s, struct remote_process *p)
{
	const struct process_event birth = p->birth;

	p->birth = (struct process_event){ 0 };
	if (birth.h.kind != EVENT_FORK || !remote_stream_find(s, birth.h.pid))
		return 0;
	return remote_stream_pass(s, &birth, sizeof(birth));
}

static int remote_stream_on_process(void *ctx, const void *rec)
{
	struct remote_stream *s = ctx;
	const struct stream_process *in = rec;
	struct remote_process *p = remote_stream_find(s, in->pid);
	int err = 0;

	/* The end of the older process has been told: another one has its PID. */
	if (p && p->is_over)
		p = NULL;
	/* The process may have executed another program while the connection was lost. */
	if (p && !p->is_replaced &&
	    (p->target.start_time != in->start_time || strcmp(p->target.exe, in->exe)))
		err = remote_stream_note(s, EVENT_EXEC, 0, in->pid);
	if (!p)
		err = remote_stream_add_process(s, in->pid, &p);
	if (!err)
		err = stream_process_take(&p->target, in);
	if (err)
		return err;
	p->is_replaced = false;
	p->target.nr_allocators = 0;
	err = remote_stream_tell_birth(s, p);
	if (err || !p->has_gap)
		return err;
	p->has_gap = false;
	p->losses.other++;
	p->before = p->losses;
	p->allocs = p->frees = 0;
	return remote_stream_note(s, EVENT_LOSSES, STREAM_TAINT, in->pid);
}

static struct target *remote_stream_find_target(void *ctx, u32 pid)
{
	struct remote_process *p = remote_stream_find(ctx, pid);

	return p ? &p->target : NULL;
}

/* Of the rest there is no more than a few for each process. */
static int remote_stream_charge(void *ctx, enum stream_kind kind, s64 bytes)
{
	struct remote_stream *s = ctx;

	if (kind == STREAM_MAPS)
		s->mapping_bytes += (u64)bytes;
	return s->mapping_bytes > MAX_MAPPING_BYTES
		       ? stream_refuse(s->in.reader, -E2BIG, true, "too many mappings")
		       : 0;
}

static int remote_stream_changed(void *ctx, const struct target *t)
{
	return remote_stream_note(ctx, EVENT_MAPS, 0, (u32)t->pid);
}

static int remote_stream_on_life(void *ctx, const void *rec)
{
	struct remote_stream *s = ctx;
	const struct process_event *ev = rec;

	remote_stream_find(s, ev->h.pid)->is_replaced = true;
	return remote_stream_pass(s, ev, sizeof(*ev));
}

static int remote_stream_on_end(void *ctx, const void *rec)
{
	struct remote_stream *s = ctx;
	const struct process_event *ev = rec;

	s->nr_ends++;
	remote_stream_find(s, ev->h.pid)->is_over = true;
	return remote_stream_pass(s, ev, sizeof(*ev));
}

static int remote_stream_on_losses(void *ctx, const void *rec)
{
	struct remote_stream *s = ctx;
	const struct stream_losses *in = rec;
	struct remote_process *p = remote_stream_find(s, in->pid);

	p->losses = in->l;
	losses_add(&p->losses, &p->before);
	p->losses.tracers = in->l.tracers;
	return remote_stream_note(s, EVENT_LOSSES, in->flags, in->pid);
}

/* Give stacks of a stream that continues no other new ids: mappings may have changed meanwhile. */
static u64 remote_stream_stack_id(const struct remote_stream *s, u64 id)
{
	if (id < STACK_FIRST_ID || !s->nr_breaks)
		return id;
	id ^= s->nr_breaks * 0x9e3779b97f4a7c15ULL;
	return id < STACK_FIRST_ID ? id + STACK_FIRST_ID : id;
}

static int remote_stream_on_stack(void *ctx, const void *rec)
{
	struct remote_stream *s = ctx;
	struct stack_event ev = *(const struct stack_event *)rec;

	ev.id = remote_stream_stack_id(s, ev.id);
	return remote_stream_pass(s, &ev, offsetof(struct stack_event, ips) + ev.nr_frames * sizeof(u64));
}

static int remote_stream_on_event(void *ctx, const void *rec)
{
	struct remote_stream *s = ctx;
	struct heap_event ev = *(const struct heap_event *)rec;
	bool is_end = ev.h.kind == EVENT_REALLOC_END;
	struct remote_process *p = s->latest;

	if (!p || (u32)p->target.pid != ev.h.pid)
		p = s->latest = remote_stream_find(s, ev.h.pid);
	if (!p)
		return 0;
	p->allocs += is_end || ev.h.kind == EVENT_ALLOC;
	p->frees += ev.h.kind == EVENT_FREE || (is_end && ev.old_addr && (ev.addr || !ev.size));
	ev.stack = remote_stream_stack_id(s, ev.stack);
	return remote_stream_pass(s, &ev, sizeof(ev));
}

/* A marker of a program over there. */
static int remote_stream_on_mark(void *ctx, const void *rec)
{
	struct remote_stream *s = ctx;
	static const u8 notes[] = { [STREAM_MARK_PROGRAM] = NOTE_MARK,	[STREAM_MARK_PAUSE] = NOTE_PAUSE,
				    [STREAM_MARK_RESUME] = NOTE_RESUME, [STREAM_MARK_CHECK] = NOTE_LEAK_CHECK,
				    [STREAM_MARK_IGNORE] = NOTE_IGNORE, [STREAM_MARK_DISABLE] = NOTE_DISABLE,
				    [STREAM_MARK_ENABLE] = NOTE_ENABLE };
	const struct stream_mark_record *in = rec;
	struct note_event ev = { .h = { .kind = EVENT_NOTE, .pid = in->pid, .tid = in->tid },
				 .time_ns = in->time_ns,
				 .what = in->what < ARRAY_SIZE(notes) ? notes[in->what] : NOTE_NONE };

	if (ev.what == NOTE_NONE || !remote_stream_find(s, in->pid))
		return 0;
	if (ev.what == NOTE_IGNORE)
		ev.addr = in->addr;
	else
		snprintf(ev.name, sizeof(ev.name), "%s", in->text);
	return remote_stream_pass(s, &ev, sizeof(ev));
}

static int remote_stream_on_thread(void *ctx, const void *rec)
{
	struct remote_stream *s = ctx;
	const struct stream_thread *in = rec;
	struct note_event ev = { .h = { .kind = EVENT_NOTE, .pid = in->pid, .tid = in->tid },
				 .time_ns = s->in.last_ns,
				 .what = NOTE_THREAD };

	snprintf(ev.name, sizeof(ev.name), "%s", in->comm);
	return remote_stream_pass(s, &ev, sizeof(ev));
}

/* Handlers by kind. */
static int (*const takers[NR_STREAM_KINDS])(void *ctx, const void *rec) = {
	[STREAM_HELLO] = remote_stream_on_hello,   [STREAM_PROCESS] = remote_stream_on_process,
	[STREAM_EXEC] = remote_stream_on_life,	   [STREAM_EXIT] = remote_stream_on_end,
	[STREAM_LOSSES] = remote_stream_on_losses, [STREAM_STACK] = remote_stream_on_stack,
	[STREAM_EVENT] = remote_stream_on_event,   [STREAM_MARK] = remote_stream_on_mark,
	[STREAM_FORK] = remote_stream_on_fork,	   [STREAM_THREAD] = remote_stream_on_thread,
};

static int remote_stream_on_record(void *ctx, enum stream_kind kind, const void *rec)
{
	struct remote_stream *s = ctx;

	return stream_take(&s->in, kind, rec);
}

int remote_stream_new(struct remote_stream **out, struct module_table *modules, struct alloc_table *fns,
		      const struct stream_codec *codec)
{
	struct remote_stream *s = calloc(1, sizeof(*s));
	const struct stream_handler handler = { .ctx = s, .record = remote_stream_on_record };
	int err;

	if (!s)
		return -ENOMEM;
	s->in = (struct stream_taker){ .names = { .modules = modules,
						  .fns = fns,
						  .max_modules = MAX_MODULES,
						  .owner = { s, remote_stream_find_target,
							     remote_stream_charge } },
				       .takers = takers,
				       .changed = remote_stream_changed };
	module_table_set_remote(modules);
	err = stream_reader_new(&s->in.reader, &handler, codec);
	if (err) {
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

void remote_stream_free(struct remote_stream *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_processes; i++)
		process_free(s->processes[i]);
	free(s->processes);
	stream_names_fini(&s->in.names);
	stream_reader_free(s->in.reader);
	free(s);
}

void remote_stream_restart(struct remote_stream *s, bool is_continued)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		s->processes[i]->has_gap |= !is_continued;
	stream_reader_restart(s->in.reader);
	s->nr_breaks += !is_continued;
	s->nr_ends = is_continued ? s->nr_ends : 0;
	stream_names_clear(&s->in.names);
}

int remote_stream_feed(struct remote_stream *s, const void *data, size_t len, const struct sink *sink)
{
	s->sink = sink;
	return stream_feed(s->in.reader, data, len);
}

const char *remote_stream_why(const struct remote_stream *s)
{
	return stream_why(s->in.reader);
}

u64 remote_stream_last_ns(const struct remote_stream *s)
{
	return s->in.last_ns;
}

int remote_stream_target(struct remote_stream *s, pid_t pid, struct target **out)
{
	struct remote_process *p = remote_stream_find(s, pid);
	u64 bytes;
	int err;

	if (!p)
		return -ESRCH;
	bytes = TARGET_COST + p->target.maps.nr * sizeof(*p->target.maps.maps);
	p->target_bytes += bytes;
	s->target_bytes += bytes;
	if (s->target_bytes > MAX_TARGET_BYTES)
		return -E2BIG;
	err = target_copy(out, &p->target);
	for (size_t i = 0; i < p->target.nr_allocators && !err; i++) {
		const struct target_allocator *a = &p->target.allocators[i];

		err = target_add_allocator(*out, a->module, a->kind);
		if (err)
			target_free(*out);
	}
	return err;
}

int remote_stream_update(const struct remote_stream *s, struct target *t)
{
	const struct remote_process *p = remote_stream_find(s, t->pid);
	struct mapping *maps;
	int err = 0;

	if (!p)
		return -ESRCH;
	t->nr_allocators = 0;
	for (size_t i = 0; i < p->target.nr_allocators && !err; i++)
		err = target_add_allocator(t, p->target.allocators[i].module, p->target.allocators[i].kind);
	if (err || t->maps.epoch == p->target.maps.epoch)
		return err;
	maps = reallocarray(NULL, p->target.maps.nr + 1, sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	if (p->target.maps.nr)
		memcpy(maps, p->target.maps.maps, p->target.maps.nr * sizeof(*maps));
	free(t->maps.maps);
	t->maps = p->target.maps;
	t->maps.maps = maps;
	return 1;
}

struct losses remote_stream_losses(const struct remote_stream *s, pid_t pid)
{
	const struct remote_process *p = remote_stream_find(s, pid);

	return p ? p->losses : (struct losses){ 0 };
}

const struct remote_stream_hello *remote_stream_hello(const struct remote_stream *s)
{
	return &s->hello;
}

void remote_stream_forget(struct remote_stream *s, pid_t pid)
{
	size_t i = 0;

	while (i < s->nr_processes && !(s->processes[i]->is_over && s->processes[i]->target.pid == pid))
		i++;
	if (i == s->nr_processes)
		return;
	if (s->latest == s->processes[i])
		s->latest = NULL;
	s->mapping_bytes -= s->processes[i]->target.maps.nr * sizeof(struct mapping);
	s->target_bytes -= s->processes[i]->target_bytes;
	process_free(s->processes[i]);
	memmove(s->processes + i, s->processes + i + 1, (--s->nr_processes - i) * sizeof(*s->processes));
}

void remote_stream_received(const struct remote_stream *s, struct forward_received *out)
{
	out->nr_ends = s->nr_ends;
	out->nr_had = 0;
	for (size_t i = 0; i < s->nr_processes; i++) {
		const struct remote_process *p = s->processes[i];

		/* Of a child without a program the session has not heard. */
		if (!p->is_over && p->birth.h.kind != EVENT_FORK && out->nr_had < FORWARD_MAX_PROCESSES)
			out->had[out->nr_had++] =
				(struct forward_had){ (u32)p->target.pid, p->target.start_time, p->allocs,
						      p->frees };
	}
}

bool remote_stream_is_empty(const struct remote_stream *s)
{
	return !s->nr_processes && !s->nr_ends;
}
