/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A traced process, found by name or PID, and opened so that a reuse of its PID is noticed. */
#include "user/target/target.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "bpf/event.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/maps.h"
#include "user/lib/path.h"
#include "user/lib/proc.h"
#include "user/target/allocator_kind.h"
#include "user/target/program_link.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* has this number on every CPU; Linux 5.3 */
#endif

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424 /* Linux 5.1 */
#endif

enum {
	COMM_KNOWN_LEN = TARGET_COMM_LEN - 1, /* a comm of this length may be a cut name */
	REREAD_NS = 100 * 1000 * 1000,
};

static int target_refuse(int err, pid_t pid, const char *comm, const char *why)
{
	if (comm)
		error("target: PID %d (%s): %s", pid, comm, why);
	else
		error("target: PID %d: %s", pid, why);
	return err;
}

/* A 32-bit program gets no registers of a 64-bit one by ptrace, and cannot name its addresses. */
static int target_read_word(struct target *t)
{
	int err = proc_is_32bit(&t->is_32bit, t->pid);

	if (err)
		debug("target: PID %d (%s): ELF class: %s", t->pid, t->comm, strerror(-err));
	else if (sizeof(long) == sizeof(u32) && !t->is_32bit)
		return target_refuse(-EOPNOTSUPP, t->pid, t->comm,
				     "is a 64-bit program: it needs a 64-bit heaptap");
	return 0;
}

/* Open a process descriptor, close-on-exec. -ESRCH, or another -errno if the kernel has no such call. */
static int open_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

/* A process descriptor is readable once the whole process has ended. */
static bool target_has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* True if the process can be traced at all. Otherwise logs the reason. */
static int check_kind(pid_t pid, const struct proc_stat *stat, const struct proc_status *status)
{
	char why[96];

	if (pid == getpid())
		return target_refuse(-EINVAL, pid, stat->comm, "is heaptap itself");
	if (stat->is_kernel_thread)
		return target_refuse(-EINVAL, pid, stat->comm, "is a kernel thread");
	if (status->tgid != pid) {
		snprintf(why, sizeof(why), "is a thread of process %d: name that one", status->tgid);
		return target_refuse(-EINVAL, pid, stat->comm, why);
	}
	if (stat->state == 'Z' && stat->nr_threads < 2)
		return target_refuse(-ESRCH, pid, stat->comm, "is a zombie: it has ended already");
	if (!status->has_memory)
		return target_refuse(-ESRCH, pid, stat->comm, "is exiting");
	return 0;
}

bool target_is_emulator(const char *exe)
{
	/* Programs of qemu that emulate no process. */
	static const char *const tools[] = { "system",	"img", "io",   "nbd",	"ga",
					     "storage", "pr",  "edid", "keymap" };
	const char *name = path_name(exe);

	if (strstr(exe, "/valgrind/") && strstr(name, "-linux"))
		return true;
	if (strncmp(name, "qemu-", 5))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (!strncmp(name + 5, tools[i], strlen(tools[i])) &&
		    !isalnum((u8)name[5 + strlen(tools[i])]))
			return false;
	return true;
}

int target_check(pid_t pid, struct proc_stat *stat)
{
	struct proc_status status;
	int err = proc_read_stat(stat, pid);

	if (!err)
		err = proc_read_status(&status, proc_reader(pid));
	if (err)
		return target_refuse(err, pid, NULL, err == -ESRCH ? "no such process" : strerror(-err));
	return check_kind(pid, stat, &status);
}

/* Fill @t from /proc. Missing permission for exe is no error here: the source of events will fail and report it. */
static int read_identity(struct target *t)
{
	struct proc_stat stat;
	int err = target_check(t->pid, &stat);

	if (err)
		return err;

	t->start_time = stat.start_time;
	snprintf(t->comm, sizeof(t->comm), "%.*s", COMM_KNOWN_LEN, stat.comm);
	err = proc_exe(&t->exe, t->pid);
	if (err == -ENOMEM)
		return target_refuse(err, t->pid, t->comm, strerror(-err));
	if (err) {
		debug("target: PID %d (%s): exe: %s", t->pid, t->comm, strerror(-err));
		t->exe = strdup("");
		if (!t->exe)
			return target_refuse(-ENOMEM, t->pid, t->comm, strerror(ENOMEM));
	}
	if (target_is_emulator(t->exe))
		return target_refuse(
			-EINVAL, t->pid, t->comm,
			"runs the code of another program by itself and would take probes for a part of it");
	return target_read_word(t);
}

