/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes breakpoints out of untraced copies of targets. */
#include "user/source/copies.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"

/* Between two times lies a second, or 50 times what one takes: 2 % of a CPU. */
enum { PAUSE_NS = 1000000000, PAUSE_FACTOR = 50 };

/* The places of one file. */
struct copies_file {
	dev_t dev;
	ino_t ino;
	int fd;			   /* owned */
	u64 *offsets, *semaphores; /* owned; as in struct link_group */
	size_t nr, max, max_semaphores;
};

static struct copies_file *copies_find_file(const struct copies *c, const struct stat *st)
{
	for (size_t i = 0; i < c->nr_files; i++)
		if (c->files[i].dev == st->st_dev && c->files[i].ino == st->st_ino)
			return &c->files[i];
	return NULL;
}

static int copies_add_file(struct copies *c, int fd, const struct stat *st, struct copies_file **out)
{
	struct copies_file f = { .dev = st->st_dev, .ino = st->st_ino };

	if (array_extend(c->files, c->nr_files))
		return -ENOMEM;
	f.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f.fd < 0)
		return -errno;
	c->files[c->nr_files] = f;
	*out = &c->files[c->nr_files++];
	return 0;
}

static bool has_place(const struct copies_file *f, u64 offset)
{
	for (size_t i = 0; i < f->nr; i++)
		if (f->offsets[i] == offset)
			return true;
	return false;
}

int copies_note(struct copies *c, const struct link_group *g)
{
	struct copies_file *f;
	struct stat st;
	int err = fstat(g->fd, &st) ? -errno : 0;

	if (err)
		return err;
	f = copies_find_file(c, &st);
	if (!f)
		err = copies_add_file(c, g->fd, &st, &f);
	if (err || !f)
		return err;
	err = array_reserve(f->offsets, f->max, f->nr + g->nr);
	err = err ? err : array_reserve(f->semaphores, f->max_semaphores, f->nr + g->nr);
	for (size_t i = 0; i < g->nr && !err; i++) {
		if (has_place(f, g->offsets[i]))
			continue;
		f->semaphores[f->nr] = g->semaphores ? g->semaphores[i] : 0;
		f->offsets[f->nr++] = g->offsets[i];
	}
	return err;
}

/* Returns how many files could not be swept, *@err: why the last one. */
static size_t sweep_files(const struct copies *c, struct link_set *set, const struct programs *p, int *err)
{
	size_t nr_failed = 0;

	for (size_t i = 0; i < c->nr_files; i++) {
		const struct copies_file *f = &c->files[i];
		/* Any program that is loaded does: the link sees a process of heaptap only. */
		const struct link_group g = { .program = PROGRAM_MAPS_CHANGED,
					      .fd = f->fd,
					      .offsets = f->offsets,
					      .semaphores = f->semaphores,
					      .nr = f->nr };
		int failed = link_set_touch(set, p, &g, true);

		nr_failed += failed != 0;
		*err = failed ? failed : *err;
	}
	return nr_failed;
}

void copies_sweep(struct copies *c, struct link_set *set, const struct programs *p, u32 nr_made)
{
	u64 start_ns = clock_now_ns(), taken_ns;
	size_t nr_failed;
	int err = 0;

	if (nr_made == c->nr_swept || start_ns < c->next_ns)
		return;
	nr_failed = sweep_files(c, set, p, &err);
	if (nr_failed)
		debug("bpf: copies of targets keep their probes in %zu of %zu files for now: %s", nr_failed,
		      c->nr_files, strerror(-err));
	else
		debug("bpf: probes are out of %u copies of targets", nr_made - c->nr_swept);
	if (!nr_failed)
		c->nr_swept = nr_made;
	taken_ns = clock_now_ns() - start_ns;
	c->next_ns = start_ns + (taken_ns > PAUSE_NS / PAUSE_FACTOR ? taken_ns * PAUSE_FACTOR : PAUSE_NS);
}

void copies_fini(struct copies *c)
{
	for (size_t i = 0; i < c->nr_files; i++) {
		close(c->files[i].fd);
		free(c->files[i].offsets);
		free(c->files[i].semaphores);
	}
	free(c->files);
}
