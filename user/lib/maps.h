/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads /proc/PID/maps line by line, whatever the names of files in it contain. */
#pragma once

#include "user/lib/types.h"

/* One mapping, as the kernel prints it. */
struct map_line {
	taddr_t start, end;
	u64 offset;		  /* of start in the file, in bytes */
	u64 inode;		  /* 0 = in no file */
	u32 dev_major, dev_minor; /* of the device, as the kernel prints it */
	bool is_readable, is_writable, is_executable, is_shared;
	/*
	 * Borrowed until the next line; never NULL. A file's path (an unlinked one ends in " (deleted)"),
	 * a pseudo name such as "[heap]" or "anon_inode:[x]", or "". The kernel writes a newline as "\012",
	 * which becomes a newline here; a name with these four characters looks the same (is_ambiguous).
	 */
	const char *path;
	bool is_ambiguous;
	bool is_copy; /* code of a file, with changes by heaptap: the file is that of the lines beside it, at offset */
	bool is_parked; /* the pages of the file for which such a copy stands: no code runs there */
	bool is_cut;	/* the path was too long (over 128 KiB) and lost its end */
};

/* Where heaptap has put code into a process: user/inject/process.h. */
#define MAPS_PIECE_PATH "/memfd:heaptap-inline"
#define MAPS_COPY_PATH	"/memfd:heaptap-code:"

struct maps_reader;

/*
 * Open /proc/@pid/maps. Does not stop the target. *@out is owned by the caller: maps_close().
 * Returns 0, -ESRCH if there is no such process, -EACCES without the right to look, or -errno.
 */
int maps_open(struct maps_reader **out, pid_t pid) __must_check;
void maps_close(struct maps_reader *r);

/* Read lines from @fd, which belongs to the reader from now on, also after an error. */
int maps_open_fd(struct maps_reader **out, int fd) __must_check;

/*
 * Read the next line, by rising address. Memory is bounded, however many and however long the lines are. Returns 1, 0
 * at the end (at once for a zombie or a kernel thread), -EBADMSG for a line of another format, or -errno.
 */
int maps_next(struct maps_reader *r, struct map_line *line) __must_check;

/* The page that calls lead to which Linux 6.18 writes over nops under probes (arch/x86/kernel/uprobes.c). */
#define MAPS_UPROBES_TRAMPOLINE "[uprobes-trampoline]"

/*
 * Code of the program: executable, not parked, and not "[uprobes]" or MAPS_UPROBES_TRAMPOLINE. Into "[uprobes]" the
 * kernel maps copies of instructions under probes, at the first call of the first probe (kernel/events/uprobes.c). The
 * other page comes at the second call of a probe. No call of the program comes from these pages.
 */
bool maps_is_code(const struct map_line *line);

/* Call after the end: false if the process gave up its memory (exit, exec), so that lines may be missing. */
bool maps_is_complete(const struct maps_reader *r);

/*
 * Is @line parked? For readers of all lines who do not use maps_next(). *@end: 0 at the first line, to be kept between
 * them.
 */
bool maps_is_parked(taddr_t *end, const struct map_line *line);

/*
 * Parse one line of @len bytes, without its newline. Writes a NUL at @text[@len], and restores newlines in the path
 * in place. is_parked is not set. Returns 0 or -EBADMSG.
 */
int maps_parse_line(char *text, size_t len, struct map_line *line) __must_check;
