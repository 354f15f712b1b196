/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keeper of links. Runs after a fork without exec: system calls only, no malloc. */
#include "user/source/link_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/maps.h"
#include "fallback/tracer_change.h"
#include "user/lib/helper_process.h"
#include "user/lib/passed_fds.h"
#include "user/lib/privileges.h"

/* linux/bpf.h of Debian 12 has no uprobe_multi yet; values of Linux 6.6. */
enum { TRACE_UPROBE_MULTI = 48, UPROBE_MULTI_RETURN = 1 };

/*
 * Links end side by side, because the kernel waits some 50 ms for each: 16 processes for up to 64 links, one more for
 * each 4 further links. A process makes at most MAX_PARTS others.
 */
enum { MAX_LINKS = 1 << 17, MIN_ENDERS = 16, MAX_ENDERS = 1024, LINKS_PER_ENDER = 4, MAX_PARTS = 16 };

/*
 * Descriptors of the keeper and of its enders; those of links are above. The others are copies of the socket while no
 * links end: then none of them is given to a link.
 */
enum {
	SOCKET_FD = HELPER_PROCESS_FIRST,
	END_FD,	    /* that of the changer */
	REPORTS_FD, /* the keeper reads what enders write to READY_FD */
	READY_FD,
	START_FD, /* enders exit when the keeper gives this up: they read GO_FD */
	GO_FD,
	FIRST_LINK_FD
};

struct kept_link {
	int fd;	      /* of the link, or of a perf event that runs the program by itself; -1 = ended */
	int event_fd; /* perf event of the link; -1 = none */
	pid_t pid;    /* whose calls alone are seen; 0 = of all processes */
	u32 group;    /* of the request */
};

struct keeper {
	int fd; /* socket */
	const struct keeper_places *places;
	struct kept_link *links; /* MAX_LINKS, most of them without memory */
	size_t nr;
	int pmu_type;	 /* of uprobes as perf events */
	u64 return_flag; /* in perf_event_attr.config: a uretprobe */
};

/* The decimal number behind @prefix in the short file @path; or -1. */
static int link_keeper_read_number(const char *path, const char *prefix)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (len <= 0 || strncmp(text, prefix, strlen(prefix)))
		return -1;
	return atoi(text + strlen(prefix));
}

static int link_keeper_keep(struct keeper *k, int fd, int event_fd, const struct keeper_request *r)
{
	if (k->nr == MAX_LINKS)
		return -ENOSPC;
	k->links[k->nr++] =
		(struct kept_link){ .fd = fd, .event_fd = event_fd, .pid = r->pid, .group = r->group };
	return 0;
}

/* union bpf_attr of Linux 6.6, link_create. */
struct link_attr {
	u32 prog_fd, target_fd, attach_type, flags;
	union {
		struct {
			u64 path, offsets, ref_ctr_offsets, cookies;
			u32 cnt, flags, pid, pad;
		} multi;
		struct {
			u64 cookie;
		} perf;
	};
};

static int create_link(struct link_attr *attr)
{
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, attr, sizeof(*attr));

	return fd < 0 ? -errno : fd;
}

static int add_multi(struct keeper *k, const struct keeper_request *r, int prog_fd, const char *path)
{
	struct link_attr attr = { .prog_fd = (u32)prog_fd,
				  .attach_type = TRACE_UPROBE_MULTI,
				  .multi = { .path = (uintptr_t)path,
					     .offsets = (uintptr_t)k->places->offsets,
					     .ref_ctr_offsets =
						     r->has_semaphores ? (uintptr_t)k->places->semaphores : 0,
					     .cookies = r->has_cookies ? (uintptr_t)k->places->cookies : 0,
					     .cnt = r->nr,
					     .flags = r->is_return ? UPROBE_MULTI_RETURN : 0,
					     .pid = (u32)r->pid } };
	int fd = create_link(&attr);

	return fd < 0 ? fd : link_keeper_keep(k, fd, -1, r);
}

