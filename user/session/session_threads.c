/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of threads, from /proc or another machine, into the books, and into recordings. */
#include "user/session/session_threads.h"

#include <stdio.h>
#include <string.h>

#include "user/heap/thread_table.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_told.h"

enum {
	NR_LOOKS = 2,
	AGAIN_NS = 500 * 1000 * 1000,
	LOOKS_AT_ONCE = 128, /* some milliseconds, in which no events are read */
};

void session_fill_thread(struct session *s, struct process *p, u32 tid, const char *name)
{
	struct thread_row *row = heap_add_thread(p->heap, tid);

	if (row)
		snprintf(row->name, sizeof(row->name), "%s", name);
	recorder_thread(s->recorder, (u32)p->target->pid, tid, name);
}

static void session_threads_read(struct session *s, struct process *p, struct thread_row *row, u64 now_ns)
{
	char path[64], name[THREAD_NAME_LEN];

	row->due_ns = now_ns + AGAIN_NS;
	row->nr_looks++;
	snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", p->target->pid, row->tid);
	if (proc_read_text(path, name, sizeof(name)) > 0 && strcmp(name, row->name) != 0)
		session_fill_thread(s, p, row->tid, name);
}

/* At most @max threads of @p. Returns the number of looks. */
static u32 session_threads_of(struct session *s, struct process *p, u32 max, bool is_last)
{
	u64 now_ns = clock_now_ns();
	struct thread_row *row;
	u32 nr = 0;

	for (u32 k = p->nr_named; nr < max && (row = heap_thread_row(p->heap, k)); k++) {
		if (row->nr_looks < NR_LOOKS && (is_last || now_ns >= row->due_ns)) {
			session_threads_read(s, p, row, now_ns);
			nr++;
		}
		p->nr_named += k == p->nr_named && row->nr_looks == NR_LOOKS;
	}
	return nr;
}

void session_threads_look(struct session *s, bool is_last)
{
	u32 max = is_last ? UINT32_MAX : LOOKS_AT_ONCE;

	for (size_t i = 0; !session_told(s) && !s->is_replayed && i < s->nr_processes; i++)
		if (!process_is_over(s->processes[i]))
			max -= session_threads_of(s, s->processes[i], max, is_last);
}

void session_threads_keep(struct session *s, struct process *p, const struct heap *old)
{
	struct thread_row row;

	p->nr_named = 0;
	for (size_t i = 0; session_told(s) && heap_thread(old, i, &row); i++)
		if (row.name[0])
			session_fill_thread(s, p, row.tid, row.name);
}

void session_threads_tell(struct session *s, const struct process *p)
{
	struct thread_row row;

	for (size_t i = 0; heap_thread(p->heap, i, &row); i++)
		if (row.name[0])
			recorder_thread(s->recorder, (u32)p->target->pid, row.tid, row.name);
}
