/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A place is held by one hook at a time. At any moment a signal may come whose handler has calls of its own, or goes on
 * with another coroutine that has, or jumps out of the hook, which is then never over.
 */
#pragma once

#include "inline/cpu.h"
#include "inline/thread.h"

/* The hook whose registers are at @hook has the place from now on. False: another one has it. */
static inline __attribute__((always_inline)) bool place_hold(struct piece_thread *t, u64 hook)
{
	u64 before;

	if (t->hook)
		return false;
	before = add_to_word(&t->hook, hook);
	if (!before)
		return true;
	/* Another hook has come, and stays, between the two instructions. */
	subtract_from_word(&t->hook, hook);
	return false;
}

static inline __attribute__((always_inline)) void place_let_go(struct piece_thread *t, u64 hook)
{
	subtract_from_word(&t->hook, hook);
}

/*
 * Take the place from a hook that a jump has left: the registers of the hook at @hook lie where its own ones were.
 * False: it may go on.
 */
static inline bool place_inherit(struct piece_thread *t, u64 hook)
{
	const u64 bytes = sizeof(struct piece_regs);
	u64 other = t->hook;

	if (!other || other - hook + bytes - 1 >= 2 * bytes - 1)
		return false;
	add_to_word(&t->hook, hook - other);
	return true;
}

/* Calls of @t that are listed: a program that overwrites their number does not spin. */
static inline u32 place_nr_pending(const struct piece_thread *t)
{
	return t->nr_pending < PIECE_MAX_PENDING ? t->nr_pending : PIECE_MAX_PENDING;
}