/* Of place @i. The kernel takes the place of the semaphore in the upper half of config (Linux 4.20). */
static int open_event(const struct keeper *k, const struct keeper_request *r, const char *path, u32 i)
{
	enum { SEMAPHORE_SHIFT = 32 };
	u64 semaphore = r->has_semaphores ? k->places->semaphores[i] : 0;
	struct perf_event_attr attr = { .type = (u32)k->pmu_type,
					.size = sizeof(attr),
					.config = (r->is_return ? k->return_flag : 0) |
						  semaphore << SEMAPHORE_SHIFT,
					.config1 = (uintptr_t)path,
					.config2 = k->places->offsets[i] };
	int fd = (int)syscall(SYS_perf_event_open, &attr, r->pid ? r->pid : -1, r->pid ? -1 : 0, -1,
			      PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * Run the program at each hit of @event_fd. Before Linux 5.15 there are no links to perf events: then the event runs
 * the program until it is closed, and *@link_fd stays -1.
 */
static int run_on_event(const struct keeper_request *r, int prog_fd, int event_fd, u64 cookie, int *link_fd)
{
	struct link_attr attr = { .prog_fd = (u32)prog_fd,
				  .target_fd = (u32)event_fd,
				  .attach_type = BPF_PERF_EVENT,
				  .perf.cookie = r->has_cookies ? cookie : 0 };
	int fd = create_link(&attr);

	if (fd >= 0)
		*link_fd = fd;
	else if (fd != -EINVAL || r->has_cookies)
		return fd;
	else if (ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, prog_fd))
		return -errno;
	return ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static int add_perf(struct keeper *k, const struct keeper_request *r, int prog_fd, const char *path)
{
	int err = 0;

	for (u32 i = 0; i < r->nr && !err; i++) {
		int event_fd = open_event(k, r, path, i);

		if (event_fd < 0)
			return event_fd;
		err = link_keeper_keep(k, -1, event_fd, r);
		if (!err)
			err = run_on_event(r, prog_fd, event_fd, k->places->cookies[i],
					   &k->links[k->nr - 1].fd);
	}
	return err;
}

static int link_keeper_add(struct keeper *k, const struct keeper_request *r, const int *fds)
{
	char path[32];

	if (fds[0] < 0 || fds[1] < 0 || r->nr > KEEPER_MAX_PLACES)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]);
	return r->is_multi ? add_multi(k, r, fds[0], path) : add_perf(k, r, fds[0], path);
}

static void close_link(struct kept_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->event_fd >= 0)
		close(l->event_fd);
	l->fd = l->event_fd = -1;
}

/* Give up all links but @nr, which begin at @links, and some whose descriptors lie between those of them. */
static void give_up_others(const struct kept_link *links, size_t nr)
{
	int low = INT_MAX, high = 0;

	for (size_t i = 0; i < nr; i++) {
		const int fds[] = { links[i].fd, links[i].event_fd };

		for (size_t n = 0; n < ARRAY_SIZE(fds); n++) {
			if (fds[n] < 0)
				continue;
			low = fds[n] < low ? fds[n] : low;
			high = fds[n] > high ? fds[n] : high;
		}
	}
	if (low > FIRST_LINK_FD)
		helper_process_close(FIRST_LINK_FD, (unsigned int)low - 1);
	helper_process_close((unsigned int)high + 1, ~0U);
}

/* Links that @nr_enders processes end. */
struct share {
	const struct kept_link *links;
	size_t nr, nr_enders;
};

/* Share number @i of @nr_parts, each with at least one ender. */
static struct share link_keeper_part_of(const struct share *all, size_t i, size_t nr_parts)
{
	size_t first_ender = all->nr_enders * i / nr_parts;
	size_t next_ender = all->nr_enders * (i + 1) / nr_parts;
	size_t first = all->nr * first_ender / all->nr_enders;

	return (struct share){ .links = all->links + first,
			       .nr = all->nr * next_ender / all->nr_enders - first,
			       .nr_enders = next_ender - first_ender };
}

