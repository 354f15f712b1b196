/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Do two processes have one memory? The kernel says it, or a word that is written in one is looked for in the other. */
#include "user/lib/same_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/lib/maps.h"
#include "user/lib/proc_memory.h"
#include "user/lib/random.h"

enum { SAME_VM = 1 /* KCMP_VM */ };

/*
 * A word that nobody uses: the kernel begins the first stack with a 0 and the name of the program below it. 0 = there
 * is none.
 */
static taddr_t find_unused(pid_t pid)
{
	struct maps_reader *maps;
	struct map_line line;
	taddr_t found = 0;

	if (maps_open(&maps, pid))
		return 0;
	while (!found && maps_next(maps, &line) == 1)
		if (!strcmp(line.path, "[stack]") && line.is_writable)
			found = line.end - sizeof(u64);
	maps_close(maps);
	return found;
}

static u64 read_word(const struct proc_memory *m, taddr_t at)
{
	u64 word;

	return proc_memory_read(m, at, &word, sizeof(word)) == sizeof(word) ? word : 0;
}

/* As same_memory(), by the word at @at of @a, to which @fd writes. */
static int appears_in(int fd, taddr_t at, const struct proc_memory *b)
{
	const u64 none = 0;
	u64 word = 0, seen;
	int err = random_fill(&word, sizeof(word));

	word |= 1;
	if (err || pread(fd, &seen, sizeof(seen), (off_t)at) != sizeof(seen) || seen)
		return err ? err : -ENODATA;
	if (pwrite(fd, &word, sizeof(word), (off_t)at) != sizeof(word))
		return -errno;
	seen = read_word(b, at);
	return pwrite(fd, &none, sizeof(none), (off_t)at) == sizeof(none) ? seen == word : -errno;
}

static int by_word(pid_t a, pid_t b)
{
	taddr_t at = find_unused(a);
	struct proc_memory m;
	char path[32];
	int fd, err;

	if (!at)
		return -ENODATA;
	err = proc_memory_open(&m, b);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/mem", a);
	fd = open(path, O_RDWR | O_CLOEXEC);
	err = fd < 0 ? -errno : appears_in(fd, at, &m);
	if (fd >= 0)
		close(fd);
	proc_memory_close(&m);
	return err;
}

int same_memory(pid_t a, pid_t b)
{
	long order = syscall(SYS_kcmp, a, b, SAME_VM, 0, 0);

	if (order >= 0)
		return !order;
	return IS_AGENT ? -errno : by_word(a, b);
}
