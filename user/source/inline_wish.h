/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call that a command waits for, of a process that has code: its thread waits in the piece (inline/wish.h). */
#pragma once

#include "bpf/call_wish.h"

struct inline_target;

/* Have @t, which has the piece, wait in the call that @wish is for. */
void inline_wish_begin(struct inline_target *t, const struct call_wish *wish);

/*
 * Wait no longer. True: a thread of @t waited in the call, and @t is stopped by SIGSTOP, that thread where the program
 * goes on. Blocks while all threads stop, a second at most.
 */
bool inline_wish_end(struct inline_target *t);
