/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One consistent moment of a process: its mappings, registers and memory.
 *
 * Life: snapshot_stop_new(), the process is stopped from here on; snapshot_copy() if it shall run on soon;
 * snapshot_read() once and snapshot_peek() as needed; snapshot_resume(), the process runs again; snapshot_free(). The
 * fields keep their values until then.
 */
#pragma once

#include "arch/stop_all.h"
#include "user/lib/types.h"
#include "user/scan/snapshot_holder.h"
#include "user/scan/snapshot_way.h"

/* Why memory was not read. */
enum snapshot_skip {
	SKIP_DEVICE,	 /* a device's memory: reading it may have effects, or hang */
	SKIP_UNREADABLE, /* writable, but the process itself may not read it */
	SKIP_FAULT,	 /* the kernel could not deliver the page (userfaultfd, poisoned, truncated file) */
	NR_SNAPSHOT_SKIPS
};

/* One line of /proc/PID/maps; copies of code (struct map_line) are joined with the lines beside them. */
struct snapshot_map {
	taddr_t start, end;
	u64 file_offset;
	u64 ino;    /* 0 = anonymous */
	char *path; /* owned; as /proc/PID/maps has it; "" = anonymous */
	bool is_readable, is_writable, is_executable, is_shared, is_copy;
};

struct snapshot_thread {
	pid_t tid;
	taddr_t sp;	      /* stack pointer */
	taddr_t tp;	      /* thread pointer; 0 = unknown */
	taddr_t pc, fp, lr;   /* 0 = unknown */
	bool has_no_red_zone; /* nothing below sp is in use: user/scan/scan_leaf.c */
};

enum { SNAPSHOT_KERNEL = UINT32_MAX }; /* owner of a word that the kernel keeps for the process */

/* A word outside memory: in a register, or kept by the kernel (epoll data, timers). Zeros are left out. */
struct snapshot_word {
	u64 value;
	u32 owner; /* index of the thread, or SNAPSHOT_KERNEL */
	u32 where; /* register: offset for arch_reg_name(); kernel: file descriptor, or of user/scan/kernel_words.h */
};

enum {
	/* Bytes; fits a second-level cache together with the results. */
	SNAPSHOT_MAX_CHUNK = (IS_AGENT ? 32 : 256) << 10,
	SNAPSHOT_PARTS = 16,
};

/* Whole pages within one mapping. Pages that were never touched are left out. */
struct snapshot_chunk {
	taddr_t addr;
	const u8 *data; /* borrowed */
	size_t len;	/* bytes, at most SNAPSHOT_MAX_CHUNK */
	u32 map;	/* index in maps */
};

/*
 * The reader of the memory. snapshot_read() shows it pieces of one or some chunks. Several threads do so at the same
 * time, each with a part of its own, so the visitor needs no locks. Functions return 0 or -errno.
 */
struct snapshot_visitor {
	void *ctx;
	/* Look at one chunk. Keep the results in part @part of SNAPSHOT_PARTS. Chunks of a piece ascend. */
	int (*look)(void *ctx, u32 part, const struct snapshot_chunk *chunk);
	/* A piece is complete: collect its results. The part is used again. One call at a time, pieces ascend. */
	int (*done)(void *ctx, u32 part);
};

struct snapshot {			/* plain data; fields that a way cannot fill stay zero */
	const struct snapshot_ops *ops; /* user/scan/snapshot_make.h */
	pid_t pid, mem_tid; /* mem_tid: not an ended thread, so that its /proc entry shows the memory */
	u8 word_size;	    /* bytes: 4 or 8 */
	bool is_big_endian, is_ending; /* is_ending: as snapshot_options has it */
	taddr_t heap_start;	       /* first byte of the memory that brk gives; 0 = unknown */
	u32 red_zone;		       /* bytes below a stack pointer that are in use */
	struct snapshot_map *maps;     /* owned; by address */
	size_t nr_maps;
	struct snapshot_thread *threads; /* owned; the stopped ones */
	size_t nr_threads;
	struct snapshot_word *words; /* owned */
	size_t nr_words, max_words;
	size_t nr_unstopped;		      /* threads that could not be stopped: no verdict is definite */
	u64 skipped_bytes[NR_SNAPSHOT_SKIPS]; /* complete after read() */
	u64 read_bytes;			      /* shown by read() */
	u32 nr_jobs;			      /* threads that read() uses; 0 = one for each CPU */
	u64 deadline_ns;		      /* walks of the stopped process end then; 0 = no hurry */
	u64 pause_ns;			      /* how long the process was stopped; set when it runs again */
};

