/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of a stream as structs, except heap events. user/stream/stream_layout.h: their fields in order. */
#pragma once

#include "bpf/event.h"
#include "user/source/losses.h"
#include "user/stream/stream_format.h"
#include "user/stream/stream_scan.h"

/* Strings are borrowed: by the writer during the call, from the reader until the handler returns. NULL is "". */

enum { STREAM_BUILD_ID_MAX = 32 };

struct stream_hello {
	u64 id;		      /* random; equal in all parts of a recording */
	u32 part;	      /* 0, 1, ... of a recording in several files */
	u8 role;	      /* enum stream_role */
	u8 time_shift;	      /* times of short events are in units of 2^time_shift ns, rounded down */
	u32 features;	      /* always 0 */
	u64 mono_ns;	      /* CLOCK_MONOTONIC when the stream began: the time before the first event */
	u64 real_ns;	      /* CLOCK_REALTIME when the stream began; for people */
	u64 start_ns;	      /* tracing began, CLOCK_MONOTONIC; 0 = not yet */
	u32 depth;	      /* frames per stack */
	u8 wants_scan;	      /* leak verdicts were asked for */
	const char *producer; /* "heaptap 0.1.0" */
	const char *backend;  /* "bpf", "ptrace" */
	const char *machine;  /* as uname -m */
	const char *release;  /* as uname -r */
	u64 sample_bytes; /* mean distance of samples, the first one if it changes; 0 = all blocks are there */
};

enum stream_role { STREAM_ROLE_FILE, STREAM_ROLE_TARGET, STREAM_ROLE_HOST };

struct stream_function {
	u32 fn;	   /* number in this stream */
	u8 kind;   /* enum alloc_kind */
	u8 family; /* enum alloc_family */
	const char *symbol, *name;
};

enum stream_process_flag { STREAM_STARTED = 1, STREAM_BIG_ENDIAN = 2 };

struct stream_process {
	u32 pid, ppid, uid;
	u8 flags;	/* enum stream_process_flag */
	u8 word_size;	/* 4 or 8 */
	u16 machine;	/* ELF e_machine, 0 = not known */
	u64 time_ns;	/* CLOCK_MONOTONIC when tracing it began */
	u64 start_time; /* field 22 of /proc/PID/stat */
	const char *comm, *exe;
};

struct stream_module {
	u32 module; /* number in this stream, from 1 */
	u8 is_deleted;
	u64 dev, ino;
	u8 build_id[STREAM_BUILD_ID_MAX];
	u8 build_id_len;
	const char *path;
	const char *link; /* by which its processes were started; "" = none */
};

struct stream_maps {
	u32 pid;
	u32 epoch;
	u32 nr; /* of STREAM_MAPPING records that follow at once, by address */
};

struct stream_mapping {
	u64 start, end, file_offset, bias;
	u32 module; /* 0 = in no file */
};

struct stream_allocator {
	u32 pid;
	u32 module;
	const char *kind;
};

struct stream_thread {
	u32 pid, tid;
	const char *comm;
};

enum stream_losses_flag {
	STREAM_TAINT = 1, /* a free may have been lost: blocks that are live now are unsure */
	STREAM_GAPS = 2,  /* results of calls were lost: heap_expect_gaps() */
};

/* Totals of a process since tracing it began, over all its programs. */
struct stream_losses {
	u32 pid;
	u8 flags; /* enum stream_losses_flag */
	struct losses l;
};

/* From STREAM_MARK_PROGRAM on: markers of a program, in connections only: its own marks, too, have the process. */
enum stream_mark {
	STREAM_MARK_USER,
	STREAM_MARK_REPORT,
	STREAM_MARK_STOP,
	STREAM_MARK_PROGRAM,
	STREAM_MARK_PAUSE,
	STREAM_MARK_RESUME,
	STREAM_MARK_CHECK,
	STREAM_MARK_IGNORE,
	STREAM_MARK_DISABLE,
	STREAM_MARK_ENABLE,
};

struct stream_mark_record {
	u64 time_ns;
	u8 what; /* enum stream_mark */
	const char *text;
	u32 pid, tid; /* of a marker of a program; else 0 */
	u64 addr;     /* of STREAM_MARK_IGNORE */
};

enum stream_end_reason { STREAM_END_DONE, STREAM_END_PART, STREAM_END_ERROR };

struct stream_end {
	u64 time_ns, duration_ns;
	u8 reason; /* enum stream_end_reason */
	u64 nr_events;
	const char *text;
};
