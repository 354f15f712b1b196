/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tracer's files do for each other. */
#pragma once

#include <elf.h>

#include "fallback/tracer_private.h"

/* tracer.c: look-up, life and going on. */
struct traced *tracer_process(const struct tracer *t, pid_t pid);
struct thread *tracer_thread(const struct tracer *t, pid_t tid);
struct thread *tracer_add_thread(struct tracer *t, struct traced *p, pid_t tid);
void tracer_drop_thread(struct tracer *t, struct thread *th);
struct traced *tracer_add_process(struct tracer *t, pid_t pid);
void tracer_drop_process(struct tracer *t, struct traced *p);
/* Let @th go on as it is owed, unless something holds it. */
void tracer_resume(struct tracer *t, struct thread *th);
void tracer_resume_all(struct tracer *t, struct traced *p);
/* Tell of a change for which @th then stands. */
void tracer_tell(struct tracer *t, struct thread *th, u8 kind);
/* The same with a record of the caller's, time and thread filled in here. False if it is lost. */
bool tracer_tell_event(struct tracer *t, struct thread *th, struct process_event *ev);
/* Somebody stands for a limited time. */
void tracer_arm(struct tracer *t);

/* tracer_event.c */
void tracer_dispatch(struct tracer *t, pid_t tid, int status);
/* Handle what there is, without waiting; true if there was something. */
bool tracer_pump(struct tracer *t);

/* tracer_child.c: @tid was made by a thread of @p; @event as its parent had it, 0 = not known. */
void tracer_adopt(struct tracer *t, struct traced *p, pid_t tid, int event);
/* @tid stands, and nobody has told who made it. */
void tracer_at_unknown(struct tracer *t, pid_t tid);
/* Children that stand since before @before_ns, whose parents have not told of them. */
void tracer_settle_orphans(struct tracer *t, u64 before_ns);
/* @th stands and has a copy of our breakpoints: it gets clean code and goes its own way. */
void tracer_let_copy_go(struct tracer *t, struct thread *th);
/* @p has ended: children that wait for its word get clean code. */
void tracer_clean_orphans(const struct tracer *t, const struct traced *p);
/* A process that ran in its parent's memory has executed a program. */
void tracer_copy_executes(struct tracer *t, struct thread *th);
/*
 * @p has executed a program: those that run in its former memory, or have a copy of that, become a process of their
 * own with the breakpoints that are there, for tracer_let_go(). NULL if there are none, or no memory for it.
 */
struct traced *tracer_part(struct tracer *t, struct traced *p);
/* The last thread of @p, a child, has ended. */
void tracer_tell_end(struct tracer *t, struct traced *p, int status);

/* tracer_place.c: @th has reported SIGTRAP. False: none of our business. */
bool tracer_at_place(struct tracer *t, struct thread *th);
void tracer_send_end(struct tracer *t, struct thread *th);

/* Without the mark of Thumb code. */
static inline taddr_t tracer_code_address(const struct cpu *cpu, taddr_t pc)
{
	return cpu->machine == EM_ARM ? pc & ~1ULL : pc;
}

/*
 * tracer_stop.c: all threads stand, until tracer_unhold(), also after -ETIME. -ESRCH: @p has ended, and is no more;
 * other processes may have, too.
 */
int tracer_stop_all(struct tracer *t, struct traced *p, u64 max_ns) __must_check;
void tracer_unhold(struct tracer *t, struct traced *p);
void tracer_step(struct tracer *t, struct traced *p);
void tracer_let_go(struct tracer *t, struct traced *p);

/* tracer_image.c */
void tracer_new_image(struct tracer *t, struct traced *p, struct thread *th);
/* The first half of that: nothing is told. */
void tracer_enter_image(struct traced *p);
int tracer_open_image(struct traced *p) __must_check;
void tracer_at_start(struct tracer *t, struct thread *th);
void tracer_at_syscall(struct tracer *t, struct thread *th);
void tracer_thread_exits(struct tracer *t, struct thread *th);

/* tracer_stack.c */
u64 tracer_take_stack(struct tracer *t, struct traced *p);
/* Begin with @th: its memory is read anew. */
void tracer_look_at(struct tracer *t, struct thread *th);
