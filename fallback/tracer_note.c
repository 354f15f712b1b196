/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread at a marker of its program: what the marker asks for becomes a record. */
#include <string.h>
#include <unistd.h>

#include "bpf/event.h"
#include "call/note.h"
#include "fallback/tracer_steps.h"
#include "user/lib/clock.h"

/* @size bytes of memory as a number; 0 if they cannot be read. */
static u64 tracer_note_read_number(const struct tracer *t, const struct cpu *cpu, taddr_t addr, u8 size)
{
	u8 bytes[8];
	u64 value = 0;

	if (size > sizeof(bytes) || t->memory.read(t->memory.ctx, addr, bytes, size))
		return 0;
	for (u8 i = 0; i < size; i++)
		value = value << 8 | bytes[cpu->is_big ? i : size - 1 - i];
	return value;
}

/* The argument @a, 0 if it cannot be read. */
static u64 read_arg(const struct tracer *t, const struct cpu *cpu, const struct note_arg *a)
{
	u32 unused = a->size && a->size < 8 ? 64 - 8 * a->size : 0;
	u64 value = (u64)a->value;

	if (a->kind == NOTE_ARG_UNKNOWN)
		return 0;
	if (a->kind != NOTE_ARG_CONST)
		value = cpu_get_word(cpu, &t->regs, a->reg);
	if (a->kind == NOTE_ARG_MEMORY)
		value = tracer_note_read_number(t, cpu, value + (u64)a->value, a->size);
	return a->is_signed ? (u64)((s64)(value << unused) >> unused) : value << unused >> unused;
}

/* A block of a pool, or one that the program has sampled: the third argument is its weight. */
static void tracer_note_send_block(struct tracer *t, struct tracer_thread *th, const struct note_probe *n)
{
	struct tracer_process *p = th->process;
	bool is_free = n->what == NOTE_FREE;
	struct heap_event ev = { .h = { .kind = is_free ? EVENT_FREE : EVENT_ALLOC,
					.fn = n->fn,
					.pid = (u32)p->pid,
					.tid = (u32)th->tid },
				 .addr = read_arg(t, p->cpu, &n->args[0]) };

	if (!ev.addr)
		return;
	if (is_free) {
		ev.h.flags = ev.addr == th->inflight.last_alloc ? EVENT_TEMPORARY : 0;
	} else {
		ev.size = read_arg(t, p->cpu, &n->args[1]);
		if (!IS_AGENT)
			ev.weight = read_arg(t, p->cpu, &n->args[2]);
	}
	th->inflight.last_alloc = is_free ? 0 : ev.addr;
	if (!is_free || t->options.has_free_stacks)
		ev.stack = tracer_take_stack_here(t, p);
	ev.time_ns = clock_now_ns();
	if (!IS_AGENT)
		ev.h.call_number = tracer_read_number(p);
	if (t->host.record && t->host.record(t->host.ctx, &ev, sizeof(ev), false))
		return;
	p->losses->allocs += !is_free;
	p->losses->frees += is_free;
}

/* Read the string at @addr into @name; "" if it cannot be read. */
static void tracer_note_read_name(const struct tracer_process *p, taddr_t addr, char name[NOTE_NAME_BYTES])
{
	ssize_t len = pread(p->mem_fd, name, NOTE_NAME_BYTES - 1, (off_t)addr);

	/* Where the mapping ends, fewer bytes come. */
	name[len > 0 ? len : 0] = '\0';
}

u32 tracer_read_number(const struct tracer_process *p)
{
	u64 numbers[2] = { 0 }; /* while one thread only has had calls, and later */

	if (IS_AGENT || !p->numbers ||
	    pread(p->mem_fd, numbers, sizeof(numbers), (off_t)p->numbers) != sizeof(numbers))
		return 0;
	return (u32)(numbers[1] ? numbers[1] : numbers[0]);
}

void tracer_at_note(struct tracer *t, struct tracer_thread *th, u32 index)
{
	const struct note_probe *n = index < t->nr_notes ? &t->notes[index] : NULL;
	struct tracer_process *p = th->process;
	struct note_event ev = { .h = { .kind = EVENT_NOTE, .pid = (u32)p->pid, .tid = (u32)th->tid } };
	bool is_sent;

	if (!n || p->calls == CALLS_NOT_YET || (!IS_AGENT && n->what == NOTE_EXEC && th->role != ROLE_MEMBER))
		return;
	if (n->what == NOTE_ALLOC || n->what == NOTE_FREE) {
		if (p->calls == CALLS_SEEN)
			tracer_note_send_block(t, th, n);
		return;
	}
	ev.what = n->what;
	ev.time_ns = clock_now_ns();
	if (!IS_AGENT)
		ev.h.call_number = tracer_read_number(p);
	memcpy(ev.name, n->name, sizeof(ev.name));
	if ((n->what == NOTE_MARK || (!IS_AGENT && n->what == NOTE_EXEC)) && !n->name[0])
		tracer_note_read_name(p, read_arg(t, p->cpu, &n->args[0]), ev.name);
	if (n->what == NOTE_IGNORE)
		ev.addr = read_arg(t, p->cpu, &n->args[0]);
	if (note_waits(n->what))
		is_sent = tracer_send_urgent(t, th, &ev, sizeof(ev));
	else
		is_sent = t->host.record && t->host.record(t->host.ctx, &ev, sizeof(ev), false);
	p->losses->other += !is_sent;
}
