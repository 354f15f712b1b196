/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that cannot have the piece, or cannot have it any longer. */
#pragma once

#include <pthread.h>

#include "user/lib/types.h"

struct caps;
struct inline_target;

/*
 * The limit by which @pid cannot have our memory; NULL: none. What our rings take up of its addresses, and our state of
 * its threads of its data, a limit does not leave to the program: its own allocations may fail. The memory that is
 * shared with us is a file that a thread of it makes.
 */
const char *inline_limits_of(pid_t pid);

/*
 * Why no program here can have our code as safely as the breakpoints of BPF, which this kernel has as @caps say; NULL:
 * perhaps one can. @is_launch: heaptap starts it, so that it has the limits of heaptap.
 */
const char *inline_limits_here(const struct caps *caps, bool is_launch);

/* May our memory in @pid become so large, by the limits of its memory? */
bool inline_limits_allow(pid_t pid, u32 nr_places, u32 nr_shards);

/* A thread of @t begins that has the thread pointer of another: the code has no effect from now on. */
void inline_limits_twin(struct inline_target *t);

/* Which process is asked for its limit next. */
struct limits_turn {
	u64 next_ns; /* and when */
	size_t nr;
};

/*
 * Has the next one of @targets limited its memory, and little left of it? True once: then inline_limits_look() looks at
 * once. Asks for as many as there are 5 ms since, however many there are. For the thread that wakes the reader.
 */
bool inline_limits_turn(struct limits_turn *turn, struct inline_target *const *targets, size_t nr);

/*
 * After each poll of @t: has the program limited its memory, and little left of it, or has it such threads? Then the
 * code is taken out, which is logged, and counted as a loss of calls. By the next look after that its records have been
 * read, and its rings are freed, under @lock.
 */
void inline_limits_look(struct inline_target *t, pthread_mutex_t *lock);
