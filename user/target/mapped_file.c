/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the file of a line of maps: checks its identity first, and reads its contents later, with a time limit. */
#include "user/target/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

#include <linux/openat2.h>

#include "user/lib/cleanup.h"
#include "user/lib/maps.h"
#include "user/lib/proc.h"
#include "user/lib/thread.h"

enum {
	OPEN_TIMEOUT_S = 2,
	OPENER_STACK = 512 << 10,
	FETCH_PIECE = 128 << 10,
	FETCH_MAX = 64 << 20,
};

/* File systems whose server may be another machine, or a program: linux/magic.h has some of them. */
static const u32 served[] = {
	0x65735546, /* FUSE */
	0x6969,	    /* NFS */
	0xff534d42, /* CIFS */
	0xfe534d42, /* SMB 2 and later */
	0x01021997, /* 9p */
	0x00c36400, /* Ceph */
	0x5346414f, /* AFS */
	0x73757245, /* Coda */
};

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
	s->reader = proc_reader(pid);
	s->root[0] = '\0';
	if (!is_same_mounts(s->reader))
		snprintf(s->root, sizeof(s->root), "/proc/%d/root", s->reader);
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

/* Before Linux 4.11, and where a filter of system calls is older than that. A file server may be asked. */
static int identify_by_fstat(int fd, struct file_identity *id)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*id = (struct file_identity){ .dev = st.st_dev,
				      .ino = st.st_ino,
				      .changed_ns = st.st_ctim.tv_sec * 1000000000ULL + st.st_ctim.tv_nsec,
				      .nr_links = st.st_nlink };
	return 0;
}

/* Identity of @fd, from the kernel alone, without asking a file server. */
static int mapped_file_identify(int fd, struct file_identity *id)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
		/* glibc says EINVAL where the kernel says ENOSYS. */
		return errno == ENOSYS || errno == EINVAL || errno == EPERM ? identify_by_fstat(fd, id)
									    : -errno;
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

	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", s->reader,
		 (unsigned long long)line->start, (unsigned long long)line->end);
	*fd = open(link, O_PATH | O_CLOEXEC);
	if (*fd < 0)
		*fd = open_under_root(s, line->path);
	if (*fd < 0)
		return -ENOENT;
	err = mapped_file_identify(*fd, id);
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
	struct file_identity other = { 0 };

	return fd >= 0 && mapped_file_identify(fd, &other) == 0 && other.dev == id->dev &&
	       other.ino == id->ino;
}

/* One attempt to open a file, shared by the waiting thread and by the thread that may block forever. */
struct opening {
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool is_done, is_abandoned;
	pid_t tid;   /* of the opener; 0 = it has not run yet */
	int path_fd; /* owned; -1 = open path */
	char *path;  /* owned */
	int fd, err;
	u32 nr_pieces; /* that the file server has brought */
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

static bool is_served(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(served); i++)
		if ((u32)fs.f_type == served[i])
			return true;
	return false;
}

/* Report the piece that has come. False: nobody waits any more. */
static bool report_piece(struct opening *o)
{
	bool goes_on;

	pthread_mutex_lock(&o->lock);
	o->nr_pieces++;
	goes_on = !o->is_abandoned;
	pthread_cond_signal(&o->done);
	pthread_mutex_unlock(&o->lock);
	return goes_on;
}

/*
 * Let a file server bring the file now, into the kernel's cache, because later reads wait for it without limit. When
 * a probe is placed, the kernel reads the file while it holds a lock that each fork on the machine needs.
 */
static int mapped_file_fetch(struct opening *o)
{
	auto_free void *piece = is_served(o->fd) ? malloc(FETCH_PIECE) : NULL;

	for (off_t at = 0; piece && at < FETCH_MAX; at += FETCH_PIECE) {
		ssize_t n = pread(o->fd, piece, FETCH_PIECE, at);

		if (n < 0)
			return -errno;
		if (n < FETCH_PIECE || !report_piece(o))
			break;
	}
	return 0;
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
	err = mapped_file_identify(o->path_fd, &id);
	if (err)
		return err;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", o->path_fd);
	o->fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (o->fd < 0)
		return -errno;
	err = image_read_file(&o->image, o->fd);
	if (err == -ENOEXEC)
		o->image = (struct image){ 0 };
	return err && err != -ENOEXEC ? err : mapped_file_fetch(o);
}

static void *mapped_file_opener(void *arg)
{
	struct opening *o = arg;
	bool is_abandoned;
	int err;

	__atomic_store_n(&o->tid, gettid(), __ATOMIC_RELAXED);
	err = open_now(o);
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

static int mapped_file_start_opener(struct opening *o)
{
	int err = thread_start_sized(NULL, "heaptap-open", mapped_file_opener, o, OPENER_STACK);

	/* EAGAIN of a thread is lack of memory or of threads, and nothing that the file could mend. */
	return err == -EAGAIN ? -ENOMEM : err;
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

/* Does the opener wait for a CPU, and not for a file server? On a busy machine that takes seconds. */
static bool is_opener_ready(const struct opening *o)
{
	pid_t tid = __atomic_load_n(&o->tid, __ATOMIC_RELAXED);
	struct proc_stat stat;

	return !tid || (!proc_read_stat(&stat, tid) && stat.state == 'R');
}

/* Wait for the opener. False: it is abandoned, because nothing has come for OPEN_TIMEOUT_S. */
static bool wait_for_opener(struct opening *o)
{
	struct timespec until;
	u32 nr_pieces = 0;
	bool is_done;
	int err;

	pthread_mutex_lock(&o->lock);
	do {
		err = 0;
		nr_pieces = o->nr_pieces;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += OPEN_TIMEOUT_S;
		while (!o->is_done && o->nr_pieces == nr_pieces && err != ETIMEDOUT)
			err = pthread_cond_timedwait(&o->done, &o->lock, &until);
	} while (!o->is_done && (err != ETIMEDOUT || is_opener_ready(o)));
	is_done = o->is_done;
	o->is_abandoned = !is_done;
	pthread_mutex_unlock(&o->lock);
	return is_done;
}

/* Takes @o over. */
static int open_limited(struct opening *o, int *fd, struct image *image)
{
	int err;

	o->fd = -1;
	pthread_mutex_init(&o->lock, NULL);
	init_done(&o->done);
	err = mapped_file_start_opener(o);
	if (err) {
		opening_free(o);
		return err;
	}
	if (!wait_for_opener(o))
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
