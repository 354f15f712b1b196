/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the kernel keeps fields of its tasks: found by user/source, used by the BPF programs. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

/* Offsets of fields in struct task_struct, as the kernel describes its types; all 0 = it does not. */
struct task_fields {
	u32 mm, vfork_done, utask, real_parent, tgid;
	u32 reserved;
};

/*
 * Offsets of the sets of pending signals: in struct task_struct that of a thread, and the address of what threads of a
 * process share; in there that of the process. All 0 = the kernel does not describe its types.
 */
struct pending_fields {
	u32 of_thread, shared, of_process;
	u32 reserved;
};
