/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which names of programs are chosen, for user/source/chosen_names.c and its BPF program. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

/*
 * Names of programs, as a machine that reads comm byte by byte. In a set of bits, at first @begins, a byte leads from
 * each bit of steps[byte] to the next one, and of @stays to itself. The last byte of a chosen name leads to @ends.
 */
struct chosen_names {
	u64 begins, stays, ends;
	u64 steps[256];
};
