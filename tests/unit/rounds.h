/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How often unit tests repeat what is random, as the end-to-end tests do. */
#pragma once

#include <stdlib.h>

/* 3 in make check, 10 in make check-all, 100 in make soak. */
static inline int rounds(void)
{
	const char *n = getenv("HEAPTAP_ROUNDS");

	return n ? atoi(n) : 10;
}
