/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPU time that a process pays for its calls being seen. */
#pragma once

#include "user/source/kernel_facts.h"
#include "user/source/probe_taker.h"

/*
 * Nanoseconds of a call, as doc/performance.md has them: by code, and by breakpoints on a quiet machine of today.
 * Elsewhere those cost more.
 */
enum { CALL_BY_CODE_NS = 100, CALL_BY_BPF_NS = 2500, CALL_PROGRAMS_NS = 700 };

/* A call by breakpoints on this machine, if the way to them was measured: of two calls, one is seen at its return. */
static inline u64 call_by_bpf_ns(const struct way_to_probe *way)
{
	return way->entry_ns ? way->entry_ns + way->return_ns / 2 + CALL_PROGRAMS_NS : CALL_BY_BPF_NS;
}

static inline u64 call_rate_per_s(const struct call_rate *rate)
{
	return rate->time_ns ? (u64)((double)rate->calls * 1e9 / (double)rate->time_ns) : 0;
}

/* Where a call takes @call_ns: the part of its CPU time, in thousandths, that would go to calls being seen. */
static inline u64 call_price_permille(const struct call_rate *rate, u64 call_ns)
{
	double calls = (double)call_rate_per_s(rate) * (double)call_ns,
	       own = rate->own_time_ns ? (double)rate->own_ns * 1e9 / (double)rate->own_time_ns : 0;

	return calls > 0 ? (u64)(calls * 1000 / (calls + own)) : 0;
}
