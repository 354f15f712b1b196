/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the file behind a mapping of a target. A target can neither pass off another file nor block heaptap. */
#pragma once

#include "user/lib/proc_memory.h"
#include "user/target/image.h"

struct map_line;

/*
 * The identity of a file. dev and ino alone are not enough on btrfs and overlayfs, where maps and stat show different
 * ones.
 */
struct file_identity {
	u64 dev, ino;	/* as stat tells them */
	u64 changed_ns; /* ctime; if it differs, the contents may differ too */
	u32 nr_links;	/* 0 = deleted */
};

/* The places where the files of one process are searched. */
struct file_source {
	pid_t reader;		   /* proc_reader() */
	int root_fd;		   /* owned; the root of the paths in maps; -1 = none */
	struct proc_memory memory; /* owned; not open = not readable */
	char root[32]; /* prefix of paths to this root: "" in our mount namespace, else "/proc/PID/root" */
};

void file_source_init(struct file_source *s, pid_t pid);
void file_source_fini(struct file_source *s);

/*
 * Find the file that @line maps: by /proc/PID/map_files, or else by its path. Uses O_PATH, so that nothing happens to
 * the file and no file server is asked. *@fd is the caller's, and cannot be read yet. Returns 0, -ENOENT if the file
 * cannot be found, -EINVAL if it is not a regular file, or -errno.
 */
int mapped_file_find(const struct file_source *s, const struct map_line *line, int *fd,
		     struct file_identity *id) __must_check;

/* True if the path of @line, unchanged, leads to the file @id. May block on a file server. */
bool mapped_file_has_path(const struct file_source *s, const struct map_line *line,
			  const struct file_identity *id);

/*
 * Open the regular file of @path_fd for reading, and read its headers. *@fd is the caller's. @image has no loads and
 * no build ID if the file is not an ELF file. A file server (FUSE, NFS) brings the first 64 MiB, so that later reads do
 * not wait for it. -ETIMEDOUT if it brings nothing for two seconds.
 */
int mapped_file_open(int path_fd, int *fd, struct image *image) __must_check;

/* Like mapped_file_open(), for a file by its path. Symbolic links are followed. */
int mapped_file_open_path(const char *path, int *fd, struct image *image) __must_check;
