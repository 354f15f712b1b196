/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A look at a file before libdw reads it. */
#pragma once

#include "user/names/reader_wire.h"

/*
 * Check the ends of string tables, and add the sizes of compressed sections to @sizes. 0, or -ENOEXEC: libdw must not
 * read the file.
 */
int file_check(int fd, u64 sizes[NR_READER_SIZES]) __must_check;
