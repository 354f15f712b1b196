/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts about the kernel that runs of root have found out since the boot, kept in a file. */
#pragma once

#include "bpf/task_fields.h"
#include "user/lib/types.h"
#include "user/source/task_types.h"

/*
 * The file belongs to root and nobody else can write it. It is used only by root, without a filter of system calls, and
 * only if all that the facts may depend on is as it was: boot, kernel, rights, PID namespace, the program file of
 * heaptap, and which files of /sys are there. Any other file is ignored and replaced. Without it all is found out.
 */
#define KERNEL_FACTS_BASE "/run"

enum { KERNEL_FACTS_KEY = 32 };

struct caps_env;

/* CPU time of the way to a probe and back, in nanoseconds. All 0: not known. */
struct way_to_probe {
	u32 entry_ns;	/* to one at an instruction that the kernel carries out itself */
	u32 stepped_ns; /* to one at an instruction that the CPU carries out in a single step */
	u32 return_ns;	/* to one where a call returns */
};

/* The result of a trial. */
struct trial_result {
	int err;	   /* 0 = probes were placed and calls arrived; -ENODATA = placed, but no call did */
	bool is_pid_exact; /* all threads of the process asked for, nothing of another one */
	bool is_return_safe; /* the child survived a return probe under a seccomp filter */
	struct way_to_probe way;
};

struct kernel_facts {
	u8 has_trials;	/* probes work as they should: multi, and perf where there are no multi links */
	u8 has_types;	/* the kernel describes its types; fields that it lacks are 0 */
	u8 has_loop;	/* bpf_loop() */
	u8 has_stop_at; /* the next two are known */
	u32 blocked_at, ptrace_at; /* as in struct source_state */
	u32 pid_at;		   /* the same; 0 = not known */
	u32 reserved;
	struct trial_result multi, perf;
	struct task_fields task;
	struct pending_fields pending;
	struct alt_stack_fields alt_stack;
};

/* The facts, and what they depend on. */
struct kernel_facts_file {
	bool is_usable; /* by this run; else the file is neither read nor written */
	u8 key[KERNEL_FACTS_KEY];
	struct kernel_facts known; /* as the file has it; all 0 = nothing */
	struct kernel_facts now;   /* the same, and what was found out since */
};

/* Read what is known, from heaptap/kernel-N in the directory @base. A file that cannot be used has nothing. */
void kernel_facts_read(struct kernel_facts_file *f, const struct caps_env *env, const char *base);

/* Write @f->now, if there is more than in the file. An error costs only the time of a later run: not logged. */
void kernel_facts_keep(struct kernel_facts_file *f, const char *base);

/*
 * Add the result of a trial; that of multi links (@is_multi) comes first. It will be known only if all is as it should
 * be: a busy machine can spoil a trial, and then the next run tries again.
 */
void kernel_facts_add_trial(struct kernel_facts *now, bool is_multi, const struct trial_result *result);

/* Read the kernel's description of its types, if it has one. Fields that it lacks are 0. */
void kernel_facts_add_types(struct kernel_facts *now);
