/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of counting that --stop-after names. Events come in by whole rings, and more of them until the probes are
 * out: these are left out. Only where a verdict is to be found later, releases of counted blocks are still entered,
 * because a block that was freed meanwhile is no leak.
 */
#include "user/session/session_enough.h"

#include "user/heap/heap.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"

bool session_is_enough(const struct session *s)
{
	return s->options->stop_after && s->nr_allocs >= s->options->stop_after;
}

/* The realloc @ev of a counted block: the block that it returns is not counted, so this is a release. */
static void make_release(const struct heap_event *ev, struct heap_event *release)
{
	*release = *ev;
	release->h.kind = EVENT_FREE;
	release->h.flags = 0;
	release->addr = ev->old_addr;
	release->old_addr = release->size = 0;
}

bool session_enough_takes(struct session *s, struct process *p, const struct heap_event *ev,
			  struct heap_event *release)
{
	bool is_mremap = alloc_fn(s->fns, ev->h.fn)->kind == ALLOC_MREMAP;
	struct heap_block block;

	release->h.kind = 0;
	/* The report shows the heap as it was with the last allocation. */
	if (s->options->scan == SCAN_NEVER)
		return false;
	switch (ev->h.kind) {
	case EVENT_FREE:
		return ev->h.flags & EVENT_UNMAP || heap_find(p->heap, ev->addr, &block);
	case EVENT_REALLOC_BEGIN:
		if (!heap_find(p->heap, ev->old_addr, &block))
			return false;
		if (!is_mremap)
			make_release(ev, release);
		return true;
	case EVENT_REALLOC_END:
		/* The call began before the end. */
		if (ev->old_addr && heap_is_pending(p->heap, ev->h.tid, ev->old_addr))
			return true;
		break;
	default:
		break;
	}
	p->tuned.has_unseen = true;
	return false;
}
