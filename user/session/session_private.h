/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of a session, for user/session/session*.c only. */
#pragma once

#include "user/session/session_tune.h"
#include "user/source/backlog.h"
#include "user/stream/recorder.h"
#include "user/report/report.h"
#include "user/report/report_marks.h"
#include "user/session/session.h"
#include "user/session/session_dropped.h"
#include "user/session/session_fill.h"
#include "user/session/session_forward.h"
#include "user/session/session_memory.h"
#include "user/stream/span.h"

struct session {
	const struct session_options *options;
	struct outputs *outs;
	const struct source_ops *ops;
	struct source *source; /* owned */
	struct sink sink;
	struct recorder *recorder; /* owned; NULL = nothing is recorded */
	struct session_tuned tuned;
	u64 load_looked_ns, sample_bytes; /* last session_look_at_load(); 0 = all blocks are seen */
	struct call_price call_price;
	struct memory_bound bound;
	struct forwarding forward;
	struct backlog backlog;	       /* records to enter before all others */
	struct alloc_table *fns;       /* owned; allocator functions that its records name */
	struct module_table *modules;  /* owned */
	struct stack_table *stacks;    /* owned */
	struct symbolizer *symbolizer; /* owned; made for the first report */
	struct process **processes;    /* owned */
	struct left_process *left;     /* owned */
	size_t nr_processes, max_processes, nr_left, many_left;
	struct process *latest;			 /* the process of the last event */
	struct session_listener *listeners;	 /* borrowed */
	struct scanning *scanning;		 /* borrowed; the leak scan at hand; NULL = none */
	const struct session_stopper *attending; /* borrowed, during a verdict; NULL = none */
	struct control *control;		 /* borrowed; session_guard() */
	bool wants_notes;			 /* say why a process that has ended has no verdict */
	bool is_damaged;			 /* the recording could not be read to its end */
	struct span_course span;		 /* --between; without one it has no span */
	char span_note[512];
	bool is_replayed; /* processes are those of a file, not of this machine */
	int halted_fd;	  /* owned; reading of it halts at the end of the span; 0 = it does not */
	struct session_found found, dropped_found; /* in the last report; in all that were dropped */
	struct dropped dropped;			   /* processes without a parent that were dropped */
	size_t nr_left_out;			   /* session_leave_out() */
	size_t nr_missing;	     /* functions of --alloc that no file defines; set by session_stop() */
	struct probe_custom *custom; /* owned */
	u64 epoch_ns;		     /* of a recording: CLOCK_REALTIME at CLOCK_MONOTONIC 0; 0 = unknown */
	u64 start_ns, start_cpu_ns;  /* the first target's probes were in; CPU time of heaptap until then */
	u64 stop_ns, asked_ns;	     /* 0 = tracing continues; session_asked_ns(), 1 = kept, 0 = not */
	/* Some stacks were dropped for lack of memory; events could not be read; the last verdicts were found. */
	bool has_lost_stacks, has_failed, has_judged;
	const char *cut_note;		     /* why a signal left no last verdicts; NULL = none did */
	u64 nr_strays, nr_allocs, nr_chosen; /* of unknown processes; entered, of all; session_chosen() */
	u64 nr_marks, nr_late_marks; /* of programs, with a name; left out ones behind the end of the span */
	struct report_marks marks;   /* for reports */
	/* A leak check is asked for, a thread is at execve(), or waits for a record; --start-paused is over for all; */
	bool wants_check, has_exec, is_awaited, is_resumed, has_dropped_losses; /* session_has_losses() */
};

/* The time now by the clock of the records, which may be that of another machine. */
u64 session_source_ns(const struct session *s);
/* Tracing begins at @start_ns. From now on the CPU time of heaptap counts as the cost of tracing. */
void session_set_start(struct session *s, u64 start_ns);

/* The moment @now_ns of that clock by CLOCK_REALTIME, 0 if it is not known. */
u64 session_real_ns(const struct session *s, u64 now_ns);

/* An empty heap. *@out is owned by the caller: heap_free(). 0 or -ENOMEM. */
int session_new_heap(const struct session *s, struct heap **out) __must_check;

/* Add a process with an empty heap and no target yet, behind the others (0 or -ENOMEM); and remove it again. */
int session_new_process(struct session *s, struct process **out) __must_check;
void session_drop_last_process(struct session *s);

/* A mark that is not recorded. */
void session_pass_mark(struct session *s, u64 now_ns, const char *text);

/* A session without a source. */
int session_alloc(struct session **out, const struct session_options *o, struct outputs *outs) __must_check;

/* A free of @p may have been lost, so its live blocks are unsure; or results of its calls were lost. */
void session_taint(struct session *s, struct process *p);
void session_expect_gaps(struct session *s, struct process *p);

/* Read the mappings of @p again, and place probes in new ones. */
void session_read_maps(struct session *s, struct process *p);

/* Frees of @p that may have been lost so far. */
u64 session_count_unseen(struct session *s, struct process *p);

/* The record @rec of the birth of a child of @parent. 0 or -ENOMEM. */
int session_fork(struct session *s, struct process *parent, const struct event_header *rec) __must_check;

/* Name @image by the source if it has no name: only the source knows the name of a program that has ended. */
void session_name(struct session *s, struct process *image);

/* @p is over: drop its heap and hide it if it never made a call of its own. */
void session_hide(struct process *p);

/* @p has ended: hide it if it is an image that nothing is known of, and count that for its parent. */
void session_hide_unseen(struct session *s, struct process *p);

/* Check the releases of @p, which has a target, if the options ask for it. 0 or -ENOMEM. */
int session_begin_check(const struct session *s, struct process *p) __must_check;

/* Tell the heap of @p which functions have no certain family. Other machines and recordings name only kinds. */
void session_blur(const struct session *s, struct process *p);

/* Reset the counts of findings, for the next report. */
void session_forget_findings(struct session *s);
/* The last report meets one of @rules. */
bool session_has_findings(struct session *s, const struct fail_rules *rules);

/* Update the losses of @p in its present image. */
void session_read_losses(struct session *s, struct process *p);

/* A leak scan of one process. */
struct session_scan_options {
	const struct verdict_options *verdict;
	const struct session_stopper *stopper; /* NULL = by itself */
	bool is_stopped;		       /* the calling thread has stopped all its threads */
	bool is_last;			       /* nothing of it is traced from this moment on */
	struct leak_marks *marks;	       /* as in leaks_options */
	const struct lent_books *lent;	       /* of a session that forwards: user/session/session_lent.h */
};

/* Find a verdict on @p for the next report. */
void session_scan_process(struct session *s, struct process *p, const struct session_scan_options *o);

/* The scan at hand gets the event @ev of its process @p as well. */
void session_scan_event(struct session *s, const struct process *p, const struct heap_event *ev);

/* Make s->symbolizer, if it is not there yet. 0 or -ENOMEM. */
int session_make_symbolizer(struct session *s) __must_check;

/* @p as reports show it, counted for --fail-on. Fields of *@out are borrowed but its allocators. 0 or -ENOMEM. */
int session_describe(struct session *s, struct process *p, u64 now_ns,
		     struct report_process *out) __must_check;
