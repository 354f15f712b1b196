/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks for troubles that the ptrace source cannot prevent, so that it can report them. */
#include "user/source/source_ptrace_watch.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source/link_keeper.h"
#include "user/target/module.h"

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

static bool source_ptrace_watch_is_mapped(const struct mapping_list *maps, const struct stat *file)
{
	struct stat st;

	for (size_t i = 0; i < maps->nr; i++) {
		const struct module *m = maps->maps[i].module;

		if (m && m->fd >= 0 && !fstat(m->fd, &st) && st.st_dev == file->st_dev &&
		    st.st_ino == file->st_ino)
			return true;
	}
	return false;
}

/* Has the keeper @pid links in a file of @maps? The keeper has these files open. Yes, if it may not be asked. */
static bool keeper_holds(pid_t pid, const struct mapping_list *maps)
{
	char path[32];
	struct dirent *e;
	bool is_held = false;
	struct stat file;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return errno != ENOENT;
	while (!is_held && (e = readdir(dir)))
		is_held = !fstatat(dirfd(dir), e->d_name, &file, 0) && S_ISREG(file.st_mode) &&
			  source_ptrace_watch_is_mapped(maps, &file);
	closedir(dir);
	return is_held;
}

/* Does a heaptap hold uprobes, in whatever process, in files of @maps? NULL: in any file. */
static bool is_keeper_there(const struct mapping_list *maps)
{
	auto_free pid_t *pids = NULL;
	struct proc_stat stat;
	size_t nr = 0;

	if (proc_all(&pids, &nr))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!proc_read_stat(&stat, pids[i]) && link_keeper_is(stat.comm) &&
		    (!maps || keeper_holds(pids[i], maps)))
			return true;
	return false;
}

void trap_watch_begin(struct trap_watch *w, pid_t pid, const struct mapping_list *maps)
{
	*w = (struct trap_watch){ .pid = pid, .had_uprobes = has_uprobes(pid) };
	/* The page was made before. Uprobes on its files that serve other processes would take the breakpoints. */
	if (w->had_uprobes && is_keeper_there(maps)) {
		w->is_overlaid = true;
		warn("ptrace: PID %d: it had uprobes, and a heaptap that runs has some in its files: calls may be "
		     "missed",
		     pid);
	}
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
	w->had_uprobes = false;
	w->had_handler = false;
	w->nr_missed = 0;
}
