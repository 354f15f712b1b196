/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a session knows of one of its processes; a part of session_private.h. */
#pragma once

#include "user/leaks.h"
#include "user/session_tune.h"
#include "user/trend.h"

/* A process, or one of its images if it called exec. */
struct process {
	struct target *target; /* owned unless borrowed from the source */
	bool is_target_borrowed;
	struct heap *heap;    /* owned */
	struct losses losses; /* as last asked for */
	struct losses before; /* what earlier images of the pid had lost */
	struct losses told;   /* what the recording says */
	struct losses stated; /* replay: what the recording said */
	bool is_over;	      /* no more events: ended, or replaced by exec */
	u64 maps_read_ns;
	u64 nr_unseen;	   /* frees that may have been lost when its blocks were last tainted */
	u64 may_be_unseen; /* the same before the events that are being read */
	u64 nr_unentered;  /* events that did not fit into the books then */
	u64 nr_taints;
	bool has_gaps;	     /* session_expect_gaps() */
	u64 nr_false_stacks; /* events whose stack's id was false, or whose stack had no room */
	u64 nr_unplaced;     /* times that probes for new mappings could not be placed */
	bool is_exiting;     /* its last verdict is there */
	bool is_replaced;    /* by another program */
	bool is_copy;	     /* of its parent at a fork */
	bool is_image;	     /* of a program that it executed, or that another process with its number did */
	/*
	 * Not in reports, its books are empty: a copy that did nothing but execute a program, or an image that
	 * was gone before anybody could look at it, and that may never have been this process's.
	 */
	bool is_hidden;
	u64 nr_events;	      /* of its own */
	struct leaks *leaks;  /* owned; for the next report, NULL = not scanned */
	const char *notes[6]; /* borrowed; for the report that is being written */
	char child_notes[2][128];
	struct process_tuned tuned;
	struct trend trend;
	struct leak_marks marks, asked_marks; /* of the last scan for a report, for another heaptap */
	u64 *reported;			      /* owned; live bytes of each caller at the last report */
	size_t nr_reported;
};
