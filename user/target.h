/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A traced process: who it is, what is mapped in it, what became of it. */
#pragma once

#include <sys/types.h>

#include "user/allocator.h"
#include "user/module.h"

enum { TARGET_COMM_LEN = 16 };

/* A file of the target that defines allocator functions. */
struct target_allocator {
	const struct module *module; /* borrowed */
	const char *kind;	     /* "glibc", "jemalloc", ..., static */
};

struct probe_list;
struct stack_event;

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
	u64 maps_read_ns;		     /* CLOCK_MONOTONIC */
	bool has_new_code;		     /* stacks since then name code that is not in maps */
	struct target_allocator *allocators; /* owned; filled by the source */
	size_t nr_allocators;
	u64 blurred[ALLOC_MAX_FNS / 64]; /* bits: functions whose calls may have meant another family's */
};

/*
 * Open the process @pid. Does not stop it. Refuses with one logged line what cannot be traced: -ESRCH
 * no such process, a zombie or one that is exiting; -EINVAL a kernel thread, heaptap itself, an
 * emulator or the number of a thread. Without the right to look at the process (a backend will say so) exe stays ""
 * and is_32bit false.
 */
int target_new(struct target **out, pid_t pid) __must_check;
/*
 * Does the program at the path @exe run code that it reads from other programs' files (valgrind, qemu's user mode)? A
 * probe in a library that both use would be taken for one of that code's instructions, and end it.
 */
bool target_is_emulator(const char *exe);
/* A process as @t, of which nothing is known here but what @t says (replay). 0 or -ENOMEM. */
int target_copy(struct target **out, const struct target *t) __must_check;
/*
 * The process @pid, a child of @parent or its next image, whether it still lives or not. @is_copy: a fork, with the
 * parent's program and mappings; else what /proc says of its program, "" where it has gone, and no mappings yet.
 * Nothing is refused or logged. 0 or -ENOMEM.
 */
int target_new_child(struct target **out, const struct target *parent, pid_t pid, bool is_copy) __must_check;
void target_free(struct target *t);

/* True while @t's pid is still the process that target_new() opened, and that has not ended. */
bool target_is_alive(const struct target *t);
/* Send @sig to the process that target_new() opened, whoever has its number now. 0, -ESRCH it has ended, -EPERM. */
int target_signal(const struct target *t, int sig) __must_check;
/* Has another process its number now? False as long as that cannot be told. */
bool target_is_reused(const struct target *t);

/* Read the mappings again. As mapping_list_read(), but -ESRCH also when the pid was reused meanwhile. */
int target_read_maps(struct target *t, struct module_table *modules) __must_check;

/*
 * A process that writes code (a just-in-time compiler) or maps it by itself tells nobody, but its stacks do. Take in
 * @ev; and: should the mappings be read for the sake of what was taken in? True 100 ms after the last time at the
 * earliest, so ask again when there have been events.
 */
void target_note_stack(struct target *t, const struct stack_event *ev);
bool target_wants_maps(const struct target *t);

/*
 * Processes that @name_or_pid means: a number; else the name of the program: comm, or the last part of
 * exe, or, where neither can be known (comm holds 15 bytes, exe needs the right to look), the last part
 * of the command's first word. heaptap itself and zombies are never found by name. *@pids is owned by
 * the caller, in ascending order. 0, -ESRCH with one logged line if there is none, or -errno.
 */
int target_find(const char *name_or_pid, pid_t **pids, size_t *nr) __must_check;

/* Threads of the target now, main thread first. *@tids is owned by the caller. As proc_threads(). */
int target_threads(const struct target *t, pid_t **tids, size_t *nr) __must_check;

/* Note that @module defines allocator functions; once for each module. 0 or -ENOMEM. */
int target_add_allocator(struct target *t, const struct module *module, const char *kind) __must_check;

/*
 * Note which functions of @sites have names of several families (mimalloc's free is its operator delete too), so that a
 * call does not tell which one was meant.
 */
void target_note_blurred(struct target *t, const struct probe_list *sites);
