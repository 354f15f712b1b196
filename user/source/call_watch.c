/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens a uprobe event for each thread on each CPU, with one ring for each CPU, and reads samples. */
#include "user/source/call_watch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"

enum {
	RING_PAGES = 16, /* of data */
	STACK_BYTES = 64,
	MAX_EVENTS = 16384, /* descriptors */
	ROUNDS = 10,	    /* of looking for threads */
	RECORD_MAX = 512,
};

/* Numbers of registers in samples (asm/perf_regs.h of the CPU): arguments in order, and the return address. */
#if defined(__x86_64__)
static const u8 arg_regs[CALL_WATCH_ARGS] = { 5, 4, 3, 2, 16, 17 };
static const int return_reg = -1; /* at the top of the stack */
#elif defined(__aarch64__)
static const u8 arg_regs[CALL_WATCH_ARGS] = { 0, 1, 2, 3, 4, 5 };
static const int return_reg = 30;
#else
static const u8 arg_regs[CALL_WATCH_ARGS] = { 0 };
static const int return_reg = -2; /* samples of this CPU are not read */
#endif

struct call_ring {
	struct perf_event_mmap_page *head; /* mapped; NULL = this CPU is off */
	int fd;				   /* borrowed; whose ring this is */
};

struct call_watch {
	pid_t pid;
	int prog_fd; /* owned; sends SIGSTOP; -1 = none */
	int *fds;    /* owned; events */
	size_t nr_fds, max_fds;
	pid_t *tids; /* owned; that have events */
	size_t nr_tids, max_tids;
	struct call_ring *rings; /* owned; by CPU */
	u32 nr_cpus;
	size_t page;
	u64 nr_lost;
	u64 since_ns, stops_ns; /* calls before are passed over; from then on each is stopped */
	bool was_full;		/* since then */
};

static u64 call_watch_regs(void)
{
	u64 mask = return_reg < 0 ? 0 : 1ULL << (return_reg & 63);

	for (size_t i = 0; i < CALL_WATCH_ARGS; i++)
		mask |= 1ULL << arg_regs[i];
	return mask;
}

/* Where register @reg is among the words of a sample. */
static u32 call_watch_index(u32 reg)
{
	return (u32)__builtin_popcountll(call_watch_regs() & ((1ULL << (reg & 63)) - 1));
}

/* bpf_send_signal(SIGSTOP); return 1, so that the sample is taken. -errno. */
static int call_watch_load_stop(void)
{
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = SIGSTOP },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_send_signal },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", code, ARRAY_SIZE(code), NULL);
}