int target_new(struct target **out, pid_t pid)
{
	struct target *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return target_refuse(-ENOMEM, pid, NULL, strerror(ENOMEM));
	t->pid = pid;
	t->exit_status = -1;
	/*
	 * Open the descriptor first: if its process is still alive after the reads, the reads belong to that process.
	 * Without a descriptor (Linux < 5.3, filters, the PID of a thread) the start time decides.
	 */
	t->pidfd = open_pidfd(pid);
	if (t->pidfd == -ESRCH) {
		err = target_refuse(-ESRCH, pid, NULL, "no such process");
		goto undo_new;
	}
	err = read_identity(t);
	if (err)
		goto undo_new;
	if (!target_is_alive(t)) {
		err = target_refuse(-ESRCH, pid, t->comm, "has ended");
		goto undo_new;
	}
	*out = t;
	return 0;

undo_new:
	target_free(t);
	return err;
}

int target_copy(struct target **out, const struct target *t)
{
	struct target *copy = malloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *t;
	copy->pidfd = -1;
	copy->allocators = NULL;
	copy->nr_allocators = 0;
	copy->exe = strdup(t->exe);
	copy->maps.maps = reallocarray(NULL, t->maps.nr + 1, sizeof(*copy->maps.maps));
	if (!copy->exe || !copy->maps.maps) {
		target_free(copy);
		return -ENOMEM;
	}
	if (t->maps.nr)
		memcpy(copy->maps.maps, t->maps.maps, t->maps.nr * sizeof(*copy->maps.maps));
	*out = copy;
	return 0;
}

/* Read the program that the process runs now. */
static int read_program(struct target *t)
{
	int err;

	free(t->exe);
	t->exe = NULL;
	t->maps.nr = 0;
	t->maps.hash = 0;
	err = proc_exe(&t->exe, t->pid);
	if (err == -ENOMEM)
		return err;
	if (err)
		t->exe = strdup("");
	return t->exe ? target_read_word(t) : -ENOMEM;
}

int target_new_child(struct target **out, const struct target *parent, pid_t pid, bool is_copy)
{
	struct proc_stat stat;
	struct target *t;
	int err = target_copy(&t, parent);

	if (err)
		return err;
	t->pid = pid;
	t->start_time = 0;
	t->has_exited = false;
	t->exit_status = -1;
	t->pidfd = open_pidfd(pid);
	if (!is_copy)
		t->comm[0] = '\0';
	if (!proc_read_stat(&stat, pid)) {
		t->start_time = stat.start_time;
		/* The forked process may have executed another program since. */
		if (!is_copy)
			snprintf(t->comm, sizeof(t->comm), "%.*s", COMM_KNOWN_LEN, stat.comm);
	}
	if (!is_copy)
		err = read_program(t);
	if (err) {
		target_free(t);
		return err;
	}
	*out = t;
	return 0;
}

int target_new_image(struct target **out, struct target *old, bool is_gone)
{
	struct target *t;
	int err = is_gone ? target_copy(&t, old) : target_new_child(&t, old, old->pid, false);

	if (err)
		return err;
	if (is_gone) {
		t->exe[0] = t->comm[0] = '\0';
		t->maps.nr = 0;
		t->maps.hash = 0;
		t->pidfd = old->pidfd;
	} else if (old->pidfd >= 0) {
		close(old->pidfd);
	}
	old->pidfd = -1;
	*out = t;
	return 0;
}

void target_close_pidfd(struct target *t)
{
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
}

void target_free(struct target *t)
{
	if (!t)
		return;
	mapping_list_fini(&t->maps);
	free(t->allocators);
	target_close_pidfd(t);
	free(t->exe);
	free(t);
}

bool target_is_alive(const struct target *t)
{
	struct proc_stat stat;

	if (t->has_exited)
		return false;
	if (t->pidfd >= 0)
		return !target_has_ended(t->pidfd);
	if (proc_read_stat(&stat, t->pid) != 0 || stat.start_time != t->start_time)
		return false;
	return stat.state != 'X' && (stat.state != 'Z' || stat.nr_threads > 1);
}

int target_signal(const struct target *t, int sig)
{
	if (!target_is_alive(t))
		return -ESRCH;
	if (t->pidfd >= 0 && !syscall(SYS_pidfd_send_signal, t->pidfd, sig, NULL, 0))
		return 0;
	if (t->pidfd >= 0 && errno != ENOSYS)
		return -errno;
	return kill(t->pid, sig) ? -errno : 0;
}

bool target_is_reused(const struct target *t)
{
	struct proc_stat stat;

	return t->start_time && !proc_read_stat(&stat, t->pid) && stat.start_time != t->start_time;
}

