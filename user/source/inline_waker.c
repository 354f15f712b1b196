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
 * For a while after a ring was half full, the thread looks more often. Each look takes the CPU from somebody: at the
 * rate of a busy server there are a thousand a second.
 */
enum { BUSY_WAKE_NS = 150 * 1000, BUSY_LOOKS = 64, STACK_BYTES = 256 * 1024 };

static void *wake_reader(void *ctx)
{
	struct inline_waker *w = ctx;
	struct courtesy_hurry hurry;
	u32 busy_looks = 0;

	courtesy_hurry(&hurry, COURTESY_FIRST);
	while (!__atomic_load_n(&w->is_ending, __ATOMIC_ACQUIRE)) {
		enum inline_wish wish;

		clock_pause(busy_looks ? BUSY_WAKE_NS : w->look_ns, UINT64_MAX);
		wish = w->wish(w->ctx);
		busy_looks = wish == INLINE_WISH_NOW ? BUSY_LOOKS : busy_looks - !!busy_looks;
		if (wish && eventfd_write(w->event_fd, 1))
			break;
	}
	return NULL;
}

int inline_waker_init(struct inline_waker *w, int other_fd, u64 look_ns, enum inline_wish (*wish)(void *ctx),
		      void *ctx)
{
	struct epoll_event ev = { .events = EPOLLIN };

	*w = (struct inline_waker){ .wish = wish, .ctx = ctx, .look_ns = look_ns };
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
