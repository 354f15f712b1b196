/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Long output of a command on a terminal goes through a pager ($PAGER, else less). */
#pragma once

#include "user/lib/types.h"

struct console;

/* Has @text more lines than the terminal, and does the user want a pager? */
bool console_pager_is_wanted(const struct console *c, const char *text, size_t len);

/* Show @text, until the user leaves the pager; events are read meanwhile. 0 or -errno: then nothing was shown. */
int console_pager_show(struct console *c, const char *text, size_t len) __must_check;
