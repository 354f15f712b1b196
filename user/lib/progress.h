/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that may take long says so on the terminal: from a second on, one line shows its present phase, and goes when
 * the work is over. A thread of its own writes the line (log_status()), so that the work needs no loop for it.
 */
#pragma once

#include "user/lib/types.h"

/*
 * The work @what begins. Nothing is shown with --quiet, without a terminal (log_status_is_possible()), or if work of an
 * earlier call is not over: then that one is shown. The thread is started here: call it before courtesy_hurry().
 */
void progress_begin(const char *what);

/* The work is in this phase from now on; @phase must stay. Any thread may call it. */
void progress_phase(const char *phase);

/* @done of @all bytes are done in this phase; 0 = not known. Any thread may call it. */
void progress_bytes(u64 done, u64 all);

/* The work is over, and the line goes. Call it before others write to the terminal. */
void progress_end(void);
