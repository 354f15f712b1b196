/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fill a snapshot from /proc, for every way to get the moment. For user/scan/ only. */
#pragma once

#include "user/scan/snapshot.h"

/* A way to get the moment, by the functions of user/scan/snapshot.h. They run in the order of this list. */
struct snapshot_ops {
	const char *name;
	int (*copy)(struct snapshot *s);    /* NULL: the process cannot be copied */
	void (*let_go)(struct snapshot *s); /* NULL as copy */
	int (*read)(struct snapshot *s, const struct snapshot_visitor *visitor);
	int (*peek)(struct snapshot *s, taddr_t addr, void *buf, size_t len);
	int (*fetch)(struct snapshot *s, taddr_t addr, void *buf, size_t len); /* NULL: peek does that */
	taddr_t (*next)(struct snapshot *s, taddr_t at,
			taddr_t end); /* NULL: nobody knows what is in memory */
	void (*resume)(struct snapshot *s);
	void (*free)(struct snapshot *s);
};

/* Fill the mappings and heap_start. 0, -ESRCH, -ENOMEM or -errno. */
int snapshot_read_maps(struct snapshot *s) __must_check;
/* Add the words that the kernel keeps. 0, -ETIME past the deadline, or as above. */
int snapshot_read_kernel_words(struct snapshot *s, const struct snapshot_options *o,
			       u64 deadline_ns) __must_check;
/* Add one word. 0 or -ENOMEM. */
int snapshot_add_word(struct snapshot *s, const struct snapshot_word *word) __must_check;
/* Free what the fields own, but not @s. */
void snapshot_fini(struct snapshot *s);
/* Is it anonymous private memory, which the process reads and writes? */
static inline bool snapshot_map_is_own(const struct snapshot_map *map)
{
	return map->is_readable && map->is_writable && !map->is_shared && !map->ino;
}
