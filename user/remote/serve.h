/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Serve a client: commands come in, a stream of events goes out. */
#pragma once

#include "user/session/session_options.h"
#include "user/source/launch.h"
#include "user/remote/serve_link.h"
#include "user/scan/snapshot_way.h"
#include "user/session/session_forward.h"

/* Options of serve. Strings and lists are borrowed. */
struct serve_options {
	struct source_choice source;
	const char *const *targets; /* names and PIDs */
	size_t nr_targets;
	char **program;		    /* to start, NULL-terminated, in place of targets; NULL = none */
	const char *user, *cwd;	    /* of the program, or NULL */
	enum snapshot_way snapshot; /* how a scan gets the memory */
	u32 nr_jobs;		    /* threads that read it; 0 = one for each CPU */
	u64 max_copy;		    /* bytes of a copy; 0 = what there is room for */
	u64 max_pause_ns;	    /* most that a scan may stop a process; 0 = as the client asks */
	bool allow_kill;
};

struct serve {
	struct serve_options options;
	struct session_options wanted; /* options.source and the wishes of the client */
	struct recorder_sink sink;     /* the queue to the client */
	struct serve_link *link;
	u32 client; /* number of the connection that the trace writes to; 0 = none */

	/* NULL unless something is traced. */
	struct session *session;
	const struct source_ops *ops; /* of its source */
	struct source *source;
	u64 lost_ms;  /* when the connection to the client was lost; 0 = it is up */
	u64 alive_ms; /* when serve checked last that targets are alive */

	/* NULL: no program was started, or it has ended. Without one: attached processes that are about to end. */
	struct launch *launch;
	bool is_launched; /* serve has tried to start the program */
	bool has_ended;	  /* the program; its children may run on */
	bool is_over;	  /* serve ends */
	int status;
	struct serve_books *books; /* NULL = no scan is under way */
	bool wants_exit_scan;	   /* the client wants a scan when a program exits */
	pid_t exiting;		   /* is stopped until the client lets it go on; 0 = none */
	enum wire_mark exiting_by; /* where: _EXITING or _EXECUTING */
	bool has_stopped;	   /* at _EXECUTING: this thread has stopped all of its threads */
	/* A frame that came during a hook of @launch, and would end the trace. Handled after that. */
	struct {
		u8 kind; /* 0 = none */
		u32 len;
		u8 *data; /* owned; @size bytes */
		size_t size;
	} late;
};

/* How long targets stay traced when the connection to the client was lost. */
enum { SERVE_KEEP_MS = 60000 };

/* Handle a frame of the client. */
void serve_command(struct serve *s, const struct wire_frame *f);

/* One round: look at the program, handle frames of the client, read events. */
void serve_round(struct serve *s);

/* Start the program of the command line. 0 or -errno. */
int serve_launch(struct serve *s) __must_check;

/* Remove the probes, and send the reason to the client. */
void serve_stop(struct serve *s, enum wire_end why, const char *text);
