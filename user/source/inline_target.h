/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A target that has the piece of code inside: its rings, its threads, its losses. */
#pragma once

#include "user/inject/guard.h"
#include "user/source/inline_waker.h"
#include "user/source/probe_taker.h"
#include "user/source/sample_pace.h"
#include "user/source/source.h"

struct cfi_ahead;

/* The thread that writes to a ring. */
struct ring_thread {
	u32 tid;     /* 0 = not known */
	u32 nr_poll; /* of the poll in which the TID was looked for last */
};

/* From where the calls of a program are seen. In the last two states this is BPF. */
enum inline_sight {
	INLINE_SEES,	    /* our code, once it is in */
	INLINE_REFUSED,	    /* nobody: a file of it was refused before any call was seen */
	INLINE_WANTS_BPF,   /* a function of it cannot be changed: inline_target_leave() */
	INLINE_AWAITS_CODE, /* until put_code(), though it could be changed */
	INLINE_DECLINED,    /* all of them */
};

struct inline_target {
	pid_t pid;
	enum inline_sight sight;
	struct guard *guard;	     /* borrowed */
	struct injection *in;	     /* borrowed from that */
	struct piece_shared *shared; /* mapped; NULL = the piece is not in it yet */
	/* The first page of it once more, beside those of other targets: often read, by few tables of pages. */
	const struct piece_shared *watched;
	struct piece_tables *tables;  /* mapped; NULL without stacks */
	struct inline_stacks *stacks; /* owned; NULL without stacks */
	struct rings *rings;	      /* owned */
	int mem;		      /* owned; /proc/PID/mem */
	struct ring_thread *threads;  /* owned; of each ring */
	u32 nr_polls;
	u64 max_wait;	    /* of tables, while heaptap runs */
	u64 waited;	    /* shared->waited at the last look of the waker */
	u32 tid_offset;	    /* from the thread pointer to where the C library keeps the TID; 0 = unknown */
	struct losses past; /* of earlier programs of this process */
	bool is_quiet;	    /* nobody asked for the code: what it took is told by -v */
	bool is_paused;	    /* so begins shared */
	bool is_open;	    /* calls of this program were seen */
	bool has_told_late; /* that the first calls of a program were not seen */
	u64 open_ns;	    /* CLOCK_MONOTONIC: when put_code() let the code see its calls; 0 = it was not */
	bool has_twins;	    /* threads with one thread pointer */
	bool is_left;	    /* to the guard, which takes the piece out when its threads run */
	bool has_told_limit;
	bool is_leaving;  /* by inline_limits_look(): what its rings have is still read */
	u64 next_look_ns; /* by that */
	u32 wants_look;	  /* it looks at once; set by another thread */
	bool is_limited;  /* by what that thread has found, which alone uses this */
	u64 end_ns;	  /* a thread waits so long at the end of the process; 0 = none does */
	u64 unseen_ns;	  /* until then the end of the process is not seen, because of so many; 0 = it is */
	u32 nr_ended;	  /* children of vfork() that called _exit() */
	u64 next_room_ns; /* when inline_room_look() tries again, after an error */
	/* A forked child that has no rings yet: what its functions are. Owned; else NULL. */
	struct piece_probe *unborn;
	u64 poll_stamp;		 /* where the poll under way ends, so that forks are known that came before */
	struct sample_pace pace; /* of samples */
	struct call_rate rate;	 /* before it had code; no calls = told, or not counted */
	bool is_counting;	 /* by source_bpf_count() */
	bool wants_update;	 /* its mappings were read again meanwhile */
	taddr_t end_at;		 /* of the jump in _exit(); 0 = there is none */
	u32 nr_replaced;	 /* jumps of its program that are gone: inline_replaced_look() */
	u64 next_replaced_ns;	 /* of inline_replaced_poll() */
};

/*
 * Begin with the process @pid; nothing is changed in it. *@out is the caller's: inline_target_free(). -ENOMEM,
 * -ENOSPC.
 */
