/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random distances between samples, by integers only: one law for the stubs in targets, BPF and ptrace. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

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
	u64 zeros = 0, log = 0, m;

	/* BPF has no instruction for the leading zeros. */
	for (u32 step = 32; step; step /= 2) {
		u64 is_low = !(u >> (64 - step));

		u <<= is_low * step;
		zeros += is_low * step;
	}
	m = u >> 32;
	for (u32 i = 0; i < SAMPLE_BITS; i++) {
		m = m * m >> 31;
		log = log << 1 | m >> 32;
		m >>= m >> 32;
	}
	return (((zeros + 1) << SAMPLE_BITS) - log) * ln2 >> 32;
}

/*
 * Bytes up to the next sample, by the random number @u: an exponential distribution with the mean @mean, at most 2^36.
 * Of 1: each block.
 */
static inline u64 sample_distance(u64 u, u64 mean)
{
	return mean > 1 ? mean * sample_minus_ln(u | 1) >> SAMPLE_BITS : 0;
}

/* The mean of a distance as in an event: its binary logarithm; 0 = it is the only one of the trace. */
static inline u32 sample_mean_log(u64 mean)
{
	const u64 odd[] = { 0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0,
			    0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000 };
	u32 log = 0;

	for (u32 i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		log |= (u32)((mean & odd[i]) != 0) << i;
	return (mean & (mean - 1)) ? 0 : log;
}
