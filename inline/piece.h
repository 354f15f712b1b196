/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The piece of code inside a target: its own symbols. */
#pragma once

#include "inline/layout.h"

#pragma GCC visibility push(hidden)

struct piece_regs;

extern const u8 piece_head[], piece_returned[];

/* Called by entry_x86_64.S. */
void piece_enter(struct piece_regs *regs);
u64 piece_leave(struct piece_regs *regs);

void *memset(void *to, int value, size_t len);
void *memcpy(void *restrict to, const void *restrict from, size_t len);

#pragma GCC visibility pop
