/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a scan gives no verdict, in words: one text for each error, for reports, the log and the server. */
#pragma once

#include "user/lib/types.h"

struct scan_reason {
	char text[120]; /* without a full stop */
};

/*
 * The text for a scan of process @pid that ended with @err (-errno). @max_pause_ns: how long the process could have
 * been stopped. For -EPERM and -EACCES this reads /proc to name the process that traces @pid already.
 */
struct scan_reason scan_reason(int err, pid_t pid, u64 max_pause_ns);

/* Write a note for reports to @out of @size bytes: "scan given up: @text". */
void scan_reason_note(char *out, size_t size, const char *text);

/* Why snapshot_copy() failed with @err. */
const char *scan_reason_copy(int err);
