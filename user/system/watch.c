/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of watched processes: who is new, who has ended, what each needs. */
#include "user/system/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/types.h"
#include "user/system/watch_choice.h"

/* The process connector: messages of the kernel about forks, execs and ends. */

enum birth_kind { BIRTH_FORK, BIRTH_EXEC, BIRTH_END };

enum {
	FIRST_PID_NS = 0xEFFFFFFC, /* inode: PROC_PID_INIT_INO of the kernel */
	ANSWER_MS = 100,
	ROOM_BYTES = 8 << 20, /* for some 8,000 messages between two looks */
};

struct births {
	int fd;
};

/* One message: its headers, and the event. */
struct message {
	struct nlmsghdr header;
	struct cn_msg connector;
	struct proc_event event;
} __attribute__((packed, aligned(NLMSG_ALIGNTO)));

/* Tell the kernel to send, or to stop sending: it counts listeners. */
static int births_ask(int fd, enum proc_cn_mcast_op op)
{
	struct {
		struct nlmsghdr header;
		struct cn_msg connector;
		u32 op;
	} __attribute__((packed, aligned(NLMSG_ALIGNTO))) m = {
		.header = { .nlmsg_len = sizeof(m), .nlmsg_type = NLMSG_DONE },
		.connector = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .len = sizeof(m.op) },
		.op = op,
	};

	return send(fd, &m, sizeof(m), 0) == sizeof(m) ? 0 : -errno;
}

/* The kernel answers who may listen. */
static int wait_for_answer(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct proc_event event;
	struct message m;

	while (poll(&p, 1, ANSWER_MS) == 1) {
		if (recv(fd, &m, sizeof(m), MSG_DONTWAIT) < (ssize_t)sizeof(m))
			continue;
		event = m.event;
		if (event.what == PROC_EVENT_NONE)
			return -(int)event.event_data.ack.err;
	}
	return -EOPNOTSUPP;
}

/* The PIDs of its messages are those of the first PID namespace. */
static bool has_first_pids(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NS;
}

/*
 * Listen. *@out is owned by the caller: births_free(). 0; -EPERM, -EOPNOTSUPP: not here (no privilege, another network
 * or PID namespace, a kernel without it); or -errno. Blocks for 100 ms at most.
 */
static int births_new(struct births **out)
{
	const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
	auto_close int fd = -1;
	auto_free struct births *b = calloc(1, sizeof(*b));
	int room = ROOM_BYTES, err;

	if (!b)
		return -ENOMEM;
	if (!has_first_pids())
		return -EOPNOTSUPP;
	fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)))
		return -errno;
	err = births_ask(fd, PROC_CN_MCAST_LISTEN);
	if (!err)
		err = wait_for_answer(fd);
	if (err)
		return err;
	b->fd = take_fd(fd);
	*out = take_ptr(b);
	return 0;
}

static void births_free(struct births *b)
{
	if (!b)
		return;
	/* A socket that is closed without it stays in the kernel's count of listeners. */
	if (!births_ask(b->fd, PROC_CN_MCAST_IGNORE))
		(void)wait_for_answer(b->fd);
	close(b->fd);
	free(b);
}

static void births_give(const struct proc_event *e, void (*take)(void *ctx, enum birth_kind kind, pid_t pid),
			void *ctx)
{
	/* Threads are born and end, too. */
	if (e->what == PROC_EVENT_FORK && e->event_data.fork.child_pid == e->event_data.fork.child_tgid)
		take(ctx, BIRTH_FORK, e->event_data.fork.child_tgid);
	else if (e->what == PROC_EVENT_EXEC)
		take(ctx, BIRTH_EXEC, e->event_data.exec.process_tgid);
	else if (e->what == PROC_EVENT_EXIT &&
		 e->event_data.exit.process_pid == e->event_data.exit.process_tgid)
		take(ctx, BIRTH_END, e->event_data.exit.process_tgid);
}

/*
 * Give @take all that has happened since the last call. It does not wait. 0; -ENOBUFS: some of it was lost, so look at
 * /proc; or -errno.
 */
