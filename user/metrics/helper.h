/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helper processes that talk to other programs, and heaptap's end of the channel to them. */
#pragma once

#include "user/lib/types.h"

/*
 * For a process just forked: name it, keep it out of the way of signals, and close all descriptors but the @nr at @fds,
 * which get new numbers.
 */
void helper_leave_heaptap(const char *name, int *fds, int nr);

/* Wait until the helper at the other end of @channel serves. 0; or, logged behind @what, -errno. */
int helper_wait_ready(int channel, const char *what) __must_check;

/* Wait for the end of process @pid for at most @wait_ms, then kill it. */
void helper_end(pid_t pid, int wait_ms);
