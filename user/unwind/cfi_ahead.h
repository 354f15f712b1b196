/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the call frame information of large files in a thread, while its caller has other work to do. */
#pragma once

#include "user/unwind/cfi.h"
#include "user/target/module.h"

/*
 * Begin to read the files of @list that @is_known does not know. They stay open until cfi_ahead_end(). NULL: they are
 * small, or there is one CPU, or no thread: they are read when they are needed, as always.
 */
struct cfi_ahead *cfi_ahead_start(const struct mapping_list *list,
				  bool (*is_known)(const void *ctx, const struct module *m), const void *ctx);

/*
 * The information of @m, as cfi_load() gives it. Waits while it is being read; reads it here if the thread, or @a,
 * which may be NULL, has not begun with it.
 */
int cfi_ahead_load(struct cfi_ahead *a, const struct module *m, struct cfi_table **out) __must_check;

/* End the thread after the file that it reads, and free what was not asked for. NULL is fine. */
void cfi_ahead_end(struct cfi_ahead *a);
