/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Have the kernel note which pages are written. */
#include "user/scan/page_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/proc.h"
#include "user/scan/held_call.h"
#include "user/scan/page_scan.h"
#include "user/scan/snapshot_make.h"

/* Newer than some of the headers that heaptap builds with. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* Linux 5.3 */
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438 /* Linux 5.6 */
#endif
#ifndef SYS_userfaultfd
#define SYS_userfaultfd 323 /* only used on x86_64 */
#endif

enum {
	USER_MODE_ONLY =
		1, /* flag of userfaultfd(2): allowed without privilege; write protection works all the same */
	REMOVE_BYTES = 16 << 20,
	SCAN_BYTES = 64 << 20, /* of one PAGEMAP_SCAN, which locks the mappings of the process */
};

#define SKIP_BYTES                                                                                           \
	(16ULL << 30) /* the same where nothing is found: the kernel leaves out page tables that it has not */

/* <linux/userfaultfd.h> */
struct watch_api {
	u64 api, features, ioctls;
};
struct watch_range {
	u64 start, len;
};
struct watch_register {
	u64 start, len, mode, ioctls;
};
#define WATCH_API      _IOWR(0xaa, 0x3f, struct watch_api)
#define WATCH_REGISTER _IOWR(0xaa, 0x00, struct watch_register)
#define WATCH_REMOVE   _IOR(0xaa, 0x01, struct watch_range)
#define WATCH_VERSION  0xaaULL
#define WATCH_ASYNC    (1ULL << 15)
#define WATCH_WRITES   (1ULL << 1)

/* The stop in which a thread of the process makes the userfaultfd. */
struct watch_opening {
	struct page_watch *w;
	const struct snapshot_holder *holder; /* borrowed; NULL = nobody traces the process */
	u64 max_pause_ns;
	struct outliving outliving;
	int err;
};

/* Take descriptor @fd of the process. A descriptor of heaptap or -errno. */
static int take_from(pid_t pid, int fd)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int taken;

	if (pidfd < 0)
		return -errno;
	taken = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	return taken < 0 ? -errno : taken;
}

static int make_fd(struct held_caller *by, void *ctx)
{
	struct thread_request make = { .number = SYS_userfaultfd,
				       .args = { USER_MODE_ONLY | O_CLOEXEC | O_NONBLOCK } };
	struct thread_request end = { .number = SYS_close };
	struct page_watch *w = ctx;
	int err = held_make(by, &make);

	if (!err && make.result >= 0) {
		w->fd = take_from(w->pid, (int)make.result);
		end.args[0] = (u64)make.result;
		err = held_make(by, &end);
	}
	if (err)
		return err;
	if (make.result < 0)
		return make.result == -ENOSYS ? -ENOTSUP : (int)make.result;
	return w->fd < 0 ? w->fd : 0;
}

/* The first thread may have ended, and shows no memory then. */
static pid_t living_thread(pid_t pid)
{
	auto_free pid_t *tids = NULL;
	struct proc_stat stat;
	size_t nr = 0;

	if (proc_threads(pid, &tids, &nr))
		return pid;
	for (size_t i = 0; i < nr; i++)
		if (!proc_read_stat(&stat, tids[i]) && stat.state != 'Z' && stat.state != 'X')
			return tids[i];
	return pid;
}

/* All threads are stopped: none of them can fork now, and give the descriptor to a child. */
static int make_stopped(struct watch_opening *o, struct held_caller *by)
{
	struct snapshot moment = { .pid = o->w->pid, .mem_tid = living_thread(o->w->pid) };
	int err = snapshot_read_maps(&moment);

	if (!err)
		err = thread_call_places(&by->places, &moment);
	if (!err)
		err = held_call(by, make_fd, o->w);
	snapshot_fini(&moment);
	return err;
}

static void open_stopped(void *arg)
{
	struct watch_opening *o = arg;
	struct stopped_threads held = { .pid = o->w->pid };
	struct held_caller by = { .held = &held, .outliving = &o->outliving };

	o->err = stop_all_begin(&held, clock_now_ns() + o->max_pause_ns);
	/* Another process traces it, and says so when the process is to be stopped for its moment. */
	if (o->err == -EPERM)
		o->err = -ENOTSUP;
	if (o->err)
		return;
	o->err = stop_all_running(&held) ? -EBUSY : make_stopped(o, &by);
	stop_all_end(&held);
}

/* As above, and the same where another one traces the process. */
static void open_held(struct watch_opening *o)
{
	struct held_caller by = { .holder = o->holder };

	o->err = o->holder->call ? o->holder->stop(o->holder->ctx, o->max_pause_ns) : -ENOTSUP;
	if (o->err)
		return;
	o->err = make_stopped(o, &by);
	o->holder->release(o->holder->ctx);
}

