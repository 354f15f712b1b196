/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One consistent moment of a process: its mappings, registers and memory. Stopping it is one way to get it. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

/* Why memory was not read. */
enum snapshot_skip {
	SKIP_DEVICE,	 /* a device's memory: reading may have effects or hang */
	SKIP_UNREADABLE, /* writable, but the process itself may not read it */
	SKIP_FAULT,	 /* the kernel could not deliver the page (userfaultfd, poisoned, truncated file) */
	NR_SNAPSHOT_SKIPS
};

struct snapshot_map {
	taddr_t start, end;
	u64 file_offset;
	u64 ino;    /* 0 = anonymous */
	char *path; /* owned; as /proc/PID/maps has it; "" = anonymous */
	bool is_readable, is_writable, is_executable, is_shared;
};

struct snapshot_thread {
	pid_t tid;
	taddr_t sp; /* stack pointer */
	taddr_t tp; /* thread pointer; 0 = unknown */
};

enum { SNAPSHOT_KERNEL = UINT32_MAX }; /* owner of a word that the kernel keeps for the process */

/* A word outside memory: in a register, or kept by the kernel (epoll data, timers). Zeros are left out. */
struct snapshot_word {
	u64 value;
	u32 owner; /* index of the thread, or SNAPSHOT_KERNEL */
	u32 where; /* register: offset for arch_reg_name(); kernel: descriptor number, or UINT32_MAX for a timer */
};

enum {
	/* Bytes; fits a second-level cache with what is found in it. */
	SNAPSHOT_MAX_CHUNK = (IS_AGENT ? 32 : 256) << 10,
	SNAPSHOT_PARTS = 16,
};

/* Memory within one mapping, whole pages; those never touched are left out. */
struct snapshot_chunk {
	taddr_t addr;
	const u8 *data; /* borrowed */
	size_t len;	/* at most SNAPSHOT_MAX_CHUNK */
	u32 map;	/* index */
};

/* Who is shown the memory, piece by piece. A piece is one or some chunks, ascending. Functions return 0 or -errno. */
struct snapshot_visitor {
	void *ctx;
	/*
	 * Look at a chunk, and keep what is found in part @part of SNAPSHOT_PARTS: threads look at several pieces at
	 * once, each for a part of its own.
	 */
	int (*look)(void *ctx, u32 part, const struct snapshot_chunk *chunk);
	/* All of a piece was shown; the part is free again. One call at a time, the pieces ascending. */
	int (*done)(void *ctx, u32 part);
};

struct snapshot;

/* A way to get the moment. Functions run in the order of this list. */
struct snapshot_ops {
	const char *name;
	/* Show all, once. 0, -ETIME past the deadline, -ESRCH it ended, or what @visitor says. */
	int (*read)(struct snapshot *s, const struct snapshot_visitor *visitor);
	/* Read @len bytes at @addr if they are in memory: 0, or -errno. Any order, any thread. */
	int (*peek)(struct snapshot *s, taddr_t addr, void *buf, size_t len);
	/* Let the process go on. Twice is harmless. */
	void (*resume)(struct snapshot *s);
	void (*free)(struct snapshot *s);
};

/* Plain data; what is missing for an implementation stays zero. */
struct snapshot {
	const struct snapshot_ops *ops;
	pid_t pid;
	pid_t mem_tid; /* thread whose /proc entry shows the memory: that of a main thread which ended is empty */
	u8 word_size; /* 4 or 8 */
	bool is_big_endian;
	taddr_t heap_start;	   /* where the memory that brk gives begins; 0 = unknown */
	u32 red_zone;		   /* bytes below a stack pointer that are in use */
	struct snapshot_map *maps; /* owned; by address */
	size_t nr_maps;
	struct snapshot_thread *threads; /* owned */
	size_t nr_threads;
	struct snapshot_word *words; /* owned */
	size_t nr_words;
	size_t nr_unstopped;		      /* threads that went on running: no verdict is definite */
	u64 skipped_bytes[NR_SNAPSHOT_SKIPS]; /* complete after read() */
	u64 read_bytes;			      /* shown by read() */
	u64 pause_ns;			      /* how long the process stood; set by resume */
};

/* Who lets threads stand for us, as only their tracer can, and gives their registers. */
struct arch_regs;

struct snapshot_holder {
	void *ctx;
	int (*read_regs)(void *ctx, pid_t tid, struct arch_regs *regs); /* 0 or -errno */
};

struct snapshot_options {
	u64 max_pause_ns; /* 0 = 500 ms. Past it read() says -ETIME: resume, give no verdict */
	/*
	 * The caller's thread traces threads of the process already (run, at PTRACE_EVENT_EXIT). Those that
	 * stand are taken as they are and left as they are; the others are stopped and let go. Make, read,
	 * resume in that thread.
	 */
	bool is_traced;
	const struct snapshot_holder
		*holder; /* that another process traces and lets stand; NULL: this thread */
};

enum { SNAPSHOT_MAX_PAUSE_MS = 500 };

/*
 * Stop all threads of @pid (PTRACE_SEIZE) and read its registers and mappings; it stands when this returns 0.
 * A process that was stopped before stays so afterwards, signals are kept, and if heaptap dies it goes on by itself.
 * System calls that Linux does not restart (epoll_wait, sleeping semop) may return EINTR to it, as after SIGCONT, and
 * one that has read or written a part, that part.
 * *@out is owned by the caller: snapshot_free(). Errors are logged in one line: -EPERM no right, or another
 * tracer is there (it is named), -ESRCH, -ETIME not within the pause; nothing stays stopped then.
 */
int snapshot_stop_new(struct snapshot **out, pid_t pid, const struct snapshot_options *options) __must_check;

/* Release and forget; resumes first. NULL is nothing. */
void snapshot_free(struct snapshot *s);

/* As snapshot_ops. */
int snapshot_read(struct snapshot *s, const struct snapshot_visitor *visitor) __must_check;
int snapshot_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len) __must_check;
void snapshot_resume(struct snapshot *s);

/* "device", "unreadable", "fault". */
const char *snapshot_skip_name(enum snapshot_skip skip);

/* The mapping that holds @addr, or NULL. */
const struct snapshot_map *snapshot_map_find(const struct snapshot *s, taddr_t addr);
