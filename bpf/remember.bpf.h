/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks that a thread remembers, several at once, so that call paths that take turns need no walk. A stack is the same
 * as before if all words are that its walk was led by; they are compared in the copy of the stack that each walk makes.
 * inline/remember.h is the same for the code inside a target. Only for 64-bit code of CPUs without a link register, and
 * where there is bpf_loop().
 *
 * recall() and remember() are global functions, which the verifier checks once, by themselves. It would check static
 * ones, and the walk behind them, for each state that the caller can have, and a memory cgroup pays for these states.
 * That is why they test the word size: a test in the caller would double its states.
 */
#pragma once

#include "bpf/compat.bpf.h"
#include "bpf/walk.h"

/* The number of what is remembered of the present call; REMEMBERED if that is nothing. */
static __always_inline u64 find_remembered(const struct walk *w)
{
	u64 found = REMEMBERED;

#pragma unroll
	for (int i = 0; i < REMEMBERED; i++)
		if (w->keys[i] == w->key)
			found = i;
	return found;
}

/* The walk has begun. The id of the stack if it is one that is remembered, else 0. */
__noinline u64 recall(struct walk *w)
{
	const struct remembered *m;
	u64 at, difference = 0, i;

	if (!w || w->word != sizeof(u64))
		return 0;
	w->call_sp = w->sp - w->word;
	w->call_fp = w->fp;
	w->call_ret = w->pc;
	w->key = ((w->sp ^ w->pc << 20) * 0x9e3779b97f4a7c15ULL) | 1;
	at = find_remembered(w);
	if (at >= REMEMBERED)
		return 0;
	m = &w->remembered[at];
	if (m->sp != w->call_sp || m->ret != w->call_ret || m->generation != w->generation ||
	    (m->needs_fp && m->fp != w->call_fp) || w->copy_start != m->sp ||
	    m->nr_copied * sizeof(u64) > w->copy_bytes)
		return 0;
	for (u32 k = 0; k < REMEMBERED_WORDS && k < m->nr; k++) {
		i = m->index[k];
		WALK_LIMIT(i, COPY_WORDS);
		difference |= w->copy[i] ^ m->value[k];
	}
	return difference ? 0 : m->id;
}

/* False: there are too many words, or this one lies too far away. */
static __always_inline bool add_word(struct remembered *m, u64 at, u64 value)
{
	u64 i = (at - m->sp) / sizeof(u64), nr = m->nr;

	if (nr >= REMEMBERED_WORDS || at % sizeof(u64) || i >= COPY_WORDS)
		return false;
	WALK_LIMIT(nr, REMEMBERED_WORDS);
	m->index[nr] = i;
	m->value[nr] = value;
	m->nr = nr + 1;
	if (m->nr_copied < i + 1)
		m->nr_copied = i + 1;
	return true;
}

struct note_loop {
	struct walk *w;
	struct remembered *m;
	bool has_all;
};

/* Note the words that led from a frame of the last walk to its caller's; the same ones as in check_round(). */
static long note_round(u32 round, void *data)
{
	struct note_loop *loop = data;
	struct walk *w = loop->w;
	struct remembered *m = loop->m;
	const struct walk_frame *f, *caller;
	u64 i = w->nr - 1 - round, k = i - 1;

	loop->has_all = !i;
	if (!i || i >= WALK_FRAMES)
		return 1;
	WALK_LIMIT(i, WALK_FRAMES);
	WALK_LIMIT(k, WALK_FRAMES);
	f = &w->last[i];
	caller = &w->last[k];
	if (f->is_fixed)
		return 1;
	if (f->cfa_slot &&
	    !add_word(m, caller->sp - (u64)f->cfa_slot * w->word, caller->sp - (u64)f->cfa_extra * w->word))
		return 1;
	if (f->fp_slot && caller->needs_fp &&
	    !add_word(m, caller->sp - (u64)f->fp_slot * w->word, caller->fp))
		return 1;
	return !add_word(m, return_slot(w, f, caller), caller->pc);
}

/* Has a call at this place had its stack walked before? Most do not come again. */
static __always_inline bool is_second(struct walk *w)
{
	u32 half = w->key >> 32;
	u64 at = half;

	WALK_LIMIT(at, SEEN_ONCE);
	if (w->seen_once[at] == half)
		return true;
	w->seen_once[at] = half;
	return false;
}

/* The present call has the stack @id, which was walked just now. */
__noinline int remember(struct walk *w, u64 id)
{
	struct note_loop loop = { .w = w };
	struct remembered *m;
	u64 at, top;

	if (!w || w->word != sizeof(u64) || w->is_stale || w->last[0].is_fixed || !is_second(w))
		return 0;
	at = find_remembered(w);
	if (at >= REMEMBERED)
		at = w->next_remembered++;
	WALK_LIMIT(at, REMEMBERED);
	m = &w->remembered[at];
	w->keys[at] = 0;
	m->sp = w->call_sp;
	m->nr = 0;
	m->nr_copied = 0;
	loop.m = m;
	bpf_loop(WALK_FRAMES, note_round, &loop, 0);
	if (!loop.has_all)
		return 0;
	top = w->nr - 1;
	WALK_LIMIT(top, WALK_FRAMES);
	m->needs_fp = w->last[top].needs_fp;
	m->fp = w->call_fp;
	m->ret = w->call_ret;
	m->generation = w->generation;
	m->id = id;
	w->keys[at] = w->key;
	return 0;
}
