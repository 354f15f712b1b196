/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that do not trace give up all rights but those to read their input and to write their output. */
#pragma once

struct options;
struct outputs;

/*
 * For all that follows: read files, and write to @outs, which may be NULL, and to temporary files. No other file can be
 * changed (Landlock), and there are no sockets; with --debuginfod there are, and files are as free as its cache needs.
 * Call it before there are other threads, and before the first byte of a file is parsed. There is no way back.
 */
void rights_keep_files(const struct options *o, const struct outputs *outs);

/* As above, without bounds of files and sockets: a connection to another heaptap is open, and may be recorded. */
void rights_keep_peer(const struct options *o, const struct outputs *outs);
