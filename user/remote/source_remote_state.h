/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of the remote source, by subject: trace, clock, commands, scan. For user/remote/source_remote*.c only. */
#pragma once

#include "user/scan/leaks_books.h"
#include "user/scan/scan.h"
#include "user/scan/scan_why.h"
#include "user/remote/source_remote.h"
#include "user/remote/wire_scan.h"

/* The whole trace, over all its connections. The states from REMOTE_COMPLETE on are final. */
enum remote_life {
	REMOTE_TRACING,	 /* connecting, connected, or waiting for a lost connection to come back */
	REMOTE_STOPPING, /* WIRE_DETACH is sent; the last records are on their way */
	REMOTE_COMPLETE, /* the server has said that nothing is missing */
	REMOTE_FAILED,	 /* the server could trace nothing */
	REMOTE_BROKEN,	 /* the connection was lost for good, or its bytes were damaged */
};

/* The trace on the present connection. */
enum remote_start {
	START_NOT_ASKED, /* WIRE_START is not sent yet */
	START_ASKED,	 /* WIRE_START is sent; WIRE_STARTED has not come */
	START_DONE,	 /* WIRE_STARTED has come: records flow */
};

struct remote_trace {
	enum remote_life life;
	enum remote_start start;
	bool was_started; /* START_DONE on this connection or an earlier one */
	bool may_kill;	  /* the server allows it */
	u64 id;		  /* from WIRE_STARTED; 0 = none yet */
	u64 lost_ms;	  /* when the connection was lost; 0 = it is up */
	u32 nr_notes;	  /* WIRE_NOTE that were shown */
	char why[160];	  /* why it ended, for the user; "" = as wanted */
};

/* The server's clock against ours. */
struct remote_clock {
	s64 ahead_ns;	 /* the server's clock minus ours */
	u64 hello_ns;	 /* STREAM_HELLO of the stream that was compared last; 0 = none yet */
	u64 hello_trace; /* remote_trace.id of that stream */
};

/* WIRE_TUNE and its answers. */
struct remote_tuning {
	struct tuning now; /* as the server has it, or will get it with the next connection */
	u32 nr_unanswered; /* on this connection; more than 1 after a command whose answer was not waited for */
	bool is_refused;   /* the last answer was no, because of @why */
	char why[160];
};

/* A leak scan over there. */
enum remote_scan_state {
	REMOTE_SCAN_NONE,
	REMOTE_SCAN_RUNNING,  /* begun by source_remote_scan_begin(); no WIRE_SCANNED yet */
	REMOTE_SCAN_ANSWERED, /* WIRE_SCANNED has come, or the connection was lost: see remote_scan.err */
	REMOTE_SCAN_KEPT,     /* verdicts are taken; the server waits for WIRE_WHY or WIRE_SCAN_OVER */
	REMOTE_SCAN_GIVEN_UP, /* nobody waits for it here any more, but its frames may still come */
};

/* A moment of a scan in the stream of records, set by WIRE_MARK. */
struct remote_mark {
	bool is_reached; /* the records behind the mark wait until this is false */
};

struct remote_scan {
	enum remote_scan_state state;
	pid_t pid;		/* whose blocks are judged */
	struct scan *scan;	/* borrowed; verdicts go into it; NULL = they are thrown away */
	struct wire_scan_at at; /* in the verdicts */
	u64 nr_verdicts;	/* that have come */
	struct scan_result result;
	u64 pause_ns;	 /* how long the process was stopped */
	bool is_copied;	 /* its memory was */
	bool is_partial; /* with @books: they do not have all blocks */
	struct leak_books books;
	int err;
	char why[160]; /* the server's reason for @err, or "" */
};

/* The answer to WIRE_WHY: the chain from a root to a block. */
struct remote_answer {
	struct scan_step *steps; /* owned */
	size_t nr_steps, max_steps;
	size_t limit_steps; /* blocks of the scan: a chain has each block once */
	taddr_t at;	    /* address of the last step */
	int err;
	struct scan_chain *chain; /* owned; NULL until the whole answer has come */
	char root_name[WIRE_MAX_TEXT];
};

/* Somebody waits for the end, so that blocks are sent only to a server that takes them fast enough. */
struct remote_hurry {
	u64 since_ms;			   /* 0 = nobody waits */
	u64 nr_put;			   /* bytes of blocks */
	u64 nr_behind, nr_asked, asked_ms; /* those before the latest question, and what it stands for */
	bool is_late;
};

struct remote_source {
	struct source_remote_options options;
	struct remote_link *link;     /* owned */
	struct remote_stream *stream; /* owned */
	struct remote_trace trace;
	struct remote_clock clock;
	struct remote_tuning tuning;
	struct remote_mark mark;
	u32 nr_farewell; /* the connection that source_remote_farewell() told of */
	u64 called_ms;	 /* when source_remote_call() asked; 0 = it did not, or the answer has come */
	pid_t exiting;	 /* is stopped over there, at its end or at execve(); 0 = none */
	bool executes;	 /* at execve() */
	struct remote_scan scan;
	struct remote_hurry hurry;
	struct remote_answer answer;
};

static inline struct remote_source *remote_self(const struct source *s)
{
	return (struct remote_source *)(uintptr_t)s;
}
