/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The child's side of a start, for launch.c. */
#pragma once

#include "user/source/launch.h"

/* The step at which the child failed. */
enum launch_step { LAUNCH_USER, LAUNCH_CWD, LAUNCH_EXEC, LAUNCH_TRACE };

struct launch_failure {
	enum launch_step step;
	int err; /* -errno */
};

/*
 * Runs in the child: wait for a byte from @go, then execute the program. A failure is written to @report as a struct
 * launch_failure. The child ends if @go ends without a byte.
 */
_Noreturn void launch_child(const struct launch_options *o, int go, int report);

/* At the start of heaptap. Ends of children are noticed from now on, even if whoever started heaptap ignores theirs. */
void inherited_begin(void);
