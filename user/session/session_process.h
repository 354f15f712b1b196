/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process of a session; a part of session_private.h. */
#pragma once

#include "user/scan/leaks.h"
#include "user/session/session_dropped.h"
#include "user/session/session_live.h"
#include "user/session/session_notes.h"
#include "user/session/session_price.h"
#include "user/session/session_tune.h"
#include "user/heap/trend.h"

/* The life of a process. Events come only while it runs. */
enum process_life {
	PROCESS_RUNS,
	PROCESS_REPLACED, /* by another program: exec */
	PROCESS_ENDED,
};

/* How the books of a process began. */
enum process_origin {
	PROCESS_FIRST, /* empty: it was attached to, launched, or named by a file */
	PROCESS_COPY,  /* as those of its parent: a fork */
	PROCESS_IMAGE, /* empty: a program that it executed, or that another process of its PID did */
};

/* A process at execve(), from its call on; a call that fails changes nothing. */
enum process_exec {
	PROCESS_STAYS,
	PROCESS_EXECUTES, /* it waits for a verdict */
	PROCESS_JUDGED,	  /* it has one */
	PROCESS_UNJUDGED, /* it waited in vain */
};

/* The losses of a process, from several views. */
struct process_losses {
	struct losses now;	  /* of this image: session_read_losses() */
	struct losses before;	  /* of earlier images of the PID */
	struct losses of_source;  /* session_source_losses() */
	u64 of_source_at;	  /* losses of the whole source then, + 1; 0 = never */
	struct losses told;	  /* as written into the recording */
	struct losses own_before; /* of heaptap itself, in earlier images: session_carry_losses() */
	struct losses unsent; /* of all images: what the sink of a session that forwards had no room for */
	struct losses stated; /* replay: as read from the recording */
	u64 nr_unseen;	      /* frees that may have been lost when its blocks were last tainted */
	u64 may_be_unseen;    /* nr_unseen, before the events that are being read */
	u64 nr_unentered;     /* events that did not fit into the heap then */
	u64 nr_taints;
	u64 nr_false_stacks; /* events whose stack's id was false, or whose stack had no room */
	u64 nr_unplaced;     /* times that probes for mappings could not be placed */
	u32 nr_left_out;     /* of them: files for whose probes there was no room */
	bool has_gaps;	     /* session_expect_gaps() */
};

/* A process that another one began to trace by ptrace. */
struct left_process {
	pid_t pid;
	enum thread_stop_why why;
	u64 start_time;
};

enum { LEFT_FEW = 64 }; /* fewer are kept, whether they have ended or not */

/* A process, or one of its images if it called exec. */
struct process {
	enum process_life life;
	enum process_origin origin;
	enum process_exec exec;
	u64 exec_calls;			  /* heap events before that, + 1; 0 = it has several threads */
	pid_t exec_tid;			  /* its thread waits at execve(), where nobody traces it; 0 = none */
	struct target *target;		  /* owned */
	struct heap *heap;		  /* owned */
	const struct stack_table *stacks; /* of the session; NULL = not needed */
	struct process_losses lost;
	u32 parent_pid;		     /* at its birth; 0 = it was attached to, or started */
	u32 nr_reallocs;	     /* under way, in a session that forwards */
	u32 nr_named;		     /* its first threads, of which session_threads_look() knows enough */
	u64 sent_allocs, sent_frees; /* heap events, of all images, in a session that forwards */
	u64 maps_read_ns;
	u32 nr_dead;  /* times in a row that session_running() has found that it has ended */
	bool is_gone; /* replaced before heaptap looked: nothing can be read of it */
	bool has_last_verdict;
	bool is_ending;		/* it calls _exit(), and nobody has looked at it */
	bool is_price_known;	/* of the copies for its verdicts */
	bool has_told_requests; /* that they cannot be listed: uring_words_list() */
	/*
	 * Not in reports, and its heap is empty: a copy that only executed a program; or an image that ended before
	 * heaptap could read its name, and that may have been another process's.
	 */
	bool is_hidden;
	struct process_moment first, last; /* at looks: session_look_at_load() */
	u64 nr_events;			   /* its own, not those of the parent */
	struct leaks *leaks;		   /* owned; for the next report, NULL = not scanned */
	struct suppress_list *own_rules;   /* owned; of its program; NULL = none */
	bool has_own_rules;		   /* its program was looked at */
	size_t parent;			   /* its number in the session, from 1 on; 0 = not known */
	u32 new_parent;			   /* while processes are dropped */
	u64 nr_unlisted;		   /* programs of children that ended before they were looked at */
	bool has_children;		   /* whose calls nobody sees: session_look_at_children() */
	struct dropped dropped;		   /* its children, and theirs */
	char dropped_note[512];
	const char **texts; /* owned; notes for the report that is being written, which are borrowed */
	size_t max_texts;
	char untraced_notes[7][160];
	char folded_note[384];
	char unwatched[512]; /* why nothing could be watched, for the report that is being written */
	struct process_tuned tuned;
	struct process_notes notes;
	struct trend trend;
	struct report_residence *residence;   /* owned; NULL = none */
	struct wrappers *wrappers;	      /* owned; as of the last report, NULL = none */
	struct leak_marks marks, asked_marks; /* of the last scan for a report, for another heaptap */
	u64 *reported;			      /* owned; live bytes of each caller at the last report */
	size_t nr_reported;
	bool is_judged;			       /* it had a verdict: sums of the last one */
	bool has_asked_for_books, lacks_books; /* session_lacks_books() */
	bool is_asked;			       /* leaks are those of session_keep_asked() */
	struct scan_sums judged;
	char end_note[320]; /* it ended without a verdict of its last state; "" = nothing is known of that */
};

/* NULL is nothing. */
void session_free_process(struct process *p);

/* Most calls of @p were not seen: it rests, a file was left, or the code was taken out of it. */
static inline bool process_saw_few(const struct process *p)
{
	return p->tuned.pace.rests || *p->tuned.left_file || p->lost.now.cramped || p->lost.now.twins;
}

/* No more events come from @p. */
static inline bool process_is_over(const struct process *p)
{
	return p->life != PROCESS_RUNS;
}
