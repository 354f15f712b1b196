/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of writing to a stream: was all of it written? */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

/*
 * Write what @out still buffers. 0 if all that was ever written to @out has arrived; else -errno: -EPIPE if @out is a
 * pipe that nobody reads any more, -EIO if the reason is not known.
 */
int flush_stream(FILE *out) __must_check;

/* The failure of @out was reported: drop what it still buffers, so that nobody reports the failure again. */
void flush_forget(FILE *out);
