/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private business of user/source_bpf.c and its programs: knobs, probe descriptions, per-process state. */
#pragma once

#ifndef __bpf__ /* the programs have their own, bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

#include "bpf/cfi_rule.h"

/* As enum alloc_kind, user/allocator.h; user/source_bpf.c asserts that they agree. */
enum probe_kind { KIND_MALLOC, KIND_REALLOC, KIND_OUT, KIND_FREE, KIND_MMAP, KIND_MREMAP, KIND_MUNMAP };

enum probe_flag {
	PROBE_RETURNS = 1,   /* the end of the call is seen: uretprobe, or probes on its ret instructions */
	PROBE_DELEGATES = 2, /* the work is done by another probed function called from its own body */
	PROBE_32BIT = 4,     /* arguments on the stack, words of 4 bytes */
	PROBE_THROWS = 8,    /* a call whose end is not seen has thrown */
};

/* What the programs need to know of one probed function; the low half of a link's cookie is its index. */
struct probe_info {
	u16 fn;	  /* row of the allocator table */
	u8 kind;  /* enum probe_kind */
	u8 flags; /* enum probe_flag */
	u8 size_arg, count_arg, old_arg, out_arg;
	u32 own_before; /* bytes from the probe back to where calls from "inside" begin ... */
	u32 own_after; /* ... and on to where they end: the function itself if it delegates, else its module's code */
};

/* One traced process. User space makes it and then only reads: counters only grow. */
struct process_state {
	u64 lost_allocs; /* results of calls that did not fit into the ring */
	u64 lost_frees;
	u64 lost_stacks;
	u64 lost_other;
	u64 abandoned; /* calls that never returned: longjmp, killed threads, more than 64 nested */
	u64 unfollowed; /* children that are not traced, though they should be: too many, or the ring was full */
	u64 sharers;	/* other processes in its memory (CLONE_VM without a wait) whose calls are not seen */
	u32 epoch;	/* of its mappings, set by user space */
	u32 execs;	/* programs that it executed */
	u32 maps_pid;	  /* whose mappings serve for walks until it has its own */
	u32 removals;	  /* changes of its mappings that may have taken some away */
	u32 linker_state; /* r_state of its dynamic linker at the last change */
	u32 reserved;
	char comm[16]; /* of the program that it executed last; "" = none yet */
};

/* Fixed when the programs are loaded. */
struct source_config {
	u32 depth;	  /* 0: no stacks are taken; else source_state.depth says how deep */
	u32 wake_bytes;	  /* wake the reader when this much waits in the ring */
	u64 fixed_cookie; /* kernels without bpf_get_attach_cookie: a load of the program for each cookie */
	u64 pid_ns_dev, pid_ns_ino; /* heaptap's PID namespace; 0 = the first one */
	u32 is_cookie_fixed;
	u32 has_free_stacks; /* for user space: which program releases get */
	u32 stops_at_maps; /* stop a thread whose dynamic linker changed the mappings, for the ptracer to look */
	u32 max_followed; /* children that are traced, too; 0 = none */
	u32 reserved;
};

/* Shared live with user space. */
struct source_state {
	u32 is_on;	 /* the gate: nothing is seen while it is 0 */
	u32 nr_paused;	 /* processes in the map of paused ones */
	u32 nr_followed; /* children that have been taken in so far */
	u32 task_pid_at; /* where the number of a thread is in its struct task_struct; 0 = not known */
	u32 layout_pid;	 /* process whose next thread's task_struct is copied, to find that out; 0 = none */
	u32 depth;	 /* frames per stack, 0 = none */
	u64 generation;	 /* grows with each change of any process's mappings or tables */
};

enum { MAX_PROBES = 4096, MAX_PROCESSES = 4096, MAX_THREADS = 8192, MAX_STACKS_SEEN = 65536 };

/* The first bytes of a task_struct, on kernels of today some 10 KiB large. */
enum { TASK_COPY_BYTES = 8192 };

/*
 * Unwind tables: rows of all files packed into shards, and for each process its executable mappings in
 * pieces, each with rows of one shard only.
 */
enum { SHARD_ROWS = 262144, MAX_SHARDS = 256, MAX_UNWIND_MAPS = 1024 };
/* The process number under which there are no mappings at all, for programs of which none are known yet. */
enum { NO_MAPS_PID = 0 };
enum { LIMIT_SHARD = 0xfffffffe, NO_SHARD = 0xffffffff };

struct shard {
	struct cfi_row rows[SHARD_ROWS];
};

/* Code from @start to @end; rows [first, first + nr) of @shard, the first not above it. */
struct unwind_map {
	u64 start, end;
	u64 base; /* address of the rows' pc 0 */
	u32 shard; /* NO_SHARD: no information, frame pointers are tried; LIMIT_SHARD: there was no room for it */
	u32 first, nr;
	u32 reserved;
};

/*
 * Sorted by start; what is not used lies at the end, with starts above all addresses. Changed in place by user
 * space: seq is odd meanwhile, and another one afterwards, so that a walk can tell.
 */
struct unwind_maps {
	u32 seq;
	u32 word; /* bytes of an address: 4 or 8 */
	u32 nr;
	u32 removals; /* of the process when they were read: more make them doubtful */
	u32 execs;    /* of the process: after another one they are another program's */
	u32 reserved;
	u64 start_sp; /* stack pointer at the program's first instruction; 0 = not known */
	struct unwind_map maps[MAX_UNWIND_MAPS];
};
