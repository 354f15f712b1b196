/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call that its process is to be stopped at: the console tells the BPF programs. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

enum { CALL_WISH_WORDS = 4 };

/*
 * The next allocation or release by process @pid in a function whose bit is set in @fns (fn of struct heap_event), with
 * stack @stack unless that is 0. The program that stops the process sets @pid to 0.
 */
struct call_wish {
	u32 pid; /* 0 = none */
	u32 reserved;
	u64 stack;
	u64 fns[CALL_WISH_WORDS];
};
