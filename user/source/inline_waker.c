/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread that looks whether rings fill. */
#include "user/source/inline_waker.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/log.h"
#include "user/lib/thread.h"

/*
 * Each look takes the CPU from somebody, some 20 us on a virtual machine: one a millisecond will do until more than so
 * many parts are filled between two of them.
 */
enum { BUSY_WAKE_NS = 150 * 1000, MANY_PARTS = 2, STACK_BYTES = 256 * 1024 };

u64 inline_waker_pause(u64 pause_ns, u64 longest_ns, u64 nr_parts)
{
	if (nr_parts > MANY_PARTS)
		return pause_ns / 2 > BUSY_WAKE_NS ? pause_ns / 2 : (u64)BUSY_WAKE_NS;
	if (nr_parts < MANY_PARTS)
		return 2 * pause_ns < longest_ns ? 2 * pause_ns : longest_ns;
	return pause_ns;
}

static void *wake_reader(void *ctx)
{
	struct inline_waker *w = ctx;
	struct courtesy_hurry hurry;
	u64 pause_ns = w->look_ns, nr_parts, nr_before = 0;

	courtesy_hurry(&hurry, COURTESY_FIRST);
	while (!__atomic_load_n(&w->is_ending, __ATOMIC_ACQUIRE)) {
		bool needs_poll;

		clock_pause(pause_ns, UINT64_MAX);
		needs_poll = w->needs_poll(w->ctx, &nr_parts);
		pause_ns = inline_waker_pause(pause_ns, w->look_ns, nr_parts - nr_before);
		nr_before = nr_parts;
		if (needs_poll && eventfd_write(w->event_fd, 1))
			break;
	}
	return NULL;
}

int inline_waker_init(struct inline_waker *w, int other_fd, u64 look_ns,
		      bool (*needs_poll)(void *ctx, u64 *nr_parts), void *ctx)
{
	struct epoll_event ev = { .events = EPOLLIN };

	*w = (struct inline_waker){ .needs_poll = needs_poll, .ctx = ctx, .look_ns = look_ns };
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

void inline_waker_seen(const struct inline_waker *w)
{
	eventfd_t ignored;

	if (eventfd_read(w->event_fd, &ignored) && errno != EAGAIN)
		debug("inline: the reader's event: %s", strerror(errno));
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
	if (w->event_fd >= 0)
		close(w->event_fd);
	if (w->wait_fd >= 0)
		close(w->wait_fd);
}
