/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that have no name, on kernels and file systems without memfd_create(2) and O_TMPFILE, too. */
#include "user/lib/unnamed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file in @dir; as long as it takes to unlink it, it has a name. */
static int make_in(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), err;
	char path[4096];

	if (fd >= 0 || (errno != EISDIR && errno != EOPNOTSUPP && errno != EINVAL))
		return fd < 0 ? -errno : fd;
	if (snprintf(path, sizeof(path), "%s/heaptap-XXXXXX", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	err = -errno;
	if (fd >= 0)
		unlink(path);
	return fd < 0 ? err : fd;
}

int unnamed_file(const char *dir)
{
	const char *wanted = getenv("TMPDIR");

	return make_in(wanted && *wanted == '/' ? wanted : dir);
}

int unnamed_file_in_memory(const char *name)
{
	/* The root of a board may be read-only. */
	static const char *const dirs[] = { "/dev/shm", "/run", "/var/tmp" };
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 || errno != ENOSYS)
		return fd < 0 ? -errno : fd;
	fd = unnamed_file("/tmp");
	for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(dirs); i++)
		fd = make_in(dirs[i]);
	return fd;
}
