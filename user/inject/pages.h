/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of a file that get jumps. The kernel writes breakpoints (uprobes) to mappings of the file, whatever code is
 * there. So these pages are parked, and copies that are no mapping of the file take their place.
 */
#pragma once

#include "user/inject/process_private.h"

/* Does this kernel let pages of a file be parked (Linux 5.13)? */
bool inject_pages_can_move(void);

/*
 * Put copies in the place of the pages that @patches of @f change. The copies have the jumps. @in is saved first.
 * Pages that must stay are counted in in->nr_in_place, with the reason: a breakpoint harms there. 0, -EOPNOTSUPP
 * with the reason in in->why: one of these is guarded, or @f->must_move, or -errno if the target's memory is not as it
 * was.
 */
int inject_pages_copy(struct injection *in, struct stopped *s, int mem, const struct inject_patch *patches,
		      size_t nr, const struct inject_file *f) __must_check;

/*
 * May indirect jumps to the code at @addr, by @smaps (a file), lead only to instructions that are made for it? A jump
 * of ours is none. Only aarch64 has that (BTI).
 */
bool inject_is_guarded(const char *smaps, taddr_t addr);

/*
 * Copies @first and on, in which the code is as before, give their place back to the file's pages. Those that are no
 * longer there (dlclose) are forgotten. 0, -EBUSY: one stays, -EINPROGRESS, -ETIME: try again later, or -errno.
 */
int inject_pages_return(struct injection *in, struct stopped *s, u32 first) __must_check;
