/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces processes by ptrace and breakpoints: their allocator calls become records. Everything happens in the thread
 * that made it, which calls tracer_wait() again and again. Linux allows one tracer for a thread, this one.
 */
#pragma once

#include <sys/types.h>

#include "arch/cpu.h"
#include "fallback/probe.h"

struct arch_regs;
struct tracer;

/* Who is told. All but losses may be NULL. */
struct tracer_host {
	void *ctx;
	/*
	 * A record of bpf/event.h. False if there is no room for it: it is lost. @is_urgent: a thread stands until
	 * tracer_go_on() is called for this record.
	 */
	bool (*record)(void *ctx, const void *rec, size_t len, bool is_urgent);
	/* Where the losses of @pid are counted, zeroed; stays valid. */
	struct call_losses *(*losses)(void *ctx, pid_t pid);
	/* A launched process has become the program and stands until tracer_start(). */
	void (*launched)(void *ctx, pid_t pid);
	/*
	 * It, or a child of it, is about to end, and all its threads stand until tracer_let_end(). @status as wait(2)
	 * gives it. False: nobody will look.
	 */
	bool (*exiting)(void *ctx, pid_t pid, int status);
	/* The last thread has gone. */
	void (*ended)(void *ctx, pid_t pid, int status);
};

struct tracer_options {
	u32 depth;	      /* frames per stack, 0 = none */
	bool has_free_stacks; /* those of releases too */
	u64 max_wait_ns;      /* a thread stands no longer for want of tracer_go_on(); 0 = 1 s */
	u32 max_followed;     /* so many children, and theirs, are traced too; 0 = none */
};

/* Executable code of a process. @table: id of a table of rows, 0 = none. */
struct tracer_map {
	taddr_t start, end, bias;
	u32 table;
	u32 reserved;
};

int tracer_new(struct tracer **out, const struct tracer_options *o,
	       const struct tracer_host *host) __must_check;
/* Lets go of all processes, as tracer_detach() does. */
void tracer_free(struct tracer *t);

/*
 * Trace all threads of @pid; it is not stopped. Nothing is seen before tracer_open(). -EPERM, -ESRCH, -ENOTSUP
 * (a CPU that is not known), -ENOMEM. Of a process that is traced already 0.
 */
int tracer_attach(struct tracer *t, pid_t pid) __must_check;

/* Trace @pid, which will execute a program: launched() tells. Then tracer_attach(), ..., tracer_start(). */
int tracer_launch(struct tracer *t, pid_t pid) __must_check;
void tracer_start(struct tracer *t, pid_t pid);

/* Functions [@first, @first + @nr) of a table that is common to all processes. -ENOMEM, -EINVAL. */
int tracer_set_probes(struct tracer *t, u32 first, const struct call_probe *probes, u32 nr) __must_check;

/* Put breakpoints in. As places_add(); on error those before it stay. *@nr_done says how many are in. */
int tracer_add_places(struct tracer *t, pid_t pid, const struct place *places, u32 nr,
		      u32 *nr_done) __must_check;
/* Forget those in [@start, @end), which may have been unmapped. */
void tracer_remove_places(struct tracer *t, pid_t pid, taddr_t start, taddr_t end);

/* Rows (struct cfi_row) in memory that stays until tracer_free(). -ENOMEM. */
int tracer_set_table(struct tracer *t, u32 id, u16 machine, u8 word_size, u64 text_base, const void *rows,
		     size_t nr_rows) __must_check;
/* Executable mappings, sorted. -ESRCH, -ENOMEM. */
int tracer_set_maps(struct tracer *t, pid_t pid, const struct tracer_map *maps, u32 nr) __must_check;

/* Send each stack again before the next event that names it. */
void tracer_forget_stacks(struct tracer *t);

/* Look whether all breakpoints of @pid are still in; what was not seen meanwhile is lost. */
void tracer_check(struct tracer *t, pid_t pid);

/* From now on calls are seen; or not, for a while. */
void tracer_open(struct tracer *t, pid_t pid);
void tracer_pause(struct tracer *t, pid_t pid, bool is_paused);

/* Frames per stack from now on, at most STACK_MAX_FRAMES. */
void tracer_set_depth(struct tracer *t, u32 depth);

/* One urgent record has been dealt with: who stood for it goes on. */
void tracer_go_on(struct tracer *t, pid_t pid);
void tracer_let_end(struct tracer *t, pid_t pid);

/* Let all threads stand, within @max_ns: 0, -ETIME, -ESRCH. They go on by themselves after 4 @max_ns. */
int tracer_hold(struct tracer *t, pid_t pid, u64 max_ns) __must_check;
void tracer_release(struct tracer *t, pid_t pid);
/* Registers of a thread that stands. -ESRCH, or -errno. */
int tracer_regs(struct tracer *t, pid_t tid, struct arch_regs *regs) __must_check;

/* Put the code back and let the process go on alone. @pid 0: all of them; children are no longer followed. */
void tracer_detach(struct tracer *t, pid_t pid);

/*
 * Wait for one event and handle it. 0, -EINTR after a signal or timer, -ECHILD: there is nothing to wait for, or
 * -errno. Arms the interval timer ITIMER_REAL while somebody stands for a limited time: its signal must interrupt.
 */
int tracer_wait(struct tracer *t) __must_check;

/* The caller has used the timer itself. */
void tracer_rearm(struct tracer *t);
