/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file that a recording goes to, or several one after the other. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

struct record_file;

/*
 * Prepare a file named @pattern (borrowed), in which %p, %n, %t stand for the pid, the number of the part and the time.
 * What can be wrong with the name is found now: an unknown placeholder, a folder that is missing or not
 * writable, a file that is there already without @force. A pipe or device that is there is written to. Nothing
 * is created yet. *@out is owned by the caller. 0, or -errno, logged.
 */
int record_file_new(struct record_file **out, const char *pattern, bool force) __must_check;

/* Closes it. NULL is nothing. */
void record_file_free(struct record_file *f);

/* What %p stands for. */
void record_file_set_pid(struct record_file *f, pid_t pid);

/*
 * Append all of @data; creates the file first. Blocks on disk I/O, and on the reader of a pipe. 0 or -errno: then the
 * file is as if it had not been called, where it is a regular one.
 */
int record_file_write(struct record_file *f, const void *data, size_t len) __must_check;

/* The next write begins another file. 0, or -errno of what the last one could not keep. */
int record_file_next(struct record_file *f) __must_check;

/* Bytes in the present file, and its name as messages show it. */
u64 record_file_size(const struct record_file *f);
const char *record_file_name(const struct record_file *f);
