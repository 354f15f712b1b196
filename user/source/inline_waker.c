/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread that looks whether rings fill. */
#include "user/source/inline_waker.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inline/record.h"
#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/log.h"
#include "user/lib/thread.h"

/*
 * A thread at full speed fills its ring in half a millisecond. Each look takes the CPU from somebody, some 20 us on a
 * virtual machine: one a millisecond will do until more than so many parts are filled between two of them, and one in
 * five if the parts of a whole second would fit in a ring. Where blocks are sampled, looks take more than records do,
 * those at many targets most, whose memory is in no cache: then they are rarer.
 */
enum {
	BUSY_WAKE_NS = 150 * 1000,
	LOOK_NS = 1000 * 1000,
	CALM_NS = 5 * 1000 * 1000,
	SAMPLED_NS = 50 * 1000 * 1000,
	CROWD_NS = 500 * 1000,
	CALMEST_NS = 100 * 1000 * 1000,
	MANY_PARTS = 2,
	STACK_BYTES = 256 * 1024
};

/* Is the second over, and was it a calm one? Many parts end a calm at once. */
static void look_for_calm(struct inline_pace *p, u64 nr_parts)
{
	enum { RING_PARTS = PIECE_RING_RECORDS / PIECE_RING_PART };

	p->nr_parts += nr_parts;
	p->passed_ns += p->pause_ns;
	if (p->nr_parts < RING_PARTS && p->passed_ns < SECOND_NS)
		return;
	p->is_calm = p->nr_parts < RING_PARTS;
	p->nr_parts = p->passed_ns = 0;
}

static u64 longest_pause(const struct inline_pace *p, size_t nr_targets)
{
	u64 crowd_ns = (u64)nr_targets * CROWD_NS;

	if (!p->is_calm)
		return p->look_ns;
	if (p->look_ns < CALM_NS)
		return CALM_NS;
	crowd_ns = crowd_ns < CALMEST_NS ? crowd_ns : (u64)CALMEST_NS;
	return crowd_ns > SAMPLED_NS ? crowd_ns : (u64)SAMPLED_NS;
}

u64 inline_waker_pause(struct inline_pace *p, u64 nr_parts, size_t nr_targets)
{
	u64 longest_ns;

	look_for_calm(p, nr_parts);
	longest_ns = longest_pause(p, nr_targets);
	if (nr_parts < MANY_PARTS)
		p->pause_ns *= 2;
	else if (nr_parts > MANY_PARTS)
		p->pause_ns = p->pause_ns / 2 > BUSY_WAKE_NS ? p->pause_ns / 2 : (u64)BUSY_WAKE_NS;
	if (p->pause_ns > longest_ns)
		p->pause_ns = longest_ns;
	return p->pause_ns;
}

/* Threads that spin have what other programs leave of the CPUs, and so has the reader, who waits behind them. */
static void push_reader(struct inline_waker *w)
{
	pid_t reader = __atomic_load_n(&w->reader, __ATOMIC_RELAXED);

	if (reader && !__atomic_load_n(&w->is_pushed, __ATOMIC_RELAXED) && courtesy_push(reader))
		__atomic_store_n(&w->is_pushed, 1, __ATOMIC_RELAXED);
}

static void *wake_reader(void *ctx)
{
	struct inline_waker *w = ctx;
	struct courtesy_hurry hurry;
	struct inline_pace pace = { .look_ns = w->look_ns, .pause_ns = w->look_ns };
	u64 nr_parts, nr_before = 0;
	size_t nr_targets;

	courtesy_at_once(&hurry);
	while (!__atomic_load_n(&w->is_ending, __ATOMIC_ACQUIRE)) {
		enum inline_need need;

		clock_pause(pace.pause_ns, UINT64_MAX);
		need = w->needs_poll(w->ctx, &nr_parts, &nr_targets);
		inline_waker_pause(&pace, nr_parts - nr_before, nr_targets);
		nr_before = nr_parts;
		if (need == INLINE_NEEDS_HURRY)
			push_reader(w);
		if (need && eventfd_write(w->event_fd, 1))
			break;
	}
	return NULL;
}

int inline_waker_init(struct inline_waker *w, int other_fd, bool is_calm,
		      enum inline_need (*needs_poll)(void *ctx, u64 *nr_parts, size_t *nr_targets), void *ctx)
{
	struct epoll_event ev = { .events = EPOLLIN };

	*w = (struct inline_waker){ .needs_poll = needs_poll,
				    .ctx = ctx,
				    .look_ns = is_calm ? CALM_NS : LOOK_NS };
	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->event_fd < 0 || w->wait_fd < 0 || epoll_ctl(w->wait_fd, EPOLL_CTL_ADD, w->event_fd, &ev) ||
	    epoll_ctl(w->wait_fd, EPOLL_CTL_ADD, other_fd, &ev))
		return -errno;
	return 0;
}

int inline_waker_start(struct inline_waker *w)
{
	int err = w->has_thread ? 0
				: thread_start_sized(&w->thread, "heaptap-wake", wake_reader, w, STACK_BYTES);

	w->has_thread = !err;
	return err;
}

void inline_waker_seen(struct inline_waker *w)
{
	eventfd_t ignored;

	__atomic_store_n(&w->reader, (pid_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	if (eventfd_read(w->event_fd, &ignored) && errno != EAGAIN)
		debug("inline: the reader's event: %s", strerror(errno));
}

void inline_waker_read(struct inline_waker *w)
{
	if (__atomic_exchange_n(&w->is_pushed, 0, __ATOMIC_RELAXED))
		courtesy_push_end(w->reader);
}

void inline_waker_again(const struct inline_waker *w)
{
	if (eventfd_write(w->event_fd, 1))
		debug("inline: the reader cannot be woken: %s", strerror(errno));
}

void inline_waker_fini(struct inline_waker *w)
{
	__atomic_store_n(&w->is_ending, true, __ATOMIC_RELEASE);
	if (w->has_thread)
		pthread_join(w->thread, NULL);
	w->has_thread = false;
	inline_waker_read(w);
	if (w->event_fd >= 0)
		close(w->event_fd);
	if (w->wait_fd >= 0)
		close(w->wait_fd);
}
