/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions that --guess found are believed only if they behave as malloc and free do. */
#include "user/session/session_guess.h"

#include <stdlib.h>
#include <string.h>

#include "user/heap/heap.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/maps.h"
#include "user/session/session_private.h"
#include "user/session/session_told.h"

enum {
	MAX_CHECKED = 4096,
	DOUBT_PART =
		10, /* one wrong block in so many is too much: events and mappings are not of one moment */
};

struct range {
	taddr_t start, end;
};

struct memory {
	struct range *ranges; /* owned; where blocks may be, by address */
	size_t nr, max;
};

bool process_is_guessed(const struct process *p)
{
	const struct target *t = p->target;

	for (size_t i = 0; i < t->nr_allocators; i++)
		if (!strncmp(t->allocators[i].kind, "guessed ", 8))
			return true;
	return false;
}

/* The heap and anonymous memory, where brk and mmap put it. */
static int session_guess_read_memory(struct memory *m, pid_t pid)
{
	struct maps_reader *reader;
	struct map_line line;
	int err = maps_open(&reader, pid);

	if (err)
		return err;
	while (!err && maps_next(reader, &line) == 1) {
		if (!line.is_writable || line.inode || line.is_shared)
			continue;
		if (*line.path && strcmp(line.path, "[heap]") && strncmp(line.path, "[anon:", 6))
			continue;
		err = array_reserve(m->ranges, m->max, m->nr + 1);
		if (!err)
			m->ranges[m->nr++] = (struct range){ line.start, line.end };
	}
	maps_close(reader);
	return err;
}

struct checking {
	const struct memory *memory;
	struct process *process;
};

static int check_block(void *ctx, const struct heap_block *block)
{
	const struct checking *c = ctx;
	const struct memory *m = c->memory;
	size_t at = array_search(i, 0, m->nr, m->ranges[i].end <= block->addr);

	if (at == m->nr || m->ranges[at].start > block->addr)
		c->process->guess.nr_outside++;
	return ++c->process->guess.nr_checked >= MAX_CHECKED;
}

void session_check_guess(const struct session *s, struct process *p)
{
	struct memory m = { 0 };
	struct checking c = { &m, p };

	if (s->is_replayed || session_told(s) || !process_is_guessed(p))
		return;
	p->guess.nr_checked = p->guess.nr_outside = 0;
	/* Without memory or mappings nothing is checked, and releases decide. */
	if (!session_guess_read_memory(&m, p->target->pid) && m.nr)
		heap_for_each_block(p->heap, check_block, &c);
	free(m.ranges);
}

const char *process_guess_doubt(const struct process *p)
{
	const struct heap_totals t = heap_totals(p->heap);
	u64 frees = t.frees + t.unknown_frees;

	if (!process_is_guessed(p))
		return NULL;
	if (!t.allocs || (!t.frees && !p->guess.nr_checked))
		return "no block was seen that could show it";
	if (p->guess.nr_outside * DOUBT_PART > p->guess.nr_checked)
		return "blocks are not in the heap";
	/* After an attach, blocks from before it are released too. */
	if (p->target->is_started && t.unknown_frees * DOUBT_PART > frees)
		return "blocks were released that had never been allocated";
	return NULL;
}
