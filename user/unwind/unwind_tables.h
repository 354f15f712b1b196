/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compiled call frame information as walks read it: rows of files, packed into shards, and mappings of processes. */
#pragma once

#include "user/target/module.h"

struct shard;
struct unwind_maps;
struct unwind_tables;

/* Where the tables lie that walks read. Functions return 0 or -errno. */
struct unwind_memory {
	void *ctx; /* owned by the tables: end() */
	/* The rows of shard @nr, new if it is the next number. -ENOSPC: there is no more. And: enough for now. */
	int (*open_shard)(void *ctx, u32 nr, struct shard **out);
	void (*close_shard)(void *ctx, struct shard *shard);
	/*
	 * Copy @maps to memory that no walk uses, and let walks of @pid use it from now on, in place of what was
	 * published before. May wait for walks under way. And: @pid has ended.
	 */
	int (*publish)(void *ctx, pid_t pid, const struct unwind_maps *maps, struct unwind_maps **out);
	void (*drop_maps)(void *ctx, pid_t pid, struct unwind_maps *maps);
	/* Wait for walks by mappings that others have replaced. NULL = rows of files that are gone stay unused. */
	int (*settle)(void *ctx);
	void (*end)(void *ctx); /* free @ctx, and all rooms that are still there */
};

struct unwind_stats {
	u64 nr_rows;
	u64 kernel_bytes;    /* memory of the rows, unused room included */
	u64 nr_files;	     /* with rows */
	u64 nr_without;	     /* files without information, or that could not be read */
	u64 nr_skipped_maps; /* mappings beyond the limit of a process */
	u64 nr_skipped_rows; /* beyond the limit of all shards */
};

/* Descriptors of the maps of the loaded programs; borrowed. */
struct unwind_kernel_maps {
	int shards_fd, slabs_fd, slots_fd;
};

/* Tables in the kernel's memory. 0 or -errno. */
int unwind_tables_new(struct unwind_tables **out, const struct unwind_kernel_maps *maps) __must_check;
/* Tables in other memory than the kernel's. 0, or -ENOMEM: then memory->ctx stays the caller's. */
int unwind_tables_new_in(struct unwind_tables **out, const struct unwind_memory *memory) __must_check;
void unwind_tables_free(struct unwind_tables *u);

/* The mappings of a process, and the state of the process when they were read. */
struct unwind_mappings {
	const struct mapping_list *list;
	u32 word;		 /* bytes of an address */
	u32 removals;		 /* removals of mappings before the read: struct process_state, bpf/maps.h */
	u32 execs;		 /* programs that the process had executed */
	taddr_t start_sp;	 /* stack pointer at its first instruction; 0 = not known */
	struct cfi_ahead *ahead; /* may have read files already; NULL = none */
};

/*
 * Make @maps the mappings of process @pid. Tables of new files are compiled, or read from the cache. The change is
 * atomic. Blocks for some 10 ms, longer for large files. 0 or -errno. Files without tables are no error.
 */
int unwind_tables_set(struct unwind_tables *u, pid_t pid, const struct unwind_mappings *maps) __must_check;

/* Are the rows of @m in the tables? */
bool unwind_tables_know(const struct unwind_tables *u, const struct module *m);

/*
 * Files for which @is_used, by id of their modules, is false are gone: no process has them in the mappings that were
 * set last. Others get their ids and, where walks can be waited for, the room of their rows.
 */
void unwind_tables_keep(struct unwind_tables *u, const bool *is_used);

/* The mappings of @pid were read again after @removals, and have not changed. Returns true if that is news. */
bool unwind_tables_confirm(struct unwind_tables *u, pid_t pid, u32 removals);

/* Remove @pid, which has ended. */
void unwind_tables_forget(struct unwind_tables *u, pid_t pid);

struct unwind_stats unwind_tables_stats(const struct unwind_tables *u);
