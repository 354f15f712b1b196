/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rings of one target, as heaptap reads them: records of all threads in the order of their stamps. The target can
 * write anything there, at any time: no number in it is believed.
 */
#pragma once

#include "inline/layout.h"

struct rings;

/* Calls of the target that left no record. */
struct rings_losses {
	u64 allocs, frees, stacks, abandoned;
};

/* The receiver of records, which are a copy. Nonzero: stop. */
struct rings_sink {
	void *ctx;
	/* @ring is the number of the thread, @time_ns CLOCK_MONOTONIC. */
	int (*record)(void *ctx, u32 ring, u64 time_ns, const struct piece_record *rec);
	/* A stack that later records name; it has nr_frames, at most STACK_MAX_FRAMES. */
	int (*stack)(void *ctx, u32 ring, const struct piece_stack *stack, const u64 *ips);
};

/* Read @shared, of sizeof(struct piece_shared), which stays the caller's. 0 or -ENOMEM. */
int rings_new(struct rings **out, struct piece_shared *shared) __must_check;
void rings_free(struct rings *r);

/*
 * Deliver all records that were written before this call. @is_over: nobody writes any more, so records with a later
 * stamp come, too. Returns their number, or what the sink returned.
 */
int rings_poll(struct rings *r, const struct rings_sink *sink, bool is_over);

struct rings_losses rings_losses(const struct rings *r);

/*
 * The stamp at the moment @time_ns (CLOCK_MONOTONIC), where stamps are times. Else the number of the last call before
 * now whose lower half is @number; 0 = not known: of the last call.
 */
u64 rings_stamp(const struct rings *r, u64 time_ns, u32 number);
/* The stamp of the last call, or of now. */
u64 rings_now(const struct rings *r);
/* As rings_poll(), but only records up to @stamp. */
int rings_poll_until(struct rings *r, const struct rings_sink *sink, u64 stamp);

/* Rings in use. */
u32 rings_nr(const struct rings *r);

/* Parts of rings filled since the last poll, by @s, where the same memory is mapped. Any thread may call it. */
u32 rings_filled(const struct rings *r, const struct piece_shared *s);
