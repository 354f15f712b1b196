/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of a recording, or one file for each part. */
#pragma once

#include "user/lib/types.h"

struct record_file;

/*
 * The descriptor of ours that @pattern stands for: standard output for "-" and "/dev/stdout", N for "/dev/fd/N". -1:
 * it is the name of a file.
 */
int record_file_descriptor(const char *pattern);

/*
 * Prepare a file named @pattern (borrowed), in which %p, %n, %t stand for the pid, the number of the part and the time.
 * Errors of the name are found now: an unknown placeholder, a directory that is missing or not writable, a file that
 * is there already without @force, a terminal. A pipe or device that is there is written to, and a descriptor
 * (record_file_descriptor()). Nothing is created yet. Of complete files the last @keep stay, 0: all.
 * *@out is owned by the caller. 0, or -errno, logged.
 */
int record_file_new(struct record_file **out, const char *pattern, bool force, u32 keep) __must_check;

/* Close the file. @f may be NULL. */
void record_file_free(struct record_file *f);

/* Set the PID for %p. */
void record_file_set_pid(struct record_file *f, pid_t pid);

/*
 * Append all of @data; creates the file first. Blocks on disk I/O, and on the reader of a pipe. 0 or -errno: then the
 * file is as if it had not been called, where it is a regular one.
 */
int record_file_write(struct record_file *f, const void *data, size_t len) __must_check;

/* Close the file; the next write creates another one. 0, or the -errno of closing. */
int record_file_next(struct record_file *f) __must_check;

/* Bytes in the present file, and its name as messages show it. */
u64 record_file_size(const struct record_file *f);
const char *record_file_name(const struct record_file *f);
