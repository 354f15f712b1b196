/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client that has the books wants verdicts: the events between its blocks and the moment of the scan. */
#include "user/session/session_lent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap.h"
#include "user/lib/array.h"
#include "user/session/session_forward.h"
#include "user/session/session_losses.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"

enum { MAX_LOG = 1 << 20 };

/* Events of @process since the mark. */
struct lending {
	struct process *process;
	struct losses losses;	/* at the mark */
	struct heap_event *log; /* owned; until there is a scan */
	size_t nr, max;
	struct scan *scan; /* borrowed; takes them from then on */
	bool is_past;	   /* the moment of the scan is over */
	int err;
};

void session_lend_end(struct session *s)
{
	if (s->forward.lending)
		free(s->forward.lending->log);
	free(s->forward.lending);
	s->forward.lending = NULL;
}

static struct losses losses_now(struct session *s, struct process *p)
{
	session_look(s, p);
	return session_source_losses(s, p);
}

int session_lend(struct session *s, pid_t pid)
{
	struct lending *l;
	int err = session_forward_poll(s);

	session_lend_end(s);
	if (err)
		return err;
	if (!session_find(s, (u32)pid))
		return -ESRCH;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->process = session_find(s, (u32)pid);
	l->losses = losses_now(s, l->process);
	s->forward.lending = l;
	return session_forward_flush(s);
}

static int lending_note(struct lending *l, const struct heap_event *ev)
{
	if (l->nr == MAX_LOG)
		return -EOVERFLOW;
	if (array_reserve(l->log, l->max, l->nr + 1))
		return -ENOMEM;
	l->log[l->nr++] = *ev;
	return 0;
}

void session_lent_event(struct session *s, struct process *p, const struct heap_event *ev)
{
	struct lending *l = s->forward.lending;

	/* Another thread may read what its blocks have covered. */
	if (!l || l->process != p || !l->is_past)
		heap_note_cover(p->heap, ev);
	if (l && l->process == p && !l->is_past && !l->err)
		l->err = l->scan ? scan_event(l->scan, ev) : lending_note(l, ev);
}

int session_lent_drained(struct session *s, const struct lent_books *b, struct scan *scan, bool is_stopped)
{
	struct lending *l = s->forward.lending;
	struct process *p = l->process;
	struct losses now = losses_now(s, p);

	for (size_t i = 0; i < l->nr && !l->err; i++)
		l->err = scan_event(scan, &l->log[i]);
	l->nr = 0;
	l->scan = scan;
	/* Then the blocks of the two sides differ. */
	if (!l->err && memcmp(&now, &l->losses, sizeof(now)))
		l->err = -ENODATA;
	if (l->err || !is_stopped)
		return l->err;
	if (b->is_last)
		session_taint(s, p);
	l->is_past = true;
	l->err = session_forward_flush(s);
	if (!l->err)
		b->moment(b->ctx, p->nr_reallocs ? NULL : heap_cover(p->heap));
	return l->err;
}

const struct leaks *session_scan_lent(struct session *s, const struct lent_books *b)
{
	const struct session_scan_options o = { .verdict = b->verdict,
						.stopper = b->stopper,
						.is_stopped = b->is_exiting,
						.is_last = b->is_last,
						.lent = b };
	struct process *p = s->forward.lending->process;

	leaks_free(p->leaks);
	p->leaks = NULL;
	session_scan_process(s, p, &o);
	session_lend_end(s);
	return p->leaks;
}
