/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line of work that takes long. */
#include "user/lib/progress.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/thread.h"

enum { FIRST_NS = SECOND_NS, PERIOD_NS = SECOND_NS / 4 };

/* Static: there is one terminal, and work deep below says its phase. */
static struct {
	pthread_t thread;
	bool has_thread; /* of the thread that begins and ends */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	char what[64];
	const char *phase;
	u64 done, all; /* bytes */
	u64 begun_ns;
	bool is_over;
} work = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void progress_write_line(char *text, size_t size)
{
	u64 s = (clock_now_ns() - work.begun_ns) / SECOND_NS;
	int len = snprintf(text, size, "%s: %s", work.what, work.phase);

	if (work.all)
		len += snprintf(text + len, size - (size_t)len, ", %s of %s", human_bytes(work.done).text,
				human_bytes(work.all).text);
	else if (work.done)
		len += snprintf(text + len, size - (size_t)len, ", %s", human_bytes(work.done).text);
	snprintf(text + len, size - (size_t)len, ", %" PRIu64 " s", s);
}

/* A user who stops the terminal by Ctrl-S shall not stop the work. */
static bool takes_text(void)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) > 0 && p.revents & POLLOUT;
}

static void *progress_show(void *arg)
{
	u64 at_ns = work.begun_ns + FIRST_NS;
	char text[256];

	(void)arg;
	pthread_mutex_lock(&work.lock);
	while (!work.is_over) {
		struct timespec until = { .tv_sec = (time_t)(at_ns / SECOND_NS),
					  .tv_nsec = (long)(at_ns % SECOND_NS) };

		if (clock_now_ns() < at_ns) {
			pthread_cond_timedwait(&work.changed, &work.lock, &until);
			continue;
		}
		at_ns = clock_now_ns() + PERIOD_NS;
		progress_write_line(text, sizeof(text));
		pthread_mutex_unlock(&work.lock);
		if (takes_text())
			log_status(text);
		pthread_mutex_lock(&work.lock);
	}
	pthread_mutex_unlock(&work.lock);
	return NULL;
}

void progress_begin(const char *what)
{
	pthread_condattr_t attr;

	if (work.has_thread || log_level() < LOG_INFO || !log_status_is_possible() ||
	    pthread_condattr_init(&attr))
		return;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&work.changed, &attr);
	pthread_condattr_destroy(&attr);
	snprintf(work.what, sizeof(work.what), "%s", what);
	work.phase = "";
	work.done = work.all = 0;
	work.begun_ns = clock_now_ns();
	work.is_over = false;
	work.has_thread = !thread_start(&work.thread, "heaptap-status", progress_show, NULL);
}

void progress_phase(const char *phase)
{
	pthread_mutex_lock(&work.lock);
	work.phase = phase;
	work.done = work.all = 0;
	pthread_mutex_unlock(&work.lock);
}

void progress_bytes(u64 done, u64 all)
{
	pthread_mutex_lock(&work.lock);
	work.done = done;
	work.all = all;
	pthread_mutex_unlock(&work.lock);
}

void progress_end(void)
{
	if (!work.has_thread)
		return;
	pthread_mutex_lock(&work.lock);
	work.is_over = true;
	pthread_cond_signal(&work.changed);
	pthread_mutex_unlock(&work.lock);
	pthread_join(work.thread, NULL);
	pthread_cond_destroy(&work.changed);
	work.has_thread = false;
	log_status(NULL);
}