static int open_fd(struct watch_opening *o)
{
	struct courtesy_hurry hurry;
	sigset_t all, old;
	u64 start_ns;
	int err = 0;

	courtesy_at_once(&hurry);
	start_ns = clock_now_ns();
	if (o->holder) {
		open_held(o);
	} else {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		err = outliving_run(&o->outliving, open_stopped, o);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	o->w->pause_ns = clock_now_ns() - start_ns;
	courtesy_hurry_end(&hurry);
	return err ? err : o->err;
}

/* Another userfaultfd could protect pages as well, and nobody could tell whose protection it is. */
static bool has_userfaultfd(pid_t pid)
{
	auto_closedir DIR *dir = NULL;
	const struct dirent *entry;
	char path[64], link[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		if (len <= 0)
			continue;
		link[len] = '\0';
		if (!strcmp(link, "anon_inode:[userfaultfd]"))
			return true;
	}
	return false;
}

static int page_watch_begin(struct page_watch *w)
{
	struct watch_api api = { .api = WATCH_VERSION, .features = WATCH_ASYNC };

	if (ioctl(w->fd, WATCH_API, &api))
		return errno == EINVAL ? -ENOTSUP : -errno;
	return 0;
}

/* Refuse without a stop a kernel before 6.7, and CPUs on which no thread of the process makes a userfaultfd. */
static int open_pages(struct page_watch *w)
{
	struct page_scan nothing = { .size = sizeof(nothing), .category_anyof_mask = RUN_PRESENT };
	char path[32];

#ifndef __x86_64__
	return -ENOTSUP;
#endif
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)w->pid);
	w->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (w->pagemap < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return ioctl(w->pagemap, PAGE_SCAN, &nothing) < 0 && errno == ENOTTY ? -ENOTSUP : 0;
}

int page_watch_open(struct page_watch *w, pid_t pid, const struct snapshot_holder *holder, u64 max_pause_ns)
{
	struct watch_opening o = { .w = w, .holder = holder, .max_pause_ns = max_pause_ns };
	int err;

	*w = (struct page_watch){ .pid = pid, .fd = -1, .pagemap = -1 };
	if (has_userfaultfd(pid))
		return -EALREADY;
	err = open_pages(w);
	if (!err)
		err = open_fd(&o);
	if (!err)
		err = page_watch_begin(w);
	if (err)
		page_watch_close(w);
	return err;
}

int page_watch_add(const struct page_watch *w, taddr_t start, taddr_t end)
{
	struct watch_register range = { .start = start, .len = end - start, .mode = WATCH_WRITES };

	return ioctl(w->fd, WATCH_REGISTER, &range) ? -errno : 0;
}

/*
 * The first page of [@at, @end) that may be populated or was; @end: there is none. Looks at twice as much each time,
 * as memory that is only reserved may be 10^5 times the memory of the machine.
 */
static taddr_t skip_empty(const struct page_watch *w, taddr_t at, taddr_t end)
{
	for (u64 step = SCAN_BYTES; at < end; step = step < SKIP_BYTES ? step * 2 : step) {
		taddr_t part = end - at < step ? end : at + step, page = page_scan_next(w->pagemap, at, part);

		if (page < part)
			return page;
		at = part;
	}
	return end;
}

int page_watch_find(const struct page_watch *w, taddr_t *pos, taddr_t end, enum page_find how,
		    struct page_run *runs, u32 max)
{
	struct page_scan arg = {
		.size = sizeof(arg),
		.flags = how == FIND_STATE ? 0 : PAGE_SCAN_PROTECT,
		.start = *pos,
		.end = end - *pos < SCAN_BYTES ? end : *pos + SCAN_BYTES,
		.vec = (u64)(uintptr_t)runs,
		.vec_len = max,
		.category_inverted = RUN_ZERO,
		.category_mask = RUN_ZERO | (how == FIND_WRITTEN ? RUN_WRITTEN : 0),
		.category_anyof_mask = RUN_PRESENT | RUN_SWAPPED,
		.return_mask = how == FIND_STATE ? RUN_WRITTEN | RUN_WATCHED : RUN_PRESENT | RUN_SWAPPED,
	};
	int nr = ioctl(w->pagemap, PAGE_SCAN, &arg);

	if (nr < 0)
		return -errno;
	*pos = arg.walk_end > *pos ? arg.walk_end : arg.end;
	if (!nr)
		*pos = skip_empty(w, *pos, end);
	return nr;
}

bool page_watch_is_guard(const struct page_watch *w, taddr_t addr)
{
	return page_scan_is_guard(w->pagemap, addr);
}

void page_watch_remove(const struct page_watch *w, taddr_t start, taddr_t end)
{
	for (taddr_t at = start; at < end;) {
		taddr_t page = skip_empty(w, at, end),
			next = end - page < REMOVE_BYTES ? end : page + REMOVE_BYTES;
		struct watch_range range = { at, next - at };

		at = next;
		if (ioctl(w->fd, WATCH_REMOVE, &range) && errno == ESRCH)
			return;
	}
}

void page_watch_close(struct page_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->pagemap >= 0)
		close(w->pagemap);
	w->fd = w->pagemap = -1;
}
