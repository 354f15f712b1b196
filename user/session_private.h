/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a session consists of: written by session.c, read out by session_report.c, and for nobody else. */
#pragma once

#include "user/backlog.h"
#include "user/recorder.h"
#include "user/report.h"
#include "user/session.h"
#include "user/session_process.h"
#include "user/span.h"

struct session {
	const struct options *options;
	struct outputs *outs;
	const struct source_ops *ops;
	struct source *source; /* owned */
	struct sink sink;
	struct recorder *recorder; /* owned; NULL = nothing is recorded */
	struct session_tuned tuned;
	struct backlog backlog;	       /* entered before anything else is */
	struct module_table *modules;  /* owned */
	struct stack_table *stacks;    /* owned */
	struct symbolizer *symbolizer; /* owned; made for the first report */
	struct process **processes;    /* owned */
	size_t nr_processes;
	struct process *latest;	 /* that an event was for */
	struct process *scanned; /* whose events the scan is told too */
	struct scan *scan;	 /* borrowed */
	int scan_err;
	bool is_last_scan;
	bool wants_notes;	 /* say why a process that has ended has no verdict */
	bool is_damaged;	 /* the recording could not be read to its end */
	struct span_course span; /* --between; without one it has no span */
	char span_note[512];
	bool is_replayed; /* what is known of processes is what records say, not what runs here */
	const struct session_stopper *stopper; /* borrowed; NULL = none */
	struct source_scan *over_there;	       /* borrowed; the scan that another machine does */
	struct scan_sum lost;		       /* for sure, in the last report */
	u64 nr_misuses;			       /* wrong releases in it */
	u32 growth;			       /* the most that a process in it grew, trend_permille() */
	size_t nr_unjudged;		       /* processes without a verdict in it */
	struct probe_custom *custom;	       /* owned */
	u64 start_ns;			       /* of tracing: the first target's probes are in */
	u64 stop_ns;			       /* 0 = it goes on */
	bool has_lost_stacks;		       /* there was no room for some */
	bool has_failed;		       /* events could not be read */
	u64 nr_strays;			       /* events of processes we do not know */
};

/* The same where the records come from, which may be another machine: for what is compared with their times. */
u64 session_source_ns(const struct session *s);

/* Whose events of @pid are now, or NULL. */
struct process *session_find(struct session *s, u32 pid);

/*
 * Enter one record, of at least @len bytes: as a sink does. For sources that have more to tell than events.
 * 0 or -errno.
 */
int session_enter(struct session *s, const struct event_header *rec, size_t len) __must_check;

/* A process with empty books and no target yet, behind the others. 0 or -ENOMEM. And it is no more. */
int session_new_process(struct session *s, struct process **out) __must_check;
void session_drop_last_process(struct session *s);

/* A session without a source. */
int session_alloc(struct session **out, const struct options *o, struct outputs *outs) __must_check;

/* A free of @p may have been lost: its blocks are unsure. Results of its calls were lost. */
void session_taint(struct session *s, struct process *p);
void session_expect_gaps(struct session *s, struct process *p);

/* The moment @now_ns gets the name @text. */
void session_mark(struct session *s, u64 now_ns, const char *text);

/* Read the mappings of @p again, and place probes in what is new. */
void session_read_maps(struct session *s, struct process *p);

/* Frees of @p that may have been lost so far. */
u64 session_count_unseen(struct session *s, struct process *p);

/* The record @rec of the birth of a child of @parent. 0 or -ENOMEM. */
int session_fork(struct session *s, struct process *parent, const struct event_header *rec) __must_check;

/* It has executed a program; if it has ended since, what that was is known only to the source. */
void session_name(struct session *s, struct process *image);

/* @p is over: nothing of it need be kept if it never was a process of its own. */
void session_hide(struct process *p);

/* Look at the releases of @p, whose target is there, if that is wanted. 0 or -ENOMEM. */
int session_begin_check(const struct session *s, struct process *p) __must_check;

/* Its source may have found functions whose family is not known. Another machine and a recording tell only kinds. */
void session_blur(const struct session *s, struct process *p);

/* Counts of findings begin anew, for the next report. */
void session_forget_findings(struct session *s);
/* What --fail-on asks for has been found in the last report. */
bool session_has_findings(const struct session *s);

/* What the process lost in its present image. */
void session_read_losses(struct session *s, struct process *p);

/*
 * A verdict on @p for the next report; @is_traced and @marks as in leaks_options. s->stopper and s->is_last_scan are
 * set.
 */
void session_scan_process(struct session *s, struct process *p, bool is_traced, struct leak_marks *marks);

/* Make s->symbolizer, if it is not there yet. 0 or -ENOMEM. */
int session_make_symbolizer(struct session *s) __must_check;

/* @p as reports show it, counted for --fail-on. Fields of *@out are borrowed but its allocators. 0 or -ENOMEM. */
int session_describe(struct session *s, struct process *p, u64 now_ns,
		     struct report_process *out) __must_check;
