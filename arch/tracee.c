/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The meaning of a system call, by the numbers of its CPU. */
#include "arch/tracee.h"

#include <sched.h>
#include <sys/mman.h>

enum tracee_call tracee_meaning(const struct tracee_numbers *n, u32 number, u64 access, u64 flags)
{
	if (number == n->mmap || number == n->mmap2)
		return access & PROT_EXEC ? TRACEE_CALL_MAPS_CODE : TRACEE_CALL_LOADING;
	if (number == n->exit_group)
		return TRACEE_CALL_EXITS_ALL;
	if (number == n->exit)
		return TRACEE_CALL_EXITS;
	if (number == n->clone)
		return flags & CLONE_UNTRACED ? TRACEE_CALL_OBSERVED : TRACEE_CALL_OTHER;
	for (size_t i = 0; i < n->nr_loading; i++)
		if (n->loading[i] == number)
			return TRACEE_CALL_LOADING;
	return TRACEE_CALL_OTHER;
}
