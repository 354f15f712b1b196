/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every way to get a moment makes its snapshot of. For user/snapshot*.c only. */
#pragma once

#include "user/snapshot.h"

/* Fill maps, kernel words from /proc. 0, -ESRCH, -ENOMEM or -errno; -ETIME past the deadline. */
int snapshot_read_maps(struct snapshot *s) __must_check;
int snapshot_read_kernel_words(struct snapshot *s, u64 deadline_ns) __must_check;
int snapshot_add_word(struct snapshot *s, const struct snapshot_word *word) __must_check;
/* Release what the fields own, not @s. */
void snapshot_fini(struct snapshot *s);