int inline_target_new(struct inline_target **out, struct guard *g, pid_t pid, u64 start_time) __must_check;
/*
 * Begin with the forked child @pid of @parent, which has the piece, and then inline_target_born(), or has breakpoints.
 * The same.
 */
int inline_target_copy(struct inline_target **out, struct guard *g, const struct inline_target *parent,
		       pid_t pid, u64 start_time) __must_check;
/* The child is stopped before its first instruction: give it rings. 0, or -errno, perhaps with a reason in in->why. */
int inline_target_born(struct inline_target *t, const struct source_options *o) __must_check;
/* Ends reading. Takes nothing out. */
void inline_target_free(struct inline_target *t);

/* The TID of the thread that has @ring, 0 = not known. */
u32 inline_target_tid(struct inline_target *t, u32 ring);

/* For injection.nr_buckets. */
u32 inline_target_buckets(const struct source_options *o);

/* The piece is in: map what it shares, with these settings. 0 or -errno. */
int inline_target_map(struct inline_target *t, const struct source_options *o) __must_check;

/* The mappings of the target, which has the piece, were read again, tables of new files by @ahead. 0 or -errno. */
int inline_target_update(struct inline_target *t, const struct target *target,
			 struct cfi_ahead *ahead) __must_check;

/* Take the piece out. Records that it has written stay readable. What remains of it, and for how long, is logged. */
void inline_target_take_out(struct inline_target *t);

/*
 * A function of its program cannot be changed: take the piece out, so that BPF can see all of its calls. 0:
 * INLINE_DECLINED; -EINPROGRESS: later, when the stop of its thread has been handled; -EOPNOTSUPP, logged: the piece
 * stays.
 */
int inline_target_leave(struct inline_target *t) __must_check;

/* Should heaptap's reader wake, and hurry? Adds to *@nr_parts the parts of its rings that were filled so far. */
enum inline_need inline_target_needs_poll(struct inline_target *t, u64 *nr_parts);

/* Nothing will be read (@is_asleep): no thread waits for it. Or it will be again. */
void inline_target_sleep(struct inline_target *t, bool is_asleep);
/* At most @depth frames per stack from now on. -EOPNOTSUPP: it was made without stacks. */
int inline_target_set_depth(struct inline_target *t, u32 depth) __must_check;
/* Send each stack again. */
void inline_target_forget_stacks(struct inline_target *t);

/* Bytes of its memory that may be in use for us, at most. */
u64 inline_target_bytes(const struct inline_target *t);

/* The program has ended, or executed another one: its memory is gone. Losses are kept. */
void inline_target_lose(struct inline_target *t);
/* The program that it has executed runs already: its first calls are not seen. Logged once, with @advice behind. */
void inline_target_note_late(struct inline_target *t, const char *advice);

/*
 * Are its jumps in [@start, @end), if any, there? Where all of them are as the file has them, the file was unmapped and
 * mapped at the same place again.
 */
bool inline_target_is_intact(const struct inline_target *t, taddr_t start, taddr_t end);

/* A poll begins: later calls are left to the next one. Forks before are known from then on. @sample_sum: pace.sum */
void inline_target_begin_poll(struct inline_target *t, u32 sample_sum);
/*
 * Deliver what its threads had written by then, and whether the process is about to end: EVENT_ENDING. Returns how many
 * records, or an error.
 */
int inline_target_poll_begun(struct inline_target *t, const struct sink *sink);
/* Deliver what its threads have written. @is_over: it writes no more. Returns how many records, or an error. */
int inline_target_poll(struct inline_target *t, const struct sink *sink, bool is_over);

/* Deliver what they had written at a moment: @time_ns and @number as for rings_stamp(). Returns the same. */
int inline_target_poll_until(struct inline_target *t, const struct sink *sink, u64 time_ns, u32 number);

struct losses inline_target_losses(const struct inline_target *t);
