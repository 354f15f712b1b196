/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that waits by SIGSTOP, for the command `break`. Life: as the functions follow each other here. */
#pragma once

#include "user/lib/types.h"

struct held_process;
struct target;

/*
 * Prepare to stop @t, with a helper process that lets it run when heaptap ends, however that is. *@out is owned by the
 * caller: held_process_free(). 0 or -errno.
 */
int held_process_new(struct held_process **out, const struct target *t) __must_check;

/* Somebody else may stop it by SIGSTOP from now on. 0 or -errno. */
int held_process_expect(struct held_process *h) __must_check;
/* That has happened; where nobody says so, held_process_free() lets it run all the same. */
void held_process_found(struct held_process *h);

/* Stop it. Does not wait until its threads have noticed. 0 or -errno: -ESRCH, it has ended. */
int held_process_stop(struct held_process *h) __must_check;

pid_t held_process_pid(const struct held_process *h);

/* Let it run if it was stopped, and free @h. NULL is fine. */
void held_process_free(struct held_process *h);
