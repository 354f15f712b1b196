/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of heaptap scan that needs no trace. */
#pragma once

#include "user/lib/types.h"

struct options;
struct listed_words;
struct outputs;

/* Add to @list what only the kernel has of the @nr processes @pids, before heaptap gives its rights away. */
void census_list_words(struct listed_words *list, const pid_t *pids, size_t nr, const char *command);

/*
 * Take a census of @pid, whose words in the kernel are among @listed, and write it to @outs. Returns an enum
 * exit_status, and has said why if it is no result.
 */
int census_process(const struct options *o, struct outputs *outs, pid_t pid,
		   const struct listed_words *listed);

/*
 * Judge all blocks of @pid by --fail-on definite, also those that no trace has seen, and log the result. STATUS_DONE,
 * also if its allocator is not known, which is logged; or the status of findings.
 */
int census_judge(const struct options *o, pid_t pid);

/* Is @name the path of a core file, perhaps compressed by zstd? Then *@fd is this file, owned by the caller. */
bool census_open_core(const char *name, int *fd);

/* Like census_process(), for the core @file, which is unpacked first if need be. @name is for messages. */
int census_core(const struct options *o, struct outputs *outs, const char *name, int file);
