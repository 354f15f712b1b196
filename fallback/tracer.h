/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces processes by ptrace and breakpoints: their allocator calls become records. Linux allows one tracer for a
 * thread, so the thread that made the tracer does everything: it calls tracer_wait() again and again.
 */
#pragma once

#include "arch/cpu.h"
#include "bpf/call_wish.h"
#include "call/note.h"
#include "call/probe.h"
#include "fallback/probe.h"

struct arch_regs;
struct thread_request;
struct tracer;
struct tracer_changer; /* fallback/tracer_change.h */

enum { TRACER_LEAVES = -1 };

/* The receiver of records and events. All functions but losses may be NULL. */
struct tracer_host {
	void *ctx;
	/*
	 * A record of bpf/event.h. False: there is no room, and the record is lost. @is_urgent: a thread stays stopped
	 * until tracer_answered() is called for this record.
	 */
	bool (*record)(void *ctx, const void *rec, size_t len, bool is_urgent);
	/* The counters of losses of @pid, all zero, in memory that stays valid. */
	struct call_losses *(*losses)(void *ctx, pid_t pid);
	/* A launched process has executed its program, and stays stopped until tracer_start(). */
	void (*launched)(void *ctx, pid_t pid);
	/*
	 * A launched process, or a child of one, is about to end (holds_ends: any one). All its threads stay stopped
	 * until tracer_let_end().
	 * @status as wait(2) gives it; TRACER_LEAVES: it runs on, but tracer_let_end() detaches from it, because
	 * another process is going to trace it. False: nobody will look at it.
	 */
	bool (*exiting)(void *ctx, pid_t pid, int status);
	/* Some seconds later, with holds_ends: true if nobody has begun to look. Then it ends. */
	bool (*is_unseen)(void *ctx, pid_t pid);
	/* The last thread of a process has ended. */
	void (*ended)(void *ctx, pid_t pid, int status);
};

struct tracer_options {
	u16 depth;	      /* frames per stack, 0 = none */
	bool has_free_stacks; /* take stacks of releases, too */
	bool holds_ends;      /* exiting() of all processes, not only of launched ones */
	u32 max_followed;     /* most children, and theirs, that are traced, too, at a time; 0 = none */
	u64 max_wait_ns;      /* a thread waits for tracer_answered() no longer than this; 0 = 1 s */
	const struct tracer_changer *changer; /* NULL = none; borrowed */
	struct call_wish *wish;	  /* a call to stop its process at; NULL = none ever; borrowed, shared */
	u64 sample_bytes, random; /* mean distance of samples, 0 = all calls are recorded; a seed for them */
};

/* Executable code of a process. @table: id of a table of rows, 0 = none. */
struct tracer_map {
	taddr_t start, end, bias;
	u32 table;
	u32 reserved;
};

int tracer_new(struct tracer **out, const struct tracer_options *o,
	       const struct tracer_host *host) __must_check;
/* Detaches from all processes, as tracer_detach() does. */
void tracer_free(struct tracer *t);

/*
 * Trace all threads of @pid, which runs on. Calls are not seen before tracer_open(). 0, also for a process that is
 * traced already, -EPERM, -ESRCH, -ENOTSUP (an unknown CPU), or -ENOMEM.
 */
int tracer_attach(struct tracer *t, pid_t pid) __must_check;

/* Trace @pid, which will execute a program: launched() reports that. Then tracer_attach(), ..., tracer_start(). */
int tracer_launch(struct tracer *t, pid_t pid) __must_check;
void tracer_start(struct tracer *t, pid_t pid);

/* Set functions [@first, @first + @nr) of the table that all processes share. 0, -ENOMEM or -EINVAL. */
int tracer_set_probes(struct tracer *t, u32 first, const struct call_probe *probes, u32 nr) __must_check;

/* Set markers [@first, @first + @nr), as tracer_set_probes() does. */
int tracer_set_notes(struct tracer *t, u32 first, const struct note_probe *notes, u32 nr) __must_check;

/*
 * Put breakpoints in, as places_add() does. After an error the first *@nr_done of them are in. -ESRCH: @pid has ended,
 * or is ending.
 */
int tracer_add_places(struct tracer *t, pid_t pid, const struct place *places, u32 nr,
		      u32 *nr_done) __must_check;
/* Forget the breakpoints in [@start, @end), which may have been unmapped. */
void tracer_remove_places(struct tracer *t, pid_t pid, taddr_t start, taddr_t end);

/* Set table @id for walks: struct cfi_row in memory that stays valid until tracer_free(). 0 or -ENOMEM. */
int tracer_set_table(struct tracer *t, u32 id, u16 machine, u8 word_size, u64 text_base, const void *rows,
		     size_t nr_rows) __must_check;
/* Set the executable mappings of @pid, sorted by address. 0, -ESRCH or -ENOMEM. */
int tracer_set_maps(struct tracer *t, pid_t pid, const struct tracer_map *maps, u32 nr) __must_check;

/* Send each stack again before the next event that names it. */
void tracer_forget_stacks(struct tracer *t);

/* Put breakpoints of @pid in again that others have taken out, and count them as losses. */
void tracer_check(struct tracer *t, pid_t pid);

/* From now on calls are seen; are not seen, or seen again. */
void tracer_open(struct tracer *t, pid_t pid);
void tracer_pause(struct tracer *t, pid_t pid, bool is_paused);

/* Frames per stack from now on, at most STACK_MAX_FRAMES. */
void tracer_set_depth(struct tracer *t, u32 depth);

/* The mean distance of samples from now on, where there are some. */
void tracer_set_sample(struct tracer *t, u64 bytes);

/* One urgent record of @pid was dealt with: the thread that waits for that is resumed. */
void tracer_answered(struct tracer *t, pid_t pid);
/* The end of @pid, which exiting() reported, was looked at: its threads are resumed. */
void tracer_let_end(struct tracer *t, pid_t pid);

/* Stop all threads within @max_ns: 0, -ETIME or -ESRCH. Ends by itself after 4 @max_ns. */
int tracer_hold(struct tracer *t, pid_t pid, u64 max_ns) __must_check;
void tracer_release(struct tracer *t, pid_t pid);
/* Registers of a stopped thread. 0, -ESRCH, or another -errno. */
int tracer_regs(struct tracer *t, pid_t tid, struct arch_regs *regs) __must_check;

/*
 * All threads of @pid are stopped by tracer_hold(): let one of them carry out @r (arch/thread_call.h). A process that
 * the call makes is stopped, not traced any further, and dies with this one. 0, -EBUSY no thread can do it now,
 * -EPERM seccomp, -ENOTSUP on this CPU, or -ESRCH.
 */
int tracer_call(struct tracer *t, pid_t pid, struct thread_request *r) __must_check;

/*
 * Stop all threads, and have one run into each breakpoint in [@start, @end). -EEXIST: the kernel takes one for a
 * uprobe. 0 also on a CPU where they differ; -EBUSY: no thread can do it now; -ETIME; or -ESRCH.
 */
int tracer_try(struct tracer *t, pid_t pid, taddr_t start, taddr_t end) __must_check;

/* Put the code back and detach. @pid 0: from all processes, and children are no longer followed. */
void tracer_detach(struct tracer *t, pid_t pid);

/*
 * Wait for one event and handle it. 0, -EINTR after a signal, -ECHILD: no process is traced, or another -errno. While
 * a thread is stopped for a limited time the timer ITIMER_REAL runs: its signal must interrupt the wait.
 */
int tracer_wait(struct tracer *t) __must_check;

/* The caller has used the timer itself: start it again if it is needed. */
void tracer_rearm(struct tracer *t);
