/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads of a process stopped by PTRACE_SEIZE and PTRACE_INTERRUPT, their registers read, and let go. */
#include "user/snapshot_threads.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "arch/regs.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/snapshot_make.h"

enum {
	MAX_PASSES = 30,       /* over the list of threads, as long as new ones appear */
	POLL_NS = 50 * 1000,   /* between two looks at threads that have not stopped yet */
	STRAGGLE_NS = 50000000 /* how long letting go waits for those that never stopped */
};

/* Value of the line "@key:" in /proc/PID/task/TID/status, as text. */
static bool status_line(pid_t pid, pid_t tid, const char *key, char *value, size_t size)
{
	auto_fclose FILE *f = NULL;
	char line[256], path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		size_t len = strlen(key);

		if (strncmp(line, key, len) != 0 || line[len] != ':')
			continue;
		snprintf(value, size, "%s", line + len + 1 + strspn(line + len + 1, "\t "));
		value[strcspn(value, "\n")] = '\0';
		return true;
	}
	return false;
}

static bool is_dead(pid_t pid, pid_t tid)
{
	char state[32];

	return !status_line(pid, tid, "State", state, sizeof(state)) || strchr("ZX", state[0]);
}

/* Say why thread @tid cannot be traced: -EPERM. */
static int refuse(pid_t pid, pid_t tid)
{
	char value[32], name[32] = "";
	pid_t tracer = 0;

	if (status_line(pid, tid, "TracerPid", value, sizeof(value)))
		tracer = atoi(value);
	if (!tracer) {
		error("scan: process %d: not permitted to trace it", pid);
		return -EPERM;
	}
	if (!status_line(tracer, tracer, "Name", name, sizeof(name)))
		snprintf(name, sizeof(name), "unknown");
	error("scan: process %d: it is traced by %s (%d) already", pid, name, tracer);
	return -EPERM;
}

static int by_tid(const void *a, const void *b)
{
	const struct held_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int add_thread(struct held_threads *h, const struct held_thread *thread)
{
	if (h->nr == h->capacity) {
		size_t larger = h->capacity ? h->capacity * 2 : 16;
		struct held_thread *threads = realloc(h->threads, larger * sizeof(*threads));

		if (!threads)
			return -ENOMEM;
		h->threads = threads;
		h->capacity = larger;
	}
	h->threads[h->nr++] = *thread;
	return 0;
}

/* True if @tid stands in a stop of the calling thread's already. */
static bool stands_here(const struct held_threads *h, pid_t tid)
{
	siginfo_t info;

	if (h->holder)
		return !is_dead(h->pid, tid);
	/* EINVAL: a group stop, which has no siginfo. */
	return ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) == 0 || errno == EINVAL;
}

/* Begin to stop @tid. 1 = held, 0 = it has gone, -EPERM, -ENOMEM. */
static int seize(struct held_threads *h, pid_t tid)
{
	struct held_thread thread = { .tid = tid, .state = HELD_WAITING };
	int err;

	if (h->may_be_traced && stands_here(h, tid)) {
		thread.state = HELD_BEFORE;
		err = add_thread(h, &thread);
		return err ? err : 1;
	}
	err = add_thread(h, &thread); /* first: once seized it must be let go */
	if (err)
		return err;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
		err = errno;
		h->nr--;
		if (err == ESRCH || is_dead(h->pid, tid))
			return 0;
		return err == EPERM ? refuse(h->pid, tid) : -err;
	}
	/* Fails only if it ends at this moment: waiting for it tells. */
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return 1;
}

/* Seize the threads not seen before. Their number, -ESRCH, or -errno. */
static int seize_new(struct held_threads *h)
{
	auto_closedir DIR *dir = NULL;
	const struct dirent *entry;
	size_t known = h->nr;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", h->pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		struct held_thread key = { .tid = atoi(entry->d_name) };
		int err;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    (known && bsearch(&key, h->threads, known, sizeof(key), by_tid)))
			continue;
		err = seize(h, key.tid);
		if (err < 0)
			return err;
	}
	if (h->nr > known)
		qsort(h->threads, h->nr, sizeof(*h->threads), by_tid);
	return (int)(h->nr - known);
}

/* What wait says about a thread that was asked to stop. */
static void note_wait(struct held_thread *thread, int status)
{
	if (!WIFSTOPPED(status)) {
		thread->state = HELD_GONE;
		return;
	}
	thread->state = HELD_STOPPED;
	/* A stop without an event number is a signal on its way to the program. */
	if (status >> 16 == 0)
		thread->signal = (u8)WSTOPSIG(status);
}

