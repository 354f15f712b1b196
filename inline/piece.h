/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The piece of code inside a target: its own symbols. */
#pragma once

#include "bpf/event.h"

#pragma GCC visibility push(hidden)

struct piece_regs;
struct piece_ring;
struct piece_walk;

extern const u8 piece_head[], piece_returned[];

/* Called by entry_x86_64.S. True: the return address of the call is now piece_returned, and was not before. */
bool piece_enter(struct piece_regs *regs);
u64 piece_leave(const struct piece_regs *regs);

/* The address that the piece has replaced in the call that was entered at @sp; 0 = none. */
u64 piece_real_return(u64 sp);

/*
 * The id of the stack above the call whose stack pointer at entry is @sp, its frame pointer @fp, and its return address
 * @ret. The stack is written to @r first if heaptap does not have it. STACK_NONE, or STACK_LOST.
 */
u64 piece_take_stack(struct piece_walk *pw, struct piece_ring *r, u64 sp, u64 fp, u64 ret);

void *memset(void *to, int value, size_t len);
void *memcpy(void *restrict to, const void *restrict from, size_t len);

#pragma GCC visibility pop
