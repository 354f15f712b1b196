/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files that hold a module's names: found by build ID or debug link, and never a wrong one. */
#pragma once

#include "user/module.h"

struct symbol_server;

/* Where to look, and how much that may cost. Strings are borrowed. */
struct debug_search {
	struct symbol_server *server; /* owned by who has this; asked last; NULL = not at all */
	const char *sysroot;	      /* NULL = none; paths under it stay under it, whatever links say */
	const char *debug_path;	      /* NULL = none */
	bool is_remote;		      /* paths of modules are another machine's: open none here */
	u64 copy_budget;	      /* bytes that copies in memory may still take, all files together */
};

/*
 * Open the file of @m itself: under the sysroot (leading folders of the path stripped until one fits), the
 * one kept open, or by its path. It must have the build ID of @m. *@fd is the caller's, and what it leads
 * to cannot be changed or cut by anyone but root (a copy in memory if need be).
 * Returns 0, -ENOENT, -ESTALE if only files with another build ID were found, -EFBIG if a copy would be
 * too big, -ENOEXEC if the file's tables are damaged or a decompression bomb, or -errno.
 */
int debug_file_open_main(struct debug_search *s, const struct module *m, int *fd) __must_check;

/*
 * The same for the separate file with the symbols and DWARF of @m. @link is the file name in
 * .gnu_debuglink or NULL, @crc its checksum, which decides when @m has no build ID.
 */
int debug_file_open_debug(struct debug_search *s, const struct module *m, const char *link, u32 crc,
			  int *fd) __must_check;
