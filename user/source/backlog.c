/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records put aside while a thread works on the heap. */
#include "user/source/backlog.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/thread.h"

enum {
	FIRST_BYTES = 1 << 16,
	FULL_BYTES = 256 << 20, /* a few seconds of the busiest target */
	MEANWHILE_NS = 5 * 1000 * 1000,
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

/* Work in another thread. */
struct job {
	int (*work)(void *arg);
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool has_ended;
	int result;
};

static void job_init(struct job *job)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&job->lock, NULL);
	pthread_condattr_init(&attr);
	/* The clock of the wall may jump, and then a wait by it lasts for ever. */
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&job->ended, &attr);
	pthread_condattr_destroy(&attr);
}

static void job_fini(struct job *job)
{
	pthread_cond_destroy(&job->ended);
	pthread_mutex_destroy(&job->lock);
}

static void *job_main(void *arg)
{
	struct job *job = arg;
	int result;

	courtesy_begin();
	result = job->work(job->arg);
	pthread_mutex_lock(&job->lock);
	job->result = result;
	job->has_ended = true;
	pthread_cond_signal(&job->ended);
	pthread_mutex_unlock(&job->lock);
	return NULL;
}

/* True once the work has ended, false after a few ms. */
static bool wait_a_little(struct job *job)
{
	struct timespec end;
	bool has_ended;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += MEANWHILE_NS;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	pthread_mutex_lock(&job->lock);
	while (!job->has_ended && !err)
		err = pthread_cond_timedwait(&job->ended, &job->lock, &end);
	has_ended = job->has_ended;
	pthread_mutex_unlock(&job->lock);
	return has_ended;
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
	struct job job = { .work = work, .arg = arg };
	pthread_t thread;

	job_init(&job);
	if (thread_start(&thread, "heaptap-work", job_main, &job)) {
		job.result = work(arg);
	} else {
		while (!wait_a_little(&job))
			look_after(&patience, meanwhile(ctx));
		pthread_join(thread, NULL);
	}
	job_fini(&job);
	return job.result;
}
