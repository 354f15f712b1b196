/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Verdicts for a client that has the books: a session that forwards (user/session/session_forward.h) scans the blocks
 * that the client had at a mark, as session_scan() does its own.
 */
#pragma once

#include "user/session/session.h"
#include "user/scan/scan.h"

struct process;

/* How to judge the blocks, and where the verdicts go. Functions get @ctx. All is borrowed. */
struct lent_books {
	const struct scan_books *books; /* as of the mark */
	const struct verdict_options *verdict;
	const struct session_stopper *stopper; /* NULL = by itself */
	u64 max_pause_ns;		       /* not longer than this; 0 = as @verdict says */
	bool is_exiting;	  /* the calling thread has stopped all its threads, before its end */
	bool is_last;		  /* nothing of it is traced from this moment on */
	bool is_partial, has_all; /* leaks_options: is_partial, !has_losses */
	void *ctx;
	/* The process stands, and all its events until now are with the client. @cover: of all its blocks, or NULL. */
	void (*moment)(void *ctx, const struct cover_map *cover);
	/* The scan and its snapshot, which the callee owns from now on. Not called without a verdict. */
	void (*take)(void *ctx, struct scan *scan, struct snapshot *snap);
	/* Called again and again while another thread works on the scan, for backlog_work(): reads events, too. */
	bool (*read_on)(void *ctx);
};

/* The mark: the client has all events of @pid until now, and later ones are remembered. 0, -ESRCH, -ENOMEM, -EIO. */
int session_lend(struct session *s, pid_t pid) __must_check;
/* Forget the mark. Again is fine. */
void session_lend_end(struct session *s);

/* Scan the process of session_lend(), once. The result is borrowed until the next one; NULL: the process has ended. */
const struct leaks *session_scan_lent(struct session *s, const struct lent_books *l);

/* For user/session/session*.c only. */

/* @p, of a session that forwards, has the event @ev. */
void session_lent_event(struct session *s, struct process *p, const struct heap_event *ev);

/* In the scan of @b: its events have been read. 0 or -errno: no verdict can be given. */
int session_lent_drained(struct session *s, const struct lent_books *b, struct scan *scan,
			 bool is_stopped) __must_check;
