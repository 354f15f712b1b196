/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data that user/source/source_bpf.c and its BPF programs share: settings, state of processes, unwind tables. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

#include "bpf/call_wish.h"
#include "bpf/cfi_rule.h"
#include "bpf/chosen_names.h"
#include "bpf/task_fields.h"

enum { TRAP_CODE_BYTES = 16 };

/* One traced process. User space creates the entry, and then only reads the counters, which only grow. */
struct process_state {
	u64 lost_allocs; /* results of calls that did not fit into the ring */
	u64 lost_frees;
	u64 lost_stacks;
	u64 lost_other;
	u64 abandoned;	/* calls that never returned: longjmp, killed threads, too many at once in a thread */
	u64 unfollowed; /* children that should be traced and are not: too many, or the ring was full */
	u64 sharers;	/* other processes in its memory (CLONE_VM) whose calls are not seen */
	u64 overwritten; /* of its struct watched_code, those that had the code of the file when a thread ended */
	u64 trap_pc;	 /* of the thread that the kernel has ended by SIGTRAP; 0 = none */
	u8 trap_code[TRAP_CODE_BYTES]; /* at the breakpoint that it has run into */
	u32 epoch;		       /* changes of its mappings */
	u32 execs;		       /* programs that the process executed */
	u32 maps_pid;	  /* PID of the process whose mappings serve for walks until this one has its own */
	u32 removals;	  /* changes of the mappings that may have removed some */
	u32 linker_state; /* r_state of its dynamic linker at the last change */
	u32 is_followed, is_ending; /* counts in nr_followed; a thread has waited for heaptap */
	u32 has_bad_return;	    /* a call returned that the kernel did not expect: it sends SIGILL */
	u64 brk;		    /* the page behind its data, with source_config.mapping; 0 = not known */
	char comm[16];		    /* of the last program that the process executed; "" = none yet */
};

/* Some places with breakpoints of the kernel in one process, to see whether they are gone when the process ends. */
enum { MAX_WATCHED_CODE = 8 };
struct watched_code {
	struct {
		u64 addr; /* 0 = none, nor behind it */
		u32 code; /* the first bytes in the file */
		u32 reserved;
	} at[MAX_WATCHED_CODE];
};

/* A live block that was sampled. */
struct sampled_key {
	u64 addr, pid;
};

/* Fixed when the programs are loaded. */
struct source_config {
	u32 depth;	  /* 0: no stacks are taken; else source_state.depth is the number of frames */
	u32 wake_bytes;	  /* wake the reader when this much waits in the ring */
	u64 fixed_cookie; /* kernels without bpf_get_attach_cookie: the program is loaded for each cookie */
	u64 pid_ns_dev, pid_ns_ino;	   /* heaptap's PID namespace; 0 = the first one */
	u32 is_cookie_fixed, waits_at_end; /* the second one: who ends may wait for heaptap */
	u32 has_free_stacks;		   /* for user space: releases get a program that takes stacks */
	u32 stops_at_maps; /* stop a thread whose dynamic linker changed the mappings: the ptracer reads them */
	u32 max_followed;	    /* most children that are traced at a time; 0 = none */
	u32 seen_sets, max_sampled; /* sizes of maps: a power of two; 0 = all blocks are sent */
	u32 has_chosen, /* programs whose names the map "chosen" has are traced from their exec on, as children */
		has_numbers; /* events say which call of the process came before them ("sequences") */
	struct mapping_rows {
		u16 mmap_fn, munmap_fn, mremap_fn, brk_fn; /* rows for system calls; 0 = they are not seen */
	} mapping;
};

