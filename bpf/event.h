/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records that each source sends (BPF, ptrace, replay, a remote server) and that sessions collect. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

#include "bpf/stack_id.h"

enum event_kind {
	EVENT_ALLOC = 1,     /* struct heap_event; at return of the call; addr 0 = it failed */
	EVENT_FREE,	     /* struct heap_event; at entry, before the address can be reused */
	EVENT_REALLOC_BEGIN, /* struct heap_event; at entry: old_addr is not live until the end is known */
	EVENT_REALLOC_END,   /* struct heap_event; at return: the result of the call that began on this tid */
	EVENT_STACK,	     /* struct stack_event; before the first event that names it */
	EVENT_EXEC, /* struct process_event; the process has executed a program, its old memory is gone */
	EVENT_FORK, /* struct process_event; child_pid is a copy of pid (0: of none), and traced from now on */
	EVENT_EXIT,   /* struct process_event; the last thread of pid has ended */
	EVENT_MAPS,   /* struct process_event; the dynamic linker changed the mappings */
	EVENT_LOSSES, /* struct process_event; the source has counted more losses; flag EVENT_TAINT */
	EVENT_NOTE,   /* struct note_event; a thread has come to a marker of the program */
	NR_EVENT_KINDS
};

enum event_flag {
	EVENT_TEMPORARY = 1, /* free: the block is the last one this thread allocated */
	EVENT_RETRY = 2, /* alloc: the call reported a failure before (new_handler), which did not happen */
	EVENT_TAINT = 1, /* losses: a free may have been missed, so blocks that live now are unsure */
	EVENT_UNMAP = 4, /* free of [addr, addr + size), perhaps in the middle of blocks (munmap) */
	EVENT_UNSAMPLED = 8, /* realloc end: the new block is not counted, because blocks are sampled */
	EVENT_WITHIN = 16,   /* free: inside another request, perhaps of memory that was reported with it */
	EVENT_NO_COPY = 8,   /* fork: the child shared the memory, or was not traced, until its exec */
	EVENT_TWIN = 64,     /* losses: none, but a new thread has the thread pointer of another */
	EVENT_ENDING = 128,  /* maps: and the process calls _exit(), after waiting a moment for a ptracer */
	EVENT_GONE = 32,     /* exec: of a program that has been replaced since: nothing can be read of it */
};

/* The first 16 bytes of every record. */
struct event_header {
	u8 kind;  /* enum event_kind */
	u8 flags; /* enum event_flag */
	u16 fn;	  /* row of the allocator table, enum alloc_fn; 0 outside heap events */
	u32 pid;  /* process (thread group), in heaptap's PID namespace */
	u32 tid;  /* thread */
	union {
		u32 distance; /* of sampled blocks: binary logarithm of the mean distance; 0 = that of the trace */
		u32 call_number; /* on the way to the inline source: lower half of the last call's number */
	};
};

/* One step of an allocator call; the same from every source. */
struct heap_event {
	struct event_header h;
	u64 time_ns; /* CLOCK_MONOTONIC */
	u64 addr;    /* block: returned (alloc) or handed in (free); 0 = the call failed */
	union {
		u64 old_addr; /* realloc, mremap: block handed in */
		u64 alignment; /* other calls: asked for or said; ALIGNMENT_ZERO = 0; 0 = the function has none */
		u64 weight; /* FAMILY_SAMPLER: the bytes that the block stands for */
	};
	u64 size; /* bytes asked for, after nmemb * size; U64_MAX when that overflows; free: bytes said, or 0 */
	u64 stack; /* id of a stack sent before; 0 = none taken, 1 = lost */
};
#define ALIGNMENT_ZERO (~0ULL)
enum { STACK_MAX_FRAMES = 127, NOTE_NAME_BYTES = 64 };

/* Why a walk ended. Order is part of the recording format: append only. */
enum stack_end {
	STACK_COMPLETE = 0, /* start of the process or thread reached */
	STACK_DEPTH,	    /* more frames than asked for */
	STACK_NO_INFO,	    /* no unwind information for an address */
	STACK_UNSUPPORTED,  /* unwind rule that a table row cannot hold */
	STACK_UNREADABLE,   /* stack memory could not be read */
	STACK_NOT_GROWING,  /* frame address or return address repeats */
	STACK_UNMAPPED,	    /* return address in no known mapping */
	STACK_LIMIT,	    /* a table or map of heaptap's was full */
	STACK_GUESSED,	    /* start reached, on the way by frame pointers alone: functions may be left out */
	STACK_STALE,	    /* mappings had changed and not been read again: frames may be wrong */
	NR_STACK_ENDS
};

/* A call stack, sent once. Innermost first: ips[0] is the caller of the allocator. */
struct stack_event {
	struct event_header h;
	u64 id;			   /* stack_event_id() if the source is live; >= STACK_FIRST_ID */
	u32 epoch;		   /* of the process's mappings when the stack was taken */
	u16 nr_frames;		   /* valid entries of ips */
	u8 end, reserved;	   /* the first: enum stack_end */
	u64 ips[STACK_MAX_FRAMES]; /* return addresses in the process; only nr_frames are sent */
};

/* The id of @ev, computed from its other fields. */
static inline u64 stack_event_id(const struct stack_event *ev)
{
	u64 id = STACK_ID_BEGIN;

	for (u32 i = ev->nr_frames < STACK_MAX_FRAMES ? ev->nr_frames : STACK_MAX_FRAMES; i-- > 0;)
		id = stack_id_frame(id, ev->ips[i]);
	return stack_id_end(id, ev->h.pid, ev->epoch, ev->end);
}

struct process_event { /* life of a process */
	struct event_header h;
	u64 time_ns;   /* CLOCK_MONOTONIC */
	u32 child_pid; /* EVENT_FORK; EVENT_MAPS from BPF: the epoch of the mappings */
	u32 exit_status; /* EVENT_EXIT: as wait(2) gives it, if the source knows it; else, from BPF: its execs */
};

/* The purpose of a marker (include/heaptap.h). Those of pools become heap events. */
enum note_what {
	NOTE_NONE,
	NOTE_MARK,	 /* a name for the moment */
	NOTE_PAUSE,	 /* allocations are not counted from here on */
	NOTE_RESUME,	 /* and are counted again */
	NOTE_ALLOC,	 /* a pool hands out a block */
	NOTE_FREE,	 /* a pool takes a block back */
	NOTE_LEAK_CHECK, /* a report with leak verdicts */
	NOTE_EXEC,	 /* the process calls execve(), and gets a verdict before */
	NOTE_IGNORE,	 /* a block is no leak: __lsan_ignore_object() */
	NOTE_DISABLE,	 /* nor are those that the thread allocates from here on: __lsan_disable() */
	NOTE_ENABLE,	 /* ends one NOTE_DISABLE */
	NOTE_THREAD,	 /* from elsewhere: the name of the thread */
	NR_NOTES
};

/* A marker: all but those of pools, which are heap events. */
struct note_event {
	struct event_header h;
	u64 time_ns; /* CLOCK_MONOTONIC */
	u64 what;    /* enum note_what */
	union {
		/* Of a mark, or of the file of NOTE_EXEC, cut; "" = it could not be read. */
		char name[NOTE_NAME_BYTES];
		u64 addr; /* of NOTE_IGNORE */
	};
};
_Static_assert(sizeof(struct event_header) == 16 && sizeof(struct heap_event) == 56, "wire format");
_Static_assert(sizeof(struct stack_event) == 32 + 8 * STACK_MAX_FRAMES, "wire format");
_Static_assert(sizeof(struct process_event) == 32 && sizeof(struct note_event) == 96, "wire format");
