/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shapes of pointers: ends of blocks, pointers behind headers, pointers with marks. For user/scan/scan*.c only. */
#pragma once

#include "user/scan/scan_state.h"

struct looker_list;
struct candidate;
struct looker;
struct spread;

/* Do the rules of this page count? SCAN_RULES switches those off that are no enum scan_heuristic. */
static inline bool scan_has_rules(const struct scan *s)
{
	return !IS_AGENT && !(s->options.no_heuristics & SCAN_RULES);
}

/* scan_self.c: blocks that get a bit, in *@bits, which has one for each block of @s. 0 or -ENOMEM. */
int looker_list_add(struct looker_list *list, u32 block) __must_check;
/* Take over @list, which is empty then. */
int looker_list_enter(struct looker_list *list, const struct scan *s, u64 **bits) __must_check;
/* Note a word of @block that leads to @offset in the same block. */
int looker_note_self(struct looker *r, const struct candidate *c, u32 block, u64 offset) __must_check;
/* Does an object begin at @offset in @block, by such a word? */
bool scan_knows_itself(const struct scan *s, u32 block, u64 offset);

/* scan_edges.c: is @offset the first place in @block with some alignment, of over two words, at which it may begin? */
bool scan_is_aligned_start(const struct scan *s, u32 block, u64 offset);
/* scan_links.c: find the first words of blocks that are old links of free lists. 0 or -ENOMEM. */
int scan_find_links(struct scan *s) __must_check;

/* scan_ends.c: decide what pointers mean that are the end of one block and the start of the next. 0 or -ENOMEM. */
int scan_find_ends(struct scan *s) __must_check;
/* Note that the program keeps the end of @block beside its begin: struct block_begin. 0 or -ENOMEM. */
int looker_note_begin(struct looker *r, u32 block, bool is_alone) __must_check;
/* Take over what @r noted. 0 or -ENOMEM. */
int scan_enter_begins(struct scan *s, struct looker *r) __must_check;
void scan_ends_fini(struct scan *s);

enum { SCAN_MAX_HEADER = 4096 }; /* bytes */
/*
 * scan_behind.c: after the reachable and the possible blocks were found, which are pending, fill in behind, unless no
 * caller keeps its blocks so. Where all possible blocks are kept so, they become reachable; else *@are_all is false if
 * some are, and all must be found again. Ends the notes. 0 or -ENOMEM.
 */
int scan_find_behind(struct spread *sp, bool *are_all) __must_check;
/*
 * scan_owners.c: after that, with the possible blocks pending: hold those to whose middle owners keep pointers in a
 * place where nearly all their like do. *@is_any: all must be found again. 0 or -ENOMEM.
 */
int scan_find_owners(const struct spread *sp, bool *is_any) __must_check;
/* Note where a root leads to. */
void scan_note_root(struct spread *sp, const struct root_ref *ref);

#define SCAN_ADDRESS ((1ULL << 48) - 1) /* the bits of an address, where all blocks lie below */
/* scan_tags.c: note a word whose address is one of a block but for marks in other bits. 0 or -ENOMEM. */
int looker_note_tagged(struct looker *r, u64 value) __must_check;
/* After the verdicts: are the lost blocks those that such words lead to? */
void scan_count_tagged(struct scan *s);
