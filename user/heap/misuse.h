/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wrong releases: of a block of another family, with another size or alignment than it has, of a block that was
 * released before, or of no block. Filled by user/heap/heap_check.c.
 */
#pragma once

#include "bpf/event.h"
#include "user/heap/budget.h"

enum misuse_kind {
	MISUSE_MISMATCHED,  /* by a function of another family than that of the allocation */
	MISUSE_DOUBLE,	    /* of a block that was released before */
	MISUSE_BAD_FREE,    /* of an address that no allocator gave */
	MISUSE_BAD_REALLOC, /* realloc of such an address, or of a released block */
	MISUSE_SIZE,	    /* by a delete that says another size than new was asked for */
	MISUSE_ALIGNMENT,   /* by a delete with another alignment than new, or only one of them has one */
	NR_MISUSES
};

enum { MISUSE_NO_ROW = UINT32_MAX, MISUSE_MAX = 1024 /* different wrong releases that are kept */ };

/* Wrong releases of one kind by the same callers. Rows are those of heap_row_get(). */
struct misuse {
	enum misuse_kind kind;
	u16 fn;		 /* function that released it */
	u32 alloc_row;	 /* caller that allocated the block, MISUSE_NO_ROW = unknown */
	u32 free_row;	 /* caller that released it wrongly */
	u32 earlier_row; /* caller that had released it before */
	u64 count;
	taddr_t addr; /* of the first one */
	u64 time_ns;  /* of the last one */
	u64 inside;   /* bytes from the start of the live block that contains addr; 0 = no block does */
	/* MISUSE_SIZE, MISUSE_ALIGNMENT: of the first block, and what its release said. Both 0: one has no alignment */
	u64 asked, said;
};

/* Are there @m->asked and @m->said? */
static inline bool misuse_has_numbers(const struct misuse *m)
{
	return m->kind == MISUSE_SIZE || m->asked;
}

struct misuse_counts {
	u64 of[NR_MISUSES];
	u64 nr_dropped; /* included in the counts, but not in the list, because that was full */
	u64 nr_unsure;	/* releases of unknown blocks that may be right, because events were lost */
};

/* Calls that are allowed, and mistakes nevertheless. */
enum notice_kind {
	NOTICE_REALLOC_ZERO,  /* realloc to size 0: some allocators release the block, others do not */
	NOTICE_HUGE_SIZE,     /* a size above half of all addresses: most likely a negative number */
	NOTICE_BAD_ALIGNMENT, /* an alignment that is no power of two, or too small for posix_memalign */
	NR_NOTICES_KINDS
};

struct misuse_notice {
	u64 count, size; /* size: that of the first call */
	u32 row;	 /* first caller; MISUSE_NO_ROW = unknown */
};

/* An earlier release. */
struct misuse_freed {
	taddr_t addr; /* 0 = none */
	u64 stack;
	u32 alloc_row;
	u16 fn;
};

/* The latest releases by address, and the wrong ones. Bounded: an old release is forgotten. */
struct misuse_table {
	struct misuse_freed *freed; /* owned; 1 << bits of them; grows with the number of releases */
	u32 bits;
	u64 nr_noted;	     /* releases; counted anew after the table could not grow */
	struct misuse *list; /* owned; wrong releases in order of first sight */
	size_t nr, max;
	struct misuse_counts counts;
	struct misuse_notice notices[NR_NOTICES_KINDS];
	struct budget *budget;
};

/* A new table, or a copy of one. *@out is owned by the caller. @budget must outlive it. 0 or -ENOMEM. */
int misuse_table_new(struct misuse_table **out, struct budget *budget) __must_check;
int misuse_table_copy(struct misuse_table **out, const struct misuse_table *t,
		      struct budget *budget) __must_check;
void misuse_table_free(struct misuse_table *t); /* NULL is fine */

/* No more releases come: free the memory of earlier ones, up to 1.5 MiB. NULL is fine. */
void misuse_table_end(struct misuse_table *t);

/* Remember that @ev released the block at @addr, which row @alloc_row allocated. */
void misuse_note_freed(struct misuse_table *t, taddr_t addr, u32 alloc_row, const struct heap_event *ev);

/* The last release of @addr, NULL if it is not known. */
const struct misuse_freed *misuse_find_freed(const struct misuse_table *t, taddr_t addr);

/* Add @m to the list, or its count and time to an equal entry. */
void misuse_add(struct misuse_table *t, const struct misuse *m);

/* By kind; NULL if releases are not checked. */
struct heap;
const struct misuse_notice *heap_notices(const struct heap *h);

/* Names: for JSON ("realloc-zero"), and for people. */
const char *notice_name(enum notice_kind kind);
const char *notice_what(enum notice_kind kind);

/* Names: for JSON ("mismatched-free"), and for people, of @count of them ("mismatched release"). */
const char *misuse_name(enum misuse_kind kind);
const char *misuse_what(enum misuse_kind kind, u64 count);

/* Does the release not fit to the allocation? Then reports count it for the caller that allocated. */
bool misuse_is_mismatch(enum misuse_kind kind);
