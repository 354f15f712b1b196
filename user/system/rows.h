/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes of the watch, as lines of text and as JSON. */
#pragma once

#include <stdio.h>

#include "user/lib/human.h"
#include "user/system/system.h"

/* The cells of one process. All texts are safe for a terminal. */
struct row_text {
	struct human needs, resident;
	struct human since;  /* "3m 02s"; "" if it does not grow */
	char rate[80];	     /* "1.00 MiB/min"; "" likewise */
	char error[80];	     /* "+-3 %", so that columns are right in each locale */
	char limit[96];	     /* "2d 03h (cgroup)"; "" = never */
	char container[256]; /* "" = none */
	char zoom[640];	     /* what tracing has found; "" = it is not traced */
	char place[320];     /* the function that zoom is about, the program's own; "" = not known */
};

void row_describe(const struct system_state *s, const struct watched *p, struct row_text *out);

/* "1.00 MiB/min", "512 KiB/h", "-3.00 KiB/h" */
void row_rate(double bytes_per_s, char *text, size_t size);

/* "212 processes, 2 grow, 1 traced; 3.10 GiB resident; heaptap 0.3 % of a CPU" */
void rows_head(const struct system_state *s, char *text, size_t size);

/* Write the head, and the first @top processes in the order of watch_rank() (0 = all). 0 or -ENOMEM. */
int rows_write(FILE *out, const struct system_state *s, u32 top) __must_check;

/* Likewise, as one line that holds a JSON object. */
int rows_write_json(FILE *out, const struct system_state *s, u32 top) __must_check;

/*
 * Write the page of these rows, which asks for new data again and again, or its data alone. 0, -ENOMEM, or -errno of
 * the first write that failed.
 */
int rows_write_page(FILE *out, const struct system_state *s, u32 top, bool is_data) __must_check;

/* Write the growers of the whole run, the worst first, and what was found in them. 0 or -ENOMEM. */
int rows_write_end(FILE *out, const struct system_state *s) __must_check;