static int births_read(struct births *b, void (*take)(void *ctx, enum birth_kind kind, pid_t pid), void *ctx)
{
	enum { AT_ONCE = 20000 };
	bool is_lost = false;

	for (int i = 0; i < AT_ONCE; i++) {
		struct sockaddr_nl from = { .nl_pid = ~0U };
		socklen_t len = sizeof(from);
		struct proc_event event;
		struct message m;
		ssize_t n = recvfrom(b->fd, &m, sizeof(m), 0, (struct sockaddr *)&from, &len);

		if (n < 0 && errno == ENOBUFS) {
			is_lost = true;
			continue;
		}
		if (n < 0)
			return errno == EAGAIN ? (is_lost ? -ENOBUFS : 0) : -errno;
		/* Any process may send to the socket: only the kernel has port 0. */
		if (n < (ssize_t)sizeof(m) || from.nl_pid || m.connector.id.idx != CN_IDX_PROC)
			continue;
		event = m.event;
		births_give(&event, take, ctx);
	}
	return -ENOBUFS;
}

enum {
	MAX_EVICTIONS = 100, /* in one look: a fork bomb must not cost more */
	MAX_DETAILS = 50,    /* in one look, of processes that do not grow: each costs some 50 us */
	MAX_BORN = 65536,
	STATM_BYTES = 160,
};

static const u64 scan_every_ns = 60000000000ULL, details_every_ns = 10000000000ULL,
		 grew_for_ns = 30000000000ULL;

static u64 hash_pid(pid_t pid)
{
	return hash_u64((u64)pid);
}

static struct watched *system_watch_find(const struct watch *w, pid_t pid)
{
	u32 item, at = 0;

	while ((item = hash_index_next(&w->index, hash_pid(pid), &at)) != HASH_NO_ITEM)
		if (w->list[item].pid == pid)
			return &w->list[item];
	return NULL;
}

const struct watched *watch_find(const struct watch *w, pid_t pid)
{
	return system_watch_find(w, pid);
}

int watch_init(struct watch *w, const struct watch_choice *choice, u32 max_procs)
{
	int err;

	*w = (struct watch){ .choice = choice, .max_procs = max_procs, .start_ns = clock_now_ns() };
	err = watch_choice_uids(choice, &w->uids, &w->nr_uids);
	if (err)
		return err;
	err = births_new(&w->births);
	if (err == -ENOMEM)
		return err;
	if (err)
		debug("system: the kernel does not tell of new processes: %s: /proc is looked at instead",
		      strerror(-err));
	return 0;
}

void watch_fini(struct watch *w)
{
	for (size_t i = 0; i < w->nr; i++)
		close(w->list[i].fd);
	free(w->list);
	free(w->uids);
	free(w->born);
	hash_index_fini(&w->index);
	births_free(w->births);
}

/* ---- one process ---- */

/* Bytes of address space, of resident memory, and of what it shares with files: false = it has ended. */
static bool read_statm(int fd, u64 pages[3])
{
	char text[STATM_BYTES];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	char *at = text;

	if (n <= 0)
		return false;
	text[n] = '\0';
	for (int i = 0; i < 3; i++)
		pages[i] = strtoull(at, &at, 10);
	/* Kernel threads and zombies have no memory. */
	return pages[0] != 0;
}

static bool read_sizes(struct watched *p)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE), pages[3];

	if (!read_statm(p->fd, pages))
		return false;
	p->size = pages[0] * page;
	p->resident = pages[1] * page;
	p->anonymous = pages[1] > pages[2] ? (pages[1] - pages[2]) * page : 0;
	return true;
}

static bool watch_measure(const struct watch *w, struct watched *p)
{
	if (!read_sizes(p))
		return false;
	growth_add(&p->growth, (u32)((w->now_ns - w->start_ns) / 100000000), watched_needs(p));
	return true;
}

/* Read who it is. False: it is not one of those to watch, or has ended. */
static bool system_watch_identify(const struct watch *w, struct watched *p)
{
	struct proc_stat stat;

	if (proc_read_stat(&stat, p->pid) || stat.is_kernel_thread || stat.state == 'Z')
		return false;
	if (p->start_time && stat.start_time != p->start_time)
		return false;
	if (w->own_pid && (p->pid == w->own_pid || stat.ppid == w->own_pid))
		return false;
	p->start_time = stat.start_time;
	memcpy(p->comm, stat.comm, sizeof(p->comm));
	return watch_choice_fits(w->choice, w->uids, w->nr_uids, p);
}

bool watch_identify(const struct watch *w, pid_t pid, struct watched *out)
{
	*out = (struct watched){ .pid = pid, .fd = -1 };
	return system_watch_identify(w, out);
}

