/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of writing to a stream: reports the first failure, also one that stdio has kept to itself. */
#include "user/lib/flush.h"

#include <errno.h>
#include <poll.h>
#include <stdio_ext.h>

/* stdio does not keep the error of an earlier write. A pipe without readers still shows it. */
static bool is_reader_gone(FILE *out)
{
	struct pollfd p = { .fd = fileno(out) };

	return p.fd >= 0 && poll(&p, 1, 0) == 1 && p.revents & POLLERR;
}

int flush_stream(FILE *out)
{
	int err = fflush(out) ? -errno : ferror(out) ? -EIO : 0;

	return err == -EIO && is_reader_gone(out) ? -EPIPE : err;
}

void flush_forget(FILE *out)
{
	__fpurge(out);
	clearerr(out);
}
