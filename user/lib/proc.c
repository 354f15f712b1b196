/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the files of /proc about a process. */
#include "user/lib/proc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/file_at.h"

enum {
	PROC_PATH_SIZE = 64,
	PF_KERNEL_THREAD = 0x00200000, /* PF_KTHREAD of include/linux/sched.h */
	PF_WORKER = 0x10 | 0x4000,     /* PF_IO_WORKER, and since Linux 6.4 PF_USER_WORKER */
};

/* A process may end, and its PID be reused, at any moment. The errno then depends on the file. */
static int proc_errno(int err)
{
	return err == ENOENT || err == ESRCH ? -ESRCH : -err;
}

ssize_t proc_read_text(const char *path, char *buf, size_t size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = file_read_at(fd, buf, size - 1, 0);
	if (n < 0)
		return n;
	while (n && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return n;
}

bool proc_read_number(const char *dir, const char *name, const char *key, u64 *out)
{
	auto_fclose FILE *f = NULL;
	char path[PATH_MAX], line[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		size_t len = key ? strlen(key) : 0;
		char *end;

		if (key && strncmp(line, key, len) != 0)
			continue;
		*out = strtoull(line + len, &end, 10);
		return end != line + len;
	}
	return false;
}

/* Read a file of /proc/@pid. Returns its length or -errno as the readers do. */
static ssize_t read_pid_file(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[PROC_PATH_SIZE];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	n = proc_read_text(path, buf, size);
	return n < 0 ? proc_errno((int)-n) : n;
}

/*
 * Fields of /proc/PID/stat behind the name, numbered as in proc(5): 3 state, 4 parent, 9 flags, 11 page faults of
 * children that have ended, 14 and 15 CPU time, 20 threads, 22 start time, 28 start of the stack, 52 status. sscanf()
 * would add 11 KiB to the agent.
 */
static bool parse_stat_fields(const char *text, struct proc_stat *out)
{
	const u64 tick_ns = 1000000000 / (u64)sysconf(_SC_CLK_TCK);
	unsigned long long fields[IS_AGENT ? 29 : 53] = { 0 };
	size_t nr;

	text += strspn(text, " ");
	if (!*text)
		return false;
	out->state = *text++;
	for (nr = 4; nr < ARRAY_SIZE(fields); nr++) {
		char *end;

		fields[nr] = strtoull(text, &end, 10);
		if (end == text)
			break;
		text = end;
	}
	out->ppid = (pid_t)fields[4];
	out->is_kernel_thread = fields[9] & PF_KERNEL_THREAD;
	out->is_kernel_worker = fields[9] & PF_WORKER;
	out->has_waited = fields[11] != 0;
	out->user_ns = fields[14] * tick_ns;
	out->system_ns = fields[15] * tick_ns;
	out->nr_threads = (u32)fields[20];
	out->start_time = fields[22];
	out->start_sp = fields[28];
	if (!IS_AGENT)
		out->exit_status = (int)fields[52];
	return nr > 22;
}

int proc_read_stat(struct proc_stat *out, pid_t pid)
{
	char text[1024];
	char *open_paren, *close_paren;
	size_t len;
	ssize_t n = read_pid_file(pid, "stat", text, sizeof(text));

	if (n < 0)
		return (int)n;
	/* The name is free text that may contain parentheses: it ends at the last one. */
	open_paren = strchr(text, '(');
	close_paren = strrchr(text, ')');
	if (!open_paren || !close_paren || close_paren < open_paren)
		return -EPROTO;

	*out = (struct proc_stat){ 0 };
	if (!parse_stat_fields(close_paren + 1, out))
		return -EPROTO;
	len = close_paren - open_paren - 1;
	if (len >= sizeof(out->comm))
		len = sizeof(out->comm) - 1;
	memcpy(out->comm, open_paren + 1, len);
	return 0;
}

/* The state letter of a thread, without the sums over all threads that /proc/PID/stat has, or -errno. */
static int thread_state(pid_t pid, pid_t tid)
{
	char name[PROC_PATH_SIZE / 2], text[1024];
	const char *at;
	ssize_t n;

	snprintf(name, sizeof(name), "task/%d/stat", tid);
	n = read_pid_file(pid, name, text, sizeof(text));
	if (n < 0)
		return (int)n;
	at = strrchr(text, ')');
	return at && at[1] ? at[2] : -EIO;
}

bool proc_thread_has_ended(pid_t pid, pid_t tid)
{
	int state = thread_state(pid, tid);

	return state == -ESRCH || state == 'Z' || state == 'X';
}

/* The last number of a list, and the count of the numbers before it. */
static void parse_ns_tgid(struct proc_status *out, const char *value)
{
	u32 nr = 0;

	for (;;) {
		char *end;
		long id = strtol(value, &end, 10);

		if (end == value)
			break;
		out->ns_tgid = (pid_t)id;
		nr++;
		value = end;
	}
	out->ns_depth = nr ? nr - 1 : 0;
}

/* The real and the effective id of a line "Uid:" or "Gid:". */
static void parse_ids(const char *value, u32 *real, u32 *effective)
{
	char *end, *last;
	unsigned long first = strtoul(value, &end, 10), second = strtoul(end, &last, 10);

	if (end == value || last == end)
		return;
	*real = (u32)first;
	*effective = (u32)second;
}

static void parse_status_line(struct proc_status *out, const char *key, const char *value)
{
	if (!strcmp(key, "Tgid"))
		out->tgid = atoi(value);
	else if (!strcmp(key, "PPid"))
		out->ppid = atoi(value);
	else if (!strcmp(key, "TracerPid"))
		out->tracer_pid = atoi(value);
	else if (!strcmp(key, "Uid"))
		parse_ids(value, &out->uid, &out->euid);
	else if (!strcmp(key, "Gid"))
		parse_ids(value, &out->gid, &out->egid);
	else if (!strcmp(key, "NStgid"))
		parse_ns_tgid(out, value);
	else if (!strcmp(key, "VmSize"))
		out->has_memory = true;
	else if (!strcmp(key, "VmRSS"))
		out->resident_bytes = strtoull(value, NULL, 10) * 1024;
	else if (!strcmp(key, "RssAnon"))
		out->anonymous_bytes = strtoull(value, NULL, 10) * 1024;
	else if (!strcmp(key, "RssShmem"))
		out->shared_bytes = strtoull(value, NULL, 10) * 1024;
	else if (!strcmp(key, "VmSize"))
		out->mapped_bytes = strtoull(value, NULL, 10) * 1024;
	else if (!strcmp(key, "VmData"))
		out->data_bytes = strtoull(value, NULL, 10) * 1024;
	else if (!strcmp(key, "VmPin"))
		out->pinned_bytes = strtoull(value, NULL, 10) * 1024;
	else if (!strcmp(key, "VmSwap"))
		out->swapped_bytes = strtoull(value, NULL, 10) * 1024;
	else if (!strcmp(key, "Threads"))
		out->nr_threads = (u32)strtoul(value, NULL, 10);
	else if (!strcmp(key, "Seccomp"))
		out->seccomp = (u32)strtoul(value, NULL, 10);
	else if (!strcmp(key, "CapEff"))
		out->caps_effective = strtoull(value, NULL, 16);
	else if (!strcmp(key, "SigBlk"))
		out->signals_blocked = strtoull(value, NULL, 16);
	else if (!strcmp(key, "SigCgt"))
		out->signals_caught = strtoull(value, NULL, 16);
	else if (!IS_AGENT && !strcmp(key, "SigIgn"))
		out->signals_ignored = strtoull(value, NULL, 16);
}

/* The list of groups may be longer than any buffer: read line by line, and skip long lines. */
static int parse_status(struct proc_status *out, FILE *f)
{
	char line[512];
	bool is_start = true;

	while (fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');
		bool was_start = is_start;

		is_start = strchr(line, '\n');
		if (!was_start || !colon)
			continue;
		*colon = '\0';
		parse_status_line(out, line, colon + 1);
	}
	if (ferror(f))
		return proc_errno(errno);
	return out->tgid ? 0 : -EPROTO;
}

int proc_read_status(struct proc_status *out, pid_t pid)
{
	char path[PROC_PATH_SIZE];
	auto_fclose FILE *f = NULL;

	*out = (struct proc_status){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return proc_errno(errno);
	return parse_status(out, f);
}

bool proc_is_our_tracee(pid_t tid)
{
	struct proc_status status;

	return !proc_read_status(&status, tid) && status.tracer_pid == getpid();
}

/* The entries of @dir that are numbers, in its order. */
static int read_numbers(const char *path, pid_t **out, size_t *nr)
{
	auto_closedir DIR *dir = opendir(path);
	auto_free pid_t *list = NULL;
	size_t used = 0, size = 0;
	struct dirent *entry;

	if (!dir)
		return proc_errno(errno);
	while (errno = 0, (entry = readdir(dir))) {
		char *end;
		long id = strtol(entry->d_name, &end, 10);

		if (*end || id <= 0 || id > INT_MAX)
			continue;
		if (array_reserve(list, size, used + 1))
			return -ENOMEM;
		list[used++] = (pid_t)id;
	}
	if (errno)
		return proc_errno(errno);
	if (!used)
		return -ESRCH;
	*out = take_ptr(list);
	*nr = used;
	return 0;
}

int proc_threads(pid_t pid, pid_t **tids, size_t *nr)
{
	char path[PROC_PATH_SIZE];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return read_numbers(path, tids, nr);
}

bool proc_has_child(pid_t pid)
{
	auto_free pid_t *tids = NULL;
	char name[PROC_PATH_SIZE / 2], first[16];
	size_t nr = 0;

	if (proc_threads(pid, &tids, &nr))
		return false;
	for (size_t i = 0; i < nr && i < 64; i++) {
		snprintf(name, sizeof(name), "task/%d/children", tids[i]);
		if (read_pid_file(pid, name, first, sizeof(first)) > 0)
			return true;
	}
	return false;
}

pid_t proc_reader(pid_t pid)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	if (thread_state(pid, pid) != 'Z' || proc_threads(pid, &tids, &nr))
		return pid;
	for (size_t i = 0; i < nr; i++)
		if (!proc_thread_has_ended(pid, tids[i]))
			return tids[i];
	return pid;
}

int proc_all(pid_t **pids, size_t *nr)
{
	return read_numbers("/proc", pids, nr);
}

/* True if the kernel itself added @path's " (deleted)": no such file leads to the running program. */
static bool is_deleted_mark(pid_t pid, const char *exe_link, const char *path)
{
	char in_root[PROC_PATH_SIZE + PATH_MAX];
	struct stat running, named;

	snprintf(in_root, sizeof(in_root), "/proc/%d/root%s", proc_reader(pid), path);
	return stat(exe_link, &running) != 0 || stat(in_root, &named) != 0 ||
	       running.st_dev != named.st_dev || running.st_ino != named.st_ino;
}

int proc_exe(char **out, pid_t pid)
{
	static const char mark[] = " (deleted)";
	char path[PROC_PATH_SIZE];
	char exe[PATH_MAX + sizeof(mark)];
	size_t mark_len = sizeof(mark) - 1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", proc_reader(pid));
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n < 0) {
		/* A kernel thread has the link without a file: its errno is that of a missing process. */
		int err = errno;

		snprintf(path, sizeof(path), "/proc/%d", pid);
		return err == ENOENT && access(path, F_OK) == 0 ? -ENOENT : proc_errno(err);
	}
	exe[n] = '\0';
	if ((size_t)n > mark_len && !strcmp(exe + n - mark_len, mark) && is_deleted_mark(pid, path, exe))
		exe[n - mark_len] = '\0';
	*out = strdup(exe);
	return *out ? 0 : -ENOMEM;
}

