/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks that a thread remembers, several at once, so that call paths that take turns need no walk. A stack is the same
 * as before if all words are that its walk was led by.
 */
#pragma once

#include "inline/region.h"

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
	       pw->seq == __atomic_load_n(&tables()->seq, __ATOMIC_RELAXED);
}

/* Is the stack @m that of the call whose stack pointer is @sp? */
static inline bool is_remembered(const struct piece_walk *pw, const struct piece_remembered *m,
				 u64 generation, u64 sp, u64 fp, u64 ret)
{
	u64 difference = 0;

	if (m->sp != sp || m->ret != ret || m->generation != generation ||
	    pw->walk.generation != generation || (m->needs_fp && m->fp != fp) || !can_read(pw, m, sp))
		return false;
#pragma GCC unroll 4
	for (u32 i = 0; i < m->nr; i++)
		difference |= *(const volatile u64 *)(uintptr_t)m->words[i].at ^ m->words[i].value;
	return !difference;
}

static inline bool add_word(struct piece_remembered *m, u64 at, u64 value)
{
	if (m->nr >= PIECE_REMEMBERED_WORDS || at & 7 || at < m->sp)
		return false;
	m->words[m->nr].at = at;
	m->words[m->nr].value = value;
	m->nr++;
	if (at + sizeof(u64) > m->high)
		m->high = at + sizeof(u64);
	return true;
}

/* The words that led from frame @i of the last walk to its caller's; the same ones as in check_round(). */
static inline bool add_frame(struct piece_remembered *m, const struct walk *w, u32 i)
{
	const struct walk_frame *f = &w->last[i], *caller = &w->last[i - 1];

	if (f->is_fixed)
		return false;
	if (f->cfa_slot &&
	    !add_word(m, caller->sp - (u64)f->cfa_slot * w->word, caller->sp - (u64)f->cfa_extra * w->word))
		return false;
	if (f->fp_slot && caller->needs_fp &&
	    !add_word(m, caller->sp - (u64)f->fp_slot * w->word, caller->fp))
		return false;
	return add_word(m, caller->sp - w->word, caller->pc);
}

/* Note the words of the last walk. False: there are too many, or others than words of the stack led the walk. */
static inline bool note_words(struct piece_remembered *m, const struct walk *w)
{
	if (w->is_stale || w->nr > WALK_FRAMES || w->last[0].is_fixed)
		return false;
	m->nr = 0;
	m->high = 0;
	for (u32 i = w->nr - 1; i > 0; i--)
		if (!add_frame(m, w, i))
			return false;
	m->fp = w->last[w->nr - 1].fp;
	m->needs_fp = w->last[w->nr - 1].needs_fp;
	m->generation = w->generation;
	return true;
}

/*
 * The call at @sp has the stack @id, which was walked just now. It is remembered when a call at the same place comes
 * the second time: most do not come again.
 */
static __attribute__((noinline)) void remember(struct piece_walk *pw, u64 key, u64 sp, u64 ret, u64 id)
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
	pw->keys[at] = note_words(m, &pw->walk) ? key : 0;
}
