/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Warns of programs that breakpoints of the kernel disturb, or that disturb those. */
#include "user/source/bystanders.h"

#include <stdio.h>
#include <unistd.h>

#include "user/inject/left.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/target/target.h"

enum { MAX_EMULATORS_TOLD = 3, NAME_BYTES = 96 };

bool bystander_is_emulator(pid_t pid)
{
	auto_free char *exe = NULL;

	return !proc_exe(&exe, pid) && target_is_emulator(exe);
}

void bystanders_tell(struct bystanders *b, pid_t pid)
{
	if (b->nr_emulators++ >= MAX_EMULATORS_TOLD)
		return;
	warn("bpf: PID %d: it runs the code of its program by itself (valgrind, qemu), and gets the probes of the "
	     "traced processes: they may end it by SIGTRAP",
	     pid);
}

/*
 * Where jumps of ours lie in pages of the file, the kernel writes breakpoints over them, and takes them for the code
 * that the file has there.
 */
static void tell_of_piece(pid_t pid)
{
	pid_t owner;

	if (inject_find_left(pid, &owner) != INJECT_LEFT_NOTHING && inject_is_exposed(pid))
		warn("bpf: PID %d: a heaptap with --backend inline traces it, and it gets the probes of the traced "
		     "processes: they may end it by a signal",
		     pid);
}

void bystanders_tell_all(struct bystanders *b, bool is_everywhere)
{
	auto_free pid_t *pids = NULL;
	size_t nr = 0;

	bool wants_all = !b->has_told_all, wants_pieces = is_everywhere && !b->has_told_pieces;

	if ((!wants_all && !wants_pieces) || proc_all(&pids, &nr))
		return;
	b->has_told_all = true;
	b->has_told_pieces |= is_everywhere;
	for (size_t i = 0; i < nr; i++) {
		if (wants_all && bystander_is_emulator(pids[i]))
			bystanders_tell(b, pids[i]);
		if (wants_pieces)
			tell_of_piece(pids[i]);
	}
}

/* The process that traces @pid, unless it is this one; 0 = none. */
static pid_t bystanders_find_tracer(pid_t pid)
{
	struct proc_status status, tracer;

	if (proc_read_status(&status, pid) || !status.tracer_pid)
		return 0;
	/* The kernel names the thread. */
	if (proc_read_status(&tracer, status.tracer_pid))
		return status.tracer_pid;
	return tracer.tgid == getpid() ? 0 : tracer.tgid;
}

/* Name @tracer: "gdb (PID 5)". */
static void name_tracer(char name[NAME_BYTES], pid_t tracer)
{
	struct proc_stat stat = { .comm = "another program" };

	if (proc_read_stat(&stat, tracer))
		snprintf(name, NAME_BYTES, "PID %d", (int)tracer);
	else
		snprintf(name, NAME_BYTES, "%s (PID %d)", stat.comm, (int)tracer);
}

u32 bystander_traces(pid_t pid)
{
	pid_t tracer = bystanders_find_tracer(pid);
	char name[NAME_BYTES];

	if (!tracer)
		return 0;
	name_tracer(name, tracer);
	warn("bpf: PID %d: it is traced by %s: where that has breakpoints in the same functions, calls are missing, "
	     "and the program may make no progress, or end by SIGTRAP when it is let go",
	     pid, name);
	return 1;
}

void bystander_tell_overwritten(pid_t pid, const char *function)
{
	pid_t tracer = bystanders_find_tracer(pid);
	char name[NAME_BYTES];

	if (tracer)
		name_tracer(name, tracer);
	warn("bpf: PID %d: the breakpoint in %s was overwritten by %s: its calls are missing", pid, function,
	     tracer ? name : "another program, dropped by madvise(), or replaced by a copy of the code");
}
