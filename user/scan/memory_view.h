/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A look at the memory of a process that runs on. Nothing here stops the process. */
#pragma once

#include "user/scan/snapshot.h"

struct memory_view;

/*
 * Open the memory of @pid, with its mappings at this moment. *@out is owned by the caller: memory_view_free().
 * 0, -ESRCH, -EPERM or -EACCES without the right, or another -errno.
 */
int memory_view_new(struct memory_view **out, pid_t pid) __must_check;
void memory_view_free(struct memory_view *v); /* NULL is fine */

/*
 * Read up to @len bytes at @addr, up to the first byte that the process itself may not read, that is the memory of a
 * device, or that the kernel does not give. Returns how many bytes were read. May block on disk I/O.
 */
size_t memory_view_read(const struct memory_view *v, taddr_t addr, void *buf, size_t len);

/* The mapping that holds @addr, or NULL. Valid as long as @v. */
const struct snapshot_map *memory_view_map(const struct memory_view *v, taddr_t addr);
