/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the files with a module's names by build ID or debug link, and never a wrong file. */
#pragma once

#include "user/target/module.h"

/* Where to look, and how much that may cost. Strings are borrowed. */
struct debug_search {
	struct symbol_server *server; /* owned by the owner of this struct; asked last; NULL = not asked */
	struct names_reader *reader;  /* borrowed; checks files */
	const char *sysroot;	      /* NULL = none; paths under it stay under it, whatever links say */
	const char *debug_path;	      /* NULL = none */
	bool is_remote;		      /* paths of modules belong to another machine: do not open them here */
	u64 copy_budget;	      /* bytes left for copies in memory, of all files together */
	u64 unpack_budget; /* bytes left for compressed debug sections when they are unpacked, of all files together */
	/* The file that was opened last needs more, or its sections unpack to a hundred times their size. */
	bool is_too_big;
};

/*
 * Open the file of @m itself: under the sysroot (leading directories of the path are dropped until a file is found),
 * by the descriptor kept open, or by its path. The file must have the build ID of @m. *@fd is the caller's. Only root
 * can change or cut the file behind it; otherwise it is a copy in memory. Returns 0, -ENOENT, -ESTALE if only files
 * with another build ID were found, -EFBIG if a copy would be too big, -ENOEXEC if the tables of the file are damaged
 * or unpack to too much, -EPIPE or -EAGAIN of reader_ask(), or -errno. If @s->is_too_big is set then, the
 * DWARF of the file must not be read.
 */
int debug_file_open_main(struct debug_search *s, const struct module *m, int *fd) __must_check;

/*
 * Like debug_file_open_main(), for the separate file with the symbols and DWARF of @m. @link is the file name in
 * .gnu_debuglink or NULL. @crc is its checksum, which decides if @m has no build ID. -EFBIG: also if its DWARF must
 * not be read.
 */
int debug_file_open_debug(struct debug_search *s, const struct module *m, const char *link, u32 crc,
			  int *fd) __must_check;
