/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The child's side of a start, for launch.c. */
#pragma once

#include "user/launch.h"

/* What the child was at when it failed. */
enum launch_step { LAUNCH_USER, LAUNCH_CWD, LAUNCH_EXEC };

struct launch_failure {
	enum launch_step step;
	int err; /* -errno */
};

/*
 * In the child: wait for a byte from @go, become the program. What fails goes to @report as a struct launch_failure;
 * the end of @go without a byte is the end of the child, too.
 */
_Noreturn void launch_child(const struct launch_options *o, int go, int report);
