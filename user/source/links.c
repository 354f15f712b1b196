/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Links as heaptap has them: requests to the process that holds them. */
#include "user/source/links.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "user/lib/helper_process.h"
#include "user/lib/log.h"
#include "user/lib/passed_fds.h"
#include "user/source/link_keeper.h"

enum { MAX_TRACEPOINTS = 7, MAX_IN_KERNEL = MAX_TRACEPOINTS + 1, LEFT_AT_ONCE = 16 };

struct link_set {
	int fd; /* socket to the keeper */
	pid_t keeper;
	struct keeper_places *places;		   /* owned; shared with the keeper */
	struct bpf_link *in_kernel[MAX_IN_KERNEL]; /* owned */
	size_t nr_in_kernel;
	pid_t left[LEFT_AT_ONCE]; /* link_set_leave() */
	u32 nr_left;
};

static int links_start(struct link_set *set, const struct programs *p, const struct tracer_changer *changer)
{
	int fds[2];
	int err = 0;

	set->places =
		mmap(NULL, sizeof(*set->places), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (set->places == MAP_FAILED) {
		set->places = NULL;
		return -errno;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	set->fd = fds[0];
	set->keeper = helper_process_fork();
	if (!set->keeper)
		keeper_main(fds[1], set->places, p->state, changer);
	if (set->keeper < 0)
		err = -errno;
	close(fds[1]);
	return err;
}

int link_set_new(struct link_set **out, const struct programs *p, const struct tracer_changer *changer)
{
	struct link_set *set = calloc(1, sizeof(*set));
	int err;

	if (!set)
		return -ENOMEM;
	set->fd = -1;
	err = links_start(set, p, changer);
	if (err) {
		link_set_free(set);
		return err;
	}
	*out = set;
	return 0;
}

/* All links have ended then. */
static void links_await_end(struct link_set *set)
{
	if (set->keeper > 0)
		helper_process_end(set->keeper, set->fd, &set->places->outlives);
	set->keeper = 0;
}

void link_set_free(struct link_set *set)
{
	if (!set)
		return;
	/* From here on a process that is stopped was stopped by somebody else. */
	if (set->places)
		memset(set->places->wards, 0, sizeof(set->places->wards));
	if (set->fd >= 0) {
		links_await_end(set);
		close(set->fd);
	}
	for (size_t i = 0; i < set->nr_in_kernel; i++)
		bpf_link__destroy(set->in_kernel[i]);
	if (set->places)
		munmap(set->places, sizeof(*set->places));
	free(set);
}

/* Send @r, with @fds if there are any, and wait for the answer. */
static int links_ask(struct link_set *set, const struct keeper_request *r, const int *fds)
{
	struct iovec iov = { (void *)r, sizeof(*r) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union passed_fds room;
	ssize_t len;
	int answer;

	if (fds)
		passed_fds_attach(&msg, &room, fds, 2);
	/* One that outlives its links does not answer. */
	do
		len = set->places->end ? 0 : sendmsg(set->fd, &msg, MSG_NOSIGNAL);
	while (len < 0 && errno == EINTR);
	if (len > 0)
		do
			len = recv(set->fd, &answer, sizeof(answer), 0);
		while (len < 0 && errno == EINTR);
	if (len == sizeof(answer))
		return answer;
	if (len < 0 && errno != EPIPE && errno != ECONNRESET)
		return -errno;
	return link_set_has_ended(set) ? -ESRCH : -EPIPE;
}

/* Ask for @r with the places of @g. */
static int ask_for_places(struct link_set *set, const struct programs *p, const struct link_group *g,
			  struct keeper_request r)
{
	const int fds[2] = { programs_fd(p, g->program), g->fd };
	int err = 0;

	for (size_t done = 0, nr; done < g->nr && !err; done += nr) {
		nr = g->nr - done < KEEPER_MAX_PLACES ? g->nr - done : KEEPER_MAX_PLACES;
		r.nr = (u32)nr;
		memcpy(set->places->offsets, g->offsets + done, nr * sizeof(u64));
		if (g->cookies)
			memcpy(set->places->cookies, g->cookies + done, nr * sizeof(u64));
		if (g->semaphores)
			memcpy(set->places->semaphores, g->semaphores + done, nr * sizeof(u64));
		err = links_ask(set, &r, fds);
	}
	return err;
}

/*
 * The keeper was killed while it made links to the places of @g. The kernel gives up half-way then, cannot take back
 * what it had put in, and forgets it. It does so when other links to these places end.
 */
static void links_take_back(const struct programs *p, const struct link_group *g, bool is_multi)
{
	struct link_set *set;
	int err = link_set_new(&set, p, NULL);

	if (!err) {
		err = link_set_touch(set, p, g, is_multi);
		link_set_free(set);
	}
	if (err)
		warn("bpf: the process that makes probes was killed, and some may be left in programs: "
		     "they run on, and the next trace of them takes those out: %s",
		     strerror(-err));
}

static int links_leave(struct link_set *set)
{
	const struct keeper_request r = { .op = KEEPER_LEAVE, .nr = set->nr_left };

	for (u32 i = 0; i < set->nr_left; i++)
		set->places->offsets[i] = (u64)set->left[i];
	set->nr_left = 0;
	return links_ask(set, &r, NULL);
}

/* Another process may have the PID of one that has ended. */
static int leave_before(struct link_set *set, pid_t pid)
{
	for (u32 i = 0; i < set->nr_left; i++)
		if (set->left[i] == pid)
			return links_leave(set);
	return 0;
}

int link_set_add(struct link_set *set, const struct programs *p, const struct link_group *g, bool is_multi)
{
	int err = leave_before(set, g->pid);

	if (!err)
		err = ask_for_places(set, p, g,
				     (struct keeper_request){ .op = KEEPER_ADD,
							      .pid = g->pid,
							      .group = g->group,
							      .is_multi = is_multi,
							      .is_return = g->is_return,
							      .has_cookies = g->cookies,
							      .has_semaphores = g->semaphores });
	if (err == -EPIPE)
		links_take_back(p, g, is_multi);
	return err;
}

int link_set_touch(struct link_set *set, const struct programs *p, const struct link_group *g, bool is_multi)
{
	return ask_for_places(set, p, g,
			      (struct keeper_request){ .op = KEEPER_TOUCH,
						       .is_multi = is_multi,
						       .has_semaphores = g->semaphores });
}

/* The entry of @pid, or NULL. 0: a free entry. */
static pid_t *find_ward(const struct link_set *set, pid_t pid)
{
	for (size_t i = 0; i < KEEPER_MAX_WARDS; i++)
		if (set->places->wards[i] == pid)
			return &set->places->wards[i];
	return NULL;
}

void link_set_guard(struct link_set *set, pid_t pid)
{
	pid_t *ward = find_ward(set, pid) ? NULL : find_ward(set, 0);

	if (ward)
		*ward = pid;
}

static void end_guard(struct link_set *set, pid_t pid)
{
	pid_t *ward = pid ? find_ward(set, pid) : NULL;

	if (ward)
		*ward = 0;
}

int link_set_leave(struct link_set *set, pid_t pid)
{
	int err;

	end_guard(set, pid);
	set->left[set->nr_left++] = pid;
	err = set->nr_left == LEFT_AT_ONCE ? links_leave(set) : 0;
	return link_set_is_alive(set) ? err : 0;
}

int link_set_drop(struct link_set *set, pid_t pid)
{
	const struct keeper_request r = { .op = KEEPER_DROP, .pid = pid };
	int err;

	end_guard(set, pid);
	err = links_ask(set, &r, NULL);
	/* A keeper that is dead has dropped all. */
	return link_set_is_alive(set) ? err : 0;
}

int link_set_drop_group(struct link_set *set, u32 group)
{
	const struct keeper_request r = { .op = KEEPER_DROP, .group = group };

	return links_ask(set, &r, NULL);
}

bool link_set_is_alive(const struct link_set *set)
{
	struct pollfd p = { .fd = set->fd, .events = 0 };

	return !__atomic_load_n(&set->places->end, __ATOMIC_ACQUIRE) && poll(&p, 1, 0) <= 0;
}

bool link_set_has_ended(struct link_set *set)
{
	links_await_end(set);
	return set->places->end == KEEPER_HAS_ENDED;
}

int link_set_lifeline(const struct link_set *set)
{
	int fd = fcntl(set->fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Not every kernel has probes of its own functions (CONFIG_KPROBES): then only _exit() is seen before it. */
static void link_set_add_end(struct link_set *set, const struct programs *p)
{
	struct bpf_link *link;

	if (programs_fd(p, PROGRAM_GROUP_EXIT) < 0)
		return;
	link = bpf_program__attach_kprobe(p->prog[PROGRAM_GROUP_EXIT], false, "do_group_exit");
	if (link)
		set->in_kernel[set->nr_in_kernel++] = link;
	else
		debug("bpf: no probe at the end of processes: %s", strerror(errno));
}

int link_set_add_in_kernel(struct link_set *set, const struct programs *p, bool has_system_calls)
{
	static const struct {
		enum program program;
		const char *name;
		bool is_optional; /* not every kernel has it */
	} points[MAX_TRACEPOINTS] = {
		{ PROGRAM_THREAD_EXIT, "sched_process_exit", false },
		{ PROGRAM_PROCESS_EXEC, "sched_process_exec", false },
		{ PROGRAM_TASK_NEW, "task_newtask", false },
		{ PROGRAM_PREPARE_EXEC, "sched_prepare_exec", true },
		{ PROGRAM_SIGNAL_DELIVER, "signal_deliver", true },
		{ PROGRAM_SYSTEM_CALL, "sys_enter", false },
		{ PROGRAM_SYSTEM_CALL_DONE, "sys_exit", false },
	};
	size_t nr = has_system_calls ? MAX_TRACEPOINTS : MAX_TRACEPOINTS - 2;

	for (size_t i = 0; i < nr; i++) {
		struct bpf_link *link =
			bpf_program__attach_raw_tracepoint(p->prog[points[i].program], points[i].name);

		if (!link && points[i].is_optional)
			continue;
		if (!link)
			return -errno;
		set->in_kernel[set->nr_in_kernel++] = link;
	}
	link_set_add_end(set, p);
	return 0;
}
