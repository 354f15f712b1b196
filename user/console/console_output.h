/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the output of a command goes: the terminal, or a file ("COMMAND > FILE"). */
#pragma once

#include "user/lib/types.h"

struct console;

/* Can the file @name be made, or appended to if @appends? By the rules of --output. 0; or -EINVAL, logged. */
int console_file_check(const struct console *c, const char *name, bool appends) __must_check;

/* Make it, for its user alone, or open it. *@is_new: it was made. The descriptor; -EINVAL, logged; or -errno. */
int console_file_open(const struct console *c, const char *name, bool appends, bool *is_new) __must_check;

/* Print the output of a command, until a Ctrl-C; or write it to c->file. 0, or -errno, logged. */
int console_output_write(struct console *c, const char *text, size_t len) __must_check;
