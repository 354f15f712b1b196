/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The blocks that a walk through an allocator's books found, by address, and sums by arena. */
#pragma once

#include "user/lib/types.h"

struct json;

/* The owner of a block. */
enum census_state {
	CENSUS_LIVE,   /* the program */
	CENSUS_CACHED, /* free, in the cache of a thread */
	CENSUS_FAST,   /* free, in a list of blocks that are not joined */
	CENSUS_OWN,    /* a table of the allocator itself */
	NR_CENSUS_STATES
};

struct census_block {
	u64 addr : 56;
	u64 state : 7;		  /* enum census_state */
	u64 may_begin_within : 1; /* the program may have been given an aligned address in it */
	u64 size : 44;		  /* bytes that the program may use */
	u64 type : 20;		  /* index in census_blocks.types; 0 = none */
};
_Static_assert(sizeof(struct census_block) == 16, "memory per block");

struct census_sum {
	u64 blocks, bytes;
};

/* Write the object @key with both. */
void census_sum_json(struct json *j, const char *key, struct census_sum sum);

/* Memory that belongs together: part of an arena, or one block of its own mapping. */
struct census_segment {
	taddr_t start, end;
	u32 arena;	  /* index in census_blocks.arenas */
	bool is_mapped;	  /* one block alone in a mapping */
	size_t first, nr; /* blocks */
};

struct census_arena {
	taddr_t addr;	  /* of its books */
	u64 system_bytes; /* taken from the kernel */
	struct census_sum of[NR_CENSUS_STATES];
	struct census_sum bins; /* free, to be used again */
	u64 top_bytes;		/* free at the end, never used or given back */
	u64 page_bytes;		/* free pages that the allocator keeps for later */
	u64 unknown_bytes;	/* that do not add up */
	u64 foreign_bytes;	/* taken by another user of brk */
	u64 other_bytes;	/* headers of blocks, tables, fences */
	u32 nr_segments;
	bool is_locked; /* a thread was in the middle of a call */
};

/* Kinds of first words of blocks. */
enum census_first {
	FIRST_UNREAD,
	FIRST_FILE, /* a pointer to a place of a mapped file: objects of one class begin with the same one */
	FIRST_TEXT, /* letters of a string; a type for each word */
	FIRST_ZERO, /* all bytes are 0 */
	FIRST_POINTER, /* to other memory of the process */
	FIRST_NUMBER,  /* of at most half the bits of a word */
	FIRST_OTHER,
	NR_CENSUS_FIRST
};

/* Blocks that begin alike. */
struct census_type {
	u64 word; /* FIRST_FILE, FIRST_TEXT: the first word */
	struct census_sum live;
	enum census_first first;
};

enum {
	CENSUS_MAX_NOTES = 64,
	CENSUS_MAX_TYPES = (1 << 20) - 1,
	CENSUS_MAX_TEXTS = 1 << 16, /* types of text; further ones count as FIRST_OTHER */
};

/* Something that does not add up. */
struct census_note {
	taddr_t addr;	/* of the place; 0 = none */
	char text[160]; /* one sentence without full stop */
};

/* Plain data. All zero: empty. */
struct census_blocks {
	const struct census_walker *walker;
	char version[24];	     /* what is known of the allocator's version; may be empty */
	struct census_block *blocks; /* owned; by address */
	size_t nr, max;
	struct census_segment *segments; /* owned; by address */
	size_t nr_segments, max_segments;
	struct census_arena
		*arenas; /* owned; the first is the main one. Segments with is_mapped count in none */
	size_t nr_arenas, max_arenas;
	bool may_begin_within;	   /* some blocks */
	struct census_sum mapped;  /* live blocks with a mapping of their own */
	u64 mapped_bytes;	   /* their mappings */
	struct census_type *types; /* owned; types[first] for those without a word of their own */
	size_t nr_types, max_types;
	struct census_note notes[CENSUS_MAX_NOTES];
	size_t nr_notes; /* also those without room in notes */
};

void census_blocks_fini(struct census_blocks *b);

/* Add to the end. 0, -ENOMEM; -EOVERFLOW for an address or a size that no block has. */
int census_add_block(struct census_blocks *b, taddr_t addr, u64 size, u32 type) __must_check;
int census_add_segment(struct census_blocks *b, const struct census_segment *segment) __must_check;
int census_add_arena(struct census_blocks *b, const struct census_arena *arena) __must_check;
void census_sort_segments(struct census_blocks *b);

/* Note what does not add up at @addr. */
__attribute__((format(printf, 3, 4))) void census_note(struct census_blocks *b, taddr_t addr,
						       const char *format, ...);

/* The block that begins at @addr, or NULL. Only when all segments were walked in their order. */
struct census_block *census_find(const struct census_blocks *b, taddr_t addr);
/* The segment that holds @addr, or NULL. */
const struct census_segment *census_segment_at(const struct census_blocks *b, taddr_t addr);

/* Compute the sums of blocks by arena and by type. */
void census_add_up(struct census_blocks *b);

/* All live blocks, with and without a mapping of their own; what is free; what does not add up. */
struct census_sum census_live(const struct census_blocks *b);
u64 census_free_bytes(const struct census_blocks *b);
u64 census_unknown_bytes(const struct census_blocks *b);