static void read_details(struct watch *w, struct watched *p)
{
	struct proc_status status;

	p->details_ns = w->now_ns;
	p->limit = limit_read(p->pid, p->size);
	/* A process that ends meanwhile is noticed at the next look. */
	if (container_read(&p->container, p->pid) || proc_read_status(&status, p->pid))
		return;
	p->uid = status.uid;
	p->swapped = status.swapped_bytes;
}

/* ---- the table ---- */

static void keep_end(struct watch *w, const struct watched *p)
{
	if (p->state == WATCHED_QUIET)
		return;
	w->ends[w->nr_ends++ % WATCH_MAX_ENDS] = (struct watch_end){ .pid = p->pid,
								     .start_time = p->start_time,
								     .needed = watched_needs(p),
								     .first_ns = p->first_ns,
								     .end_ns = w->now_ns,
								     .line = p->line };
	memcpy(w->ends[(w->nr_ends - 1) % WATCH_MAX_ENDS].comm, p->comm, sizeof(p->comm));
}

static void remove_at(struct watch *w, size_t i)
{
	struct watched *p = &w->list[i], *last = &w->list[w->nr - 1];

	close(p->fd);
	hash_index_del(&w->index, hash_pid(p->pid), (u32)i);
	if (p != last) {
		hash_index_renumber(&w->index, hash_pid(last->pid), (u32)(w->nr - 1), (u32)i);
		*p = *last;
	}
	w->nr--;
}

/* Make room: forget the quiet process that needs least, if that is less than @needs. */
static bool watch_evict(struct watch *w, u64 needs)
{
	size_t least = w->nr;

	if (!w->nr_room)
		return false;
	w->nr_room--;
	for (size_t i = 0; i < w->nr; i++) {
		const struct watched *p = &w->list[i];

		if (p->is_held || p->state == WATCHED_GROWS)
			continue;
		if (least == w->nr || watched_needs(p) < watched_needs(&w->list[least]))
			least = i;
	}
	if (least == w->nr || watched_needs(&w->list[least]) >= needs)
		return false;
	remove_at(w, least);
	w->nr_evicted++;
	return true;
}

/* 0, also if @pid is not one to watch; or -ENOMEM. */
static int watch_add(struct watch *w, pid_t pid)
{
	struct watched p = { .pid = pid, .first_ns = w->now_ns, .is_new = true, .fd = -1 };
	char path[64];
	int err = -ENOMEM;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	p.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (p.fd < 0) {
		w->nr_unseen += errno != ENOENT && errno != ESRCH;
		w->nr_missed += errno == ENOENT || errno == ESRCH;
		return 0;
	}
	if (!watch_measure(w, &p) || !system_watch_identify(w, &p))
		goto close;
	if (w->nr >= w->max_procs && !watch_evict(w, watched_needs(&p))) {
		w->nr_evicted++;
		goto close;
	}
	if (array_reserve(w->list, w->max, w->nr + 1) ||
	    hash_index_add(&w->index, hash_pid(pid), (u32)w->nr)) {
		w->nr_unseen++;
		goto fail;
	}
	w->list[w->nr++] = p;
	return 0;
close:
	err = 0;
fail:
	close(p.fd);
	return err;
}

static void take_birth(void *ctx, enum birth_kind kind, pid_t pid)
{
	struct watch *w = ctx;
	struct watched *p = kind == BIRTH_EXEC ? system_watch_find(w, pid) : NULL;

	if (p)
		p->is_new = true;
	if (p || kind == BIRTH_END || !w->scan_ns)
		return;
	if (w->nr_born >= MAX_BORN || array_reserve(w->born, w->max_born, w->nr_born + 1)) {
		w->scan_ns = 0;
		return;
	}
	w->born[w->nr_born++] = pid;
}

/* The end of /proc/loadavg is the PID of the newest process: has there been one since the last scan? */
static bool has_newborn(struct watch *w)
{
	char text[sizeof(w->last_born)];
	const char *last;

	if (proc_read_text("/proc/loadavg", text, sizeof(text)) < 0)
		return true;
	last = strrchr(text, ' ');
	if (last && !strcmp(last, w->last_born))
		return false;
	snprintf(w->last_born, sizeof(w->last_born), "%s", last ? last : "");
	return true;
}

