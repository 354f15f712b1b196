/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole reads and writes at an offset of a file, however the kernel divides them. */
#pragma once

#include "user/lib/types.h"

/* Read @len bytes: fewer only at the end of the file. Their number or -errno. */
ssize_t file_read_at(int fd, void *buf, size_t len, u64 offset) __must_check;

/* Write @len bytes. 0 or -errno. */
int file_write_at(int fd, const void *data, size_t len, u64 offset) __must_check;