struct snapshot_options {
	u64 max_pause_ns; /* 0 = 500 ms. Past it read() returns -ETIME: resume, and give no verdict */
	/*
	 * STOP_BY_TRACER: the calling thread already traces threads of the process (run, PTRACE_EVENT_EXIT). Stopped
	 * ones stay so, others are resumed later. All calls come from this thread. STOP_BY_OTHER: @holder traces it.
	 */
	enum stop_by by;
	u32 nr_jobs; /* snapshot.nr_jobs */
	enum snapshot_way way;
	struct precopy *precopy; /* borrowed; what was copied before (user/scan/precopy.h), or NULL */
	bool is_ending;		 /* the process is stopped at its end (PTRACE_EVENT_EXIT) */
	const struct kernel_words *kernel; /* borrowed; NULL: nobody can ask it */
	const struct snapshot_holder
		*holder; /* borrowed; user/scan/snapshot_holder.h. NULL: nobody traces it */
	/* Called around the moment in which the process may have a copy that is no child of it. NULL: nobody asks. */
	void (*copying)(void *ctx, pid_t pid, bool is_on);
	void *copying_ctx;
};
enum { SNAPSHOT_MAX_PAUSE_MS = 500 };

/*
 * Stop all threads of @pid by PTRACE_SEIZE and read registers and mappings. The process is stopped when this returns
 * 0. Resuming restores it: a process that was stopped before stays so, and signals are kept. If heaptap dies, the
 * kernel resumes it. System calls go on, or return the part that they have read or written.
 *
 * *@out is owned by the caller: snapshot_free(). Blocks up to a quarter of the pause for threads that do not stop.
 * Errors are logged, and nothing stays stopped: -EPERM no right, or another process traces it; -ESRCH; -ETIME.
 */
int snapshot_stop_new(struct snapshot **out, pid_t pid, const struct snapshot_options *options) __must_check;

/*
 * Copy the process as snapshot_options asks, by a fork of its own or the rest of its precopy, and resume it. Then
 * snapshot_read() may take its time, in any thread. Or it is still stopped: -ECANCELED nobody asked; others as
 * scan_reason_copy() has them. Or in two steps: copy, and if that returned 0, resume.
 */
int snapshot_copy(struct snapshot *s) __must_check;
int snapshot_copy_stopped(struct snapshot *s) __must_check;
void snapshot_let_go(struct snapshot *s);

void snapshot_free(struct snapshot *s); /* resumes the process if it is still stopped; NULL is fine */

/* Show all memory to @visitor, once. 0; -ETIME past the pause; -ESRCH it ended; or the visitor's error. */
int snapshot_read(struct snapshot *s, const struct snapshot_visitor *visitor) __must_check;
/* Read memory if it is there; fetch: also what was swapped out, of anonymous memory. 0 or -errno. By any thread. */
int snapshot_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len) __must_check;
int snapshot_fetch(struct snapshot *s, taddr_t addr, void *buf, size_t len) __must_check;
/* The first page of [@at, @end), in one mapping, that may exist; @end: there is none. @at where nobody knows. */
taddr_t snapshot_next(struct snapshot *s, taddr_t at, taddr_t end);
/* Resume the process. A second call does nothing. */
void snapshot_resume(struct snapshot *s);
/* The mapping that holds @addr, or NULL. */
const struct snapshot_map *snapshot_map_find(const struct snapshot *s, taddr_t addr);
