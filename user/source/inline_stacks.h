/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables by which the piece of code in a target walks stacks: unwind rows, mappings of code, places of stacks. */
#pragma once

#include "inline/layout.h"
#include "user/target/target.h"

struct cfi_ahead;
struct inline_stacks;

/* Has the target map shards: inline_room_shards(). */
struct inline_room {
	void *ctx;
	int (*reach)(void *ctx, u32 nr_shards);
};

/*
 * Begin with tables of @pid in @tables and settings in @shared, which both stay mapped until inline_stacks_free(). 0 or
 * -ENOMEM.
 */
int inline_stacks_new(struct inline_stacks **out, pid_t pid, struct piece_shared *shared,
		      struct piece_tables *tables, const struct inline_room *room) __must_check;
void inline_stacks_free(struct inline_stacks *s);

/*
 * The mappings of the target were read again. Blocks for some 10 ms, longer for new large files. 0 or -errno;
 * -EINPROGRESS: nothing has changed, read them again when the stops of its threads have been handled.
 */
int inline_stacks_set(struct inline_stacks *s, const struct target *t, struct cfi_ahead *ahead) __must_check;

/* Begin to read the tables of its new files, for inline_stacks_set(). @s may be NULL: all files are new. */
struct cfi_ahead *inline_stacks_ahead(const struct inline_stacks *s, const struct target *t);

/* Does a thread run on a stack that is in no list yet, by @shared, where the same memory is mapped? */
bool inline_stacks_wants_look(const struct inline_stacks *s, const struct piece_shared *shared);
/* Look for stacks again if so, but not too often. */
void inline_stacks_look(struct inline_stacks *s);

/* Threads forget their last stacks: the depth or the stacks that heaptap has are others. */
void inline_stacks_renew(const struct inline_stacks *s);

/* As keep_files of struct source_ops. */
void inline_stacks_keep(struct inline_stacks *s, const bool *is_used);

/* Bytes of tables. */
u64 inline_stacks_bytes(const struct inline_stacks *s);
