/* SPDX-License-Identifier: GPL-2.0-or-later */
/* New, changed and ended processes, as the kernel tells of them: its process connector. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

struct births;

enum birth_kind { BIRTH_FORK, BIRTH_EXEC, BIRTH_END };

/*
 * Listen. *@out is owned by the caller: births_free(). 0; -EPERM, -EOPNOTSUPP: not here (no privilege, another network
 * or PID namespace, a kernel without it); or -errno. Blocks for 100 ms at most.
 */
int births_new(struct births **out) __must_check;
void births_free(struct births *b);

/*
 * Give @take all that has happened since the last call. It does not wait. 0; -ENOBUFS: some of it was lost, so look at
 * /proc; or -errno.
 */
int births_read(struct births *b, void (*take)(void *ctx, enum birth_kind kind, pid_t pid),
		void *ctx) __must_check;
