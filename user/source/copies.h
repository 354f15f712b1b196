/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies that targets make of themselves by fork, and that nobody traces. A copy has the breakpoints of its parent in
 * its memory, and each costs it a trap that nobody counts.
 *
 * The PID filter of a uprobe_multi link does not take them out: only a perf event does, at the first trap. But when the
 * kernel ends any link to a place, it takes the breakpoint there out of all processes in which no link wants it
 * (kernel/events/uprobes.c, when a uprobe is unregistered). So a link is made to all places and ended at once.
 */
#pragma once

#include "user/source/links.h"

struct copies {
	struct copies_file *files; /* owned */
	size_t nr_files;
	u32 nr_swept; /* copies that are clean */
	u64 next_ns;  /* not before this time of the monotonic clock */
};

/* Probes for one process alone are in at the places of @g. 0 or -ENOMEM. */
int copies_note(struct copies *c, const struct link_group *g) __must_check;

/*
 * If there are copies that may have breakpoints: take them out, at most once a second. The targets have made @nr_made
 * copies up to now. Blocks while a link is made to all places of each file: 10 to 20 ms with 300 processes on the C
 * library, on a busy machine. Never stops a target.
 */
void copies_sweep(struct copies *c, struct link_set *set, const struct programs *p, u32 nr_made);

void copies_fini(struct copies *c);
