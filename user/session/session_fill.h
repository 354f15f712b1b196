/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interface by which a recording fills a session: processes, mappings, losses, verdicts. */
#pragma once

#include "user/source/source.h"

struct leaks;
struct session;
struct stream_hello;

/* The blocks of all processes that come from now on are sampled, one in about @bytes bytes; 0 = all are there. */
void session_fill_sample(struct session *s, u64 bytes);

/* A file of the recording begins with @hello. NULL, or why the session cannot show it. */
const char *session_fill_begin(struct session *s, const struct stream_hello *hello);

/* Tracing began at @start_ns, long before the first record that comes. */
void session_fill_start(struct session *s, u64 start_ns);

/* The stream has ended, its last record is of @last_ns; @nr_strays events are of no process. */
void session_fill_end(struct session *s, u64 last_ns, u64 nr_strays);

/* Enter a record of at least @len bytes, as a sink does. 0 or -errno. */
int session_enter(struct session *s, const struct event_header *rec, size_t len) __must_check;

/* The process that has the PID @pid now, or NULL. Valid until session_free(). */
struct process *session_find(struct session *s, u32 pid);

/* A process with empty books and an empty target of the PID @pid. 0 or -ENOMEM. */
int session_fill_process(struct session *s, u32 pid, struct process **out) __must_check;

/* The target of @p has its identity now; @p is traced since @time_ns. 0 or -ENOMEM. */
int session_fill_identity(struct session *s, struct process *p, u64 time_ns) __must_check;

/* The mappings, or the allocators, in the target of @p have changed. */
void session_fill_maps(struct session *s, struct process *p);

/* The name of a thread of @p. */
void session_fill_thread(struct session *s, struct process *p, u32 tid, const char *name);

/* The losses of @p are @l now; @flags: enum stream_losses_flag. */
void session_fill_losses(struct session *s, struct process *p, const struct losses *l, u8 flags);
struct losses session_filled_losses(struct session *s, pid_t pid);

/* Give @p the verdicts @l, which the session owns from now on. @is_last: there will be no later ones. */
void session_fill_leaks(struct session *s, struct process *p, struct leaks *l, bool is_last);

/* Name the moment @now_ns @text. */
void session_mark(struct session *s, u64 now_ns, const char *text);

/* Target and heap of @p; borrowed. After a change of the target call the functions above. */
struct target *session_target_of(struct process *p);
const struct heap *session_heap_of(const struct process *p);

/* The modules and stacks of all processes; borrowed. */
struct module_table *session_modules(struct session *s);
struct alloc_table *session_functions(struct session *s);
const struct stack_table *session_stacks(const struct session *s);

/* How many processes there are or were, and the bytes that books and stacks take. */
size_t session_count(const struct session *s);
u64 session_memory(const struct session *s);

/*
 * Keep the books of @s, and a report of them, within s->max_memory, and within what is left for heaptap: fold callers
 * (user/heap/fold.h), and if that is not enough, let events be lost. Costs little if nothing is to be done.
 */
void session_bound_memory(struct session *s);

/* Functions of struct source_ops: a source that fills has the mappings in its records, and never waits for events. */
int session_fill_update(struct source *source, struct target *t) __must_check;
int session_fill_wait_fd(struct source *source);
