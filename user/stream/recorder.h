/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Write the events of a session into a recording (--record) or a list (--events). */
#pragma once

#include "bpf/event.h"

struct alloc_table;
struct heap;
struct leaks;
struct losses;
struct target;

/* Options of a recorder. Strings are borrowed. */
struct recorder_options {
	const char *path;		  /* --record; NULL = nothing is recorded */
	bool is_list;			  /* --events: list the events on standard output instead */
	bool force;			  /* overwrite the file */
	u32 depth;			  /* frames per stack, for STREAM_HELLO */
	u64 part_bytes, part_ns;	  /* size and time of a part; 0 = no limit */
	u32 keep;			  /* parts that stay; 0 = all */
	u64 seek_bytes;			  /* between seek points; 0 = none */
	const struct recorder_sink *sink; /* to a client in place of all that; NULL = there is none */
};

/* Where a stream goes that is no file. */
struct recorder_sink {
	void *ctx;
	/* Take a whole chunk, without waiting. 0 or -errno: the stream is over. */
	int (*write)(void *ctx, const void *data, size_t len);
	/* How many eighths of the room for chunks are taken? */
	unsigned int (*filled)(void *ctx);
};

/*
 * NULL: nothing is recorded; all functions but recorder_new() do nothing then. An error of the file ends the recording,
 * not the trace, and is logged once.
 */
struct recorder;

/*
 * Prepare a recording, or a list (user/stream/event_list.h). Creates no file yet. *@out is NULL if @o asks for neither.
 * Events name rows of @fns, which is borrowed. 0, or -errno, logged.
 */
int recorder_new(struct recorder **out, const struct recorder_options *o,
		 const struct alloc_table *fns) __must_check;

/* Check the name of the file like recorder_new(), and do nothing else. 0, or -errno, logged. */
int recorder_check(const struct recorder_options *o) __must_check;

/* A recording that recorder_end() has not ended gets an end that says "heaptap gave up". */
void recorder_free(struct recorder *r);

/* Call before recorder_begin(): blocks are sampled at the mean distance @bytes, or at first; 0 = all are recorded. */
void recorder_set_sample(struct recorder *r, u64 bytes);

/* Call before recorder_begin() if tracing began earlier: the first part begins like those of recorder_next_part(). */
void recorder_join(struct recorder *r);

/* Write the first record: heaptap and its source. @mono_ns: the time now, by the clock of the events. */
void recorder_begin(struct recorder *r, const char *backend, bool wants_scan, u64 mono_ns);
bool recorder_has_begun(const struct recorder *r);

/*
 * A recorder with a sink has begun: begin a new stream, for a client that has come, of a trace that began at @start_ns
 * (0: not yet). Or: the client has gone, nothing is written until then.
 */
void recorder_connect(struct recorder *r, const char *backend, u64 start_ns, u64 now_ns);
void recorder_disconnect(struct recorder *r);

/* The random number of this recording; 0 = it has not begun. */
u64 recorder_id(const struct recorder *r);

/* How many eighths of the room of the sink are taken? Without a client: 8. */
unsigned int recorder_filled(const struct recorder *r);

/* Give what is written to the sink. */
void recorder_flush(struct recorder *r);

/* The processes run on this machine: record their parents and users, too. */
void recorder_set_local(struct recorder *r);

/* The name of a thread. */
void recorder_thread(struct recorder *r, u32 pid, u32 tid, const char *name);

/* A process that is traced since @time_ns, a new image of one, or a child; with its mappings and allocators. */
void recorder_process(struct recorder *r, const struct target *t, u64 time_ns);

/* The mappings or allocators of @t have changed. */
void recorder_maps(struct recorder *r, const struct target *t);

/* Any record of bpf/event.h, in order. */
void recorder_event(struct recorder *r, const struct event_header *rec, size_t len);

/* A marker of a program, for a client that acts on it. */
void recorder_note(struct recorder *r, const struct note_event *ev);

/* A stack of which recorder_has_stack() says that it is not there. */
void recorder_stack_again(struct recorder *r, const struct stack_event *ev, size_t len);

/* Total losses of @pid; @flags: enum stream_losses_flag. */
void recorder_losses(struct recorder *r, pid_t pid, const struct losses *l, u8 flags);

/* Verdicts on @pid, or the reason why it has no verdict. @is_exiting: @pid is at its end. */
void recorder_scan(struct recorder *r, pid_t pid, const struct leaks *l, const struct heap *heap,
		   bool is_exiting);

/* A report has been written; the moment @time_ns has the name @text. */
void recorder_mark_report(struct recorder *r);
void recorder_mark(struct recorder *r, u64 time_ns, const char *text);

/* Call often: writes records that are one second old to the file. */
void recorder_tick(struct recorder *r);

/*
 * Begin another part if the present one is long or old enough: true if so. The caller must then write all processes
 * and their live blocks again, and stacks when events need them.
 */
bool recorder_next_part(struct recorder *r, const char *backend, bool wants_scan);

/*
 * A seek point: the state of all processes, so that a reader can begin there. If recorder_wants_seek(), introduce the
 * modules of all processes; if recorder_begin_seek() then returns true, write all processes, their live blocks, which
 * are @nr_blocks, and their losses, as for another part; and call recorder_end_seek().
 */
bool recorder_wants_seek(const struct recorder *r);
void recorder_introduce(struct recorder *r, const struct target *t);
bool recorder_begin_seek(struct recorder *r, u64 nr_blocks, const char *backend, bool wants_scan);
void recorder_end_seek(struct recorder *r);

/* Must @stack not be written again? True in the first part as long as it has no seek point. */
bool recorder_has_stack(const struct recorder *r, u64 stack);

/* Tracing has ended at @time_ns, after @duration_ns. No more records can be added. */
void recorder_end(struct recorder *r, u64 time_ns, u64 duration_ns);

/* Flush the list of --events. 0, or the -errno of the first write that failed. */
int recorder_finish_list(struct recorder *r) __must_check;
/* Let the reader of this list see what is in it now. */
void recorder_show_list(const struct recorder *r);

/* Is a recording open? */
bool recorder_is_open(const struct recorder *r);

/* Has an error ended the recording? */
bool recorder_has_failed(const struct recorder *r);
