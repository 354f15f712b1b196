/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tracer knows of processes and threads; shared by fallback/tracer*.c, and for nobody else. */
#pragma once

#include <elf.h>

#include "arch/cpu.h"
#include "fallback/cfi_table.h"
#include "fallback/inflight.h"
#include "fallback/places.h"
#include "fallback/tracer.h"

enum { THREAD_BUCKETS = 1024, STACKS_SEEN = 65536, PIECE_BYTES = 4096 };

/* What a thread that stands is owed. */
enum owed { OWED_NOTHING, OWED_CONT, OWED_LISTEN };

struct thread {
	struct thread *next_in_bucket, *next; /* of the process */
	pid_t tid;
	struct traced *process; /* borrowed */
	bool is_copy;		/* vfork and its like: another process in the same memory */
	bool is_leaving;	/* has a copy of the memory, and is let go when it stands */
	bool stands;
	bool has_exited;     /* its exit was told */
	bool is_vforking;    /* sleeps until its child ends or executes another program */
	bool waits_to_start; /* launched, at the first instruction of its program */
	bool is_killed;	     /* waits whether the whole process ends */
	bool needs_step;     /* over the breakpoint at its pc, with all others standing */
	u8 owed;	     /* enum owed */
	int sig;	     /* to be delivered when it goes on */
	u64 waits_for;	     /* number of the urgent record that it stands for, 0 = none */
	u64 wait_end_ns;
	int cpu;	       /* where it ran when last looked, -1 = unknown */
	u32 look_in, look_all; /* stops until the next look, and between two */
	struct inflight inflight;
};

/* A process, and all threads that share its memory. */
struct traced {
	struct traced *next;
	pid_t pid;
	const struct cpu *cpu;
	int mem_fd; /* owned; /proc/PID/mem, -1 = cannot be read */
	struct places places;
	struct thread *threads; /* owned */
	size_t nr_threads;
	struct call_losses *losses; /* borrowed */
	struct tracer_map *maps;    /* owned */
	u32 nr_maps;
	u32 epoch; /* of the mappings */
	bool is_open, is_paused;
	bool is_child;	   /* of a traced process: its end is told by a record */
	bool is_launched;  /* started by us, or by one that was: its end is of interest */
	bool is_waiting;   /* launched, and not the program yet or not started */
	bool is_starting;  /* its dynamic linker is at work */
	bool has_new_code; /* it mapped code that nobody was told about */
	bool is_exit_told, is_exit_held;
	u64 futile_until_ns; /* killed threads are not waited with: the process executes another program */
	u32 nr_holds;
	u64 hold_end_ns;	/* of a hold by tracer_hold() */
	taddr_t entry;		/* where the dynamic linker hands over */
	taddr_t start_sp;	/* struct unwinder */
	u64 nr_urgent, nr_done; /* records that threads stand for */
};

struct cfi_slot {
	struct cfi_table cfi; /* rows are borrowed */
	bool is_used;
};

/* A child that stopped before its parent said that it has one. */
struct orphan {
	pid_t tid;
	u64 since_ns;
	struct orphan *next;
};

/* A copy of memory, valid while its thread stands. */
struct piece {
	taddr_t start;
	size_t size;
	_Alignas(8) u8 bytes[PIECE_BYTES];
};

struct tracer {
	struct tracer_options options;
	struct tracer_host host;
	struct traced *processes; /* owned */
	struct thread *buckets[THREAD_BUCKETS];
	struct call_probe *probes; /* owned */
	u32 nr_probes;
	struct cfi_slot *tables; /* owned */
	size_t nr_tables;
	struct orphan *orphans; /* owned */
	struct call_losses no_losses;
	u64 *stacks_seen;   /* owned */
	bool is_unanswered; /* a thread has stood for as long as it may, and nobody has come since */
	bool has_limits;    /* the timer runs */
	int cpu;	    /* that we run on, -1 = any */
	int last_cpu;	    /* where the last threads ran that stopped, and how many in a row */
	u32 nr_same_cpu;
	u32 nr_followed;    /* children so far */
	u32 nr_waits, turn; /* whose turn it is to be asked for first: take_turn() */
	/* Of the stop that is being handled: */
	struct thread *thread;
	struct cpu_regs regs;
	struct cpu_memory memory;
	struct piece stack, other;
};
