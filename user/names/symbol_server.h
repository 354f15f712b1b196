/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fetches files with names from debuginfod servers, when the user asks for it and debug_file.c finds no file here. */
#pragma once

#include "user/lib/types.h"

struct symbol_server;

enum symbol_server_file { SYMBOL_SERVER_BINARY, SYMBOL_SERVER_DEBUG };

/*
 * Load the library, for the servers of $DEBUGINFOD_URLS. Does not use the network yet. 0; -ENOSYS, logged, without
 * the library or without a server; -ENOMEM.
 */
int symbol_server_new(struct symbol_server **out) __must_check;
void symbol_server_free(struct symbol_server *s);

/*
 * Fetch a file by its build ID, or take it from the library's cache. Waits for the network, and shows the progress on
 * a terminal, with @name. SIGINT ends the wait and nothing else, also where it is blocked; no server is asked after
 * that. Another pending signal that ends heaptap ends the wait, too. A server that cannot be reached or refuses is
 * logged, once. *@fd is the caller's; its contents are only as good as the server. 0, -ENOENT or another -errno.
 */
int symbol_server_fetch(struct symbol_server *s, enum symbol_server_file kind, const u8 *build_id, size_t len,
			const char *name, int *fd) __must_check;
