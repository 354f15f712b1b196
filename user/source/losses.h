/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls and more of a process that a source has not seen. */
#pragma once

#include "user/lib/types.h"

/* Losses of a source, per process, counted by kinds, because a lost free makes a false leak. */
struct losses {
	u64 allocs, frees; /* results of calls; releases */
	u64 stacks;	   /* events whose stack was not kept */
	u64 other;	   /* calls that never returned (longjmp, killed threads), process events */
	u64 abandoned;	   /* of other: the calls that never returned; no free is among them */
	u64 unfollowed;	   /* children that were to be traced and are not; not known of their own children */
	u64 sharers;	   /* processes that ran in its memory beside it, unseen */
	u64 overwritten;   /* of other: probes whose breakpoint was overwritten in its memory */
	u64 by_probes; /* programs of it whose calls breakpoints have seen, because they could not be changed */
	u64 late;      /* programs that it executed, of which first calls, or all, were not seen */
	u64 left_out; /* allocations that pass no filter (struct tuning); no loss, but counted like one */
	u64 cramped; /* programs of it whose code was taken out, as their memory is limited: later calls are unseen */
	u64 twins;	  /* or because two of their threads have one thread pointer */
	u64 unseen_frees; /* of blocks that the host never heard of, kept by serve for --thin; no loss */
	u64 tracers;	  /* 1: a program that is not heaptap traced it by ptrace when its trace began */
};

/* Add all of @l to @to; and take it off again: of a number from outside that is less, nothing is left. */
static inline void losses_add(struct losses *to, const struct losses *l)
{
	for (u32 i = 0; i < sizeof(*l) / sizeof(u64); i++)
		((u64 *)to)[i] += ((const u64 *)l)[i];
}

static inline void losses_sub(struct losses *to, const struct losses *l)
{
	for (u32 i = 0; i < sizeof(*l) / sizeof(u64); i++)
		((u64 *)to)[i] -= ((u64 *)to)[i] < ((const u64 *)l)[i] ? ((u64 *)to)[i] : ((const u64 *)l)[i];
}
