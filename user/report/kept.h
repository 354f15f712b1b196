/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of past reports of a long run: --keep removes those that are too old. */
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "user/lib/types.h"

/* One file; its identity, so that a file of another one is not removed. */
struct kept_file {
	char *name; /* owned */
	u64 number; /* of the report */
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

/* Oldest first. */
struct kept {
	struct kept_file *files; /* owned */
	size_t nr, max;
};

void kept_fini(struct kept *k);

/* Note that report @number made @name, which @st describes. 0 or -ENOMEM: the file stays for ever. */
int kept_add(struct kept *k, const char *name, u64 number, const struct stat *st) __must_check;

/* Remove the files of reports up to number @last in the directory @dir. A file that others changed stays. */
void kept_remove(struct kept *k, int dir, u64 last);
