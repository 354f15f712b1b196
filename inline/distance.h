/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random distances between samples, by integers only: for inline/sample.h. */
#pragma once

#include "user/lib/types.h"

enum { SAMPLE_BITS = 20 };

/* The next number of splitmix64. */
static inline u64 sample_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* -ln(@u / 2^64) in units of 2^-SAMPLE_BITS; @u is not 0. Each squaring tells one bit of the binary logarithm. */
static inline u64 sample_minus_ln(u64 u)
{
	const u64 ln2 = 0xb17217f8; /* times 2^32 */
	u64 zeros = (u64)__builtin_clzll(u), m = u << zeros >> 32, log = 0;

	for (u32 i = 0; i < SAMPLE_BITS; i++) {
		m = m * m >> 31;
		log = log << 1 | m >> 32;
		m >>= m >> 32;
	}
	return (((zeros + 1) << SAMPLE_BITS) - log) * ln2 >> 32;
}

/* Bytes up to the next sample: an exponential distribution with the mean @mean, at most 2^36. Of 1: each block. */
static inline u64 sample_distance(u64 *state, u64 mean)
{
	return mean > 1 ? mean * sample_minus_ln(sample_random(state) | 1) >> SAMPLE_BITS : 0;
}
