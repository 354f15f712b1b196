/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files with names from servers of debuginfod, for who asks for that: what debug_file.c does not find here. */
#pragma once

#include "user/lib/types.h"

struct symbol_server;

enum symbol_server_file { SYMBOL_SERVER_BINARY, SYMBOL_SERVER_DEBUG };

/*
 * The library of debuginfod and the servers of $DEBUGINFOD_URLS. Asks nobody yet. 0; -ENOSYS: there is no library, or
 * no server is named, logged; -ENOMEM.
 */
int symbol_server_new(struct symbol_server **out) __must_check;
void symbol_server_free(struct symbol_server *s);

/*
 * Fetch a file by its build ID, into the library's cache and from there, if it has it: waits for the network, and says
 * on a terminal how far it is; a signal that wants heaptap to end (blocked, and not read yet) ends it. @name is for
 * that. *@fd is the caller's; what is in the file is the server's word. 0, -ENOENT or another -errno.
 */
int symbol_server_fetch(struct symbol_server *s, enum symbol_server_file kind, const u8 *build_id, size_t len,
			const char *name, int *fd) __must_check;
