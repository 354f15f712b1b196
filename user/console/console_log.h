/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of allocator functions, printed as they come: the command `log`. */
#pragma once

#include "user/lib/types.h"

struct console;
struct console_log;

/* Free c->log, if there is one. */
void console_log_free(struct console *c);

/* Print the calls that have come since the last time; without @at_once, only if that is a moment ago. */
void console_log_flush(struct console *c, bool at_once);
