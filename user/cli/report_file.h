/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads a saved report, or the report on a recording, for the commands that compare reports. */
#pragma once

#include <stddef.h>

struct options;

/*
 * The report @path, or that on the recording @path, as JSON; the caller owns *@text. *@status gets the exit status of a
 * report that cannot be trusted, otherwise it stays. 0 or an exit status, after one logged line.
 */
int report_file_load(const struct options *o, const char *path, char **text, size_t *len, int *status);

/* Log why @path cannot be taken: @err, or @why with its place @at (0 = none). Returns an exit status. */
int report_file_refuse(const struct options *o, const char *path, int err, const char *why, size_t at);
