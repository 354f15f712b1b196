/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The notes of a core file: what gdb wants to know beside the memory. */
#include "user/core/core_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "user/core/core_xstate.h"
#include "user/lib/cleanup.h"
#include "user/lib/proc.h"

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif
#ifndef NT_ARM_TLS
#define NT_ARM_TLS 0x401
#endif

enum { FXSAVE_BYTES = 512, MAX_AUXV = 8192 };

u16 core_machine(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__aarch64__)
	return EM_AARCH64;
#else
	return 0;
#endif
}

static void put_padding(FILE *out, size_t len)
{
	static const char zeros[4];

	fwrite(zeros, 1, -len & 3, out);
}

static void put_note(FILE *out, const char *name, u32 type, const void *data, size_t len)
{
	const Elf64_Nhdr head = { .n_namesz = (u32)strlen(name) + 1, .n_descsz = (u32)len, .n_type = type };

	fwrite(&head, sizeof(head), 1, out);
	fwrite(name, 1, head.n_namesz, out);
	put_padding(out, head.n_namesz);
	if (len)
		fwrite(data, 1, len, out);
	put_padding(out, len);
}

/* Vector registers, and what else the CPU needs of a thread. */
static void put_more_registers(FILE *out, const struct arch_regs *regs)
{
	const u8 *vector = regs->bytes + REGS_VECTOR;

#if defined(__x86_64__)
	u8 state[CORE_XSTATE_MAX];
	size_t len = core_xstate(vector, regs->nr_vector, state);

	/* The state of XSAVE begins with that of FXSAVE. */
	if (regs->nr_vector >= FXSAVE_BYTES)
		put_note(out, "CORE", NT_PRFPREG, vector, FXSAVE_BYTES);
	if (len)
		put_note(out, "LINUX", NT_X86_XSTATE, state, len);
#else
	put_note(out, "CORE", NT_PRFPREG, vector, regs->nr_vector);
	put_note(out, "LINUX", NT_ARM_TLS, &regs->tp, sizeof(regs->tp));
#endif
}

static void put_thread(FILE *out, const struct core_thread *t, pid_t ppid)
{
	struct elf_prstatus status = { .pr_pid = t->tid, .pr_ppid = ppid };
	size_t len = t->regs->nr_general;

	memcpy(&status.pr_reg, t->regs->bytes, len < sizeof(status.pr_reg) ? len : sizeof(status.pr_reg));
	status.pr_fpvalid = t->regs->nr_vector != 0;
	put_note(out, "CORE", NT_PRSTATUS, &status, sizeof(status));
	put_more_registers(out, t->regs);
}

/* The command line, with blanks between its words. */
static void read_arguments(pid_t pid, char *text, size_t size)
{
	char path[32];
	auto_close int fd = -1;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, size - 1);
	len = len < 0 ? 0 : len;
	text[len] = '\0';
	for (ssize_t i = 0; i < len - 1; i++)
		if (!text[i])
			text[i] = ' ';
}

static pid_t core_notes_put_process(FILE *out, pid_t pid)
{
	struct elf_prpsinfo info = { .pr_pid = pid, .pr_sname = 'R' };
	struct proc_status status;
	struct proc_stat stat;

	if (!proc_read_stat(&stat, pid)) {
		snprintf(info.pr_fname, sizeof(info.pr_fname), "%.*s", (int)sizeof(info.pr_fname) - 1,
			 stat.comm);
		info.pr_ppid = stat.ppid;
	}
	if (!proc_read_status(&status, pid)) {
		info.pr_uid = status.uid;
		info.pr_gid = status.gid;
	}
	read_arguments(pid, info.pr_psargs, sizeof(info.pr_psargs));
	put_note(out, "CORE", NT_PRPSINFO, &info, sizeof(info));
	return info.pr_ppid;
}

/* gdb finds the dynamic linker by it, and through that the libraries. */
static int put_auxv(FILE *out, pid_t tid)
{
	char path[32], data[MAX_AUXV];
	auto_close int fd = -1;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/auxv", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, data, sizeof(data));
	if (len < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	put_note(out, "CORE", NT_AUXV, data, (size_t)len);
	return 0;
}

/* Shared memory has a name, too, but none that gdb could open. */
static bool is_file(const struct snapshot_map *map)
{
	static const char *const others[] = { "/dev/zero", "/memfd:", "/SYSV" };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strncmp(map->path, others[i], strlen(others[i])))
			return false;
	return map->ino && *map->path == '/';
}

/* Count, page size, three words for each mapping of a file; then the names. */
static int put_files(FILE *out, const struct snapshot *s)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE), nr = 0;
	auto_free char *data = NULL;
	size_t len = 0;
	FILE *list = open_memstream(&data, &len);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_maps; i++)
		nr += is_file(&s->maps[i]);
	fwrite(&nr, sizeof(nr), 1, list);
	fwrite(&page, sizeof(page), 1, list);
	for (size_t i = 0; i < s->nr_maps; i++) {
		const struct snapshot_map *map = &s->maps[i];
		const u64 words[] = { map->start, map->end, map->file_offset / page };

		if (is_file(map))
			fwrite(words, sizeof(words), 1, list);
	}
	for (size_t i = 0; i < s->nr_maps; i++)
		if (is_file(&s->maps[i]))
			fwrite(s->maps[i].path, 1, strlen(s->maps[i].path) + 1, list);
	if (fclose(list))
		return -ENOMEM;
	put_note(out, "CORE", NT_FILE, data, len);
	return 0;
}

int core_notes(const struct core *c, char **notes, size_t *len)
{
	FILE *out = open_memstream(notes, len);
	pid_t ppid;
	int err;

	if (!out)
		return -ENOMEM;
	ppid = core_notes_put_process(out, c->held.pid);
	for (size_t i = 0; i < c->nr_threads; i++)
		put_thread(out, &c->threads[i], ppid);
	err = put_auxv(out, c->snapshot.mem_tid);
	if (!err)
		err = put_files(out, &c->snapshot);
	return fclose(out) && !err ? -ENOMEM : err;
}
