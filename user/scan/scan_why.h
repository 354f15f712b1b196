/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a block has its verdict: a chain of pointers from a root that holds it, or from the block that lost it. */
#pragma once

#include "user/scan/scan.h"

/* Kinds of roots. */
enum scan_root_kind { ROOT_NONE, ROOT_MEMORY, ROOT_REGISTER, ROOT_KERNEL };

/* Where a chain begins. */
struct scan_root {
	enum scan_root_kind kind;
	taddr_t addr;			/* ROOT_MEMORY: of the word */
	const struct snapshot_map *map; /* ROOT_MEMORY: mapping of the word; borrowed from the snapshot */
	pid_t tid;	  /* ROOT_REGISTER; ROOT_MEMORY: thread whose stack or TLS holds the word, or 0 */
	taddr_t tp;	  /* ROOT_MEMORY with a tid: thread pointer of that thread, 0 = unknown */
	const char *name; /* name of mapping or register on another machine; borrowed, or NULL */
	u32 where;	  /* ROOT_REGISTER: for arch_reg_name(); ROOT_KERNEL: as snapshot_word.where */
};

struct scan_step {
	taddr_t addr;
	u64 size;
	u64 offset; /* bytes from the start of this block to where the pointer points */
};

/* A chain; owned by the caller: free(). */
struct scan_chain {
	struct scan_root
		root; /* ROOT_NONE: the blocks are lost and steps[0] is the leader, or the root is not known */
	size_t nr;
	struct scan_step steps[]; /* from the root on; the last one is the block in question */
};

/* Questions to one scan. A later question uses the search of the ones before. */
struct scan_whys;

/*
 * Prepare for questions to @s, which has verdicts and must outlive *@out. Takes 8 bytes per block. *@out is owned by
 * the caller: scan_whys_free(). 0 or -ENOMEM.
 */
int scan_whys_new(struct scan_whys **out, struct scan *s) __must_check;
void scan_whys_free(struct scan_whys *w);

/*
 * Find a short chain to the block that contains @addr: from a global variable if possible, else from words of the
 * kernel, stacks or registers. *@out is owned by the caller. 0; -ENOENT no such block, or no chain is known; -ENOMEM.
 */
int scan_whys_find(struct scan_whys *w, taddr_t addr, struct scan_chain **out) __must_check;

/* Like scan_whys_find(), for one question only. */
int scan_why(struct scan *s, taddr_t addr, struct scan_chain **out) __must_check;

/* A root, with the blocks to which it has the shortest chain. */
struct scan_owner {
	u64 blocks, bytes;
	struct scan_root root; /* ROOT_NONE: not known */
	u64 where;	       /* for user/scan/ */
	u32 number;	       /* for user/scan/ */
	bool is_known;
};
enum { SCAN_NO_OWNER = UINT32_MAX };

/*
 * The roots of all blocks that are not lost, those with the most bytes first. A block that several hold counts for one:
 * a global variable if possible, as in a chain. The first @most are described. Takes 8 bytes per block meanwhile.
 * *@out is owned by the caller: free(). *@of, unless @of is NULL, has for each block, in the order of scan_for_each(),
 * the index of its owner in *@out, or SCAN_NO_OWNER; it is owned by the caller, too. 0 or -ENOMEM.
 */
int scan_owners(struct scan *s, struct scan_owner **out, size_t *nr, size_t most, u32 **of) __must_check;
