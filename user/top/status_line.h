/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line below a trace that says, once a second, that it works and what it sees. */
#pragma once

#include "user/top/meter.h"

/* All zero: begins with the first call of status_line_round(). */
struct status_line {
	struct meter meter;
	u64 next_ns;
};

/* Write what fits of the line into @columns columns of @text, which has @size bytes: the more important, the sooner. */
void status_line_text(const struct meter *m, u32 columns, char *text, size_t size);

/* Show the line of @s on the terminal, if a second has passed. log_status(NULL) removes it. */
void status_line_round(struct status_line *l, struct session *s);
