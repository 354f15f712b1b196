/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removes the files of old reports and of old parts of a recording, if they are still those that heaptap made. */
#include "user/stream/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/log.h"

void kept_fini(struct kept *k)
{
	for (size_t i = 0; i < k->nr; i++)
		free(k->files[i].name);
	free(k->files);
	*k = (struct kept){ .what = k->what };
}

static int kept_add(struct kept *k, const char *name, u64 number, const struct stat *st)
{
	struct kept_file file = { strdup(name), number, st->st_dev, st->st_ino, st->st_size, st->st_mtim };

	if (!file.name || array_reserve(k->files, k->max, k->nr + 1)) {
		free(file.name);
		return -ENOMEM;
	}
	k->files[k->nr++] = file;
	return 0;
}

static bool kept_is_ours(const struct kept_file *f, const struct stat *st)
{
	return S_ISREG(st->st_mode) && f->dev == st->st_dev && f->ino == st->st_ino &&
	       f->size == st->st_size && f->mtime.tv_sec == st->st_mtim.tv_sec &&
	       f->mtime.tv_nsec == st->st_mtim.tv_nsec;
}

static void kept_remove_one(const struct kept *k, const struct kept_file *f, int dir)
{
	struct stat st;

	if (fstatat(dir, f->name, &st, AT_SYMLINK_NOFOLLOW))
		return; /* somebody else removed or moved it */
	if (!kept_is_ours(f, &st))
		info("%s: %s: not removed, because the file was changed or replaced", k->what, f->name);
	else if (unlinkat(dir, f->name, 0))
		warn("%s: %s: cannot be removed: %s", k->what, f->name, strerror(errno));
}

static void kept_remove(struct kept *k, int dir, u64 last)
{
	size_t nr_old = 0;

	while (nr_old < k->nr && k->files[nr_old].number <= last) {
		kept_remove_one(k, &k->files[nr_old], dir);
		free(k->files[nr_old].name);
		nr_old++;
	}
	k->nr -= nr_old;
	memmove(k->files, k->files + nr_old, k->nr * sizeof(*k->files));
}

void kept_last(struct kept *k, int dir, const char *name, u64 number, u64 nr)
{
	struct stat st;

	if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && kept_add(k, name, number, &st))
		warn("%s: %s: no memory to remove it later", k->what, name);
	if (number > nr)
		kept_remove(k, dir, number - nr);
}
