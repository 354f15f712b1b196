/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A look at a process that runs on, in the shape of a snapshot. It is no moment: memory changes meanwhile. */
#pragma once

#include "user/scan/snapshot.h"

/*
 * Open the memory of @pid, whose words have @word_size bytes. Nothing is stopped. Only peek and fetch work; the threads
 * and words are empty. *@out is owned by the caller: snapshot_free(). 0, -ESRCH, -EPERM, -EACCES, -ENOMEM or -errno.
 */
int snapshot_running_new(struct snapshot **out, pid_t pid, u8 word_size) __must_check;