static int call_watch_open_event(struct call_watch *w, const struct perf_event_attr *a, pid_t tid, u32 cpu)
{
	struct call_ring *ring = &w->rings[cpu];
	struct perf_event_attr attr = *a;
	int fd;

	if (w->nr_fds == MAX_EVENTS)
		return -EMFILE;
	if (array_reserve(w->fds, w->max_fds, w->nr_fds + 1))
		return -ENOMEM;
	fd = (int)syscall(SYS_perf_event_open, &attr, tid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno == ENODEV && ring->fd < 0 && cpu ? 0 : -errno; /* a CPU that is off */
	w->fds[w->nr_fds++] = fd;
	if (ring->fd < 0) {
		ring->fd = fd;
		ring->head =
			mmap(NULL, (1 + RING_PAGES) * w->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (ring->head == MAP_FAILED)
			ring->head = NULL;
		if (!ring->head)
			return -errno;
	} else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd)) {
		return -errno;
	}
	return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static int call_watch_add_thread(struct call_watch *w, const struct perf_event_attr *attr, pid_t tid)
{
	int err = 0;

	for (size_t i = 0; i < w->nr_tids; i++)
		if (w->tids[i] == tid)
			return 0;
	if (array_reserve(w->tids, w->max_tids, w->nr_tids + 1))
		return -ENOMEM;
	w->tids[w->nr_tids++] = tid;
	for (u32 cpu = 0; cpu < w->nr_cpus && !err; cpu++)
		err = call_watch_open_event(w, attr, tid, cpu);
	return err == -ESRCH && tid != w->pid ? 0 : err;
}

/* A thread that has events has children with such. So it is enough to look until no new thread is there. */
static int call_watch_add_threads(struct call_watch *w, const struct perf_event_attr *attr)
{
	int err = 0;

	for (int round = 0; round < ROUNDS && !err; round++) {
		auto_free pid_t *tids = NULL;
		size_t nr = 0, before = w->nr_tids;

		err = proc_threads(w->pid, &tids, &nr);
		for (size_t i = 0; i < nr && !err; i++)
			err = call_watch_add_thread(w, attr, tids[i]);
		if (w->nr_tids == before)
			break;
	}
	return err;
}

/*
 * Have calls stopped from now on. The program of one event runs for the calls of all threads on all CPUs, so all events
 * must be there before: a call that none of them tells of would be stopped, and nobody would know.
 */
static void call_watch_set_stop(struct call_watch *w)
{
	w->prog_fd = call_watch_load_stop();
	/* A busy function has filled the rings: the first call that is stopped needs room. */
	for (u32 i = 0; i < w->nr_cpus; i++)
		if (w->rings[i].head)
			__atomic_store_n(&w->rings[i].head->data_tail,
					 __atomic_load_n(&w->rings[i].head->data_head, __ATOMIC_ACQUIRE),
					 __ATOMIC_RELEASE);
	w->since_ns = clock_now_ns();
	for (size_t i = 0; i < w->nr_fds && w->prog_fd >= 0; i++) {
		if (ioctl(w->fds[i], PERF_EVENT_IOC_SET_BPF, w->prog_fd) && !i) {
			close(w->prog_fd);
			w->prog_fd = -1;
		} else if (!i) {
			w->stops_ns = clock_now_ns();
		}
	}
}

static int call_watch_open(struct call_watch *w, const char *path, u64 offset)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.config1 = (uintptr_t)path,
					.config2 = offset,
					.sample_period = 1,
					.disabled = 1,
					.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
					.sample_regs_user = call_watch_regs(),
					.sample_stack_user = STACK_BYTES,
					.inherit = 1,
					.use_clockid = 1,
					.clockid = CLOCK_MONOTONIC };
	char text[16];

	if (return_reg == -2 ||
	    proc_read_text("/sys/bus/event_source/devices/uprobe/type", text, sizeof(text)) < 0)
		return -ENODEV;
	attr.type = (u32)strtoul(text, NULL, 10);
	return call_watch_add_threads(w, &attr);
}

int call_watch_new(struct call_watch **out, pid_t pid, const char *path, u64 offset, bool stops)
{
	struct call_watch *w = calloc(1, sizeof(*w));
	long nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	int err;

	if (!w)
		return -ENOMEM;
	w->pid = pid;
	w->page = (size_t)sysconf(_SC_PAGESIZE);
	w->nr_cpus = nr_cpus > 0 ? (u32)nr_cpus : 1;
	w->prog_fd = -1;
	w->rings = calloc(w->nr_cpus, sizeof(*w->rings));
	for (u32 i = 0; w->rings && i < w->nr_cpus; i++)
		w->rings[i].fd = -1;
	err = w->rings ? call_watch_open(w, path, offset) : -ENOMEM;
	if (err) {
		call_watch_free(w);
		return err;
	}
	if (stops)
		call_watch_set_stop(w);
	*out = w;
	return 0;
}

void call_watch_free(struct call_watch *w)
{
	if (!w)
		return;
	for (u32 i = 0; w->rings && i < w->nr_cpus; i++)
		if (w->rings[i].head)
			munmap(w->rings[i].head, (1 + RING_PAGES) * w->page);
	for (size_t i = 0; i < w->nr_fds; i++)
		close(w->fds[i]);
	cleanup_close(&w->prog_fd);
	free(w->rings);
	free(w->fds);
	free(w->tids);
	free(w);
}

