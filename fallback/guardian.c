/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The side of heaptap: starts the guardian, sends it commands, ends it. */
#include "fallback/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "arch/regs.h"
#include "arch/thread_call.h"
#include "fallback/guardian_private.h"
#include "fallback/ring.h"
#include "user/lib/cleanup.h"
#include "user/lib/helper_process.h"
#include "user/lib/log.h"
#include "user/lib/passed_fds.h"
#include "user/lib/unnamed_file.h"

struct guardian {
	pid_t pid;
	int fd; /* socket */
	struct ring *ring;
	struct guardian_state *state;
};

static int new_state(struct guardian_state **out)
{
	void *mem = mmap(NULL, sizeof(**out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return -errno;
	*out = mem;
	return 0;
}

static int fallback_guardian_start(struct guardian *g, const struct tracer_options *o, u64 ring_bytes)
{
	struct guardian_start gs = { .options = *o, .parent = getpid() };
	int fds[2];
	int err = ring_new(&g->ring, ring_bytes);

	if (!err)
		err = new_state(&g->state);
	if (err)
		return err;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	gs.ring = g->ring;
	gs.state = g->state;
	if (!IS_AGENT)
		gs.options.wish = &g->state->wish;
	gs.fd = fds[1];
	g->fd = fds[0];
	g->pid = helper_process_fork();
	if (!g->pid)
		guardian_main(&gs);
	err = g->pid < 0 ? -errno : 0;
	close(fds[1]);
	return err;
}

int guardian_new(struct guardian **out, const struct tracer_options *o, u64 ring_bytes)
{
	struct guardian *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	g->fd = -1;
	err = fallback_guardian_start(g, o, ring_bytes);
	if (err) {
		guardian_free(g);
		return err;
	}
	*out = g;
	return 0;
}

void guardian_free(struct guardian *g)
{
	if (!g)
		return;
	if (!IS_AGENT && g->pid > 0)
		helper_process_end(g->pid, g->fd, &g->state->outlives);
	if (g->fd >= 0) {
		/* There may be a copy: guardian_lifeline(). */
		shutdown(g->fd, SHUT_WR);
		close(g->fd);
	}
	if (IS_AGENT)
		helper_process_wait(g->pid, NULL);
	ring_free(g->ring);
	if (g->state)
		munmap(g->state, sizeof(*g->state));
	free(g);
}

pid_t guardian_pid(const struct guardian *g)
{
	return g->pid;
}

int guardian_lifeline(const struct guardian *g)
{
	int fd = fcntl(g->fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

struct ring *guardian_ring(const struct guardian *g)
{
	return g->ring;
}

struct call_wish *guardian_wish(const struct guardian *g)
{
	return &g->state->wish;
}

const struct guardian_state *guardian_state(const struct guardian *g)
{
	return g->state;
}

struct call_losses guardian_losses(const struct guardian *g, pid_t pid)
{
	u32 nr = __atomic_load_n(&g->state->nr_processes, __ATOMIC_ACQUIRE);

	for (u32 i = 0; i < nr && i < GUARDIAN_MAX_PROCESSES; i++)
		if (g->state->processes[i].pid == pid)
			return g->state->processes[i].losses;
	return (struct call_losses){ 0 };
}

pid_t guardian_exiting(const struct guardian *g, int *status)
{
	struct guardian_state *s = g->state;
	u32 nr = __atomic_load_n(&s->nr_exiting, __ATOMIC_ACQUIRE) ? s->nr_processes : 0;

	for (u32 i = 0; i < nr && i < GUARDIAN_MAX_PROCESSES; i++) {
		u32 told = 1;

		if (!__atomic_load_n(&s->processes[i].is_exiting, __ATOMIC_ACQUIRE))
			continue;
		/* The guardian may have let it end just now. */
		if (!IS_AGENT &&
		    !__atomic_compare_exchange_n(&s->processes[i].is_exiting, &told, 2, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
		    told != 2)
			continue;
		*status = s->processes[i].exit_status;
		return s->processes[i].pid;
	}
	return 0;
}

/* Send one message. @fd: a descriptor to go along, -1 = none. */
static int send_command(const struct guardian *g, const struct guardian_command *c, const void *data,
			size_t len, int fd)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)c, sizeof(*c) }, { (void *)(uintptr_t)data, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = len ? 2 : 1 };
	union passed_fds room;

	passed_fds_attach(&msg, &room, &fd, fd >= 0);
	/* One that outlives its tracing does not answer. */
	if (!IS_AGENT && g->state->outlives)
		return -EPIPE;
	while (sendmsg(g->fd, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

/* Wait for the answer. @buf gets its data, @size bytes. */
static int guardian_take_answer(const struct guardian *g, struct guardian_command *c, void *buf, size_t size)
{
	struct iovec iov[2] = { { c, sizeof(*c) }, { buf, size } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = size ? 2 : 1 };
	ssize_t nr;

	do
		nr = recvmsg(g->fd, &msg, 0);
	while (nr < 0 && errno == EINTR);
	if (nr < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if ((size_t)nr < sizeof(*c))
		return -EPIPE;
	if (!c->result && (size_t)nr != sizeof(*c) + size)
		return -EPROTO;
	return c->result;
}

static int guardian_ask(const struct guardian *g, struct guardian_command *c, const void *data, size_t len)
{
	int err = send_command(g, c, data, len, -1);

	return err ? err : guardian_take_answer(g, c, NULL, 0);
}

int guardian_do(struct guardian *g, enum command_op op, pid_t pid, u64 start_at, u64 end)
{
	struct guardian_command c = { .op = op, .pid = pid, .start = start_at, .end = end };

	return guardian_ask(g, &c, NULL, 0);
}

/* Send the items [@first, @first + @nr) of a table, each of @size bytes. */
static int set_items(struct guardian *g, enum command_op op, u32 first, const void *items, u32 nr,
		     size_t size)
{
	const u32 most = (u32)(COMMAND_MAX_DATA / size);
	const u8 *bytes = items;
	int err = 0;

	for (u32 at = 0; at < nr && !err;) {
		struct guardian_command c = { .op = op, .first = first + at };
		u32 now = nr - at < most ? nr - at : most;

		err = guardian_ask(g, &c, bytes + at * size, now * size);
		at += now;
	}
	return err;
}

int guardian_set_probes(struct guardian *g, u32 first, const struct call_probe *probes, u32 nr)
{
	return set_items(g, COMMAND_PROBES, first, probes, nr, sizeof(*probes));
}

int guardian_set_notes(struct guardian *g, u32 first, const struct note_probe *notes, u32 nr)
{
	return set_items(g, COMMAND_NOTES, first, notes, nr, sizeof(*notes));
}

int guardian_add_places(struct guardian *g, pid_t pid, const struct place *places, u32 nr, u32 *nr_done)
{
	const u32 most = COMMAND_MAX_DATA / sizeof(*places);
	int err = 0;

	*nr_done = 0;
	while (*nr_done < nr && !err) {
		struct guardian_command c = { .op = COMMAND_PLACES, .pid = pid };
		u32 now = nr - *nr_done < most ? nr - *nr_done : most;

		err = guardian_ask(g, &c, places + *nr_done, now * sizeof(*places));
		*nr_done += c.first;
	}
	return err;
}

int guardian_set_maps(struct guardian *g, pid_t pid, const struct tracer_map *maps, u32 nr)
{
	const u32 most = COMMAND_MAX_DATA / sizeof(*maps);
	u32 at = 0;
	int err;

	do {
		struct guardian_command c = { .op = COMMAND_MAPS, .pid = pid, .first = at };
		u32 now = nr - at < most ? nr - at : most;

		c.is_last = at + now == nr;
		err = guardian_ask(g, &c, maps + at, now * sizeof(*maps));
		at += now;
	} while (at < nr && !err);
	return err;
}

int guardian_regs(struct guardian *g, pid_t tid, struct arch_regs *regs)
{
	struct guardian_command c = { .op = COMMAND_REGS, .pid = tid };
	int err = send_command(g, &c, NULL, 0, -1);

	return err ? err : guardian_take_answer(g, &c, regs, sizeof(*regs));
}

int guardian_call(struct guardian *g, pid_t pid, struct thread_request *r)
{
	struct guardian_command c = { .op = COMMAND_CALL, .pid = pid };
	int err = send_command(g, &c, r, sizeof(*r), -1);

	return err ? err : guardian_take_answer(g, &c, r, sizeof(*r));
}

int guardian_change(struct guardian *g, pid_t pid, int fd)
{
	struct guardian_command c = { .op = COMMAND_CHANGE, .pid = pid };
	int err = send_command(g, &c, NULL, 0, fd);

	return err ? err : guardian_take_answer(g, &c, NULL, 0);
}

/* Copy @bytes of @rows into a file in memory. Returns the descriptor or -errno. */
static int seal_rows(const void *rows, size_t bytes)
{
	auto_close int fd = unnamed_file_in_memory("heaptap-rows");

	if (fd < 0) {
		error("ptrace: memfd_create(2) is not there (Linux 3.17), nor a directory for a file: set TMPDIR: %s",
		      strerror(-fd));
		return fd;
	}
	for (size_t at = 0; at < bytes;) {
		ssize_t nr = write(fd, (const char *)rows + at, bytes - at);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			return nr ? -errno : -EIO;
		at += (size_t)nr;
	}
	return take_fd(fd);
}

int guardian_set_table(struct guardian *g, const struct command_table *table, const void *rows, size_t bytes)
{
	struct guardian_command c = { .op = COMMAND_TABLE };
	auto_close int fd = seal_rows(rows, bytes);
	int err = fd < 0 ? fd : send_command(g, &c, table, sizeof(*table), fd);

	return err ? err : guardian_take_answer(g, &c, NULL, 0);
}
