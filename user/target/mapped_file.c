/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the file of a line of maps: checks its identity first, and reads its contents later, with a time limit. */
#include "user/target/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include <linux/openat2.h>

#include "user/lib/cleanup.h"
#include "user/lib/maps.h"

enum { OPEN_TIMEOUT_S = 2, OPENER_STACK = 512 << 10 };

/* True if @pid has the mounts of this process, or if that cannot be known: then there is no other way to the file. */
static bool is_same_mounts(pid_t pid)
{
	char path[32], theirs[64], ours[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	n = readlink(path, theirs, sizeof(theirs));
	m = readlink("/proc/self/ns/mnt", ours, sizeof(ours));
	return n < 0 || (n == m && memcmp(theirs, ours, n) == 0);
}

void file_source_init(struct file_source *s, pid_t pid)
{
	s->pid = pid;
	s->root[0] = '\0';
	if (!is_same_mounts(pid))
		snprintf(s->root, sizeof(s->root), "/proc/%d/root", pid);
	/*
	 * The kernel prints paths in maps relative to our root where possible, so a chroot of the target does not
	 * matter.
	 */
	s->root_fd = open(s->root[0] ? s->root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)!proc_memory_open(&s->memory, pid); /* not open: reads fail */
}

void file_source_fini(struct file_source *s)
{
	cleanup_close(&s->root_fd);
	proc_memory_close(&s->memory);
	s->root_fd = -1;
}

/* Identity of @fd, from the kernel alone, without asking a file server. */
static int identify(int fd, struct file_identity *id)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
		return -errno;
	if (!S_ISREG(st.stx_mode))
		return -EINVAL;
	*id = (struct file_identity){ .dev = makedev(st.stx_dev_major, st.stx_dev_minor),
				      .ino = st.stx_ino,
				      .changed_ns =
					      st.stx_ctime.tv_sec * 1000000000ULL + st.stx_ctime.tv_nsec,
				      .nr_links = st.stx_nlink };
	return 0;
}

/* Open @path under the root. Links in it are resolved under the root, and a link at its end is not followed. */
static int open_under_root(const struct file_source *s, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd;

	if (path[0] != '/' || s->root_fd < 0)
		return -1;
	path += strspn(path, "/");
	fd = syscall(SYS_openat2, s->root_fd, path, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS) /* before 5.6; the caller compares inodes anyway */
		fd = openat(s->root_fd, path, how.flags);
	return fd;
}

int mapped_file_find(const struct file_source *s, const struct map_line *line, int *fd,
		     struct file_identity *id)
{
	char link[80];
	int err;

	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", s->pid, (unsigned long long)line->start,
		 (unsigned long long)line->end);
	*fd = open(link, O_PATH | O_CLOEXEC);
	if (*fd < 0)
		*fd = open_under_root(s, line->path);
	if (*fd < 0)
		return -ENOENT;
	err = identify(*fd, id);
	if (err) {
		close(*fd);
		*fd = -1;
	}
	return err;
}

bool mapped_file_has_path(const struct file_source *s, const struct map_line *line,
			  const struct file_identity *id)
{
	auto_close int fd = open_under_root(s, line->path);
	struct file_identity other;

	return fd >= 0 && identify(fd, &other) == 0 && other.dev == id->dev && other.ino == id->ino;
}

/* One attempt to open a file, shared by the waiting thread and by the thread that may block forever. */
struct opening {
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool is_done, is_abandoned;
	int path_fd; /* owned; -1 = open path */
	char *path;  /* owned */
	int fd, err;
	struct image image;
};

static void opening_free(struct opening *o)
{
	cleanup_close(&o->path_fd);
	cleanup_close(&o->fd);
	free(o->path);
	pthread_cond_destroy(&o->done);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* The steps that may wait for a file server. */
static int open_now(struct opening *o)
{
	struct file_identity id;
	char link[32];
	int err;

	if (o->path_fd < 0)
		o->path_fd = open(o->path, O_PATH | O_CLOEXEC);
	if (o->path_fd < 0)
		return -errno;
	err = identify(o->path_fd, &id);
	if (err)
		return err;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", o->path_fd);
	o->fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (o->fd < 0)
		return -errno;
	err = image_read_file(&o->image, o->fd);
	if (err == -ENOEXEC)
		o->image = (struct image){ 0 };
	return err == -ENOEXEC ? 0 : err;
}

static void *opener(void *arg)
{
	struct opening *o = arg;
	bool is_abandoned;
	int err = open_now(o);

	pthread_mutex_lock(&o->lock);
	o->err = err;
	o->is_done = true;
	is_abandoned = o->is_abandoned;
	pthread_cond_signal(&o->done);
	pthread_mutex_unlock(&o->lock);
	if (is_abandoned)
		opening_free(o);
	return NULL;
}

/* Signals belong to the threads that handle them. */
static int start_opener(struct opening *o)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, OPENER_STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, opener, o);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	/* EAGAIN of a thread is lack of memory or of threads, and nothing that the file could mend. */
	return err == EAGAIN ? -ENOMEM : -err;
}

/* The time limit must not use a clock that users can set. */
static void init_done(pthread_cond_t *done)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(done, &attr);
	pthread_condattr_destroy(&attr);
}

/* Takes @o over. */
static int open_limited(struct opening *o, int *fd, struct image *image)
{
	struct timespec until;
	bool is_done;
	int err;

	o->fd = -1;
	pthread_mutex_init(&o->lock, NULL);
	init_done(&o->done);
	err = start_opener(o);
	if (err) {
		opening_free(o);
		return err;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += OPEN_TIMEOUT_S;
	pthread_mutex_lock(&o->lock);
	while (!o->is_done && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&o->done, &o->lock, &until);
	is_done = o->is_done;
	o->is_abandoned = !is_done;
	pthread_mutex_unlock(&o->lock);
	if (!is_done)
		return -ETIMEDOUT;
	err = o->err;
	if (!err) {
		*fd = take_fd(o->fd);
		*image = o->image;
	}
	opening_free(o);
	return err;
}

int mapped_file_open(int path_fd, int *fd, struct image *image)
{
	struct opening *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->path_fd = fcntl(path_fd, F_DUPFD_CLOEXEC, 0);
	if (o->path_fd < 0) {
		int err = -errno;

		free(o);
		return err;
	}
	return open_limited(o, fd, image);
}

int mapped_file_open_path(const char *path, int *fd, struct image *image)
{
	struct opening *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->path_fd = -1;
	o->path = strdup(path);
	if (!o->path) {
		free(o);
		return -ENOMEM;
	}
	return open_limited(o, fd, image);
}
