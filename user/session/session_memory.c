/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits the books of a session to the memory that its cgroup has left: lost events are better than a dead heaptap. */
#include <inttypes.h>
#include <unistd.h>

#include "user/heap/heap.h"
#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/scan/snapshot_price.h"
#include "user/session/session_private.h"

/* Looks, in ns, and bytes: what stays free for the report; what cannot be used up in one period. */
static const u64 PERIOD = 250000000, FOR_REPORT = 4 << 20, PLENTY = 128 << 20;
enum { MAX_PERIODS = 8 };

static void say_short(struct session *s, u64 room)
{
	bool has_lost = false;

	for (size_t i = 0; i < s->nr_processes && !s->is_shortage_told; i++)
		has_lost |= heap_lost(s->processes[i]->heap) > 0;
	if (!has_lost)
		return;
	s->is_shortage_told = true;
	warn("%s: only %s of memory are left for heaptap: events that need more are lost, and counted",
	     s->options->command, human_bytes(room).text);
}

/* Each look reads all cgroups above heaptap: with more room the next one is later. */
static u64 until_next_look(u64 room)
{
	u64 periods = room / PLENTY;

	if (periods > MAX_PERIODS)
		periods = MAX_PERIODS;
	return (periods ? periods : 1) * PERIOD;
}

void session_bound_memory(struct session *s)
{
	u64 now_ns = clock_now_ns(), room, more;

	if (s->is_replayed || now_ns < s->memory_look_ns)
		return;
	room = snapshot_price_room(getpid());
	s->memory_look_ns = now_ns + until_next_look(room);
	if (room >= PLENTY && !s->is_memory_short)
		return;
	s->is_memory_short = room < PLENTY;
	more = room > FOR_REPORT ? (room - FOR_REPORT) / 2 : 0;
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (!process_is_over(p))
			heap_set_limit(p->heap, s->is_memory_short ? heap_memory(p->heap) + more : 0);
	}
	if (s->is_memory_short)
		say_short(s, room);
}