/* Tell the keeper whether this process holds its links. */
static bool link_keeper_report(int err)
{
	char byte = err ? 1 : 0;
	bool is_told = write(READY_FD, &byte, 1) == 1;

	/* The keeper reads until all have given this end up: one that was killed does not keep it waiting. */
	close(READY_FD);
	return is_told;
}

static int fork_parts(const struct share *s);

/*
 * Make a process for @s. It begins with a copy of all descriptors of its parent, so each link has one reference more,
 * and gives up those that belong to the shares of others. That takes the longer the more they are: therefore a process
 * with a share for many enders makes these. An ender reports to the keeper, and exits when the keeper has given up
 * its own references. 0 or -errno.
 */
static int fork_share(const struct share *s)
{
	pid_t pid = fork();
	char byte;
	int err;

	if (pid)
		return pid < 0 ? -errno : 0;
	close(SOCKET_FD);
	close(REPORTS_FD);
	close(START_FD);
	give_up_others(s->links, s->nr);
	if (s->nr_enders == 1) {
		if (link_keeper_report(0))
			(void)!read(GO_FD, &byte, 1);
		_exit(0);
	}
	err = fork_parts(s);
	if (err)
		link_keeper_report(err);
	/* The keeper still has these links, and an ender each of them. */
	helper_process_close(READY_FD, ~0U);
	while (wait(NULL) > 0)
		;
	_exit(0);
}

/* 0; or -errno, and some of the parts have been made. */
static int fork_parts(const struct share *s)
{
	size_t nr_parts = s->nr_enders < MAX_PARTS ? s->nr_enders : MAX_PARTS;
	int err = 0;

	for (size_t i = 0; i < nr_parts && !err; i++) {
		const struct share part = link_keeper_part_of(s, i, nr_parts);

		err = fork_share(&part);
	}
	return err;
}

/* Wait until @nr_enders hold their links. False: one of them cannot be made, or was killed. */
static bool are_ready(size_t nr_enders)
{
	char bytes[MAX_ENDERS];
	size_t nr_ready = 0;
	ssize_t got;

	while (nr_ready < nr_enders && (got = read(REPORTS_FD, bytes, sizeof(bytes))) > 0) {
		if (memchr(bytes, 1, (size_t)got))
			return false;
		nr_ready += (size_t)got;
	}
	return nr_ready == nr_enders;
}

/* Make a pipe of two of the descriptors of the keeper and of its enders. 0 or -errno. */
static int open_pipe(int read_end, int write_end)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	dup2(fds[0], read_end);
	dup2(fds[1], write_end);
	close(fds[0]);
	close(fds[1]);
	return 0;
}

static void close_end(int fd)
{
	dup2(SOCKET_FD, fd);
}

/*
 * End the first @nr links by @nr_enders processes. 0; or -errno, and all links are as before: there cannot be so many
 * processes, or one of them was killed (-ECHILD).
 */
static int end_by(struct keeper *k, size_t nr, size_t nr_enders)
{
	const struct share all = { .links = k->links, .nr = nr, .nr_enders = nr_enders };
	bool is_ready = false;
	int err = open_pipe(REPORTS_FD, READY_FD);

	if (!err)
		err = open_pipe(GO_FD, START_FD);
	if (!err)
		err = fork_parts(&all);
	close_end(READY_FD);
	close_end(GO_FD);
	if (!err)
		is_ready = are_ready(nr_enders);
	/* Each link now has an ender that exits with it. */
	for (size_t i = 0; i < nr && is_ready; i++)
		close_link(&k->links[i]);
	close_end(REPORTS_FD);
	close_end(START_FD);
	while (wait(NULL) > 0)
		;
	return is_ready ? 0 : err ? err : -ECHILD;
}

/*
 * End the first @nr links. The last reference to each is given up by the exit of a process, never by close(): see
 * user/source/link_keeper.h. Without memory for a single process the links stay. 0 or -errno.
 */
