/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections of ELF files that are kept compressed. */
#pragma once

#include "user/lib/types.h"

#ifndef ELFCOMPRESS_ZLIB
#define ELFCOMPRESS_ZLIB 1
#endif
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/*
 * Make the @size bytes at @to of the @from_size at @from, compressed by @how (ELFCOMPRESS_*). 0, -EIO if they do
 * not make exactly as many, -ENOTSUP for another way or a build without libraries.
 */
int decompress(u8 *to, size_t size, const u8 *from, size_t from_size, u32 how) __must_check;
