/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files that targets map, and their addresses in each process. */
#pragma once

#include "user/lib/types.h"

enum { BUILD_ID_MAX = 32 };

/*
 * A file mapped executable by at least one target. Each (device, inode, build ID) has one entry, which is kept until
 * module_table_keep(): names can be found after the target has ended.
 */
struct module {
	u32 id;	    /* index in the table, from 1 */
	int fd;	    /* owned; read only; -1 = the file could not be opened */
	char *path; /* owned; as the target knows it, "[vdso]" for the vDSO */
	char *link; /* owned; the link by which processes were started, "" = several; NULL = none is known */
	char *root; /* owned; prefix that leads to the target's files, "" or "/proc/PID/root" */
	u64 dev, ino;
	u8 build_id[BUILD_ID_MAX];
	u8 build_id_len; /* 0 = none */
	bool is_deleted; /* the path no longer leads to this file */
};

/* A place in a module; module 0 = in no file, offset is then the plain address. */
struct code_ref {
	u32 module; /* id */
	u64 offset; /* ELF virtual address in the module: address - load bias */
};

/* One executable mapping of a process. */
struct mapping {
	taddr_t start, end;
	u64 file_offset;       /* of start, in bytes */
	taddr_t bias;	       /* address - bias = ELF virtual address */
	struct module *module; /* borrowed; NULL = anonymous code */
};

struct module_table;

/* The path by which the user knows @m: that of its link, or its own. */
const char *module_name(const struct module *m);
/* A process that executes @m was started by @link, which is copied; "" is not a link. 0 or -ENOMEM. */
int module_set_link(struct module *m, const char *link) __must_check;

int module_table_new(struct module_table **out) __must_check;
void module_table_free(struct module_table *t);
/* The module with number @id, or NULL. */
struct module *module_get(const struct module_table *t, u32 id);
/* No id is larger. */
size_t module_count(const struct module_table *t);

/* Have so many files come that it is time to forget those that nothing names any more? */
bool module_table_is_crowded(const struct module_table *t);
/* Close and forget all files but those whose @is_used, by id up to module_count(), is true. Others get their ids. */
void module_table_keep(struct module_table *t, const bool *is_used);

/* Add a module (tests, replay). @path and @build_id are copied. The file is opened if it exists here. */
int module_add(struct module_table *t, const char *path, const u8 *build_id, size_t build_id_len,
	       struct module **out) __must_check;

/*
 * Like module_add(), for a file of a recording. Opened only if it is that file: by build ID, or, without a
 * build ID, by device and inode.
 */
int module_add_known(struct module_table *t, const struct module *known, struct module **out) __must_check;

/*
 * From now on, paths of modules belong to another machine: module_add() and later symbolizers open no file, except
 * under a sysroot.
 */
void module_table_set_remote(struct module_table *t);
bool module_table_is_remote(const struct module_table *t);

/* Executable mappings of one process at one moment, by address. */
struct mapping_list {
	struct mapping *maps; /* owned */
	size_t nr;
	u32 epoch; /* grows with each read that found a change */
	u64 hash;  /* of the lines that were read, to detect a change */
};

/*
 * Read /proc/@pid/maps. Files that are new to @t are opened through /proc/PID/map_files or /proc/PID/root, and only
 * if device and inode are those of the mapping. Does not stop the target. After a change *@list is replaced, and its
 * epoch grows. Returns 1 if it changed, 0 if not, -ESRCH if the process is gone or has no memory, or -errno.
 */
int mapping_list_read(struct mapping_list *list, struct module_table *t, pid_t pid) __must_check;
void mapping_list_fini(struct mapping_list *list);

/* The mapping that holds @addr, or NULL. */
const struct mapping *mapping_find(const struct mapping_list *list, taddr_t addr);

/* @addr as a place in a module. */
struct code_ref mapping_ref(const struct mapping_list *list, taddr_t addr);
