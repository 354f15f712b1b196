/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The next part of a recording: write all processes and live blocks again, so that each part can be read alone. */
#include "user/session/session_record.h"

#include <errno.h>
#include <string.h>

#include "user/heap/heap_sample.h"
#include "user/lib/log.h"
#include "user/session/session_live.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_threads.h"
#include "user/heap/stacks.h"
#include "user/heap/thread_table.h"
#include "user/stream/stream_record.h"

enum { FEW_BLOCKS = 400000 }; /* they are written in 100 ms */

/* The address of @ref by @list; its offset if the module is not mapped any more. */
static taddr_t addr_of(const struct mapping_list *list, struct code_ref ref)
{
	for (size_t i = 0; ref.module && i < list->nr; i++)
		if (list->maps[i].module && list->maps[i].module->id == ref.module)
			return ref.offset + list->maps[i].bias;
	return ref.offset;
}

void session_record_stack(struct session *s, const struct process *p, u64 id)
{
	const struct stack *stack = stack_get(s->stacks, id);
	struct stack_event ev = { .h = { .kind = EVENT_STACK, .pid = (u32)p->target->pid }, .id = id };

	if (!stack)
		return;
	ev.epoch = p->target->maps.epoch;
	ev.nr_frames = stack->nr_frames;
	ev.end = stack->end;
	for (u16 i = 0; i < stack->nr_frames; i++)
		ev.ips[i] = addr_of(&p->target->maps, stack->frames[i]);
	recorder_stack_again(s->recorder, &ev,
			     offsetof(struct stack_event, ips) + ev.nr_frames * sizeof(u64));
}

/* Write the live blocks of one process as allocations. */
struct carrying {
	struct session *session;
	const struct process *process;
	bool is_unsure;
};

static int carry_block(void *ctx, const struct heap_block *block)
{
	struct carrying *c = ctx;
	struct heap_row row = heap_row_get(c->process->heap, block->row);
	struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .fn = row.fn }, .time_ns = block->time_ns };
	struct thread_row thread;

	/* Pending blocks too: the end of their realloc refers to them. */
	ev.h.pid = (u32)c->process->target->pid;
	ev.h.tid =
		heap_thread(c->process->heap, block->thread, &thread) && thread.tid ? thread.tid : ev.h.pid;
	ev.addr = block->addr;
	ev.size = block->size;
	ev.stack = row.stack;
	if (HAS_SAMPLES)
		ev.h.distance = heap_block_drawn(c->process->heap, block);
	c->is_unsure |= block->is_unsure && !block->is_pending;
	if (!recorder_has_stack(c->session->recorder, ev.stack))
		session_record_stack(c->session, c->process, ev.stack);
	recorder_event(c->session->recorder, &ev.h, sizeof(ev));
	return 0;
}

/* Write @p and its blocks. Returns true if some of them are unsure. */
static bool carry_books(struct session *s, const struct process *p)
{
	struct carrying c = { .session = s, .process = p };

	recorder_process(s->recorder, p->target, session_source_ns(s));
	if (heap_for_each_block(p->heap, carry_block, &c))
		debug("record: blocks of PID %d are missing", p->target->pid);
	session_threads_tell(s, p);
	return c.is_unsure;
}

static void carry_process(struct session *s, struct process *p)
{
	const struct losses none = { 0 };
	bool is_unsure = carry_books(s, p);

	p->lost.told = none;
	p->lost.has_gaps = false;
	if (is_unsure)
		recorder_losses(s->recorder, p->target->pid, &none, STREAM_TAINT);
}

static void carry_all(struct session *s)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		if (!process_is_over(s->processes[i]))
			carry_process(s, s->processes[i]);
}

void session_record_part(struct session *s)
{
	if (recorder_next_part(s->recorder, session_backend(s), s->wants_notes))
		carry_all(s);
}

/* The state of @p at a seek point: what the recording says of it goes on. */
static void session_record_write_state(struct session *s, const struct process *p)
{
	bool is_unsure = carry_books(s, p);
	u8 flags = (is_unsure ? STREAM_TAINT : 0) | (p->lost.has_gaps ? STREAM_GAPS : 0);

	recorder_losses(s->recorder, p->target->pid, &p->lost.told, flags);
}

static int write_states(void *arg)
{
	struct session *s = arg;

	for (size_t i = 0; i < s->nr_processes; i++)
		if (!process_is_over(s->processes[i]))
			session_record_write_state(s, s->processes[i]);
	if (!IS_AGENT)
		recorder_end_seek(s->recorder);
	return 0;
}

void session_record_seek(struct session *s)
{
	u64 nr_blocks = 0;
	bool is_any = false;

	if (IS_AGENT || !recorder_wants_seek(s->recorder))
		return;
	for (size_t i = 0; i < s->nr_processes; i++) {
		if (process_is_over(s->processes[i]))
			continue;
		is_any = true;
		nr_blocks += heap_totals(s->processes[i]->heap).live_blocks;
		recorder_introduce(s->recorder, s->processes[i]->target);
	}
	/* A state without a process has nothing to begin with. */
	if (!is_any)
		return;
	if (!recorder_begin_seek(s->recorder, nr_blocks, session_backend(s), s->wants_notes))
		return;
	/* While a large state is written the ring would become full. */
	if (nr_blocks > FEW_BLOCKS)
		session_aside(s, write_states, s);
	else
		write_states(s);
}

int session_record(struct session *s)
{
	int err;

	if (s->recorder)
		return -EBUSY;
	err = recorder_check(&s->options->recorder);
	if (!err)
		err = recorder_new(&s->recorder, &s->options->recorder, s->fns);
	if (err)
		return err;
	if (HAS_SAMPLES)
		recorder_set_sample(s->recorder, s->sample_bytes);
	recorder_join(s->recorder);
	recorder_begin(s->recorder, s->ops->name, s->wants_notes, session_source_ns(s));
	carry_all(s);
	return 0;
}

bool session_is_recording(const struct session *s)
{
	return s->recorder;
}

int session_record_end(struct session *s)
{
	u64 now = session_source_ns(s);
	bool has_failed;

	if (!s->recorder)
		return -ENOENT;
	session_threads_look(s, true);
	for (size_t i = 0; i < s->nr_processes; i++)
		session_read_losses(s, s->processes[i]);
	recorder_end(s->recorder, now, s->start_ns ? now - s->start_ns : 0);
	has_failed = recorder_has_failed(s->recorder);
	recorder_free(s->recorder);
	s->recorder = NULL;
	return has_failed ? -EIO : 0;
}
