/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers of io_uring requests: until a request is done, often only the kernel has them. */
#pragma once

#include "user/lib/types.h"

struct listed_words;

/*
 * Add to @list the user_data of the requests of @pid that wait, by a BPF program (bpf/uring.bpf.c; Linux 6.1 with BTF).
 * The process need not be stopped. It costs a look at each descriptor, and some 30 ms if one is an io_uring. Where
 * requests wait and cannot be read, it warns in the name of @command that blocks may be called lost, unless *@is_told,
 * and sets that.
 */
void uring_words_list(struct listed_words *list, pid_t pid, const char *command, bool *is_told);
