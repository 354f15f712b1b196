/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes and threads as the tracer knows them. For fallback/tracer*.c only. */
#pragma once

#include <elf.h>
#include <sched.h>

#include "arch/cpu.h"
#include "arch/stop.h"
#include "fallback/cfi_table.h"
#include "fallback/inflight.h"
#include "fallback/places.h"
#include "fallback/program.h"
#include "fallback/tracer.h"
#include "fallback/tracer_state.h"
#include "user/lib/hash_index.h"

enum { STACKS_SEEN = 65536, MEMORY_COPY_BYTES = 4096 };

/* Why a thread stays in its stop. */
enum tracer_wait {
	WAIT_NONE,
	WAIT_START,  /* launched, at the first instruction of its program: for tracer_start() */
	WAIT_ANSWER, /* it has reported a change: for tracer_answered(), or until wait_end_ns */
	WAIT_KILLER, /* killed by a thread that ends the process or executes a program: until it is known which */
};

/* The relation of a thread to its process. Never changes. */
enum tracer_role {
	ROLE_MEMBER, /* a thread of the process */
	ROLE_SHARER, /* of another process that runs in the same memory (vfork and its like) */
	ROLE_COPY,   /* of another process that has a copy of the memory: detached when it stops */
};

struct tracer_thread {
	struct tracer_thread *next; /* of the process */
	pid_t tid;
	u32 number;			/* in the tracer's list */
	struct tracer_process *process; /* borrowed */
	enum tracer_role role;
	enum tracer_thread_state state;
	enum tracer_wait wait;
	bool needs_step;  /* over the breakpoint at its pc, while all other threads are stopped */
	bool blocks_trap; /* SIGTRAP: fallback/tracer_trap.c */
	bool is_watched;  /* it stops at system calls, because it may make a task that traces the process */
	enum stop stop;	  /* its last one */
	int sig;	  /* to be delivered when it is resumed */
	u64 waits_for;	  /* WAIT_ANSWER: number of the urgent record */
	u64 wait_end_ns;
	int cpu;	       /* where it ran when last looked, -1 = unknown */
	u32 look_in, look_all; /* stops until the next look, and between two */
	u64 maker_pointer; /* the thread pointer of the thread that has made it, until it stops first; 0 = not known */
	bool has_own_mask; /* it has set the CPUs on which it may run itself: it is not tied again */
	struct inflight inflight;
};

/* Are the calls of a process recorded? */
enum tracer_calls {
	CALLS_NOT_YET, /* before tracer_open(): not all breakpoints are in */
	CALLS_SEEN,
	CALLS_PAUSED, /* by tracer_pause() */
};

/* A process, and all threads that share its memory. */
struct tracer_process {
	struct tracer_process *next;
	pid_t pid;
	const struct cpu *cpu; /* NULL = its memory cannot be read */
	int mem_fd;	       /* owned; /proc/PID/mem, -1 = cannot be read */
	struct places places;
	struct tracer_thread *threads; /* owned */
	size_t nr_threads;
	struct call_losses *losses; /* borrowed */
	struct tracer_map *maps;    /* owned */
	u32 nr_maps, epoch;	    /* the second one grows with each change of mappings */
	struct program program;
	enum tracer_calls calls;
	bool ignores_trap; /* SIGTRAP: fallback/tracer_trap.c */
	bool is_child;	   /* of a traced process: its end is reported by a record */
	bool is_launched;  /* started by heaptap, or by such a process: it is held when it is about to end */
	bool is_leaving;   /* PROGRAM_AT_END leads to a detach, because another process is to trace it */
	u32 nr_holds;	   /* reasons to keep all threads stopped */
	u64 hold_end_ns;   /* of a hold by tracer_hold(); 0 = not held so */
	u64 end_wait_ns; /* PROGRAM_AT_END: by then somebody must have begun to look; 0 = there is no limit */
	taddr_t start_sp;	/* struct unwinder */
	struct sampled sampled; /* its blocks that were sampled */
	taddr_t numbers;	/* where it numbers its calls itself; 0 = it does not */
	u64 nr_urgent, nr_done; /* urgent records that were written, and those that were dealt with */
};

struct cfi_slot {
	struct cfi_table cfi; /* rows are borrowed */
	bool is_used;
};

/* A child that stopped before its parent reported it. */
struct orphan {
	pid_t tid;
	u64 since_ns;
	struct orphan *next;
};

/* A copy of memory of the target, valid while the thread is stopped. */
struct memory_copy {
	taddr_t start;
	size_t size;
	_Alignas(8) u8 bytes[MEMORY_COPY_BYTES];
};

/* The thread that may run on the tracer's CPU only, and the one that makes stops in a row. */
struct tracer_tie {
	pid_t tid; /* 0 = none */
	int cpu;
	cpu_set_t mask; /* that the thread had */
	pid_t busy_tid;
	u32 nr_stops;
	u64 since_ns; /* time of the first of them */
};

struct tracer {
	struct tracer_options options;
	struct tracer_host host;
	struct tracer_process *processes; /* owned */
	struct tracer_thread **threads;	  /* owned list, borrowed items; of all processes */
	size_t nr_threads, max_threads;
	struct hash_index tids;	   /* numbers in threads, by TID */
	struct call_probe *probes; /* owned */
	u32 nr_probes, max_probes;
	struct note_probe *notes; /* owned */
	u32 nr_notes, max_notes;
	struct cfi_slot *tables; /* owned */
	size_t nr_tables, max_tables;
	struct orphan *orphans; /* owned */
	struct call_losses no_losses;
	u64 *stacks_seen;   /* owned; ids of stacks that were sent: a cache, which may forget */
	bool is_unanswered; /* a thread waited for an answer in vain, and no answer has come since */
	bool has_limits;    /* the interval timer runs */
	int cpu;	    /* that the tracer runs on, -1 = any */
	int last_cpu;	    /* of the last thread that stopped; nr_same_cpu: how many in a row ran there */
	u32 nr_same_cpu;
	struct tracer_tie tie;
	u32 nr_followed;    /* children that run */
	u32 nr_waits, turn; /* thread that is asked for first: take_turn() */
	/* About the stop that is being handled: */
	struct tracer_thread *thread;
	pid_t maker; /* the thread that reports a child; 0 = none does */
	struct cpu_regs regs;
	struct cpu_memory memory;
	struct memory_copy stack, other;
};
