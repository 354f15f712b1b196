/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stop the threads of a process by PTRACE_SEIZE and PTRACE_INTERRUPT, read their registers, and resume them. */
#include "user/scan/snapshot_threads.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/regs.h"
#include "arch/stop.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"
#include "user/scan/snapshot_make.h"

enum {
	MAX_PASSES = 30,       /* over the list of threads, while new ones appear */
	POLL_NS = 50 * 1000,   /* between two polls of threads that have not stopped yet */
	STRAGGLE_NS = 50000000 /* how long held_resume() waits for threads that have not stopped */
};

static bool is_dead(pid_t tid)
{
	struct proc_stat stat;

	return proc_read_stat(&stat, tid) || stat.state == 'Z' || stat.state == 'X';
}

static int by_tid(const void *a, const void *b)
{
	const struct held_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int add_thread(struct held_threads *h, const struct held_thread *thread)
{
	int err = array_reserve(h->threads, h->max, h->nr + 1);

	if (!err)
		h->threads[h->nr++] = *thread;
	return err;
}

/* True if the calling thread, or the holder, has stopped @tid before. */
static bool is_stopped_before(const struct held_threads *h, pid_t tid)
{
	return h->holder && h->holder->read_regs ? !is_dead(tid) : stop_is_there(tid);
}

/* Begin to stop @tid. 1; 0 if it has ended; -EPERM, -ENOMEM. */
static int seize(struct held_threads *h, pid_t tid)
{
	struct held_thread thread = { .tid = tid, .state = HELD_WAITING };
	int err;

	if (h->may_be_traced && is_stopped_before(h, tid)) {
		thread.state = HELD_BEFORE;
		err = add_thread(h, &thread);
		return err ? err : 1;
	}
	err = add_thread(
		h, &thread); /* first, because a thread that is seized must be in the list to be resumed */
	if (err)
		return err;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
		err = errno;
		h->nr--;
		if (err == ESRCH || is_dead(tid))
			return 0;
		return -err;
	}
	/* This fails only if the thread ends at this moment, which waitpid() shows. */
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return 1;
}

/* Seize the threads that are not in the list yet. Returns how many, -ESRCH, -ETIME, or -errno. */
static int seize_new(struct held_threads *h, u64 deadline_ns)
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
		err = clock_now_ns() > deadline_ns ? -ETIME : seize(h, key.tid);
		if (err < 0)
			return err;
	}
	if (h->nr > known)
		qsort(h->threads, h->nr, sizeof(*h->threads), by_tid);
	return (int)(h->nr - known);
}

/* Enter the wait status of a thread that was asked to stop. */
static void note_wait(struct held_thread *thread, int status)
{
	if (!WIFSTOPPED(status)) {
		thread->state = HELD_GONE;
		return;
	}
	thread->state = HELD_STOPPED;
	thread->stop = (u8)stop_of(status);
	thread->signal = (u8)stop_signal(status);
}

/* Poll the threads that have not stopped yet. Returns how many are left. */
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
	while (poll_waiting(h) && clock_pause(POLL_NS, deadline_ns))
		;
}

int held_stop(struct held_threads *h, u64 deadline_ns)
{
	int nr = 1;

	for (int pass = 0; pass < MAX_PASSES && nr > 0; pass++) {
		nr = seize_new(h, deadline_ns);
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

/* Add the words of @regs at [from, from + len) that are not zero. */
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
	const struct snapshot_holder *holder = h->holder;

	return holder && holder->read_regs ? holder->read_regs(holder->ctx, tid, regs)
					   : arch_regs_read(regs, tid);
}

static struct snapshot_thread thread_of(const struct arch_regs *regs, pid_t tid)
{
	struct snapshot_thread thread = { .tid = tid, .sp = regs->sp, .tp = regs->tp };
	struct arch_frame frame;

	if (arch_regs_frame(regs, &frame)) {
		thread.pc = frame.pc;
		thread.fp = frame.fp;
		thread.lr = frame.lr;
	}
	return thread;
}

int held_read_registers(const struct held_threads *h, struct snapshot *s, u64 deadline_ns)
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
		if (clock_now_ns() > deadline_ns)
			return -ETIME;
		if (read_regs(h, h->threads[i].tid, regs) != 0)
			continue; /* killed since the stop: its stack counts as plain memory */
		s->threads[s->nr_threads++] = thread_of(regs, h->threads[i].tid);
		s->word_size = s->word_size > regs->word_size ? s->word_size : regs->word_size;
		err = add_registers(s, regs, owner, 0, regs->nr_general);
		if (!err && !regs->is_exiting)
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
		stop_end(thread->tid, thread->stop, PTRACE_DETACH, thread->signal);
	thread->state = HELD_GONE;
}

void held_resume(struct held_threads *h)
{
	for (size_t i = 0; i < h->nr; i++)
		if (h->threads[i].state == HELD_STOPPED)
			detach(&h->threads[i]);
	/* A thread that stops only now would stay stopped until our thread ends. */
	if (held_unstopped(h) > h->is_growing)
		wait_stopped(h, clock_now_ns() + STRAGGLE_NS);
	for (size_t i = 0; i < h->nr; i++)
		if (h->threads[i].state == HELD_STOPPED)
			detach(&h->threads[i]);
	free(h->threads);
	memset(h, 0, sizeof(*h));
}
