/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of past reports of a long run, or of parts of its recording: --keep removes those that are too old. */
#pragma once

#include <sys/stat.h>

#include "user/lib/types.h"

/* One file; its identity, so that a file of another one is not removed. */
struct kept_file {
	char *name; /* owned */
	u64 number; /* of the report, or of the part */
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

/* Oldest first. */
struct kept {
	const char *what;	 /* "report", for messages */
	struct kept_file *files; /* owned */
	size_t nr, max;
};

void kept_fini(struct kept *k);

/*
 * The file @name in the directory @dir is complete, and is number @number: remove those before the last @nr. A file
 * that others changed stays, and one for which there is no memory.
 */
void kept_last(struct kept *k, int dir, const char *name, u64 number, u64 nr);
