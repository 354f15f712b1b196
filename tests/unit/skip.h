/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A unit test that cannot run here says why, in the form that tests/run.py counts. */
#pragma once

#include <stdio.h>

/* Ends the test as skipped. @... is the reason, as for printf(). */
#define skip_because(...)                                                                                    \
	do {                                                                                                 \
		print_message("# skipped: " __VA_ARGS__);                                                    \
		print_message("\n");                                                                         \
		skip();                                                                                      \
	} while (0)
