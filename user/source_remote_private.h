/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of the remote source: source_remote.c and source_remote_scan.c. */
#pragma once

#include "user/scan.h"
#include "user/source_remote.h"
#include "user/source_told.h"
#include "user/remote_stream.h"
#include "user/wire_chain.h"
#include "user/wire_scan.h"

struct source {
	struct source_remote_options options;
	struct remote_link *link;     /* owned */
	struct remote_stream *stream; /* owned */
	bool is_asked;		      /* WIRE_START is sent on this connection */
	bool is_started;	      /* and answered */
	bool was_started;	      /* on some connection */
	bool is_stopping, is_over;
	bool has_failed;  /* nothing could be traced */
	bool is_complete; /* the server has said that nothing is missing */
	u64 session_id;
	u64 lost_ms;		/* since when there is no connection */
	s64 clock_ns;		/* the other side's clock less ours */
	u64 hello_ns, hello_id; /* the stream that was compared last, and whose it was */
	char why[160];
	u32 nr_notes; /* of the other side, that were shown */

	/* Commands. */
	struct tuning tuning; /* as it is over there, or will be when the connection is back */
	u32 nr_unanswered;    /* WIRE_TUNE on this connection; more than one when waiting was given up */
	bool is_refused;
	char tune_why[160];
	struct source_left_out {
		pid_t pid;
		u64 nr, before; /* before: in traces that are over */
	} * left_out;		/* owned */
	size_t nr_left_out;

	/* A scan. */
	bool is_at_mark; /* records wait behind it */
	enum wire_mark mark;
	pid_t mark_pid;
	bool is_scanning; /* between WIRE_SCAN and WIRE_SCANNED */
	bool is_scanned;
	bool is_given_up;  /* one was, and its frames may still come */
	struct scan *scan; /* borrowed; gets verdicts */
	struct wire_scan_at at;
	struct scan_result result;
	u64 pause_ns, nr_verdicts;
	int scan_err;
	char scan_why[160];

	/* Questions after a scan. */
	bool is_kept;		  /* it waits for some over there */
	struct scan_chain *chain; /* owned; is coming */
	size_t nr_steps, max_steps, limit_steps;
	taddr_t step_at;
	int chain_err; /* 1 = it is there, 0 = on its way, -ENOENT, -EPROTO, -ENOMEM */
	char root_name[WIRE_MAX_TEXT];
};

/* Take in what has come. At a mark nothing, unless @is_past. Number of frames or -errno. */
int source_remote_take(struct source *s, const struct sink *sink, bool is_past);

/* Put a command into the queue. 0 or -errno. */
int source_remote_put(struct source *s, u8 kind, const void *data, size_t len) __must_check;

/*
 * Take in what comes until @is_done says so. At a mark nothing, unless @is_past. 0, the scan's error, -ETIMEDOUT when
 * nothing comes for @silence_ms, -EINTR when it takes longer than a Ctrl-C has patience, or -errno.
 */
int source_remote_wait(struct source *s, const struct sink *sink, bool is_past, u64 silence_ms,
		       bool (*is_done)(const struct source *s)) __must_check;

/* Frames that answer commands. */
void source_remote_on_tuned(struct source *s, struct wire_view *v);
void source_remote_on_left_out(struct source *s, struct wire_view *v);
/* Another trace begins. */
void source_remote_keep_left_out(struct source *s);

/* struct source_told_ops. */
int source_remote_tune(struct source *s, const struct tuning *t, const struct sink *sink, char *why,
		       size_t size);
u64 source_remote_left_out(struct source *s, pid_t pid);

/* Frames of a scan. */
void source_remote_on_mark(struct source *s, struct wire_view *v);
void source_remote_on_verdicts(struct source *s, struct wire_view *v);
void source_remote_on_scanned(struct source *s, struct wire_view *v);
void source_remote_on_chain(struct source *s, struct wire_view *v);
void source_remote_on_chain_end(struct source *s, struct wire_view *v);

/* struct source_told_ops. */
int source_remote_scan_begin(struct source *s, struct source_scan *o) __must_check;
int source_remote_scan_blocks(struct source *s, struct source_scan *o, struct scan *scan) __must_check;
int source_remote_scan_wait(struct source *s, struct source_scan *o, struct scan *scan) __must_check;
int source_remote_scan_why(struct source *s, struct source_scan *o, taddr_t addr,
			   struct scan_chain **out) __must_check;
void source_remote_scan_over(struct source *s);
