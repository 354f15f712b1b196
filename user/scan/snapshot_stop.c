/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The snapshot of a stopped process. A thread of its own is the tracer: when that thread ends, the kernel detaches from
 * all threads of the process.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/scan/scan_reason.h"
#include "user/scan/snapshot_make.h"
#include "user/scan/snapshot_memory.h"
#include "user/scan/snapshot_threads.h"

enum { STOP_SHARE = 4 }; /* wait for threads to stop during a quarter of the pause, not longer */

/* The states of the process, in order. */
enum stop_state {
	STOP_STARTING, /* its threads are being stopped */
	STOP_STOPPED,
	STOP_FAILED,  /* it could not be stopped, and runs */
	STOP_RESUMED, /* it runs again, or the tracer is resuming it */
};

struct stop_snapshot {
	struct snapshot base;
	struct held_threads held;
	struct memory_stream *memory; /* owned */
	u64 started_ns, deadline_ns;
	bool has_thread; /* a thread of its own is the tracer, not the caller */
	pthread_t tracer;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum stop_state state; /* under the lock */
	int err;	       /* of STOP_FAILED, -errno */
};

/* Stop the process and read its registers. */
static int stop_and_read(struct stop_snapshot *st)
{
	u64 share = (st->deadline_ns - st->started_ns) / STOP_SHARE;
	int err = held_stop(&st->held, st->started_ns + share);

	if (err)
		return err;
	st->base.nr_unstopped = held_unstopped(&st->held);
	err = held_read_registers(&st->held, &st->base);
	if (err)
		held_resume(&st->held);
	return err;
}

/* Stop the process in the calling thread, which becomes the tracer. */
static int stop_here(struct stop_snapshot *st)
{
	int err = stop_and_read(st);

	pthread_mutex_lock(&st->lock);
	st->err = err;
	st->state = err ? STOP_FAILED : STOP_STOPPED;
	pthread_cond_broadcast(&st->changed);
	pthread_mutex_unlock(&st->lock);
	return err;
}

static void *tracer_main(void *arg)
{
	struct stop_snapshot *st = arg;

	if (stop_here(st))
		return NULL;
	pthread_mutex_lock(&st->lock);
	while (st->state == STOP_STOPPED)
		pthread_cond_wait(&st->changed, &st->lock);
	pthread_mutex_unlock(&st->lock);
	held_resume(&st->held);
	return NULL;
}

/* The new thread blocks all signals, because the main thread handles them. */
static int start_tracer(struct stop_snapshot *st)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&st->tracer, NULL, tracer_main, st);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	st->has_thread = true;
	pthread_mutex_lock(&st->lock);
	while (st->state == STOP_STARTING)
		pthread_cond_wait(&st->changed, &st->lock);
	err = st->err;
	pthread_mutex_unlock(&st->lock);
	return err;
}

static int stop_read(struct snapshot *s, const struct snapshot_visitor *visitor)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;
	int err = memory_stream_read(st->memory, visitor);

	memory_stream_count(st->memory, s);
	return err;
}

static int stop_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;

	return memory_stream_peek(st->memory, addr, buf, len);
}

static void stop_resume(struct snapshot *s)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;

	if (st->state == STOP_RESUMED) /* only this thread sets that state */
		return;
	pthread_mutex_lock(&st->lock);
	st->state = STOP_RESUMED;
	pthread_cond_broadcast(&st->changed);
	pthread_mutex_unlock(&st->lock);
	if (st->has_thread)
		pthread_join(st->tracer, NULL);
	else
		held_resume(&st->held);
	s->pause_ns = clock_now_ns() - st->started_ns;
}

static void stop_free(struct snapshot *s)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;

	memory_stream_free(st->memory);
	snapshot_fini(s);
	pthread_cond_destroy(&st->changed);
	pthread_mutex_destroy(&st->lock);
	free(st);
}

static const struct snapshot_ops stop_ops = {
	.name = "stop",
	.read = stop_read,
	.peek = stop_peek,
	.resume = stop_resume,
	.free = stop_free,
};

/* Take word size and byte order from the ELF header of the program, or keep those of the registers. */
static void read_elf_class(struct snapshot *s)
{
	u8 ident[EI_NIDENT] = { 0 };
	auto_close int fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", s->mem_tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, ident, sizeof(ident), 0) != sizeof(ident))
		return;
	if (memcmp(ident, ELFMAG, SELFMAG) != 0)
		return;
	s->word_size = ident[EI_CLASS] == ELFCLASS32 ? 4 : 8;
	s->is_big_endian = ident[EI_DATA] == ELFDATA2MSB;
}

/* Read all but registers and memory, while the process is stopped. */
static int read_moment(struct stop_snapshot *st)
{
	int err = snapshot_read_maps(&st->base);

	if (!err)
		err = snapshot_read_kernel_words(&st->base, st->deadline_ns);
	if (!err)
		err = memory_stream_new(&st->memory, &st->base, st->deadline_ns);
	if (!err)
		read_elf_class(&st->base);
	return err;
}

int snapshot_stop_new(struct snapshot **out, pid_t pid, const struct snapshot_options *options)
{
	u64 max_pause_ns = options->max_pause_ns ? options->max_pause_ns : SNAPSHOT_MAX_PAUSE_MS * 1000000ULL;
	struct stop_snapshot *st = calloc(1, sizeof(*st));
	int err;

	if (!st)
		return -ENOMEM;
	pthread_mutex_init(&st->lock, NULL);
	pthread_cond_init(&st->changed, NULL);
	st->base.ops = &stop_ops;
	st->base.pid = st->held.pid = pid;
	st->held.may_be_traced = options->is_traced;
	st->held.holder = options->holder;
	st->base.is_ending = options->is_ending;
	st->started_ns = clock_now_ns();
	st->deadline_ns = st->started_ns + max_pause_ns;
	err = options->is_traced ? stop_here(st) : start_tracer(st);
	if (!err)
		err = read_moment(st);
	if (err) {
		error("scan: PID %d: %s", pid, scan_reason(err, pid, max_pause_ns).text);
		snapshot_free(&st->base);
		return err;
	}
	*out = &st->base;
	return 0;
}
