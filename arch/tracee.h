/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stopped, ptraced thread on each CPU: system calls of interest. */
#pragma once

#include "user/lib/types.h"

/* The meaning of a system call for code that follows the start and the end of a program. */
enum tracee_call {
	TRACEE_CALL_OTHER,
	TRACEE_CALL_MAPS_CODE, /* mmap with PROT_EXEC */
	TRACEE_CALL_LOADING,   /* a step of mapping a library, before any of its code runs */
	TRACEE_CALL_EXITS_ALL, /* exit_group */
	TRACEE_CALL_EXITS,     /* exit: this thread only */
	TRACEE_CALL_OBSERVED,  /* clone with CLONE_UNTRACED: the new task may want to trace this process */
};

/* The numbers of system calls on a CPU. */
struct tracee_numbers {
	u32 mmap, mmap2; /* the same where there is only one */
	u32 exit, exit_group, clone;
	const u32 *loading; /* those that load a library, but for mmap */
	size_t nr_loading;
};

/* The meaning of call @number. @access: the third argument of mmap. @flags: the first one of clone. */
enum tracee_call tracee_meaning(const struct tracee_numbers *n, u32 number, u64 access, u64 flags);

/*
 * @tid must be stopped at the entry of a system call, or in one (PTRACE_EVENT_EXIT). OTHER if the call is not known.
 */
enum tracee_call tracee_call(pid_t tid);

/* Is @tid, stopped as above, in a system call that ends it? */
static inline bool tracee_exits(pid_t tid)
{
	enum tracee_call call = tracee_call(tid);

	return call == TRACEE_CALL_EXITS_ALL || call == TRACEE_CALL_EXITS;
}

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
