/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records put aside while a thread works on the heap. */
#include "user/source/backlog.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/thread.h"

enum {
	FIRST_BYTES = 1 << 16,
	FULL_BYTES = 256 << 20, /* a few seconds of the busiest target */
	MEANWHILE_MS = 5,
	LOOK_NS = 1000 * 1000 * 1000, /* so often: does the work get its time? */
	LEAST_SHARE = 4,	      /* a quarter of a CPU */
};

void backlog_fini(struct backlog *b)
{
	free(b->bytes);
	memset(b, 0, sizeof(*b));
}

static size_t space_of(size_t len)
{
	return sizeof(u64) + (len + 7) / 8 * 8;
}

void backlog_add(struct backlog *b, const struct event_header *rec, size_t len)
{
	u64 head = len;

	if (array_reserve(b->bytes, b->size, b->used + space_of(len))) {
		b->nr_dropped++;
		return;
	}
	memcpy(b->bytes + b->used, &head, sizeof(head));
	memcpy(b->bytes + b->used + sizeof(head), rec, len);
	b->used += space_of(len);
}

bool backlog_is_full(const struct backlog *b)
{
	return b->used >= FULL_BYTES;
}

bool backlog_is_urgent(const struct backlog *b)
{
	return b->used >= FULL_BYTES / 2;
}

int backlog_replay(struct backlog *b, const struct sink *sink)
{
	int err = 0;

	for (size_t at = 0; at < b->used && !err;) {
		u64 len;

		memcpy(&len, b->bytes + at, sizeof(len));
		err = sink->record(sink->ctx, (const void *)(b->bytes + at + sizeof(len)), len);
		at += space_of(len);
	}
	b->used = 0;
	if (b->size > FIRST_BYTES) {
		free(b->bytes);
		b->bytes = NULL;
		b->size = 0;
	}
	return err;
}

/*
 * Work in another thread, which tells of its end by a descriptor: with a lock, or a join at once, its caller would wait
 * for the CPU as long as a thread of the lowest priority.
 */
struct job {
	int (*work)(void *arg);
	void *arg;
	int result, ended_fd;
};

static void *job_main(void *arg)
{
	struct job *job = arg;
	const u64 one = 1;

	courtesy_begin();
	job->result = job->work(job->arg);
	courtesy_end();
	(void)!write(job->ended_fd, &one, sizeof(one));
	return NULL;
}

/* True once the work has ended, and its thread is gone; false after a few ms. */
static bool wait_a_little(const struct job *job, pthread_t thread)
{
	struct pollfd fd = { .fd = job->ended_fd, .events = POLLIN };

	if (poll(&fd, 1, MEANWHILE_MS) <= 0)
		return false;
	if (!pthread_tryjoin_np(thread, NULL))
		return true;
	poll(NULL, 0, 1);
	return !pthread_tryjoin_np(thread, NULL);
}

/* How the threads of a job fare that leave the CPUs to others. */
struct patience {
	u64 since_ns, cpu_ns; /* cpu_ns: at that time */
	bool is_over;
};

/* CPU time of all threads but this one. */
static u64 cpu_of_others(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void look_after(struct patience *p, bool is_urgent)
{
	u64 now_ns = clock_now_ns(), cpu_ns;

	if (p->is_over || (!is_urgent && now_ns - p->since_ns < LOOK_NS))
		return;
	cpu_ns = cpu_of_others();
	if (is_urgent || (cpu_ns - p->cpu_ns) * LEAST_SHARE < now_ns - p->since_ns) {
		courtesy_end_all();
		p->is_over = true;
	}
	p->since_ns = now_ns;
	p->cpu_ns = cpu_ns;
}

int backlog_work(int (*work)(void *arg), void *arg, bool (*meanwhile)(void *ctx), void *ctx)
{
	struct patience patience = { .since_ns = clock_now_ns(), .cpu_ns = cpu_of_others() };
	struct job job = { .work = work, .arg = arg, .ended_fd = eventfd(0, EFD_CLOEXEC) };
	pthread_t thread;

	if (job.ended_fd < 0)
		return work(arg);
	if (thread_start(&thread, "heaptap-work", job_main, &job))
		job.result = work(arg);
	else
		while (!wait_a_little(&job, thread))
			look_after(&patience, meanwhile(ctx));
	close(job.ended_fd);
	return job.result;
}
