/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is memory full of zeros? Such parts of files stay holes. */
#pragma once

#include <string.h>

#include "user/lib/types.h"

static inline bool is_zero(const void *data, size_t len)
{
	const u8 *p = data;

	return !len || (!p[0] && !memcmp(p, p + 1, len - 1));
}
