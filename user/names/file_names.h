/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names in one file, and in the separate file with its debug information, by libdw. Runs in the reader. */
#pragma once

#include "user/names/dwarf_names.h"

struct file_names;
struct reader_jail;

/* Finds the separate file: @link is the name in .gnu_debuglink or NULL, @crc its checksum. A descriptor, or -1. */
struct debug_finder {
	int (*find)(void *ctx, const char *link, u32 crc);
	void *ctx;
};

/*
 * Open the file @fd, which is taken over. @is_plain: symbol tables only. @jail limits memory. 0; -ENOEXEC: libdw cannot
 * read it; -ENOMEM.
 */
int file_names_new(struct file_names **out, int fd, bool is_plain, const struct debug_finder *finder,
		   struct reader_jail *jail) __must_check;
void file_names_free(struct file_names *n);

/*
 * The frames at @addr, which is inside of a call, innermost first. Returns their number, at least 1; strings live as
 * long as @n.
 */
size_t file_names_look_up(struct file_names *n, u64 addr, struct dwarf_frame frames[DWARF_FRAMES_MAX]);

/* The linker symbol of the variable at @addr, and the offset in it. *@name is NULL without one. 0 or -ENOMEM. */
int file_names_data(struct file_names *n, u64 addr, bool is_tls, const char **name, u64 *offset) __must_check;
