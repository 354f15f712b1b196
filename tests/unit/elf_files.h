/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Real ELF files of this machine, found at run time, for the tests of parsers. */
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "user/lib/types.h"

enum { MAX_ELF_FILES = 96 };

struct elf_files {
	char *paths[MAX_ELF_FILES]; /* owned */
	size_t nr;
};

static inline void elf_files_add(struct elf_files *files, const char *path)
{
	char *real = realpath(path, NULL);

	for (size_t i = 0; real && i < files->nr; i++)
		if (!strcmp(files->paths[i], real))
			goto drop;
	if (real && files->nr < MAX_ELF_FILES && !access(real, R_OK)) {
		files->paths[files->nr++] = real;
		return;
	}
drop:
	free(real);
}

static inline int elf_files_add_object(struct dl_phdr_info *object, size_t size, void *ctx)
{
	(void)size;
	elf_files_add(ctx, object->dlpi_name[0] ? object->dlpi_name : "/proc/self/exe");
	return 0;
}

static inline bool elf_files_add_program(struct elf_files *files, const char *name)
{
	const char *dir = getenv("PATH");
	char path[4096];

	while (dir && *dir) {
		size_t len = strcspn(dir, ":");

		snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, name);
		if (!access(path, X_OK)) {
			elf_files_add(files, path);
			return true;
		}
		dir += len + (dir[len] == ':');
	}
	return false;
}

/* This program, what it is linked to, and those of @libraries and @programs that are installed. */
static inline void elf_files_find(struct elf_files *files, const char *const *libraries,
				  const char *const *programs)
{
	for (; *libraries; libraries++)
		if (!dlopen(*libraries, RTLD_LAZY))
			printf("# %s is not installed, left out\n", *libraries);
	dl_iterate_phdr(elf_files_add_object, files);
	for (; *programs; programs++)
		if (!elf_files_add_program(files, *programs))
			printf("# %s is not installed, left out\n", *programs);
}

static inline void elf_files_free(struct elf_files *files)
{
	while (files->nr)
		free(files->paths[--files->nr]);
}

/* A file in memory with these bytes. */
static inline int elf_files_memory(const void *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, data, size) != (ssize_t)size) {
		close(fd);
		return -1;
	}
	return fd;
}