/* The file that the process executes, among its mappings; NULL = not known. */
static struct module *target_program_of(const struct target *t)
{
	for (size_t i = 0; i < t->maps.nr; i++)
		if (t->maps.maps[i].module && !strcmp(t->maps.maps[i].module->path, t->exe))
			return t->maps.maps[i].module;
	return NULL;
}

const char *target_program(const struct target *t)
{
	const struct module *m = target_program_of(t);

	return m ? module_name(m) : t->exe;
}

/* Programs are named as the user knows them: by the link that was executed. */
static int read_link(struct target *t)
{
	struct module *m = target_program_of(t);
	auto_free char *link = NULL;
	int err = m ? program_link(&link, t->pid, t->exe, t->comm) : 0;

	return err || !link ? err : module_set_link(m, link);
}

int target_read_maps(struct target *t, struct module_table *modules)
{
	int ret;

	t->maps_read_ns = clock_now_ns();
	t->has_new_code = false;
	ret = mapping_list_read(&t->maps, modules, t->pid);
	if (!ret && t->is_unfinished)
		ret = 1;
	t->is_unfinished = false;
	if (ret > 0 && read_link(t))
		return -ENOMEM;
	return ret >= 0 && !target_is_alive(t) ? -ESRCH : ret;
}

void target_note_stack(struct target *t, const struct stack_event *ev)
{
	u32 nr = ev->nr_frames < STACK_MAX_FRAMES ? ev->nr_frames : STACK_MAX_FRAMES;

	for (u32 i = 0; i < nr && !t->has_new_code; i++)
		t->has_new_code = !mapping_find(&t->maps, ev->ips[i]);
}

bool target_wants_maps(const struct target *t)
{
	return t->has_new_code && (s64)(clock_now_ns() - t->maps_read_ns) >= REREAD_NS;
}

static bool is_line_of(const struct map_line *line, const struct mapping *map)
{
	return line->start == map->start && line->offset == map->file_offset &&
	       (line->inode == map->module->ino || (!IS_AGENT && line->is_copy) || line->is_ambiguous ||
		line->is_cut || !strncmp(line->path, map->module->path, strlen(map->module->path)));
}

bool target_still_maps(const struct target *t, const struct mapping *map)
{
	struct maps_reader *maps;
	struct map_line line;
	bool is_there = false;

	if (!map->module || maps_open(&maps, t->pid))
		return true;
	while (!is_there && maps_next(maps, &line) == 1)
		is_there = is_line_of(&line, map);
	maps_close(maps);
	return is_there;
}

void target_read_again(struct target *t)
{
	t->has_new_code = t->is_unfinished = true;
}

/* Does @pid run the program @name? 1 or 0, or -ENOMEM. */
static int target_is_named(pid_t pid, const char *name)
{
	struct proc_stat stat;
	auto_free char *exe = NULL;
	char argv0[PATH_MAX];
	int err;

	if (proc_read_stat(&stat, pid) != 0 || stat.state == 'Z' || stat.state == 'X')
		return 0;
	if (!strcmp(stat.comm, name))
		return 1;
	err = proc_exe(&exe, pid);
	if (err == -ENOMEM)
		return err;
	if (!err)
		return !strcmp(path_name(exe), name) ||
		       (strlen(name) >= COMM_KNOWN_LEN && !proc_argv0(argv0, sizeof(argv0), pid) &&
			!strcmp(path_name(argv0), name));
	/* A process of another user: its exe may not be read, but its command line may. */
	if (err == -ENOENT || strncmp(stat.comm, name, COMM_KNOWN_LEN) != 0)
		return 0;
	return !proc_argv0(argv0, sizeof(argv0), pid) && !strcmp(path_name(argv0), name);
}

