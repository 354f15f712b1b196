/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks that a thread remembers, several at once, so that call paths that take turns need no walk. A stack is the same
 * as before if all words are that its walk was led by.
 */
#pragma once

#include "inline/words.h"

/* Never 0. */
static inline u64 call_key(u64 sp, u64 ret)
{
	return ((sp ^ ret << 20) * 0x9e3779b97f4a7c15) | 1;
}

/* The stack that is remembered of calls with @key, NULL if there is none. */
static inline struct piece_remembered *find_remembered(struct piece_walk *pw, u64 key)
{
#pragma GCC unroll 8
	for (u32 i = 0; i < PIECE_REMEMBERED; i++)
		if (pw->keys[i] == key)
			return &pw->remembered[i];
	return NULL;
}

/* Can the words of @m be read? The walk that found these words used the stack that @pw knows. */
static inline bool can_read(const struct piece_walk *pw, const struct piece_remembered *m, u64 sp)
{
	return sp >= pw->low && sp < pw->high && m->high <= pw->high &&
	       pw->seq == __atomic_load_n(&region_tables()->seq, __ATOMIC_RELAXED);
}

/* Is the stack @m that of the call whose stack pointer is @sp? */
static inline bool is_remembered(const struct piece_walk *pw, const struct piece_remembered *m,
				 u64 generation, u64 sp, u64 fp, u64 ret)
{
	if (m->sp != sp || m->ret != ret || m->generation != generation ||
	    pw->walk.generation != generation || (m->needs_fp && m->fp != fp) || !can_read(pw, m, sp))
		return false;
	return are_same(m->words, m->nr);
}

/*
 * Note the words that led the last walk to its frame @outermost. False: there are too many, or others than words of the
 * stack led the walk.
 */
static inline bool note_words(struct piece_remembered *m, const struct piece_walk *pw, u32 outermost)
{
	const struct piece_words *words = &pw->words;
	const struct walk *w = &pw->walk;
	u32 top = w->nr - 1, first = words->end[outermost % WALK_FRAMES];
	u32 nr = words->end[top % WALK_FRAMES] - first;

	if (w->is_stale || words->nr_frames < w->nr || nr > PIECE_REMEMBERED_WORDS)
		return false;
	m->nr = nr;
	for (u32 i = 0; i < nr; i++)
		m->words[i] = words->list[first + i];
	m->high = words->high;
	m->fp = w->last[top % WALK_FRAMES].fp;
	m->needs_fp = w->last[top % WALK_FRAMES].needs_fp;
	m->generation = w->generation;
	return true;
}

/*
 * The call at @sp has the stack @id, which was walked just now, and whose outermost frame is @outermost of those of the
 * walk. It is remembered when a call at the same place comes the second time: most do not come again.
 */
static __attribute__((noinline)) void remember_walk(struct piece_walk *pw, u64 key, u64 sp, u64 ret, u64 id,
						    u32 outermost)
{
	u32 *once = &pw->seen_once[key >> 32 & (PIECE_SEEN_ONCE - 1)], at;
	struct piece_remembered *m = find_remembered(pw, key);

	if (!m && *once != (u32)(key >> 32)) {
		*once = key >> 32;
		return;
	}
	at = m ? (u32)(m - pw->remembered) : pw->next_remembered++ % PIECE_REMEMBERED;
	m = &pw->remembered[at];
	m->sp = sp;
	m->ret = ret;
	m->id = id;
	pw->keys[at] = note_words(m, pw, outermost) ? key : 0;
}
