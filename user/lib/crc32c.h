/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checksum of streams: CRC-32C (Castagnoli), as in iSCSI and ext4. */
#pragma once

#include "user/lib/types.h"

/* Continue checksum @crc, 0 at first, with the @len bytes at @data. */
u32 crc32c(u32 crc, const void *data, size_t len);
