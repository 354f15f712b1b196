/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compiled call frame information in the kernel: rows of files, packed into shards, and mappings of processes. */
#pragma once

#include <sys/types.h>

#include "user/target/module.h"

struct unwind_tables;

struct unwind_stats {
	u64 nr_rows;	     /* in the kernel */
	u64 kernel_bytes;    /* memory of the rows, unused room included */
	u64 nr_files;	     /* with rows */
	u64 nr_without;	     /* files without information, or that could not be read */
	u64 nr_skipped_maps; /* mappings beyond the limit of a process */
	u64 nr_skipped_rows; /* beyond the limit of all shards */
};

/* @shards_fd and @process_maps_fd are maps of the loaded programs; borrowed. 0 or -errno. */
int unwind_tables_new(struct unwind_tables **out, int shards_fd, int process_maps_fd) __must_check;
void unwind_tables_free(struct unwind_tables *u);

/* The mappings of a process, and the state of the process when they were read. */
struct unwind_mappings {
	const struct mapping_list *list;
	u32 word;	  /* bytes of an address */
	u32 removals;	  /* removals of mappings before the read: struct process_state, bpf/maps.h */
	u32 execs;	  /* programs that the process had executed */
	taddr_t start_sp; /* stack pointer at its first instruction; 0 = not known */
};

/*
 * Make @maps the mappings of process @pid. Tables of new files are compiled, or read from the cache. The change is
 * atomic. Blocks for some 10 ms, longer for large files. 0 or -errno. Files without tables are no error.
 */
int unwind_tables_set(struct unwind_tables *u, pid_t pid, const struct unwind_mappings *maps) __must_check;

/* The mappings of @pid were read again after @removals, and have not changed. Returns true if that is news. */
bool unwind_tables_confirm(struct unwind_tables *u, pid_t pid, u32 removals);

/* Remove @pid, which has ended. */
void unwind_tables_forget(struct unwind_tables *u, pid_t pid);

struct unwind_stats unwind_tables_stats(const struct unwind_tables *u);