static int end_first(struct keeper *k, size_t nr)
{
	size_t wanted = nr / LINKS_PER_ENDER;
	int err = 0;

	if (!nr)
		return 0;
	wanted = wanted < MIN_ENDERS ? MIN_ENDERS : wanted > MAX_ENDERS ? MAX_ENDERS : wanted;
	wanted = wanted < nr ? wanted : nr;
	do
		err = end_by(k, nr, wanted);
	while (err && (wanted /= 2));
	return err;
}

/* Hold the links of TOUCH, which see this process only, or the first @nr, and no others. 0 or -errno. */
static int hold_apart(struct keeper *k, const struct keeper_request *r, const int *fds, size_t nr)
{
	struct keeper_request own = *r;
	int err;

	for (size_t i = nr; i < k->nr; i++)
		close_link(&k->links[i]);
	if (r->op != KEEPER_TOUCH)
		return 0;
	own.pid = getpid();
	k->nr = 0;
	err = link_keeper_add(k, &own, fds);
	if (!err)
		give_up_others(k->links, k->nr);
	return err;
}

/* hold_apart(), and exit with these links: fork_share(). */
static __attribute__((noreturn)) void hold_and_exit(struct keeper *k, const struct keeper_request *r,
						    const int *fds, size_t nr, const int *ready)
{
	int err;

	/* First, because the descriptor that we got for it is among those that are given up. */
	dup2(ready[1], READY_FD);
	err = hold_apart(k, r, fds, nr);
	close(SOCKET_FD);
	close(REPORTS_FD);
	close(START_FD);
	close(GO_FD);
	if (err)
		helper_process_close(FIRST_LINK_FD, ~0U);
	_exit(write(READY_FD, &err, sizeof(err)) == sizeof(err) ? 0 : 1);
}

/* Returns when another process holds the links of hold_apart(), and does not wait for their end. 0 or -errno. */
static int link_keeper_end_later(struct keeper *k, const struct keeper_request *r, const int *fds, size_t nr)
{
	int ready[2], err = 0;
	pid_t pid;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		hold_and_exit(k, r, fds, nr, ready);
	if (pid < 0)
		err = -errno;
	close(ready[1]);
	if (!err && read(ready[0], &err, sizeof(err)) != sizeof(err))
		err = -ECHILD;
	close(ready[0]);
	return err;
}

static bool is_meant(const struct keeper *k, const struct kept_link *l, const struct keeper_request *r)
{
	bool has_ended = false;

	if (r->op == KEEPER_DROP)
		return r->group ? l->group == r->group : l->pid == r->pid;
	for (u32 i = 0; i < r->nr && l->pid; i++)
		has_ended |= k->places->offsets[i] == (u64)l->pid;
	return has_ended;
}

/* End the first @nr links, those of processes that have ended. */
static int link_keeper_leave(struct keeper *k, const struct keeper_request *r, size_t nr)
{
	int err = nr ? link_keeper_end_later(k, r, NULL, nr) : 0;

	for (size_t i = 0; i < nr && !err; i++)
		close_link(&k->links[i]);
	return err;
}

static int link_keeper_drop(struct keeper *k, const struct keeper_request *r)
{
	size_t nr_ending = 0, nr = 0;
	int err;

	if (r->nr > KEEPER_MAX_PLACES)
		return -EINVAL;

	/* Move these links to the front. */
	for (size_t i = 0; i < k->nr; i++)
		if (is_meant(k, &k->links[i], r)) {
			struct kept_link l = k->links[nr_ending];

			k->links[nr_ending++] = k->links[i];
			k->links[i] = l;
		}
	err = r->op == KEEPER_LEAVE ? link_keeper_leave(k, r, nr_ending) : end_first(k, nr_ending);
	for (size_t i = 0; i < k->nr; i++)
		if (k->links[i].fd >= 0 || k->links[i].event_fd >= 0)
			k->links[nr++] = k->links[i];
	k->nr = nr;
	return err;
}

