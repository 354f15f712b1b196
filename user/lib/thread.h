/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts heaptap's threads: doc/processes.md says why each one is there. */
#pragma once

#include <pthread.h>
#include <stddef.h>

/*
 * Start a thread that runs @main(@arg). It is named @name (at most 15 bytes; a literal), and blocks all signals:
 * they belong to the threads that handle them. @out NULL: it is detached. @stack_bytes 0: as usual. 0 or -errno;
 * -EAGAIN or -ENOMEM: no room for a thread.
 */
int thread_start_sized(pthread_t *out, const char *name, void *(*main)(void *arg), void *arg,
		       size_t stack_bytes) __attribute__((warn_unused_result));

static inline __attribute__((warn_unused_result)) int thread_start(pthread_t *out, const char *name,
								   void *(*main)(void *arg), void *arg)
{
	return thread_start_sized(out, name, main, arg, 0);
}
