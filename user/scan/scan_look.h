/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lookers find pointers in a piece of memory and keep them until user/scan/scan_read.c collects them. One looker for
 * each part of the snapshot. For user/scan/scan*.c only.
 */
#pragma once

#include "user/scan/scan_glib.h"
#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"
#include "user/scan/snapshot.h"

enum {
	NR_CANDIDATES = 256,
	NR_VTABLES = 1024, /* remembered answers, a power of two */
	NR_FILES = 4,
	NO_INDEX = UINT32_MAX,
};

/* A word that may be a pointer to a block. */
struct candidate {
	u64 value;
	u64 where; /* WHERE(): the place of the word */
	u32 at;	   /* its index in the chunk, or NO_INDEX: the words around it are not looked at */
};

/* The first words of a block say that pointers into it count as pointers to its start. */
struct block_head {
	u32 block;
	u32 flags; /* enum block_flag */
};

/* A block whose end the program keeps beside its begin. */
struct block_begin {
	u32 block;
	bool is_alone; /* no block begins at this end; else three words say that it is one */
};

/* Blocks that get a bit. */
struct looker_list {
	u32 *of; /* owned */
	size_t nr, max;
};

/* Facts that all lookers share. */
struct looker_facts {
	struct snapshot *snap;		   /* borrowed */
	const struct region_list *regions; /* borrowed */
	struct glib_facts glib;
	u64 page; /* bytes */
	u64 mask; /* bits of a word that are the address */
	u32 heuristics;
	u32 slack;	/* scan_options.slack */
	bool is_native; /* words have 8 bytes, are aligned, and have the byte order of this machine */
	struct {
		taddr_t start, end;
	} files[NR_FILES]; /* ranges that contain all mapped files, by address */
	u32 nr_files;
};

struct looker {
	const struct scan *s;		  /* borrowed; not changed */
	const struct looker_facts *facts; /* borrowed */
	/* The position in memory. */
	bool is_begun;			/* the position is set */
	bool is_sought;			/* another looker had the bytes before the position */
	taddr_t at;			/* end of the last chunk */
	size_t region;			/* index of the first region that ends above the position */
	size_t dead;			/* index of the first dead range that ends above it */
	u32 cur;			/* index of the first block that ends above it */
	u32 vptrs_of;			/* cur if it has BLOCK_VPTRS, else BLOCK_NONE */
	taddr_t quiet_start, quiet_end; /* holes between have no root */
	taddr_t chunk;			/* end of the glibc chunk of the block before cur; 0 = not known */
	/* The chunk that is being looked at. */
	const u8 *data; /* borrowed */
	taddr_t base;	/* its address */
	u32 nr_words;	/* words of 8 bytes in it */
	u32 nr_found, next_found;
	u16 found[SNAPSHOT_MAX_CHUNK / 8]; /* indexes of words that may point to blocks */
	/* Words whose blocks are not looked up yet. */
	struct candidate candidates[NR_CANDIDATES];
	size_t nr;
	/* Results. */
	struct edge_part edges;
	struct root_ref *hits; /* owned; in order of address */
	size_t nr_hits, max_hits;
	struct block_head *heads; /* owned */
	size_t nr_heads, max_heads;
	struct block_begin *begins; /* owned */
	size_t nr_begins, max_begins;
	struct looker_list
		tagged; /* words with marks in the upper bits, and then in the low bits, lead to them */
	struct looker_list aware; /* they keep the address of their first words */
	bool has_low_marks;	  /* some of these words have such marks, too */
	u64 scanned_bytes;
	bool has_ends;	/* some pointers may mean the end of the block before */
	bool has_links; /* some may be links of free lists */
	u32 nr_vtable_reads;
	struct {
		taddr_t addr;
		bool is_vtable;
	} vtables[NR_VTABLES];
};

/* @r is all zero. The edge store of @s is initialized. */
void looker_init(struct looker *r, struct scan *s, const struct looker_facts *facts);
void looker_fini(struct looker *r);

/* The meaning of a pointer to the end of a block, where another one may start. */
enum meaning { MEANS_START, MEANS_EITHER, MEANS_END };
/* scan_meaning.c: that of @c, whose word is the end of @before_block, by the words around it. */
enum meaning looker_meaning_of(const struct looker *r, const struct candidate *c, u32 before_block);
/*
 * scan_meaning.c: is @c the pointer of a hash table into @block at @offset? Tables of Rust (hashbrown) begin with the
 * entries, those of Abseil with a header. The words beside the pointer, such as the mask, fit the size of the block.
 */
bool looker_is_table(const struct looker *r, const struct candidate *c, u32 block, u64 offset);

/* Look at one chunk. Changes only @r, and the groups of the edge store that belong to it. 0 or -ENOMEM. */
int looker_look(struct looker *r, const struct snapshot_chunk *chunk) __must_check;
/* Look at registers, words of the kernel, and blocks that contain a thread's stack. 0 or -ENOMEM. */
int looker_words(struct looker *r) __must_check;
