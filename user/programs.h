/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF programs, loaded into the kernel: handles, maps, and links to places in files. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

#include "bpf/event.h"
#include "bpf/maps.h"

struct bpf_object;
struct bpf_program;

enum program {
	PROGRAM_ENTER_ALLOC,
	PROGRAM_LEAVE_CALL,
	PROGRAM_AT_RET,
	PROGRAM_ENTER_FREE,
	PROGRAM_INTERNAL_CALL,
	PROGRAM_MAPS_CHANGED,
	PROGRAM_THREAD_EXIT,
	PROGRAM_PROCESS_EXEC,
	PROGRAM_TASK_NEW,
	NR_PROGRAMS
};

/* One load of the object. Descriptors belong to obj. */
struct programs {
	struct bpf_object *obj;		       /* owned */
	struct bpf_program *prog[NR_PROGRAMS]; /* borrowed from obj */
	struct source_state *state;	       /* shared with the kernel; owned; NULL in a load of one */
	bool has_loop;			       /* the kernel has bpf_loop() */
	int ring_fd, processes_fd, paused_fd, probes_fd, shards_fd, process_maps_fd, stacks_seen_fd,
		task_copies_fd;
};

/*
 * Load the programs. @ring_bytes is rounded up to what the kernel takes. @is_multi: for uprobe_multi
 * links. Returns 0 or -errno, logged.
 */
int programs_load(struct programs *out, const struct source_config *config, u64 ring_bytes,
		  bool is_multi) __must_check;

/*
 * Load @which alone once more, on the maps of @base, which must outlive it: no descriptor of a map is set
 * in *@out. For kernels that give a program no cookie. Returns 0 or -errno, logged.
 */
int programs_load_one(struct programs *out, enum program which, const struct source_config *config,
		      bool is_multi, const struct programs *base) __must_check;
void programs_unload(struct programs *p);

/* Places in one file, all for one program. */
struct link_group {
	enum program program;
	bool is_return;	    /* uretprobes */
	int fd;		    /* of the file */
	pid_t pid;	    /* whose calls alone are seen; 0 = everybody's */
	const u64 *offsets; /* in the file */
	const u64 *cookies;
	size_t nr;
};

struct link_set;

/* Links end with the set, and with this process, however it dies: nobody else holds them. */
int link_set_new(struct link_set **out) __must_check;
void link_set_free(struct link_set *set);

/* One uprobe_multi link for the whole group, or one perf link for each place. 0 or -errno. */
int link_set_add(struct link_set *set, const struct programs *p, const struct link_group *g,
		 bool is_multi) __must_check;

/* End the links of @pid alone. Without memory for that they stay. */
void link_set_drop(struct link_set *set, pid_t pid);

/* The raw tracepoints: ends of threads, exec, children. */
int link_set_add_tracepoints(struct link_set *set, const struct programs *p) __must_check;
