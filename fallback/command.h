/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages between heaptap and its guardian: each gets one answer. */
#pragma once

#include "fallback/tracer.h"

enum command_op {
	COMMAND_ATTACH,	  /* pid */
	COMMAND_LAUNCH,	  /* pid, which waits before its exec */
	COMMAND_START,	  /* pid */
	COMMAND_PROBES,	  /* first, data: struct call_probe */
	COMMAND_NOTES,	  /* first, data: struct note_probe */
	COMMAND_PLACES,	  /* pid, data: struct place. Answer: first = how many are in */
	COMMAND_REMOVE,	  /* pid, start, end */
	COMMAND_TABLE,	  /* struct command_table; a descriptor of the rows comes along */
	COMMAND_MAPS,	  /* pid, data: struct tracer_map; first 0 begins a new list, is_last ends it */
	COMMAND_OPEN,	  /* pid */
	COMMAND_PAUSE,	  /* pid, first = 1 or 0 */
	COMMAND_ANSWERED, /* pid */
	COMMAND_LET_END,  /* pid */
	COMMAND_HOLD,	  /* pid, start = ns */
	COMMAND_RELEASE,  /* pid */
	COMMAND_REGS,	  /* pid = thread. Answer's data: struct arch_regs */
	COMMAND_CHECK,	  /* pid */
	COMMAND_TRY,	  /* pid, start, end */
	COMMAND_CALL,	  /* pid, data: struct thread_request. Answer's data: the same */
	COMMAND_CHANGE,	  /* pid; a descriptor may come along */
	COMMAND_NUMBER,	  /* pid, start = address */
	COMMAND_FORGET_STACKS,
	COMMAND_DEPTH,	/* start = frames per stack */
	COMMAND_SAMPLE, /* start = mean distance of samples */
	COMMAND_DETACH, /* pid; 0 = all */
	NR_COMMANDS
};

/* The first bytes of each message; the rest of it is data. */
struct guardian_command {
	u32 op; /* enum command_op */
	s32 pid;
	u32 first;
	u32 is_last;
	u64 start, end;
	s32 result; /* of an answer: 0 or -errno */
	u32 reserved;
};

struct command_table {
	u32 id;
	u16 machine;
	u8 word_size;
	u8 reserved;
	u64 text_base;
	u64 nr_rows;
};

enum { COMMAND_MAX_DATA = 32768 };

/*
 * Shared memory, written by the guardian, and read by heaptap, which writes is_exiting, too. There are no more than
 * 4,000 children.
 */
enum { GUARDIAN_MAX_PROCESSES = 5120 };

struct guardian_state {
	u32 is_ready;	    /* the guardian works */
	u32 outlives;	    /* helper_process_end() */
	u32 is_out_of_time; /* it has ended, because it may not use more CPU time */
	s32 launched_pid;   /* the launched process that has executed its program */
	u32 nr_exiting;	    /* processes that are about to end */
	s32 ended_pid;	    /* the last process that has ended */
	u32 nr_processes;
	struct {
		s32 pid;
		u32 is_exiting;	 /* it is about to end; 2: and heaptap has begun to look */
		s32 exit_status; /* as wait(2) gives it */
		u32 reserved;
		struct call_losses losses;
	} processes[GUARDIAN_MAX_PROCESSES];
	struct call_wish wish; /* of the console */
};
