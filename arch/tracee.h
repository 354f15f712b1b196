/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stopped, ptraced thread as each CPU has it: program counter, breakpoint, system calls that matter. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

/* Program counter of @tid, which must be stopped. 0, -ENOTSUP for code without a known breakpoint, or -errno. */
int tracee_get_pc(pid_t tid, taddr_t *pc) __must_check;
int tracee_set_pc(pid_t tid, taddr_t pc) __must_check;

/* @word of code with a breakpoint instruction in place of its first bytes. */
long tracee_breakpoint(long word);

/* Where the program counter stands after the breakpoint at @addr was hit. */
taddr_t tracee_after_breakpoint(taddr_t addr);

/* What the system call that @tid is in means to somebody who follows a program's start and end. */
enum tracee_call {
	TRACEE_CALL_OTHER,
	TRACEE_CALL_MAPS_CODE, /* mmap with PROT_EXEC */
	TRACEE_CALL_LOADING,   /* part of mapping a library: none of its code has run */
	TRACEE_CALL_EXITS_ALL, /* exit_group */
	TRACEE_CALL_EXITS,     /* exit: this thread only */
};

/* @tid is stopped at entry of a call or in one (PTRACE_EVENT_EXIT). OTHER if that cannot be known. */
enum tracee_call tracee_call(pid_t tid);

/*
 * @tid, of a process that loads libraries, is stopped at entry of a call. True when code was mapped before it, which
 * may run after it. @has_new_code is the caller's to keep from call to call, false at first.
 */
static inline bool tracee_has_loaded(pid_t tid, bool *has_new_code)
{
	enum tracee_call call = tracee_call(tid);
	bool has_loaded = *has_new_code && call != TRACEE_CALL_MAPS_CODE && call != TRACEE_CALL_LOADING;

	*has_new_code = call == TRACEE_CALL_MAPS_CODE || (*has_new_code && call == TRACEE_CALL_LOADING);
	return has_loaded;
}