int proc_is_32bit(bool *out, pid_t pid)
{
	char path[PROC_PATH_SIZE];
	u8 ident[EI_NIDENT];
	auto_close int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", proc_reader(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return proc_errno(errno);
	n = file_read_at(fd, ident, sizeof(ident), 0);
	if (n < 0)
		return (int)n;
	if (n != (ssize_t)sizeof(ident) || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	*out = ident[EI_CLASS] == ELFCLASS32;
	return 0;
}

int proc_argv0(char *buf, size_t size, pid_t pid)
{
	ssize_t n = read_pid_file(pid, "cmdline", buf, size);

	return n < 0 ? (int)n : 0;
}

int proc_auxv(u64 *out, pid_t pid, bool is_32bit, u64 type)
{
	union {
		u64 wide[128];
		u32 narrow[256];
	} auxv;
	char path[PROC_PATH_SIZE];
	auto_close int fd = -1;
	size_t nr;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/auxv", proc_reader(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return proc_errno(errno);
	n = file_read_at(fd, &auxv, sizeof(auxv), 0);
	if (n < 0)
		return proc_errno((int)-n);
	nr = (size_t)n / (is_32bit ? sizeof(u32) : sizeof(u64));
	for (size_t i = 0; i + 1 < nr; i += 2) {
		u64 key = is_32bit ? auxv.narrow[i] : auxv.wide[i];

		if (key != type)
			continue;
		*out = is_32bit ? auxv.narrow[i + 1] : auxv.wide[i + 1];
		return 0;
	}
	return -ENOENT;
}

int proc_thread_cpu(pid_t pid, pid_t tid)
{
	enum { CPU_FIELD = 39 };
	char path[PROC_PATH_SIZE], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (proc_read_text(path, text, sizeof(text)) < 0)
		return -1;
	at = strrchr(text, ')');
	for (int field = 2; at && field < CPU_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at ? atoi(at) : -1;
}
