/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ring through which BPF programs send records to heaptap, and how much of it is read at a time. */
#pragma once

#include "user/lib/types.h"

struct kernel_ring;

/* Open the ring with descriptor @map_fd, which must outlive *@out. @take gets each record; it returns 0 or -errno. */
int kernel_ring_new(struct kernel_ring **out, int map_fd, int (*take)(void *ctx, void *rec, size_t len),
		    void *ctx) __must_check;
void kernel_ring_free(struct kernel_ring *r);

/* Readable when there are records. */
int kernel_ring_fd(const struct kernel_ring *r);

/*
 * Take the records that are there now, and none that come meanwhile: a target that writes records as fast as they are
 * taken keeps nobody here. Returns the number of records, or the first error of @take, which ends it.
 */
int kernel_ring_poll(struct kernel_ring *r);
