/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits by which a process cannot have the memory of the piece, or has set when it has it. */
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

/*
 * After each poll of @t: has the program limited its memory, or locked all of it? Then the code is taken out, which is
 * logged, and counted as a loss of calls. By the next look after that its records have been read, and its rings are
 * freed, under @lock.
 */
void inline_limits_look(struct inline_target *t, struct guard *g, pthread_mutex_t *lock);
