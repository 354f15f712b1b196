/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes the code of a process. */
#include "fallback/code_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

static int code_memory_result(ssize_t nr, size_t len)
{
	if (nr < 0)
		return -errno;
	return nr == (ssize_t)len ? 0 : -EIO;
}

static int code_memory_read_file(void *ctx, taddr_t addr, void *buf, size_t len)
{
	return code_memory_result(pread((int)(intptr_t)ctx, buf, len, (off_t)addr), len);
}

static int code_memory_write_file(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	return code_memory_result(pwrite((int)(intptr_t)ctx, buf, len, (off_t)addr), len);
}

struct cpu_memory code_by_file(int mem_fd)
{
	return (struct cpu_memory){ (void *)(intptr_t)mem_fd, code_memory_read_file, code_memory_write_file };
}

/* The word of memory that holds @addr. */
static void *code_memory_word_of(taddr_t addr)
{
	return (void *)(uintptr_t)(addr - addr % sizeof(long));
}

/* The bytes from @addr to the end of its word, @len at most. */
static size_t bytes_in_word(taddr_t addr, size_t len)
{
	size_t nr = sizeof(long) - addr % sizeof(long);

	return nr < len ? nr : len;
}

static int code_memory_read_words(void *ctx, taddr_t addr, void *buf, size_t len)
{
	pid_t tid = (pid_t)(intptr_t)ctx;

	for (size_t at = 0, nr; at < len; at += nr) {
		long word;

		nr = bytes_in_word(addr + at, len - at);
		errno = 0;
		word = ptrace(PTRACE_PEEKTEXT, tid, code_memory_word_of(addr + at), 0);
		if (errno)
			return -errno;
		memcpy((u8 *)buf + at, (u8 *)&word + (addr + at) % sizeof(long), nr);
	}
	return 0;
}

static int write_words(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	pid_t tid = (pid_t)(intptr_t)ctx;

	for (size_t at = 0, nr; at < len; at += nr) {
		taddr_t start = (taddr_t)(uintptr_t)code_memory_word_of(addr + at);
		long word;
		int err = code_memory_read_words(ctx, start, &word, sizeof(word));

		if (err)
			return err;
		nr = bytes_in_word(addr + at, len - at);
		memcpy((u8 *)&word + (addr + at - start), (const u8 *)buf + at, nr);
		if (ptrace(PTRACE_POKETEXT, tid, code_memory_word_of(addr + at), word))
			return -errno;
	}
	return 0;
}

struct cpu_memory code_by_ptrace(pid_t tid)
{
	return (struct cpu_memory){ (void *)(intptr_t)tid, code_memory_read_words, write_words };
}
