/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPU as the piece sees it: the registers of a call, the thread, the counter, and hints. */
#pragma once

#if defined(__aarch64__)
#include "inline/cpu_aarch64.h"
#else
#include "inline/cpu_x86_64.h"
#endif

/* One round of a wait. With one pause in it, threads that wait took a tenth more CPU time. */
static inline void relax_round(void)
{
	cpu_relax();
	cpu_relax();
	cpu_relax();
	cpu_relax();
}
