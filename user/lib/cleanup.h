/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locals that own something: released at the end of the scope unless taken. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define auto_free     __attribute__((cleanup(cleanup_free)))
#define auto_close    __attribute__((cleanup(cleanup_close)))
#define auto_fclose   __attribute__((cleanup(cleanup_fclose)))
#define auto_closedir __attribute__((cleanup(cleanup_closedir)))

/* Hand a local over: the scope no longer releases it. */
#define take_ptr(p)                                                                                          \
	({                                                                                                   \
		__auto_type taken = (p);                                                                     \
		(p) = NULL;                                                                                  \
		taken;                                                                                       \
	})
#define take_fd(fd)                                                                                          \
	({                                                                                                   \
		int taken = (fd);                                                                            \
		(fd) = -1;                                                                                   \
		taken;                                                                                       \
	})