/* KEEPER_HAS_ENDED: heaptap has shut the socket down, or is dead. */
static enum keeper_end link_keeper_serve(struct keeper *k)
{
	struct keeper_request r = { 0 };
	struct iovec iov = { &r, sizeof(r) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union passed_fds room;
	ssize_t len;
	int fds[2], err = 0;

	passed_fds_expect(&msg, &room);
	len = recvmsg(k->fd, &msg, MSG_CMSG_CLOEXEC);
	if (len < 0 && errno == EINTR)
		return KEEPER_SERVES;
	if (!len)
		return KEEPER_HAS_ENDED;
	if (len != sizeof(r))
		return KEEPER_HAS_FAILED;
	passed_fds_take(&msg, fds, 2);
	if (r.op == KEEPER_ADD)
		err = link_keeper_add(k, &r, fds);
	else if (r.op == KEEPER_TOUCH)
		err = link_keeper_end_later(k, &r, fds, k->nr);
	else
		err = link_keeper_drop(k, &r);
	/* The program and the file: links hold them by themselves. */
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	return send(k->fd, &err, sizeof(err), MSG_NOSIGNAL) == sizeof(err) ? KEEPER_SERVES
									   : KEEPER_HAS_FAILED;
}

/* Is the process stopped by a signal, and not by a tracer? */
static bool link_keeper_is_stopped(pid_t pid)
{
	char path[32], text[256];
	const char *end;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	/* The state comes after the name, which is in parentheses. */
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'T';
}

/* Heaptap has died. A thread that a probe had stopped by SIGSTOP has nobody who resumes it. */
static void resume_wards(const struct keeper_places *places, const struct source_state *state)
{
	if (!state || !state->nr_sigstops)
		return;
	for (size_t i = 0; i < KEEPER_MAX_WARDS; i++)
		if (places->wards[i] > 0 && link_keeper_is_stopped(places->wards[i]))
			kill(places->wards[i], SIGCONT);
}

/* Memory that is there when it is used; or MAP_FAILED. */
static void *link_keeper_reserve(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void keeper_main(int fd, struct keeper_places *places, struct source_state *state,
		 const struct tracer_changer *changer)
{
	struct keeper k = { .fd = SOCKET_FD, .places = places };
	int fds[] = { fd, changer ? changer->end : -1 }, err;
	enum keeper_end serving;

	helper_process_settle(changer ? KEEPER_COMM_CODE : KEEPER_COMM);
	privileges_drop(changer ? PRIVILEGES_KEEPING : PRIVILEGES_LINKS, 0);
	helper_process_keep(fds, ARRAY_SIZE(fds), false);
	/* Links get the descriptors from FIRST_LINK_FD on. */
	for (int own = changer ? REPORTS_FD : END_FD; own < FIRST_LINK_FD; own++)
		if (dup2(SOCKET_FD, own) < 0)
			_exit(1);
	k.pmu_type = link_keeper_read_number("/sys/bus/event_source/devices/uprobe/type", "");
	k.return_flag = 1ULL << (link_keeper_read_number(
					 "/sys/bus/event_source/devices/uprobe/format/retprobe", "config:") &
				 63);
	k.links = link_keeper_reserve(MAX_LINKS * sizeof(*k.links));
	if (k.links == MAP_FAILED)
		_exit(1);
	do
		serving = link_keeper_serve(&k);
	while (serving == KEEPER_SERVES);
	if (state)
		state->is_on = 0;
	/* Links that cannot end so end with this process. */
	err = end_first(&k, k.nr);
	while (wait(NULL) > 0) /* those of link_keeper_end_later() */
		;
	resume_wards(places, state);
	__atomic_store_n(&places->end, serving, __ATOMIC_RELEASE);
	if (changer) {
		*changer->pid = getpid();
		__atomic_store_n(&places->outlives, !err, __ATOMIC_RELEASE);
		(void)!send(SOCKET_FD, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		changer->outlive(changer->ctx, END_FD, SOCKET_FD, err);
	}
	_exit(serving == KEEPER_HAS_ENDED ? 0 : 1);
}
