/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a session sees, written down as a stream: --record. */
#pragma once

#include <sys/types.h>

#include "bpf/event.h"
#include "user/stream_record.h"

struct heap;
struct leaks;
struct losses;
struct options;
struct target;

/*
 * All but recorder_new() take NULL for "nothing is recorded" and do nothing then. Errors of the file end the
 * recording, not the trace: they are logged once.
 */
struct recorder;

/*
 * By --record and its like; *@out stays NULL without it. Nothing is created yet. With --events it is a list of the
 * events on standard output (user/event_list.h). 0, or -errno, logged.
 */
int recorder_new(struct recorder **out, const struct options *o) __must_check;

/* Only what is wrong with the name, as recorder_new(). 0, or -errno, logged. */
int recorder_check(const struct options *o) __must_check;

/* What has not been ended is ended as broken off. */
void recorder_free(struct recorder *r);

/* Tracing goes on for a while already: the first part is told all that parts behind it are, recorder_next_part(). */
void recorder_join(struct recorder *r);

/* Who records, from which source: the first of all. @mono_ns: it is that now, by the clock that events have. */
void recorder_begin(struct recorder *r, const char *backend, bool wants_scan, u64 mono_ns);
bool recorder_has_begun(const struct recorder *r);

/* Processes are this machine's: names of threads, parents and users are recorded too. */
void recorder_watch_threads(struct recorder *r);
/* What a recording that is replayed says of one. */
void recorder_thread(struct recorder *r, u32 pid, u32 tid, const char *name);

/* A process that is traced since @time_ns, a new image of one, or a child; with its mappings and allocators. */
void recorder_process(struct recorder *r, const struct target *t, u64 time_ns);

/* Its mappings or allocators have changed. */
void recorder_maps(struct recorder *r, const struct target *t);

/* Any record of bpf/event.h, in order. */
void recorder_event(struct recorder *r, const struct event_header *rec, size_t len);

/* Totals of @pid, and what the books made of them: enum stream_losses_flag. */
void recorder_losses(struct recorder *r, pid_t pid, const struct losses *l, u8 flags);

/* Verdicts on @pid, or why there are none. @is_exiting: they are its last ones. */
void recorder_scan(struct recorder *r, pid_t pid, const struct leaks *l, const struct heap *heap,
		   bool is_exiting);

/* A report has been written; the moment @time_ns has the name @text. */
void recorder_mark_report(struct recorder *r);
void recorder_mark(struct recorder *r, u64 time_ns, const char *text);

/* Often: what is a second old goes to the file. */
void recorder_tick(struct recorder *r);

/*
 * The present part of the recording is long or old enough: true when another one has begun. It knows nothing yet:
 * processes are to be introduced again, with their live blocks; stacks when they are needed.
 */
bool recorder_next_part(struct recorder *r, const char *backend, bool wants_scan);

/* An event can name @stack. Always true of the first part, where stacks come before. */
bool recorder_has_stack(const struct recorder *r, u64 stack);

/* Tracing has ended at @time_ns, after @duration_ns. Nothing can be added any more. */
void recorder_end(struct recorder *r, u64 time_ns, u64 duration_ns);

/* Of --events: flush. 0, or the -errno of what could not be written. */
int recorder_finish_list(struct recorder *r) __must_check;

/* Something is being recorded. */
bool recorder_is_open(const struct recorder *r);

/* Something could not be kept. */
bool recorder_has_failed(const struct recorder *r);
