/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ids of call stacks, the same from every source. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

enum { STACK_NONE = 0, STACK_LOST = 1, STACK_FIRST_ID = 2 };

/* The id of a stack is a hash of its frames, outermost first, and of its process, epoch and end. */
enum { STACK_ID_BEGIN = 0x7f4a7c15 };
static inline u64 stack_id_frame(u64 outer, u64 ip)
{
	u64 id = (outer ^ ip) * 0xff51afd7ed558ccdULL;

	return id ^ id >> 32;
}

static inline u64 stack_id_end(u64 id, u32 pid, u32 epoch, u8 end)
{
	id = (id ^ ((u64)epoch << 32 | pid)) * 0xc4ceb9fe1a85ec53ULL + end;
	id ^= id >> 29;
	return id < STACK_FIRST_ID ? id + STACK_FIRST_ID : id;
}
