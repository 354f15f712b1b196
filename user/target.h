/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A traced process: who it is, what is mapped in it, what became of it. */
#pragma once

#include <sys/types.h>

#include "user/module.h"

enum { TARGET_COMM_LEN = 16 };

struct target {
	pid_t pid;
	u64 start_time; /* field 22 of /proc/PID/stat: with the pid, who it is */
	int pidfd;	/* owned */
	char comm[TARGET_COMM_LEN];
	char *exe;	 /* owned; "" if unknown */
	bool is_started; /* by us (run), not attached to */
	bool is_32bit;
	bool has_exited;
	int exit_status; /* as wait(2) gives it; -1 = unknown */
	struct mapping_list maps;
};

/*
 * Open the process @pid. Refuses with one logged line what cannot be traced: -ESRCH no such process
 * or a zombie, -EINVAL a kernel thread or heaptap itself.
 */
int target_new(struct target **out, pid_t pid) __must_check;
void target_free(struct target *t);

/* True while @t's pid is still the process that target_new() opened. */
bool target_is_alive(const struct target *t);

/* Read the mappings again. As mapping_list_read(). */
int target_read_maps(struct target *t, struct module_table *modules) __must_check;

/*
 * Processes that @name_or_pid means: a number, or the name of the program (comm, or last part of exe).
 * *@pids is owned by the caller. 0, -ESRCH if there is none, -ENOMEM.
 */
int target_find(const char *name_or_pid, pid_t **pids, size_t *nr) __must_check;
