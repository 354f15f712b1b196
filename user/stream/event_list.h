/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events of a recording as text, one per line: what `report --events` prints and event_list_read.c reads. */
#pragma once

#include <stdio.h>

#include "bpf/event.h"

struct alloc_table;
struct losses;
struct target;

/* A list of events. Errors of writing are remembered for event_list_finish(). */
struct event_list;

/* Write to @out. Events name rows of @fns. Both are borrowed. The caller owns *@list. 0 or -ENOMEM. */
int event_list_new(struct event_list **list, FILE *out, const struct alloc_table *fns) __must_check;
void event_list_free(struct event_list *l);

/* Blocks are sampled at the mean distance @bytes; 0 = all are listed. */
void event_list_sample(struct event_list *l, u64 bytes);

/* A process is new, or its program, mappings or allocators have changed. */
void event_list_process(struct event_list *l, const struct target *t);

/* Any record of bpf/event.h, in order; a stack before the events that name it. */
void event_list_event(struct event_list *l, const struct event_header *rec);

/* Total losses of @pid. Writes a line if they have grown. */
void event_list_losses(struct event_list *l, pid_t pid, const struct losses *total);

/* A marker; the name of a thread. */
void event_list_mark(struct event_list *l, u64 time_ns, const char *text);
void event_list_thread(struct event_list *l, pid_t pid, pid_t tid, const char *name);

/* Flush. 0, or the -errno of the first write that failed. */
int event_list_finish(struct event_list *l) __must_check;
/* Flush what is written so far. */
void event_list_show(struct event_list *l);
