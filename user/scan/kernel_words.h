/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers of a process that only the kernel has, and no file of /proc shows. */
#pragma once

#include "user/lib/types.h"

/* Places of words that the kernel keeps, beside descriptors (epoll): snapshot_word.where. */
enum { KERNEL_TIMER = UINT32_MAX, KERNEL_SIGNAL_STACK = UINT32_MAX - 1, KERNEL_REQUEST = UINT32_MAX - 2 };

/* A way to ask the kernel. */
struct kernel_words {
	void *ctx;
	/* Call @add for each signal stack of the process, by its start, and for each io_uring request. 0 or -errno. */
	int (*read)(void *ctx, int (*add)(void *add_ctx, taddr_t word, u32 where), void *add_ctx);
};
