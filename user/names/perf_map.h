/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of compiled code that is in no file: /tmp/perf-PID.map, as node, Java agents and Python write it. */
#pragma once

#include "user/lib/types.h"

struct perf_map;

/* A function of compiled code. Borrowed from the map; the texts do not end with a 0. */
struct perf_name {
	const char *function, *file; /* file NULL = unknown */
	size_t function_len, file_len;
	u32 line;	      /* 0 = unknown */
	const char *language; /* static: "javascript", "python", "compiled" = that of another runtime */
};

/*
 * Read the map of process @pid, in the directories that the process sees. The file must be a regular one that belongs
 * to the user of the process. After the end of the process, *@out is that of /tmp here, of this user. *@out is owned by
 * the caller: perf_map_free(). 0, -ENOENT if there is none, -EPERM for a file of another user, -ENOMEM, or -errno.
 */
int perf_map_read(struct perf_map **out, pid_t pid) __must_check;

/* The map in the @len bytes of @text, which is taken over and freed with it. 0 or -ENOMEM. */
int perf_map_new(struct perf_map **out, char *text, size_t len) __must_check;
void perf_map_free(struct perf_map *m);

/* Bytes of the file that were not read: there is room for a million names, and for 64 MiB. */
u64 perf_map_left_out(const struct perf_map *m);

/* The function that has @addr; of several the one that was written last. False: none. */
bool perf_map_find(const struct perf_map *m, u64 addr, struct perf_name *name);
