/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events of a recording as text, one per line: what `report --events` prints and source_replay_read.c reads. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "bpf/event.h"

struct losses;
struct target;

/* Errors of writing are kept, see event_list_finish(). */
struct event_list;

/* To @out, which is borrowed. *@list is owned by the caller. 0 or -ENOMEM. */
int event_list_new(struct event_list **list, FILE *out) __must_check;
void event_list_free(struct event_list *l);

/* A process, or what is known anew of it: its program, its mappings, its allocators. */
void event_list_process(struct event_list *l, const struct target *t);

/* Any record of bpf/event.h, in order; stacks before they are named. */
void event_list_event(struct event_list *l, const struct event_header *rec);

/* Totals of @pid: a line if they have grown. */
void event_list_losses(struct event_list *l, pid_t pid, const struct losses *total);

/* A marker; the name of a thread. */
void event_list_mark(struct event_list *l, u64 time_ns, const char *text);
void event_list_thread(struct event_list *l, pid_t pid, pid_t tid, const char *name);

/* Flush. 0, or the first -errno of all that was written. */
int event_list_finish(struct event_list *l) __must_check;