/* Shared live with user space. */
struct source_state {
	u32 is_on;	 /* the gate: 0 = the programs do nothing */
	u32 nr_paused;	 /* processes in the map of paused ones */
	u32 nr_followed; /* children that are traced; user space takes off those that have ended */
	u32 task_pid_at; /* offset of the TID in struct task_struct; 0 = not known */
	u32 is_shared;	 /* links without a PID filter: probes are in processes that nobody traces, too */
	u32 hyphen_pid; /* with is_shared: an untraced process whose new program has a '-' in its name, 0 = none */
	u32 layout_pid; /* process whose next child's task_struct is copied, to find fields in it; 0 = none */
	u32 depth;	/* frames per stack, 0 = none */
	u32 task_blocked_at, task_ptrace_at; /* offsets in struct task_struct; 0 = not known */
	u32 copied_pid; /* process whose next child is a copy for a snapshot, and is not followed; 0 = none */
	u32 leaving_pid; /* process whose threads stop where they leave their calls; 0 = none */
	u32 nr_copies;	 /* that traced processes have made of themselves, and that are not traced */
	u32 is_measured;
	struct task_fields task;
	struct pending_fields pending;
	struct call_wish wish;
	u64 sample_bytes; /* mean distance of samples */
	u64 nr_unchosen;  /* programs with chosen names that are not traced: too many, or the ring was full */
	u64 nr_losses;	  /* grows with each counter of any process_state, after it */
	/* While is_measured: programs, single steps and events of targets; as in struct probe_runs. */
	u64 nr_own_runs, nr_own_steps, nr_own_calls, inside_ns, nr_inside, least_inside_ns;
	u64 nr_sigstops, nr_counted; /* threads that a probe stopped by SIGSTOP; calls seen by count_call() */
	u64 generation;		     /* grows with each change of any process's mappings or tables */
};

enum { MAX_PROBES = 4096, MAX_PROCESSES = 4096, MAX_THREADS = 8192 };

/* Stacks that were sent, of which two ids are kept in each set; fewer where another source takes most of them. */
enum { SEEN_SETS = 65536, FEW_SEEN_SETS = 4096 };
struct seen_set {
	u64 ids[2];
};

/* Bytes to copy of a task_struct, which has some 10 KiB on kernels of today. */
enum { TASK_COPY_BYTES = 8192 };

/*
 * Unwind tables: rows of all files packed into shards, and for each process its executable mappings in
 * pieces, each with rows of one shard only.
 */
enum { SHARD_ROWS = 262144, MAX_SHARDS = 256, MAX_UNWIND_MAPS = 1024 };
/*
 * The mappings of processes lie in slabs, because a new map inside of another map waits for a grace period of the
 * kernel. All processes, that without mappings, and those of a slab that have ended.
 */
enum { SLAB_PROCESSES = 16, MAX_SLABS = MAX_PROCESSES / SLAB_PROCESSES + 2 };
/* The map has an entry without mappings under this PID, for programs whose mappings are not known yet. */
enum { NO_MAPS_PID = 0 };
enum { LIMIT_SHARD = 0xfffffffe, NO_SHARD = 0xffffffff };

struct shard {
	struct cfi_row rows[SHARD_ROWS];
};

/* Code from @start to @end, unwound by rows [first, first + nr) of @shard. The first row begins at or below @start. */
struct unwind_map {
	u64 start, end;
	u64 base;  /* address of the rows' pc 0 */
	u32 shard; /* NO_SHARD: no information, frame pointers are tried; LIMIT_SHARD: no room for the rows */
	u32 first, nr, reserved;
};

/*
 * The executable mappings of a process, sorted by start. Unused entries at the end have starts above all addresses.
 * Changed mappings are published as another one of these, with a seq of its own. A walk goes on with those that it
 * began with. Their memory is used again later: seq is odd meanwhile, and a walk that is still in it is lost.
 */
struct unwind_maps {
	u32 seq;
	u32 word; /* bytes of an address: 4 or 8 */
	u32 nr;
	u32 removals; /* of the process when the mappings were read; if it has more now, they may be outdated */
	u32 execs; /* of the process when the mappings were read; if it has more now, they are of another program */
	u32 slot;     /* this one's number in all slabs of the kernel */
	u64 start_sp; /* stack pointer at the program's first instruction; 0 = not known */
	struct unwind_map maps[MAX_UNWIND_MAPS];
};
