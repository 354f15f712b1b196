/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap doctor: what works here, what does not, and the command that would help. */
#pragma once

#include <stdio.h>

#include "user/inject/left.h"
#include "user/source/caps.h"

enum {
	DOCTOR_TEXT_LEN = 256,
	DOCTOR_MAX_FINDINGS = 64,
	DOCTOR_MAX_OBJECTS = 32, /* per target */
	DOCTOR_MAX_TARGETS = 16,
};

enum doctor_group { DOCTOR_PRIVILEGES, DOCTOR_FEATURES, DOCTOR_SETTINGS, NR_DOCTOR_GROUPS };
enum doctor_type { DOCTOR_BOOL, DOCTOR_NUMBER, DOCTOR_TEXT, DOCTOR_UNKNOWN };

/* One fact about the machine. Strings are static. */
struct doctor_finding {
	enum doctor_group group;
	enum doctor_type type;
	const char *key;   /* in JSON; never changes */
	const char *label; /* in text */
	s64 number;	   /* or 0, 1 */
	char text[DOCTOR_TEXT_LEN];
	const char *note; /* what the value means; NULL = nothing to say */
};

/* A file with an allocator, or a C library. */
struct doctor_object {
	char *path;	  /* owned; as the target knows it */
	const char *kind; /* "glibc", ..., static; NULL = no allocator in it */
	size_t nr_functions;
	char build_id[2 * 32 + 1]; /* hexadecimal, "" = none */
	char *debug_file;	   /* owned; NULL = none installed */
	bool has_symbols;	   /* not stripped: no debug file needed for names */
};

struct doctor_target {
	pid_t pid;
	char comm[16];
	char *exe; /* owned */
	bool is_32bit;
	const char
		*stranger;  /* without census: an allocator whose books are not known; static; NULL = none */
	const char *census; /* allocator whose books 'heaptap scan' can read; static; NULL = none */
	bool is_readable;   /* its maps and memory are ours to see */
	uid_t uid;
	u32 seccomp, ns_depth, nr_threads;
	pid_t tracer_pid; /* 0 = nobody traces it */
	char tracer_comm[64];
	enum inject_left left; /* code of --backend inline in it */
	pid_t left_owner;
	struct doctor_object objects[DOCTOR_MAX_OBJECTS];
	size_t nr_objects;
};

/* Breakpoints in a process, at places of allocator functions where the file has other code. */
struct doctor_left {
	pid_t pid;
	pid_t tracer_pid; /* 0 = nobody traces it by ptrace */
	char comm[64];
	char *path;	      /* owned; of the first file with one */
	const char *function; /* the first one; static */
	size_t nr;
};

struct doctor_breakpoints {
	struct doctor_left *left; /* owned */
	size_t nr;
	size_t nr_read, nr_unread; /* processes */
	pid_t heaptap; /* traces by BPF now, so that breakpoints may be its probes; 0 = none does */
};

struct doctor {
	char release[DOCTOR_TEXT_LEN], machine[DOCTOR_TEXT_LEN];
	struct caps caps;
	const char *backend;		     /* that would be taken; NULL = none works */
	char how[3 * DOCTOR_TEXT_LEN + 128]; /* the backend that heaptap would use, or why none works */
	struct doctor_finding findings[DOCTOR_MAX_FINDINGS];
	size_t nr_findings;
	struct doctor_object libc; /* heaptap's own; path NULL = linked statically */
	struct doctor_target targets[DOCTOR_MAX_TARGETS];
	size_t nr_targets, nr_left_out;
	struct doctor_breakpoints breakpoints; /* in the targets; without targets, in all processes */
	char help[DOCTOR_MAX_FINDINGS][DOCTOR_TEXT_LEN]; /* commands that would help, each once */
	size_t nr_help;
};

/*
 * Examine the machine and, unless @name_or_pid is NULL, these processes; print it to @out. Also looks for
 * breakpoints in these, or in all, processes. Tries on
 * children of our own, never stops or changes a target, blocks for some 0.5 s. Returns 0 if a backend
 * works, -EOPNOTSUPP if none does, -ESRCH for no such process (logged), -EIO when @out cannot be written,
 * or -ENOMEM.
 */
int doctor_run(FILE *out, const char *name_or_pid, bool want_json) __must_check;

/* The parts, for doctor_run() and its tests. */
void doctor_print_text(FILE *out, const struct doctor *d);
void doctor_print_json(FILE *out, const struct doctor *d);
int doctor_examine_target(struct doctor *d, pid_t pid) __must_check; /* 0, -ESRCH and others logged */
/*
 * Find breakpoints in the processes @pids, or in all (NULL) that are ours to read. Only reads. 0 or -ENOMEM.
 */
int doctor_find_breakpoints(struct doctor *d, const pid_t *pids, size_t nr) __must_check;
void doctor_breakpoints_fini(struct doctor_breakpoints *b);
void doctor_print_breakpoints(FILE *out, const struct doctor_breakpoints *b);
void doctor_json_breakpoints(FILE *out, const struct doctor_breakpoints *b);
void doctor_examine_libc(struct doctor *d);
void doctor_object_fini(struct doctor_object *o);
void doctor_add_help(struct doctor *d, const char *fmt, ...) __printf(2, 3);
