/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is found in a piece of memory, until scan_read.c enters it: one for each part. For user/scan*.c only. */
#pragma once

#include "user/scan_regions.h"
#include "user/scan_state.h"
#include "user/snapshot.h"

enum {
	NR_CANDIDATES = 1024,
	NR_VTABLES = 1024, /* remembered answers, a power of two */
	NR_FILES = 4,
};

/* A word that may be a pointer to a block, and where it was found: blocks by index. */
struct candidate {
	u64 value;
	u64 where;
};

/* What the first words of a block say of pointers into it. */
struct block_head {
	u32 block;
	u32 flags; /* enum block_flag */
};

/* What all lookers know. */
struct looker_facts {
	struct snapshot *snap;		   /* borrowed */
	const struct region_list *regions; /* borrowed */
	u64 page;			   /* bytes */
	u64 mask;
	u32 heuristics;
	bool is_native; /* words of 8 bytes in our byte order, aligned */
	struct {
		taddr_t start, end;
	} files[NR_FILES]; /* mapped files lie in them, by address */
	u32 nr_files;
};

struct looker {
	const struct scan *s;		  /* borrowed; not changed */
	const struct looker_facts *facts; /* borrowed */
	/* The position. */
	bool is_begun;	/* it has one */
	bool is_sought; /* what lies before was not looked at here */
	taddr_t at;	/* end of the last chunk */
	size_t region;	/* the first that ends above it */
	size_t dead;	/* the first dead range that does */
	u32 cur;	/* the first block that does */
	u32 vptrs_of;	/* the block that has BLOCK_VPTRS, if it is cur */
	taddr_t chunk;	/* end of the glibc chunk of the block before cur; 0 = not known */
	/* The present chunk. */
	const u8 *data; /* borrowed */
	u32 nr_found, next_found;
	u16 found[SNAPSHOT_MAX_CHUNK / 8]; /* words that may point to blocks, by index */
	/* What is still to be looked up. */
	struct candidate candidates[NR_CANDIDATES];
	size_t nr;
	/* What was found. */
	struct edge_part edges;
	struct root_ref *hits; /* owned; in order of address */
	size_t nr_hits, capacity_hits;
	struct block_head *heads; /* owned */
	size_t nr_heads, capacity_heads;
	u64 scanned_bytes;
	u32 nr_vtable_reads;
	struct {
		taddr_t addr;
		bool is_vtable;
	} vtables[NR_VTABLES];
};

/* @r is zeros; @s has its edge store. */
void looker_init(struct looker *r, struct scan *s, const struct looker_facts *facts);
void looker_fini(struct looker *r);

/* Look at memory. Only @r changes, and its part of the store's groups. 0 or -ENOMEM. */
int looker_look(struct looker *r, const struct snapshot_chunk *chunk) __must_check;
/* Look at registers, words in the kernel, and blocks that a thread stands on: its stack. */
int looker_words(struct looker *r) __must_check;
