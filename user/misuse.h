/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Releases that were wrong: of another family's block, of one that was released before, of no block at all. */
#pragma once

#include "bpf/event.h"
#include "user/budget.h"

enum misuse_kind {
	MISUSE_MISMATCHED,  /* by a function of another family than the one that allocated it */
	MISUSE_DOUBLE,	    /* of a block that was released already */
	MISUSE_BAD_FREE,    /* of an address that no allocator gave */
	MISUSE_BAD_REALLOC, /* the same, or of a released block, by realloc */
	NR_MISUSES
};

enum { MISUSE_NO_ROW = UINT32_MAX, MISUSE_MAX = 1024 /* different ones that are kept */ };

/* What was wrong in one way, by the same callers. Rows are the books'. */
struct misuse {
	enum misuse_kind kind;
	u16 fn;		 /* that released */
	u32 alloc_row;	 /* who allocated the block, MISUSE_NO_ROW = unknown */
	u32 free_row;	 /* who released it wrongly */
	u32 earlier_row; /* who had released it before */
	u64 count;
	taddr_t addr; /* the first time */
	u64 time_ns;  /* of the last time */
	u64 inside;   /* bytes from the start of the live block of alloc_row, 0 = at no such block's inside */
};

struct misuse_counts {
	u64 of[NR_MISUSES];
	u64 nr_dropped; /* of these, without an entry of their own: there were too many different ones */
	u64 nr_unsure;	/* releases of unknown blocks that may be right: events were lost */
};

/* A release that went before. */
struct misuse_freed {
	taddr_t addr; /* 0 = none */
	u64 stack;
	u32 alloc_row;
	u16 fn;
};

/* The latest releases, by address: bounded, so that what was released long ago is known no more. */
struct misuse_table {
	struct misuse_freed *freed; /* owned; 1 << bits of them, more when many have been released */
	u32 bits;
	u64 nr_noted;	     /* releases */
	struct misuse *list; /* owned */
	size_t nr, max;
	struct misuse_counts counts;
	struct budget *budget;
};

/* 0 or -ENOMEM. @budget must outlive it. */
int misuse_table_new(struct misuse_table **out, struct budget *budget) __must_check;
int misuse_table_copy(struct misuse_table **out, const struct misuse_table *t,
		      struct budget *budget) __must_check;
void misuse_table_free(struct misuse_table *t); /* NULL is fine */

/* No release comes any more: forget those of before, which take 1.5 MiB. NULL is fine. */
void misuse_table_end(struct misuse_table *t);

/* The block at @addr, of @alloc_row, has been released by @ev. */
void misuse_note_freed(struct misuse_table *t, taddr_t addr, u32 alloc_row, const struct heap_event *ev);

/* Who released @addr last, NULL if that is not known. */
const struct misuse_freed *misuse_find_freed(const struct misuse_table *t, taddr_t addr);

/* One more of @m; its count and time are the ones to add. */
void misuse_add(struct misuse_table *t, const struct misuse *m);

/* "mismatched-free", ...: the JSON report's words; and for people. */
const char *misuse_name(enum misuse_kind kind);
const char *misuse_what(enum misuse_kind kind);
