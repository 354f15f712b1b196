/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words that led the last walk of a thread, in a list without gaps: most calls differ from the last one in two or
 * three of some thirty frames, and the words of the others are compared in one loop.
 */
#pragma once

#include "inline/region.h"

/* Are @nr words of the stack as they were? They can be read. */
static inline bool are_same(const struct piece_word *words, u32 nr)
{
	u64 difference = 0;

#pragma GCC unroll 4
	for (u32 i = 0; i < nr; i++)
		difference |= *(const volatile u64 *)(uintptr_t)words[i].at ^ words[i].value;
	return !difference;
}

/* A word of frame @f, @slot words below its caller's stack pointer @cfa. False: it does not lie in the frame. */
static inline bool add_word(struct piece_words *words, u32 *nr, const struct walk_frame *f, u64 cfa, u64 slot,
			    u64 value)
{
	u64 at = cfa - slot * sizeof(u64);

	if (at & 7 || at < f->sp)
		return false;
	if (at + sizeof(u64) > words->high)
		words->high = at + sizeof(u64);
	words->list[(*nr)++] = (struct piece_word){ .at = at, .value = value };
	return true;
}

/*
 * The word by which frame @f returns to @caller. With a link register it may be signed, so that it is not the address
 * alone.
 */
static inline bool add_return(struct piece_words *words, u32 *nr, const struct walk_frame *f,
			      const struct walk_frame *caller)
{
#if HAS_LINK
	u64 value;

	if (!f->ra_slot)
		return false;
	value = *(const u64 *)(uintptr_t)(caller->sp - f->ra_slot * sizeof(u64));
	return CODE_ADDRESS(value) == caller->pc && add_word(words, nr, f, caller->sp, f->ra_slot, value);
#else
	return add_word(words, nr, f, caller->sp, 1, caller->pc);
#endif
}

/* The words that led from frame @f of the last walk to its @caller; the same ones as in check_round(). */
static inline bool add_frame(struct piece_words *words, u32 *nr, const struct walk_frame *f,
			     const struct walk_frame *caller)
{
	u64 cfa = caller->sp;

	if (f->is_fixed)
		return false;
	if (f->cfa_slot && !add_word(words, nr, f, cfa, f->cfa_slot, cfa - f->cfa_extra * sizeof(u64)))
		return false;
	if (f->fp_slot && caller->needs_fp && !add_word(words, nr, f, cfa, f->fp_slot, caller->fp))
		return false;
	return add_return(words, nr, f, caller);
}

/* Frames of the last stack from @from on, counted from the outermost, are new. */
static inline void words_follow(struct piece_words *words, const struct walk *w, u32 from)
{
	u32 nr = from ? words->end[from - 1] : 0, i = from;

	if (!from) {
		words->high = 0;
		words->nr_frames = 0;
	}
	if (words->nr_frames < from)
		return;
	for (; i < w->nr && i < WALK_FRAMES; i++) {
		if (i ? !add_frame(words, &nr, &w->last[i], &w->last[i - 1]) : w->last[0].is_fixed)
			break;
		words->end[i] = (u16)nr;
	}
	words->nr_frames = i;
}

/* Can the words be read? They lie above the frames, and so above sp. */
static inline bool can_read_words(const struct piece_words *words, const struct walk *w)
{
	return w->sp >= w->copy_start && words->high - w->copy_start <= w->copy_bytes;
}

/* The number of outermost frames of the last stack, up to the candidate, whose words are as they were. */
static inline u32 words_nr_same(const struct piece_words *words, const struct walk *w)
{
	u32 most = w->candidate < words->nr_frames ? w->candidate : words->nr_frames;

	if (!can_read_words(words, w))
		return 0;
	for (u32 i = 0, from = 0; i < most; from = words->end[i++])
		if (!are_same(&words->list[from], words->end[i] - from))
			return i;
	return most;
}

/* Do the words show that the last stack is as it was, from the frame that the walk of @w has reached outwards? */
static inline bool words_hold(const struct piece_words *words, const struct walk *w)
{
	u32 nr = w->candidate;

	if (!nr || nr > words->nr_frames || !can_read_words(words, w))
		return false;
	return are_same(words->list, words->end[nr - 1]);
}