/* Look at the threads that have not stopped yet; returns how many are left. */
static size_t poll_waiting(struct held_threads *h)
{
	size_t nr = 0;

	for (size_t i = 0; i < h->nr; i++) {
		struct held_thread *thread = &h->threads[i];
		int status;
		pid_t pid;

		if (thread->state != HELD_WAITING)
			continue;
		pid = waitpid(thread->tid, &status, __WALL | WNOHANG);
		if (pid == thread->tid)
			note_wait(thread, status);
		else if (pid < 0)
			thread->state = HELD_GONE;
		nr += thread->state == HELD_WAITING;
	}
	return nr;
}

static void wait_stopped(struct held_threads *h, u64 deadline_ns)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };

	while (poll_waiting(h) && clock_now_ns() < deadline_ns)
		nanosleep(&pause, NULL);
}

int held_stop(struct held_threads *h, u64 deadline_ns)
{
	int nr = 1;

	for (int pass = 0; pass < MAX_PASSES && nr > 0; pass++) {
		nr = seize_new(h);
		wait_stopped(h, deadline_ns);
	}
	h->is_growing = nr > 0;
	if (nr >= 0 && held_unstopped(h) < h->nr)
		return 0;
	if (nr >= 0)
		nr = h->nr ? -ETIME : -ESRCH;
	held_resume(h);
	return nr;
}

size_t held_unstopped(const struct held_threads *h)
{
	size_t nr = h->is_growing;

	for (size_t i = 0; i < h->nr; i++)
		nr += h->threads[i].state == HELD_WAITING;
	return nr;
}

/* Words of @regs at [from, from + len) that are not zero. */
static int add_registers(struct snapshot *s, const struct arch_regs *regs, u32 owner, u32 from, u32 len)
{
	for (u32 at = from; at + regs->word_size <= from + len; at += regs->word_size) {
		struct snapshot_word word = { .owner = owner, .where = at };
		int err;

		if (regs->word_size == 8)
			memcpy(&word.value, regs->bytes + at, 8);
		else
			word.value = *(const u32 *)(const void *)(regs->bytes + at);
		err = word.value ? snapshot_add_word(s, &word) : 0;
		if (err)
			return err;
	}
	return 0;
}

static int read_regs(const struct held_threads *h, pid_t tid, struct arch_regs *regs)
{
	return h->holder ? h->holder->read_regs(h->holder->ctx, tid, regs) : arch_regs_read(regs, tid);
}

int held_read_registers(const struct held_threads *h, struct snapshot *s)
{
	auto_free struct arch_regs *regs = malloc(sizeof(*regs));

	s->threads = calloc(h->nr ? h->nr : 1, sizeof(*s->threads));
	if (!regs || !s->threads)
		return -ENOMEM;
	for (size_t i = 0; i < h->nr; i++) {
		u32 owner = (u32)s->nr_threads;
		int err;

		if (h->threads[i].state != HELD_STOPPED && h->threads[i].state != HELD_BEFORE)
			continue;
		if (read_regs(h, h->threads[i].tid, regs) != 0)
			continue; /* killed since: its stack counts as plain memory */
		s->threads[s->nr_threads++] =
			(struct snapshot_thread){ .tid = h->threads[i].tid, .sp = regs->sp, .tp = regs->tp };
		s->word_size = s->word_size > regs->word_size ? s->word_size : regs->word_size;
		err = add_registers(s, regs, owner, 0, regs->nr_general);
		if (!err)
			err = add_registers(s, regs, owner, REGS_VECTOR, regs->nr_vector);
		if (err)
			return err;
	}
	s->mem_tid = s->nr_threads ? s->threads[0].tid : s->pid;
	s->red_zone = arch_red_zone(s->word_size);
	return s->nr_threads ? 0 : -ESRCH;
}

static void detach(struct held_thread *thread)
{
	if (thread->state == HELD_STOPPED)
		ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(uintptr_t)thread->signal);
	thread->state = HELD_GONE;
}

void held_resume(struct held_threads *h)
{
	for (size_t i = 0; i < h->nr; i++)
		if (h->threads[i].state == HELD_STOPPED)
			detach(&h->threads[i]);
	/* One that stops only now would stand until our thread ends. */
	if (held_unstopped(h) > h->is_growing)
		wait_stopped(h, clock_now_ns() + STRAGGLE_NS);
	for (size_t i = 0; i < h->nr; i++)
		if (h->threads[i].state == HELD_STOPPED)
			detach(&h->threads[i]);
	free(h->threads);
	memset(h, 0, sizeof(*h));
}
