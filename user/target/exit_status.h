/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a process has ended that is no child of heaptap. */
#pragma once

struct target;

/* The status of @t, which has ended, as wait(2) returns it; -1 = the kernel does not say it (any more). */
int target_exit_status(const struct target *t);
