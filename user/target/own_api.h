/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions that an allocator has beside malloc and its kin (mallocx, mi_malloc), under any prefix. */
#pragma once

#include "user/target/allocator.h"

enum { OWN_API_MAX = 8, OWN_API_PREFIX_BYTES = 24 };

/* The functions of one allocator, with one prefix, that a file defines. */
struct own_api {
	u8 allocator;			   /* index of the table in own_api.c */
	char prefix[OWN_API_PREFIX_BYTES]; /* "mi_", "_rjem_", or "" */
	u64 found;			   /* bits: functions that no other allocator has */
};

struct own_api_list {
	struct own_api apis[OWN_API_MAX];
	size_t nr;
	u32 proved; /* bits: tables in own_api.c whose allocator is surely here */
};

/* A file defines the function @symbol. */
void own_api_see(struct own_api_list *list, const char *symbol);

/*
 * All functions of a file were seen: forget APIs of which too few were there, and those of which some were there but
 * nothing else of the allocator. Their names mean something else. Returns how many are left.
 */
size_t own_api_settle(struct own_api_list *list);

/*
 * The row in @table of the function @symbol of the APIs in @list; made if it is new. 0 if it is none of them, or does
 * nothing to blocks; -ENOSPC if the table is full, -ENOMEM. *@kind is the name of the allocator.
 */
int own_api_row(const struct own_api_list *list, struct alloc_table *table, const char *symbol,
		const char **kind) __must_check;