/* The number in @text; 0 if it is not a number, or too large for a PID. */
static pid_t parse_pid(const char *text)
{
	char *end;
	long pid;

	if (*text < '0' || *text > '9')
		return 0;
	errno = 0;
	pid = strtol(text, &end, 10);
	return *end || errno || pid > INT_MAX ? 0 : (pid_t)pid;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Does the process run this file, under whatever path? A script runs its interpreter. */
static bool runs_file(pid_t pid, const struct stat *file)
{
	char path[32];
	struct stat exe;

	snprintf(path, sizeof(path), "/proc/%d/exe", proc_reader(pid));
	return !stat(path, &exe) && exe.st_dev == file->st_dev && exe.st_ino == file->st_ino;
}

/* Keep those of @pids that run @name, which is a path if it has a slash in it. Returns their number, or -errno. */
static ssize_t filter_by_name(pid_t *pids, size_t nr, const char *name)
{
	bool is_path = strchr(name, '/');
	struct stat file;
	size_t kept = 0;

	if (is_path && stat(name, &file))
		return -errno;
	for (size_t i = 0; i < nr; i++) {
		int found = pids[i] == getpid() ? 0
			    : is_path		? runs_file(pids[i], &file)
						: target_is_named(pids[i], name);

		if (found < 0)
			return found;
		if (found)
			pids[kept++] = pids[i];
	}
	qsort(pids, kept, sizeof(*pids), compare_pids);
	return (ssize_t)kept;
}

/* A PID in other clothes: "pid=12", "/proc/12", "12,13"; logged. */
static bool refuse_number(const char *name)
{
	static const char *const fronts[] = { "pid=", "PID=", "pid:", "/proc/" };
	const char *digits = "0123456789";

	for (size_t i = 0; i < ARRAY_SIZE(fronts); i++) {
		size_t len = strlen(fronts[i]);

		if (strncmp(name, fronts[i], len) != 0 || !name[len] ||
		    name[len + strspn(name + len, digits)])
			continue;
		error("target: %s: no such process; did you mean %s", name, name + len);
		return true;
	}
	if (!strchr(name, ',') || name[strspn(name, "0123456789,")])
		return false;
	error("target: %s: no such process; a space belongs between PIDs", name);
	return true;
}

/* No process has the name: perhaps a part of one was meant. */
static void refuse_name(const char *name)
{
	auto_free pid_t *all = NULL;
	struct proc_stat stat;
	size_t nr = 0;

	if (refuse_number(name))
		return;
	if (strchr(name, '/')) {
		error("target: %s: no process runs this file; 'heaptap run %s' starts it", name, name);
		return;
	}
	if (strspn(name, "0123456789") < strlen(name) && proc_all(&all, &nr))
		nr = 0;
	for (size_t i = 0; i < nr; i++) {
		if (all[i] == getpid() || proc_read_stat(&stat, all[i]) || stat.is_kernel_thread ||
		    !strcasestr(stat.comm, name))
			continue;
		error("target: %s: no such process; did you mean %s", name, stat.comm);
		return;
	}
	error("target: %s: no such process", name);
}

static int find_by_pid(pid_t pid, pid_t **pids, size_t *nr)
{
	struct proc_stat stat;
	int err = proc_read_stat(&stat, pid);

	if (err)
		return err;
	*pids = malloc(sizeof(**pids));
	if (!*pids)
		return -ENOMEM;
	**pids = pid;
	*nr = 1;
	return 0;
}

int target_find(const char *name_or_pid, pid_t **pids, size_t *nr)
{
	auto_free pid_t *all = NULL;
	pid_t pid = parse_pid(name_or_pid);
	ssize_t kept;
	size_t nr_all;
	int err;

	/* A program may be called "7": names are tried after numbers. */
	err = pid ? find_by_pid(pid, pids, nr) : -ESRCH;
	if (err && err != -ESRCH)
		error("target: %s: %s", name_or_pid, strerror(-err));
	if (err != -ESRCH)
		return err;
	err = proc_all(&all, &nr_all);
	if (err) {
		error("target: %s: cannot list processes: %s", name_or_pid, strerror(-err));
		return err;
	}
	kept = filter_by_name(all, nr_all, name_or_pid);
	if (kept < 0) {
		error("target: %s: %s", name_or_pid, strerror((int)-kept));
		return (int)kept;
	}
	if (!kept) {
		refuse_name(name_or_pid);
		return -ESRCH;
	}
	*pids = take_ptr(all);
	*nr = (size_t)kept;
	return 0;
}

int target_add_allocator(struct target *t, const struct module *module, const char *kind)
{
	for (size_t i = 0; i < t->nr_allocators; i++)
		if (t->allocators[i].module == module && !strcmp(t->allocators[i].kind, kind))
			return 0;
	if (array_extend(t->allocators, t->nr_allocators))
		return -ENOMEM;
	t->allocators[t->nr_allocators++] = (struct target_allocator){ module, kind };
	return 0;
}

bool target_keeps_freed(const struct target *t)
{
	for (size_t i = 0; i < t->nr_allocators; i++)
		if (allocator_is(t->allocators[i].kind, ALLOCATOR_KEEPS_FREED))
			return true;
	return false;
}

bool target_is_allocator(const struct target *t, u32 module)
{
	for (size_t i = 0; i < t->nr_allocators; i++) {
		const struct target_allocator *a = &t->allocators[i];
		const char *name = path_name(a->module->path);

		if (a->module->id == module && strstr(name, ".so") && strcasestr(name, a->kind) &&
		    allocator_is(a->kind, ALLOCATOR_IS_APART))
			return true;
	}
	return false;
}
