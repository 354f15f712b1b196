/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file behind a mapping of a target, opened so that a target cannot pass off another one or hang us. */
#pragma once

#include <sys/types.h>

#include "user/image.h"

struct map_line;

/* Who a file is. dev and ino alone mislead on btrfs and overlayfs, where maps and stat tell different ones. */
struct file_identity {
	u64 dev, ino;	/* as stat tells them */
	u64 changed_ns; /* ctime; another one = the contents may be others too */
	u32 nr_links;	/* 0 = deleted */
};

/* Where the files of one process are looked for. */
struct file_source {
	pid_t pid;
	int root_fd;   /* owned; the root that paths in maps begin at; -1 = none */
	int mem_fd;    /* owned; -1 = not readable */
	char root[32]; /* prefix that leads there: "" in our mount namespace, else "/proc/PID/root" */
};

void file_source_init(struct file_source *s, pid_t pid);
void file_source_fini(struct file_source *s);

/*
 * Find the file that @line maps: by /proc/PID/map_files, else by its path. Opens nothing that has side
 * effects (O_PATH) and asks no file server. *@fd is the caller's; not good for reading yet.
 * Returns 0, -ENOENT if it cannot be found, -EINVAL if it is no regular file, or -errno.
 */
int mapped_file_find(const struct file_source *s, const struct map_line *line, int *fd,
		     struct file_identity *id) __must_check;

/* True if @line's path, as it is written, leads to the file @id. May block on a file server. */
bool mapped_file_has_path(const struct file_source *s, const struct map_line *line,
			  const struct file_identity *id);

/*
 * Open for reading what @path_fd leads to, and read its headers, if it is a regular file: *@fd is the
 * caller's. @image has no loads and no build ID if it is no ELF file.
 * Waits two seconds at most: -ETIMEDOUT if a file server (FUSE, NFS) does not answer.
 */
int mapped_file_open(int path_fd, int *fd, struct image *image) __must_check;

/* The same for a file of our own choice, by path. Symbolic links are followed. */
int mapped_file_open_path(const char *path, int *fd, struct image *image) __must_check;
