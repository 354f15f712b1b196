/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by heaptap and bpf/uring.bpf.c. */
#pragma once

#include <linux/types.h>

enum { URING_MAX_RINGS = 64 };

struct uring_state {
	__u32 rings[URING_MAX_RINGS]; /* descriptors of the process */
	__u32 nr_rings;
	__u32 nr; /* requests found; those that had no room included */
};
