/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks for troubles that the ptrace source cannot prevent, so that it can report them. */
#include "user/source/source_ptrace_watch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"

/* Has the kernel made its page for uprobes that were hit? The page stays as long as the memory of the process. */
static bool has_uprobes(pid_t pid)
{
	auto_fclose FILE *f = NULL;
	auto_free char *line = NULL;
	size_t size = 0;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/maps", proc_reader(pid));
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0)
		if (strstr(line, " [uprobes]\n"))
			return true;
	return false;
}

static bool has_trap(u64 signals)
{
	return signals >> (SIGTRAP - 1) & 1;
}

/* 1, 0, or -1 if that cannot be known because the process ends. */
static int has_handler(pid_t pid)
{
	struct proc_status status;

	return proc_read_status(&status, proc_reader(pid)) || !status.has_memory
		       ? -1
		       : has_trap(status.signals_caught);
}

static bool is_trap_blocked(pid_t pid)
{
	auto_free pid_t *tids = NULL;
	struct proc_status status;
	size_t nr = 0;

	if (proc_threads(pid, &tids, &nr))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!proc_read_status(&status, tids[i]) && has_trap(status.signals_blocked))
			return true;
	return false;
}

void trap_watch_begin(struct trap_watch *w, pid_t pid, bool was_running)
{
	*w = (struct trap_watch){ .pid = pid, .was_running = was_running, .had_uprobes = has_uprobes(pid) };
	w->had_handler = has_handler(pid) > 0;
	if (!w->had_handler || !is_trap_blocked(pid))
		return;
	w->is_told = true;
	warn("ptrace: PID %d: it blocks SIGTRAP, for which it has a handler: where it allocates so the kernel "
	     "takes the handler away" TEXT_OF_HOST("; --backend bpf does not"),
	     pid);
}

/*
 * A uprobe at the place of a breakpoint takes its calls. In the memory of the process both are the same byte, and the
 * kernel needs no page for a uprobe whose instruction it can emulate.
 */
static void check_uprobes(struct trap_watch *w, const char *function_of_others)
{
	if (w->is_overlaid)
		return;
	if (function_of_others)
		warn("ptrace: PID %d: another program has a uprobe on %s: calls are missed", w->pid,
		     function_of_others);
	else if (!w->had_uprobes && has_uprobes(w->pid))
		warn("ptrace: PID %d: others have uprobes in it: calls may be missed", w->pid);
	else
		return;
	w->is_overlaid = true;
}

/*
 * The program may have removed the handler itself: that cannot be known. Or it has just executed another program, and
 * the record of that is still to come: so the handler must be missing twice in a row.
 */
static void check_handler(struct trap_watch *w)
{
	int now = has_handler(w->pid);

	if (now < 0 || w->is_told)
		return;
	if (now || !w->had_handler) {
		w->had_handler = now;
		w->nr_missed = 0;
		return;
	}
	if (++w->nr_missed < 2)
		return;
	w->is_told = true;
	warn("ptrace: PID %d: it has no handler of SIGTRAP any more: unless it took that back itself it blocked the "
	     "signal while it allocated, and the kernel did it" TEXT_OF_HOST("; --backend bpf does not"),
	     w->pid);
}

void trap_watch_check(struct trap_watch *w, const char *function_of_others)
{
	check_uprobes(w, function_of_others);
	check_handler(w);
}

void trap_watch_new_image(struct trap_watch *w)
{
	w->was_running = w->had_uprobes = false;
	w->had_handler = false;
	w->nr_missed = 0;
}
