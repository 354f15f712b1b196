/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions that the tracer's files share. */
#pragma once

#include "fallback/tracer_private.h"

/* tracer.c: processes and threads. */
struct tracer_process *tracer_find_process(const struct tracer *t, pid_t pid);
struct tracer_thread *tracer_find_thread(const struct tracer *t, pid_t tid);
struct tracer_thread *tracer_add_thread(struct tracer *t, struct tracer_process *p, pid_t tid);
void tracer_drop_thread(struct tracer *t, struct tracer_thread *th);
struct tracer_process *tracer_add_process(struct tracer *t, pid_t pid);
void tracer_drop_process(struct tracer *t, struct tracer_process *p);
/* Resume @th as its state wants it, unless something holds it. */
void tracer_resume(struct tracer *t, struct tracer_thread *th);
void tracer_resume_all(struct tracer *t, struct tracer_process *p);
/* Report a change of kind @kind. @th stays stopped until the answer. */
void tracer_report(struct tracer *t, struct tracer_thread *th, u8 kind);
/* Like tracer_report(), with the caller's record; time and thread are filled in. False if the record is lost. */
bool tracer_report_event(struct tracer *t, struct tracer_thread *th, struct process_event *ev);
/* Send a record. @th stays stopped until the answer. False if the record is lost. */
bool tracer_send_urgent(struct tracer *t, struct tracer_thread *th, const void *rec, size_t len);
/* A thread is stopped for a limited time: start the timer. */
void tracer_arm(struct tracer *t);

/* tracer_event.c */
void tracer_dispatch(struct tracer *t, pid_t tid, int status);
/* Handle one event if there is one, without waiting. False: no event has come. */
bool tracer_pump(struct tracer *t);

/* tracer_child.c: @tid was made by a thread of @p; @event: which PTRACE_EVENT reported that, 0 = not known. */
void tracer_adopt(struct tracer *t, struct tracer_process *p, pid_t tid, int event);
/* @tid is stopped, and it was not reported yet which thread made it. */
void tracer_at_unknown(struct tracer *t, pid_t tid);
/* Take in or detach children that stopped before @before_ns and were not reported by their parents. */
void tracer_settle_orphans(struct tracer *t, u64 before_ns);
/* @th is stopped, and its code was put back when it was adopted as a copy: detach. */
void tracer_detach_copy(struct tracer *t, struct tracer_thread *th);
/* @p has ended: put the code of children back that it has not reported. */
void tracer_clean_orphans(const struct tracer *t, const struct tracer_process *p);
/* A process that ran in its parent's memory has executed a program. */
void tracer_copy_executes(struct tracer *t, struct tracer_thread *th);
/*
 * @p has executed a program. Processes that share its former memory, or have a copy of that, become a struct
 * tracer_process of their own with the breakpoints that are there, for tracer_detach_process(). NULL if there is no
 * such process, or out of memory.
 */
struct tracer_process *tracer_part(struct tracer *t, struct tracer_process *p);
/* The last thread of @p, a child, has ended. */
void tracer_report_end(struct tracer *t, struct tracer_process *p, int status);

/* tracer_place.c: @th has reported SIGTRAP. False: it is not at a breakpoint of ours. */
bool tracer_at_place(struct tracer *t, struct tracer_thread *th);
/* Nor that: but is it in a copy of code with one, which is taken out, so that @th can go on? */
bool tracer_at_copy(struct tracer *t, struct tracer_thread *th);
void tracer_send_end(struct tracer *t, struct tracer_thread *th);

/* tracer_cpu.c: @th is at a breakpoint. The tracer and a thread that stops often come to run on one CPU. */
void tracer_follow_cpu(struct tracer *t, struct tracer_thread *th);
/* Give @tid the mask of CPUs back that it had, if it is tied to the tracer's CPU. */
void tracer_untie(struct tracer *t, pid_t tid);
/* @parent has made @child, a thread or process, which has the parent's mask. */
void tracer_untie_child(struct tracer *t, pid_t parent, pid_t child);
/* Thread @former has executed a program and is called @tid now. */
void tracer_untie_exec(struct tracer *t, pid_t former, pid_t tid);

/*
 * tracer_trap.c, which the agent does not have. Does @th block SIGTRAP? It is stopped, and has hit no breakpoint yet,
 * like all threads of @p; a thread makes it; it calls sigprocmask(), or sigaction(). Must the makers of new threads be
 * known? Has the kernel taken SIGTRAP out of its mask, for a breakpoint that it has not reported?
 */
void tracer_trap_begin_process(struct tracer_process *p);
void tracer_trap_at_action(struct tracer *t, struct tracer_process *p);
bool tracer_trap_awaits_makers(const struct tracer_process *p);
void tracer_trap_begin(struct tracer_thread *th);
void tracer_trap_inherit(const struct tracer *t, struct tracer_thread *th);
void tracer_trap_at_mask(struct tracer *t, struct tracer_thread *th);
bool tracer_trap_is_hit(const struct tracer_thread *th);

/* tracer_note.c: the lower half of the number of the last call of @p; 0 = not known. */
u32 tracer_read_number(const struct tracer_process *p);
/* @th has come to marker number @index. */
void tracer_at_note(struct tracer *t, struct tracer_thread *th, u32 index);

/*
 * tracer_stop.c: stop all threads, until tracer_unhold(), also after -ETIME. -ESRCH: @p has ended, and is freed. Other
 * processes may have ended, too.
 */
int tracer_stop_all(struct tracer *t, struct tracer_process *p, u64 max_ns) __must_check;
void tracer_unhold(struct tracer *t, struct tracer_process *p);
void tracer_step(struct tracer *t, struct tracer_process *p);
void tracer_detach_process(struct tracer *t, struct tracer_process *p);

/* tracer_change.c: @th is new, and the thread that reports it is stopped, or nobody does. Beside a changer only. */
void tracer_note_maker(const struct tracer *t, struct tracer_thread *th);
/* @th is in its first stop: has it the thread pointer of its maker? It waits until the changer knows that. */
void tracer_look_for_twin(struct tracer *t, struct tracer_thread *th);

/* tracer_image.c */
void tracer_new_image(struct tracer *t, struct tracer_process *p, struct tracer_thread *th);
/* The first half of tracer_new_image(): the exec is not reported. */
void tracer_enter_image(struct tracer_process *p);
int tracer_open_image(struct tracer_process *p) __must_check;
void tracer_at_start(struct tracer *t, struct tracer_thread *th);
void tracer_at_syscall(struct tracer *t, struct tracer_thread *th);
/* @p has a task that is going to trace it. @p may be freed. */
void tracer_leave(struct tracer *t, struct tracer_process *p);
void tracer_thread_exits(struct tracer *t, struct tracer_thread *th);

/* tracer_stack.c */
u64 tracer_take_stack(struct tracer *t, struct tracer_process *p);
/* From inside a function: the instruction itself is in the innermost frame. */
u64 tracer_take_stack_here(struct tracer *t, struct tracer_process *p);
/* Begin with @th, whose memory is read anew. */
void tracer_look_at(struct tracer *t, struct tracer_thread *th);