/* Add all that /proc shows. */
static int watch_scan(struct watch *w)
{
	pid_t *pids;
	size_t nr;
	int err = proc_all(&pids, &nr);

	if (err)
		return err == -ENOMEM ? err : 0;
	w->scan_ns = w->now_ns;
	for (size_t i = 0; i < nr && !err; i++)
		if (!system_watch_find(w, pids[i]))
			err = watch_add(w, pids[i]);
	free(pids);
	return err;
}

static int look_for_new(struct watch *w)
{
	int err = 0;

	w->nr_born = 0;
	w->nr_room = MAX_EVICTIONS;
	if (w->births && births_read(w->births, take_birth, w))
		w->scan_ns = 0;
	if (!w->scan_ns || w->now_ns - w->scan_ns >= scan_every_ns || (!w->births && has_newborn(w)))
		return watch_scan(w);
	for (size_t i = 0; i < w->nr_born && !err; i++)
		if (!system_watch_find(w, w->born[i]))
			err = watch_add(w, w->born[i]);
	return err;
}

static void watch_judge(struct watch *w, struct watched *p)
{
	p->line = growth_is_possible(&p->growth) ? growth_estimate(&p->growth) : (struct growth_line){ 0 };
	if (p->line.is_sure) {
		p->state = WATCHED_GROWS;
		p->grew_ns = w->now_ns;
		p->wanted_ns = p->wanted_ns ? p->wanted_ns : w->now_ns;
	} else if (p->state == WATCHED_GROWS && w->now_ns - p->grew_ns >= grew_for_ns) {
		p->state = WATCHED_GREW;
	}
	if (w->wants_containers && !p->details_ns && w->nr_details) {
		w->nr_details--;
		read_details(w, p);
	}
	if ((p->state == WATCHED_GROWS || p->is_held) &&
	    (!p->details_ns || w->now_ns - p->details_ns >= details_every_ns))
		read_details(w, p);
}

int watch_look(struct watch *w)
{
	u64 before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int err;

	w->now_ns = clock_now_ns();
	err = look_for_new(w);
	w->resident = 0;
	w->nr_details = MAX_DETAILS;
	for (size_t i = 0; i < w->nr;) {
		struct watched *p = &w->list[i];

		if ((p->is_new && p->first_ns != w->now_ns && !system_watch_identify(w, p)) ||
		    (p->first_ns != w->now_ns && !watch_measure(w, p))) {
			keep_end(w, p);
			remove_at(w, i);
			continue;
		}
		p->is_new = p->first_ns == w->now_ns;
		w->resident += p->resident;
		watch_judge(w, p);
		i++;
	}
	w->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
	return err;
}

void watch_hold(struct watch *w, pid_t pid, bool is_held)
{
	struct watched *p = system_watch_find(w, pid);

	if (p)
		p->is_held = is_held;
}

void watch_measure_again(struct watch *w, pid_t pid)
{
	struct watched *p = system_watch_find(w, pid);

	/* A process that has ended keeps its last sizes until the next look. */
	if (p && !read_sizes(p))
		debug("system: PID %d has ended", (int)pid);
}

void watch_refuse(struct watch *w, pid_t pid, u64 until_ns)
{
	struct watched *p = system_watch_find(w, pid);

	if (p)
		p->refused_ns = until_ns;
}

u64 watched_growing_ns(const struct watch *w, const struct watched *p)
{
	u64 since_ns = w->start_ns + growth_since(&p->growth) * 100000000ULL;

	return p->state == WATCHED_GROWS && w->now_ns > since_ns ? w->now_ns - since_ns : 0;
}

/* ---- the order of reports ---- */

static int watch_compare(const void *a, const void *b)
{
	const struct watched *p = *(const struct watched *const *)a, *q = *(const struct watched *const *)b;
	bool p_grows = p->state == WATCHED_GROWS, q_grows = q->state == WATCHED_GROWS;

	if (p_grows != q_grows)
		return p_grows ? -1 : 1;
	if (p_grows && p->line.bytes_per_s != q->line.bytes_per_s)
		return p->line.bytes_per_s > q->line.bytes_per_s ? -1 : 1;
	if (watched_needs(p) != watched_needs(q))
		return watched_needs(p) > watched_needs(q) ? -1 : 1;
	return p->pid < q->pid ? -1 : p->pid > q->pid;
}

int watch_rank(const struct watch *w, const struct watched ***out)
{
	const struct watched **list = calloc(w->nr + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < w->nr; i++)
		list[i] = &w->list[i];
	qsort(list, w->nr, sizeof(*list), watch_compare);
	*out = list;
	return 0;
}
