/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of a session: changes while it runs, and the events that were not seen because of them. */
#pragma once

#include "user/report/report.h"
#include "user/session/session_price.h"
#include "user/source/source.h"
#include "user/source/source_told.h"

struct process;
struct session;

/* How fast a process allocates, for whoever limits the cost of that: session_pace(). */
struct process_pace {
	pid_t pid;
	const char *comm;	    /* borrowed */
	u64 calls;		    /* so far */
	u32 nr_births;		    /* of its children, so far */
	bool is_image;		    /* a program that it has executed since it is traced */
	u64 last_calls;		    /* from here on it is the caller's: at the last look */
	struct process_moment last; /* of code_choice_round(), like the next ones */
	u64 next_try_ns;	    /* to put code into it */
	u32 nr_tries;		    /* to put code into it */
	u64 seen_ns;		    /* its first look */
	enum source_way way;	    /* who sees its calls */
	bool is_settled;	    /* it shall not be tried again */
	double calls_per_s;	    /* of the last seconds */
	u32 permyriad;		    /* of a CPU, that tracing costs it */
	u64 first_ns;		    /* first look; 0 = there was none */
	u64 begin_ns;		    /* of the present window */
	u64 paused_ns, until_ns;    /* of the present pause; 0 = there is none */
	bool rests;		    /* again and again, because of --max-cost: judged by books alone */
	u32 window;		    /* number of the present one, 0 = it was never paused */
};

struct session_tuned {
	struct tuning now;
	bool has_paused; /* all processes, at least once */
	u32 window;	 /* session_set_window() */
	u64 first_window_ns;
};

/* Times at which calls were not seen because the user said so. */
struct process_pauses {
	u64 nr;	      /* with the present one */
	u64 past_ns;  /* of those that are over */
	u64 begin_ns; /* of the present one; 0 = calls are seen */
};

struct process_tuned {
	struct process_pauses pauses;
	u64 nr_left_out;     /* allocations, by the filter */
	u64 nr_unseen_frees; /* that were not sent, because their blocks were not */
	bool has_unseen;     /* there may be live blocks whose allocation was not seen */
	struct process_pace pace;
	char left_file[128]; /* its calls there are not seen any more: session_leave_file(); "" = none */
	char notes[4][320];
};

/* Give @p an empty heap. Losses so far belonged to the old one. 0 or -ENOMEM. */
int session_forget(struct session *s, struct process *p) __must_check;

/* @p joins: pause and filter it like the other processes. */
void session_tune_process(struct session *s, struct process *p);

/* @p of another machine joins: that machine pauses and filters it. */
void session_tune_told(const struct session *s, struct process *p);

/* The window of which a report at @now_ns on @p is; NULL = on all processes. */
struct report_window session_window(const struct session *s, const struct process *p, u64 now_ns);

/* @p has executed a program: its calls count from now on, also if it was paused. */
void session_tune_image(struct session *s, struct process *p, struct process *image);

/* Notes on @p for the report at @now_ns: up to four. Returns how many. */
size_t session_note_tuning(const struct session *s, struct process *p, u64 now_ns, const char **notes);
