/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of kinds of allocator ("glibc") that a file gives: each is kept once, because targets only borrow them. */
#pragma once

#include "user/lib/types.h"

/* Zero is empty. */
struct kind_list {
	char **names; /* owned, each too */
	size_t nr;
};

/* The copy of @kind in the list, valid until kind_list_fini(). NULL without memory. */
const char *kind_list_keep(struct kind_list *list, const char *kind);
void kind_list_fini(struct kind_list *list);
