/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stopped, ptraced thread on each CPU: program counter, breakpoint, and system calls of interest. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

/* Program counter of @tid, which must be stopped. 0, -ENOTSUP for code without a known breakpoint, or -errno. */
int tracee_get_pc(pid_t tid, taddr_t *pc) __must_check;
int tracee_set_pc(pid_t tid, taddr_t pc) __must_check;

/* @word of code with a breakpoint instruction in place of its first bytes. */
long tracee_breakpoint(long word);

/* The program counter of a thread that has hit the breakpoint at @addr. */
taddr_t tracee_after_breakpoint(taddr_t addr);

/* The meaning of a system call for code that follows the start and the end of a program. */
enum tracee_call {
	TRACEE_CALL_OTHER,
	TRACEE_CALL_MAPS_CODE, /* mmap with PROT_EXEC */
	TRACEE_CALL_LOADING,   /* a step of mapping a library, before any of its code runs */
	TRACEE_CALL_EXITS_ALL, /* exit_group */
	TRACEE_CALL_EXITS,     /* exit: this thread only */
};

/*
 * @tid must be stopped at the entry of a system call, or in one (PTRACE_EVENT_EXIT). OTHER if the call is not known.
 */
enum tracee_call tracee_call(pid_t tid);

/*
 * Has the process mapped new code that may run after this call? @tid is stopped at the entry of a system call, while
 * its process loads libraries. The caller keeps @has_new_code from call to call, false at first.
 */
static inline bool tracee_has_loaded(pid_t tid, bool *has_new_code)
{
	enum tracee_call call = tracee_call(tid);
	bool has_loaded = *has_new_code && call != TRACEE_CALL_MAPS_CODE && call != TRACEE_CALL_LOADING;

	*has_new_code = call == TRACEE_CALL_MAPS_CODE || (*has_new_code && call == TRACEE_CALL_LOADING);
	return has_loaded;
}
