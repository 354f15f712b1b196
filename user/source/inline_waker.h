/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wakes the thread that reads the rings of the inline source: the piece in the target makes no system call for that. */
#pragma once

#include <pthread.h>

#include "user/lib/types.h"

enum inline_need {
	INLINE_NEEDS_NOTHING,
	INLINE_NEEDS_POLL,
	INLINE_NEEDS_HURRY /* threads of a target spin */
};

struct inline_waker {
	/*
	 * Should rings be read? And how many parts of them were filled so far, of how many targets. Asked by the
	 * waker's own thread.
	 */
	enum inline_need (*needs_poll)(void *ctx, u64 *nr_parts, size_t *nr_targets);
	void *ctx;
	u64 look_ns; /* how often it is asked, at least, unless the targets are calm */
	pthread_t thread;
	bool has_thread, is_ending;
	pid_t reader;  /* TID; 0 = not known yet */
	u32 is_pushed; /* courtesy_push(); 0 or 1 */
	int event_fd;  /* owned */
	int wait_fd; /* owned; readable when the reader should poll: by event_fd, or by the other descriptor */
};

/*
 * Show @other_fd, the caller's, in wait_fd, too. @is_calm: so few records come that rings need not be looked at often.
 * Makes no thread. 0 or -errno; inline_waker_fini() in any case.
 */
int inline_waker_init(struct inline_waker *w, int other_fd, bool is_calm,
		      enum inline_need (*needs_poll)(void *ctx, u64 *nr_parts, size_t *nr_targets),
		      void *ctx) __must_check;

/*
 * Make the thread, if there is none. Not before heaptap has given up what tracing does not need: capabilities belong to
 * each thread by itself. 0 or -EAGAIN.
 */
int inline_waker_start(struct inline_waker *w) __must_check;

/* How often to look. Begins with the same time in both of the first words, and zeros. */
struct inline_pace {
	u64 look_ns, pause_ns;	 /* the longest pause while targets work; the one now */
	u64 passed_ns, nr_parts; /* of this second */
	bool is_calm;		 /* the last second was */
};

/* @nr_parts were filled in the last pause by @nr_targets. Returns the next one. */
u64 inline_waker_pause(struct inline_pace *p, u64 nr_parts, size_t nr_targets);

/* The reader, which is the calling thread, polls now: forget what has woken it. */
void inline_waker_seen(struct inline_waker *w);
/* The reader has polled, and need not hurry any more. */
void inline_waker_read(struct inline_waker *w);

/* Let the reader poll again at once. */
void inline_waker_again(const struct inline_waker *w);

/* End the thread, and wait for it. */
void inline_waker_fini(struct inline_waker *w);
