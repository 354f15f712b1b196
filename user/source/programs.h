/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF programs, loaded into the kernel: handles and maps. user/source/links.h attaches them to places in files. */
#pragma once

#include "user/lib/types.h"

#include "bpf/event.h"
#include "bpf/maps.h"
#include "user/source/probe_runs.h"

enum program {
	PROGRAM_ENTER_ALLOC,
	PROGRAM_LEAVE_CALL,
	PROGRAM_AT_RET,
	PROGRAM_ENTER_FREE,
	PROGRAM_INTERNAL_CALL,
	PROGRAM_MAPS_CHANGED,
	PROGRAM_AT_NOTE,
	PROGRAM_COUNT_CALL,
	PROGRAM_BEFORE_PTRACE,
	PROGRAM_BEFORE_EXIT,
	PROGRAM_THREAD_EXIT,
	PROGRAM_PROCESS_EXEC,
	PROGRAM_TASK_NEW,
	PROGRAM_PREPARE_EXEC,
	PROGRAM_SIGNAL_DELIVER,
	PROGRAM_GROUP_EXIT,
	PROGRAM_SYSTEM_CALL,
	PROGRAM_SYSTEM_CALL_DONE,
	NR_PROGRAMS
};

/* One load of the object, which owns all descriptors; or a program that was loaded alone. */
struct programs {
	struct bpf_object *obj;		       /* owned; NULL after programs_load_one() */
	struct bpf_program *prog[NR_PROGRAMS]; /* borrowed from obj */
	enum program one;		       /* after programs_load_one(): this one, */
	int one_fd;			       /* owned; 0 = not loaded */
	struct source_state *state; /* shared with the kernel; owned; NULL after programs_load_one() */
	bool has_loop;		    /* the kernel has bpf_loop() */
	int ring_fd, processes_fd, watched_codes_fd, paused_fd, threads_fd, probes_fd, notes_fd, shards_fd,
		slabs_fd, slots_fd, stacks_seen_fd, stops_fd, task_copies_fd, sequences_fd, chosen_fd,
		sampled_fd;
};

/* From now on messages of libbpf are seen with -v only. */
void programs_log_libbpf(void);

/* In a container the PIDs of the kernel are not ours: tell the programs which namespace is. */
void programs_find_pid_namespace(struct source_config *config);

/*
 * Load the programs on tracepoints, and the small ones on probes: the others are loaded where they are needed, by
 * programs_load_one(). @ring_bytes is rounded up to a size that the kernel accepts. @is_multi: for uprobe_multi links.
 * @out->has_loop is true if this is known; else it is found out. Returns 0 or -errno, logged.
 */
int programs_load(struct programs *out, const struct source_config *config, u64 ring_bytes,
		  bool is_multi) __must_check;

/*
 * Load only @which once more, with the maps of @base. *@out keeps one descriptor, and none of a map. For kernels that
 * give a program no cookie, and for programs that not each trace needs. Returns 0 or -errno, logged.
 */
int programs_load_one(struct programs *out, enum program which, const struct source_config *config,
		      bool is_multi, const struct programs *base) __must_check;
void programs_unload(struct programs *p);

/*
 * Let the kernel measure all BPF programs from now on, until *@fd is closed. And: add what the programs of @p have run
 * while it did so; only those on probes are counted. 0 or -errno.
 */
int programs_measure(int *fd) __must_check;
int programs_add_runs(const struct programs *p, struct probe_runs *runs) __must_check;

/* The descriptor of a program, owned by @p; negative if it is not loaded. */
int programs_fd(const struct programs *p, enum program which);

/* From now on calls of process @pid are not seen; or are seen again. */
void programs_pause(const struct programs *p, pid_t pid, bool is_paused);

/* Stacks are sent again from now on. They are lost if there is no memory for this. */
void programs_forget_stacks(const struct programs *p, const struct source_config *config);

/* Calls that threads of process @pid are in are not seen to end. */
void programs_drop_calls(const struct programs *p, pid_t pid);

/* Process @pid is not traced any more: if it is a child, another one may be followed in its place. */
void programs_drop_process(const struct programs *p, pid_t pid);
