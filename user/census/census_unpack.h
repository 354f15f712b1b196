/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Core files that are compressed by zstd, as systemd-coredump keeps them. */
#pragma once

#include "user/lib/types.h"

/*
 * The content of the compressed file @fd, in a file without a name, of which runs of zeros take no room. Returns a
 * descriptor that is the caller's, or -errno: -EINVAL damaged; -EFBIG more than 1 TiB; -ENOMEM; -ENOSPC more than 15
 * of 16 parts of what is free on the disk.
 */
int census_unpack(int fd) __must_check;
