/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fill a session from a recording. */
#include "user/session/session_fill.h"

#include <errno.h>
#include <stdlib.h>

#include "user/heap/heap.h"
#include "user/heap/stacks.h"
#include "user/session/session_ending.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_span.h"
#include "user/stream/stream_record.h"

void session_fill_sample(struct session *s, u64 bytes)
{
	if (s->sample_bytes != bytes)
		recorder_set_sample(s->recorder, bytes);
	s->sample_bytes = bytes;
}

const char *session_needs_all(const struct session_options *o)
{
	if (o->wants_tape)
		return "the format heaptrack lists all events";
	if (o->source.check == CHECK_ALWAYS || o->fail.on_errors)
		return "releases are checked only where all blocks are traced: leave out --check";
	return NULL;
}

const char *session_fill_begin(struct session *s, const struct stream_hello *hello)
{
	const char *why = hello->sample_bytes ? session_needs_all(s->options) : NULL;

	if (why)
		return why;
	session_fill_sample(s, hello->sample_bytes);
	/* A verdict is about all blocks, not about those of a part of the recording. */
	s->wants_notes = hello->wants_scan && !session_has_span(s);
	if (!s->epoch_ns && hello->real_ns > hello->mono_ns)
		s->epoch_ns = hello->real_ns - hello->mono_ns;
	return NULL;
}

void session_fill_start(struct session *s, u64 start_ns)
{
	s->start_ns = start_ns;
}

void session_fill_end(struct session *s, u64 last_ns, u64 nr_strays)
{
	s->nr_strays += nr_strays;
	if (!s->stop_ns)
		s->stop_ns = last_ns;
	s->span.last_ns = s->stop_ns;
}

int session_fill_process(struct session *s, u32 pid, struct process **out)
{
	struct target *t;
	int err = session_new_process(s, out);

	if (err)
		return err;
	t = calloc(1, sizeof(*t));
	if (!t) {
		session_drop_last_process(s);
		return -ENOMEM;
	}
	t->pid = (pid_t)pid;
	t->pidfd = t->exit_status = -1;
	(*out)->target = t;
	return 0;
}

int session_fill_identity(struct session *s, struct process *p, u64 time_ns)
{
	int err = session_begin_check(s, p);

	if (err)
		return err;
	if (!s->start_ns)
		s->start_ns = time_ns;
	recorder_process(s->recorder, p->target, time_ns);
	return 0;
}

void session_fill_maps(struct session *s, struct process *p)
{
	recorder_maps(s->recorder, p->target);
	session_blur(s, p);
}

void session_fill_losses(struct session *s, struct process *p, const struct losses *l, u8 flags)
{
	p->lost.stated = *l;
	if (flags & STREAM_GAPS)
		session_expect_gaps(s, p);
	if (flags & STREAM_TAINT)
		session_taint(s, p);
}

struct losses session_filled_losses(struct session *s, pid_t pid)
{
	struct process *p = session_find(s, (u32)pid);

	return p ? p->lost.stated : (struct losses){ 0 };
}

void session_fill_leaks(struct session *s, struct process *p, struct leaks *l, bool is_last)
{
	leaks_free(p->leaks);
	p->leaks = l;
	p->has_last_verdict |= is_last;
	if (!IS_AGENT)
		session_note_verdict(p);
	recorder_scan(s->recorder, p->target->pid, p->leaks, p->heap, p->has_last_verdict);
}

struct target *session_target_of(struct process *p)
{
	return p->target;
}

const struct heap *session_heap_of(const struct process *p)
{
	return p->heap;
}

struct module_table *session_modules(struct session *s)
{
	return s->modules;
}

struct alloc_table *session_functions(struct session *s)
{
	return s->fns;
}

const struct stack_table *session_stacks(const struct session *s)
{
	return s->stacks;
}

size_t session_count(const struct session *s)
{
	return s->nr_processes;
}

u64 session_memory(const struct session *s)
{
	u64 bytes = stack_table_memory(s->stacks);

	for (size_t i = 0; i < s->nr_processes; i++)
		bytes += heap_memory(s->processes[i]->heap);
	return bytes;
}

int session_fill_update(struct source *source, struct target *t)
{
	(void)source, (void)t;
	return 0;
}

int session_fill_wait_fd(struct source *source)
{
	(void)source;
	return -1;
}
