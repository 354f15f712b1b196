/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A traced process: its identity, its mappings, and its end. */
#pragma once

#include "user/target/allocator.h"
#include "user/target/module.h"

enum { TARGET_COMM_LEN = 16 };

/* A file of the target that defines allocator functions. */
struct target_allocator {
	const struct module *module; /* borrowed */
	const char *kind;	     /* "glibc", "jemalloc", ..., static */
};

struct proc_stat;
struct stack_event;

struct target {
	pid_t pid;
	u64 start_time; /* field 22 of /proc/PID/stat; with the PID, it identifies the process */
	int pidfd;	/* owned */
	char comm[TARGET_COMM_LEN];
	char *exe;	 /* owned; "" if unknown */
	bool is_started; /* started by heaptap (run), not attached to */
	bool is_32bit;
	bool has_exited;
	int exit_status; /* as wait(2) returns it; -1 = unknown */
	struct mapping_list maps;
	u64 maps_read_ns;		     /* CLOCK_MONOTONIC */
	bool has_new_code;		     /* stacks since then contain code that is not in maps */
	bool is_unfinished;		     /* target_read_again() */
	struct target_allocator *allocators; /* owned; filled by the source */
	size_t nr_allocators;
	const char *half_watched; /* an allocator some of whose own functions have no probe; NULL = none */
	u64 blurred[ALLOC_MAX_FNS / 64]; /* bits: functions whose calls may have meant another family's */
};

/*
 * Open the process @pid. Does not stop it. Refuses a process that cannot be traced, with one logged line: -ESRCH for
 * no process, a zombie or one that is exiting; -EINVAL for a kernel thread, heaptap itself, an emulator or the PID of
 * a thread. Without permission to read the process, exe stays "" and is_32bit false; the source of events reports
 * that.
 */
int target_new(struct target **out, pid_t pid) __must_check;
/*
 * True if the program @exe runs code that it reads from files of other programs (valgrind, qemu's user mode). A probe
 * in a library that both use would become an instruction of that code, and end it.
 */
bool target_is_emulator(const char *exe);
/* Copy @t for replay, where nothing else is known of the process. 0 or -ENOMEM. */
int target_copy(struct target **out, const struct target *t) __must_check;
/* The next image of @old, which gives up what only a running process needs. @is_gone: as of a process that is gone. */
int target_new_image(struct target **out, struct target *old, bool is_gone) __must_check;
/*
 * Make the target of @pid, a child of @parent, alive or not. @is_copy: a fork, with the program and
 * the mappings of the parent. Otherwise the program comes from /proc, "" if it is gone, and the mappings are empty.
 * Nothing is refused or logged. 0 or -ENOMEM.
 */
int target_new_child(struct target **out, const struct target *parent, pid_t pid, bool is_copy) __must_check;
void target_free(struct target *t);
/* @t has ended, and its status was read. */
void target_close_pidfd(struct target *t);

/* True while the PID of @t belongs to the process that target_new() opened, and that process has not ended. */
bool target_is_alive(const struct target *t);
/*
 * Send @sig to the process that target_new() opened, even if its PID was reused. 0, -ESRCH if it has ended, -EPERM.
 */
int target_signal(const struct target *t, int sig) __must_check;
/* True if another process has the PID of @t now. False as long as that is unknown. */
bool target_is_reused(const struct target *t);

/* The path of the program as the user knows it; "" if unknown. Known after target_read_maps(). */
const char *target_program(const struct target *t);

/* Read the mappings again. Like mapping_list_read(), but -ESRCH also if the PID was reused meanwhile. */
int target_read_maps(struct target *t, struct module_table *modules) __must_check;

/*
 * Some processes write code (a just-in-time compiler) or map it without an event; their stacks then contain code that
 * is not in maps. target_note_stack(): take @ev into account. target_wants_maps(): should the mappings be read because
 * of that? At most once in 100 ms, so ask again after further events.
 */
void target_note_stack(struct target *t, const struct stack_event *ev);
bool target_wants_maps(const struct target *t);
/* Has @t, whose mappings were read some time ago, still this one? True if that cannot be known. */
bool target_still_maps(const struct target *t, const struct mapping *map);
/* Not all was done with the mappings that were read: want them read again, and have them taken for changed then. */
void target_read_again(struct target *t);

/*
 * Find the processes of @name_or_pid: a PID, else the path of a file that they execute (with a slash), else the name of
 * the program. The name is comm, or the last part of
 * exe, or, if neither is known (comm holds 15 bytes, exe needs permission), the last part of the first word of the
 * command line. heaptap itself and zombies are never found by name. *@pids is owned by the caller, in ascending
 * order. 0, -ESRCH with one logged line if no process fits, or -errno.
 */
int target_find(const char *name_or_pid, pid_t **pids, size_t *nr) __must_check;

/*
 * Can @pid be a target at all? Not a thread, a zombie, a thread of the kernel or heaptap itself: logged. 0, -EINVAL,
 * -ESRCH, or another -errno. *@stat is filled in.
 */
int target_check(pid_t pid, struct proc_stat *stat) __must_check;

/*
 * Is there an allocator that keeps the memory of freed blocks near live ones? glibc gives back blocks with a mapping of
 * their own.
 */
bool target_keeps_freed(const struct target *t);

/* Is @module by its name an allocator and nothing else? Not libc, which calls free for the program, too. */
bool target_is_allocator(const struct target *t, u32 module);

/* Record that @module has functions of the allocator @kind. Each pair is recorded once. 0 or -ENOMEM. */
int target_add_allocator(struct target *t, const struct module *module, const char *kind) __must_check;
