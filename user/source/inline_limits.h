/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that cannot have the piece, or cannot have it any longer. */
#pragma once

#include <pthread.h>
#include <sys/types.h>

struct guard;
struct inline_target;

/*
 * The limit by which @pid cannot have our memory; NULL: none. Our rings would take up the addresses, and our state of
 * its threads the data, that a limit leaves to the program: its own allocations would fail. The memory that is shared
 * with us is a file that a thread of it makes.
 */
const char *inline_limits_of(pid_t pid);

/* A thread of @t begins that has the thread pointer of another: the code has no effect from now on. */
void inline_limits_twin(struct inline_target *t);

/*
 * After each poll of @t: has the program limited its memory, or locked all of it, or has it such threads? Then the code
 * is taken out, which is logged, and counted as a loss of calls. By the next look after that its records have been
 * read, and its rings are freed, under @lock.
 */
void inline_limits_look(struct inline_target *t, struct guard *g, pthread_mutex_t *lock);
