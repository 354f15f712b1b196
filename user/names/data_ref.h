/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From an address in a process's data to the file whose variable may lie there. */
#pragma once

#include "user/target/module.h"

/*
 * The place of @addr in the module whose segments (data, .bss) it lies in; module 0 if it is in none. Reads the
 * headers of files that are open already.
 */
struct code_ref data_ref(const struct mapping_list *list, taddr_t addr);

/* Let @open have each module whose file the two functions will want for @addr and that is not open. */
void data_ref_open(const struct mapping_list *list, const char *exe, taddr_t addr,
		   void (*open)(void *ctx, struct module *m), void *ctx);

/*
 * The place of @addr in the thread-local segment of the program @exe (path; else of the lowest module) in the thread
 * whose thread pointer is @tp: the offset counts from the segment's start. Module 0 if it is not there.
 */
struct code_ref data_ref_tls(const struct mapping_list *list, const char *exe, taddr_t tp, taddr_t addr);