/* Copy @len bytes at position @at of the ring, which may go around its end. */
static void call_watch_copy(const struct call_watch *w, const struct call_ring *r, u64 at, void *to,
			    size_t len)
{
	const u8 *data = (const u8 *)r->head + w->page;
	size_t size = RING_PAGES * w->page;

	for (size_t i = 0; i < len; i++)
		((u8 *)to)[i] = data[(at + i) % size];
}

/* The words of a sample behind its header, in the order of perf_event.h. False if it has no registers. */
static bool call_watch_read(const u64 *words, size_t nr, struct watched_call *out)
{
	u32 nr_regs = (u32)__builtin_popcountll(call_watch_regs());
	const u64 *regs = words + 3, *stack = regs + nr_regs + 1;

	if (nr < 3 + nr_regs || words[2] == PERF_SAMPLE_REGS_ABI_NONE)
		return false;
	*out = (struct watched_call){ .pid = (u32)words[0],
				      .tid = (u32)(words[0] >> 32),
				      .time_ns = words[1] };
	if (words[2] == PERF_SAMPLE_REGS_ABI_32) { /* arguments on the stack: none are shown */
		out->caller = nr > 4 + nr_regs && return_reg < 0 ? (u32)stack[0] : 0;
		return true;
	}
	out->nr_args = CALL_WATCH_ARGS;
	for (size_t i = 0; i < CALL_WATCH_ARGS; i++)
		out->args[i] = regs[call_watch_index(arg_regs[i])];
	if (return_reg >= 0)
		out->caller = regs[call_watch_index((u32)return_reg)];
	else if (nr > 4 + nr_regs && stack[-1])
		out->caller = stack[0];
	return true;
}

static bool call_watch_next_on(struct call_watch *w, struct call_ring *r, struct watched_call *out)
{
	u64 head = __atomic_load_n(&r->head->data_head, __ATOMIC_ACQUIRE), tail = r->head->data_tail;
	struct {
		struct perf_event_header h;
		u64 words[RECORD_MAX / 8];
	} record;
	bool has_call = false;

	w->was_full |= head - tail + RECORD_MAX > RING_PAGES * w->page;
	while (!has_call && tail < head) {
		size_t len;

		call_watch_copy(w, r, tail, &record.h, sizeof(record.h));
		len = record.h.size < sizeof(record) ? record.h.size : sizeof(record);
		call_watch_copy(w, r, tail, &record, len);
		len = len > sizeof(record.h) ? (len - sizeof(record.h)) / 8 : 0;
		if (record.h.type == PERF_RECORD_LOST && len >= 2)
			w->nr_lost += record.words[1];
		else if (record.h.type == PERF_RECORD_SAMPLE)
			has_call = call_watch_read(record.words, len, out) && out->time_ns >= w->since_ns;
		if (has_call && w->prog_fd >= 0) {
			out->is_stopped = out->time_ns >= w->stops_ns;
			out->may_be_stopped = !out->is_stopped;
		}
		tail += record.h.size ? record.h.size : head - tail;
		__atomic_store_n(&r->head->data_tail, tail, __ATOMIC_RELEASE);
	}
	return has_call;
}

bool call_watch_next(struct call_watch *w, struct watched_call *out)
{
	for (u32 i = 0; i < w->nr_cpus; i++)
		if (w->rings[i].head && call_watch_next_on(w, &w->rings[i], out))
			return true;
	return false;
}

bool call_watch_was_full(const struct call_watch *w)
{
	return w->was_full;
}

u64 call_watch_lost(struct call_watch *w)
{
	u64 nr = w->nr_lost;

	w->nr_lost = 0;
	return nr;
}
