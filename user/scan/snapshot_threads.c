/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registers of the threads of a snapshot. */
#include "user/scan/snapshot_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/regs.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/scan/snapshot_make.h"

/* Add the words of @regs at [from, from + len) that are not zero. */
static int add_registers(struct snapshot *s, const struct arch_regs *regs, u32 owner, u32 from, u32 len)
{
	for (u32 at = from; at + regs->word_size <= from + len; at += regs->word_size) {
		struct snapshot_word word = { .owner = owner, .where = at };
		int err;

		if (regs->word_size == 8)
			memcpy(&word.value, regs->bytes + at, 8);
		else
			word.value = *(const u32 *)(const void *)(regs->bytes + at);
		err = word.value ? snapshot_add_word(s, &word) : 0;
		if (err)
			return err;
	}
	return 0;
}

static struct snapshot_thread snapshot_threads_thread_of(const struct arch_regs *regs, pid_t tid)
{
	struct snapshot_thread thread = { .tid = tid, .sp = regs->sp, .tp = regs->tp };
	struct arch_frame frame;

	if (arch_regs_frame(regs, &frame)) {
		thread.pc = frame.pc;
		thread.fp = frame.fp;
		thread.lr = frame.lr;
	}
	return thread;
}

int snapshot_read_registers(struct snapshot *s, const struct stopped_threads *stopped,
			    const struct snapshot_holder *holder, u64 deadline_ns)
{
	bool is_held = holder && holder->read_regs;
	auto_free struct arch_regs *regs = malloc(sizeof(*regs));

	s->threads = calloc(stopped->nr + 1, sizeof(*s->threads));
	if (!regs || !s->threads)
		return -ENOMEM;
	for (size_t i = 0; i < stopped->nr; i++) {
		const struct stopped_thread *t = &stopped->threads[i];
		u32 owner = (u32)s->nr_threads;
		int err;

		if (!stop_all_has(t))
			continue;
		if (clock_now_ns() > deadline_ns)
			return -ETIME;
		err = is_held ? holder->read_regs(holder->ctx, t->tid, regs) : arch_regs_read(regs, t->tid);
		if (err)
			continue; /* killed since the stop: its stack counts as plain memory */
		s->threads[s->nr_threads++] = snapshot_threads_thread_of(regs, t->tid);
		s->word_size = s->word_size > regs->word_size ? s->word_size : regs->word_size;
		err = add_registers(s, regs, owner, 0, regs->nr_general);
		if (!err && !regs->is_exiting)
			err = add_registers(s, regs, owner, REGS_VECTOR, regs->nr_vector);
		if (err)
			return err;
	}
	s->mem_tid = s->nr_threads ? s->threads[0].tid : s->pid;
	s->red_zone = arch_red_zone(s->word_size);
	return s->nr_threads ? 0 : -ESRCH;
}
