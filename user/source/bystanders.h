/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs beside the traced ones that breakpoints of the kernel disturb, or that disturb those: warnings. */
#pragma once

#include "user/lib/types.h"

/*
 * Links without a PID filter put probes into all processes that map the file. An emulator (valgrind, qemu) runs the
 * code of its program by itself, reads the breakpoint as an instruction, and ends.
 */
struct bystanders {
	bool has_told_all, has_told_pieces;
	u32 nr_emulators; /* that the user was told of, and those after them */
};

/* Does the process execute an emulator, which must not see probes? */
bool bystander_is_emulator(pid_t pid);

/* @pid is an emulator: warn of the first few. */
void bystanders_tell(struct bystanders *b, pid_t pid);

/*
 * Warn of the emulators that run now, and, @is_everywhere, of the targets of --backend inline, whose allocator
 * functions get probes, too. Only the first time for each.
 */
void bystanders_tell_all(struct bystanders *b, bool is_everywhere);

/*
 * Does a program other than heaptap trace @pid by ptrace? Warns of it. Returns 1 or 0.
 *
 * A debugger reads the byte under its breakpoint when it sets it, and writes that back at each stop. So it may take out
 * the kernel's breakpoint; or it has read the kernel's, and then steps over a breakpoint by running into another one.
 */
u32 bystander_traces(pid_t pid);

/* Warn that the breakpoint in @function of @pid is gone. */
void bystander_tell_overwritten(pid_t pid, const char *function);
