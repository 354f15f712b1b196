/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The numbers that order the calls of all threads of a target. While one thread only has calls, they are taken without
 * a lock.
 */
#pragma once

#include "user/lib/types.h"

/*
 * @alone is the number of the last call while one thread has calls. The second thread sets @all, which is 0 until then,
 * to a number that @alone never reaches, and from then on all threads count @all up.
 *
 * The first thread may take some numbers of @alone after that, until it sees @all. They are in order all the same: on
 * x86 loads are not reordered, so whoever has seen what another thread did (it has its block) sees @all as set. Other
 * CPUs reorder loads, and count up in a loop of instructions: there all threads count @all from the start.
 */
struct piece_sequence {
	u64 alone, all;
	u32 has_first; /* a thread has calls, or will have */
};

#if defined(__x86_64__)

/* More calls than the first thread has before it sees @all; small enough for the lower half of a number to tell. */
static const u64 SEQUENCE_STEP = 1ULL << 31;

/* Does one thread only have calls? */
static inline bool sequence_is_alone(const struct piece_sequence *s)
{
	return !__atomic_load_n(&s->all, __ATOMIC_ACQUIRE);
}

/* The number of a call, which is in order with those of all calls that the thread depends on. */
static inline __attribute__((always_inline)) u64 sequence_next(struct piece_sequence *s)
{
	u64 before = 1;

	if (!sequence_is_alone(s))
		return __atomic_add_fetch(&s->all, 1, __ATOMIC_SEQ_CST);
	/* One instruction, because a signal handler may have calls, too. */
	asm volatile("xadd %0, %1" : "+r"(before), "+m"(s->alone) : : "memory");
	return before + 1;
}

/* One more thread will have calls. If it joins twice, it is taken for two, and nobody is alone. */
static inline void sequence_join(struct piece_sequence *s)
{
	u64 none = 0, begin;

	if (!__atomic_exchange_n(&s->has_first, 1, __ATOMIC_SEQ_CST))
		return;
	begin = __atomic_load_n(&s->alone, __ATOMIC_SEQ_CST) + SEQUENCE_STEP;
	__atomic_compare_exchange_n(&s->all, &none, begin, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

#else

static inline bool sequence_is_alone(const struct piece_sequence *s)
{
	(void)s;
	return false;
}

static inline u64 sequence_next(struct piece_sequence *s)
{
	return __atomic_add_fetch(&s->all, 1, __ATOMIC_SEQ_CST);
}

static inline void sequence_join(struct piece_sequence *s)
{
	(void)s;
}

#endif

/* The number of the last call. */
static inline u64 sequence_last(const struct piece_sequence *s)
{
	u64 all = __atomic_load_n(&s->all, __ATOMIC_ACQUIRE);

	return all ? all : __atomic_load_n(&s->alone, __ATOMIC_ACQUIRE);
}
