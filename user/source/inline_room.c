/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has more of the piece's memory mapped in a target. */
#include "user/source/inline_room.h"

#include <errno.h>
#include <string.h>

#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/source/inline_limits.h"
#include "user/source/inline_target.h"

enum { MORE_SHARDS = 8 };

#define AGAIN_NS (5 * 1000 * 1000 * 1000ULL)

static u32 nr_used(const struct inline_target *t)
{
	u32 nr = __atomic_load_n(&t->watched->nr_used, __ATOMIC_RELAXED);

	return nr < PIECE_MAX_THREADS ? nr : PIECE_MAX_THREADS;
}

bool inline_room_wants(const struct inline_target *t)
{
	/* Mostly the first question alone is asked, often and of many targets. */
	return t->rings && nr_used(t) > PIECE_FIRST_PLACES / 2 && t->is_open && t->in->state == INJECT_IN &&
	       t->in->nr_places < PIECE_MAX_THREADS && nr_used(t) > t->in->nr_places / 2 &&
	       clock_now_ns() >= t->next_room_ns;
}

/* Four times as many as are used, in powers of two: threads often come in numbers. */
static u32 nr_wanted(const struct inline_target *t)
{
	u32 nr = t->in->nr_places;

	while (nr < 4 * nr_used(t) && nr < PIECE_MAX_THREADS)
		nr *= 2;
	return nr;
}

/* Will it be possible later? A busy machine may need long to stop all threads. */
static bool is_for_now(int err)
{
	return err == -EINPROGRESS || err == -EAGAIN || err == -ETIME;
}

/* Not so far that the program would come to its limit of memory, and had to be left. */
static int inline_room_grow(struct inline_target *t, u32 nr_places, u32 nr_shards)
{
	return inline_limits_allow(t->pid, nr_places, nr_shards)
		       ? guard_grow(t->guard, t->in, nr_places, nr_shards)
		       : -ENOMEM;
}

void inline_room_look(struct inline_target *t)
{
	int err;

	if (!inline_room_wants(t))
		return;
	err = inline_room_grow(t, nr_wanted(t), t->in->nr_shards);
	if (err == -ESRCH || is_for_now(err))
		return;
	if (err && !t->next_room_ns)
		warn("inline: PID %d: no memory can be mapped in it for more threads (%s): calls of threads beyond the "
		     "first %u are lost",
		     t->pid, strerror(-err), t->in->nr_places);
	t->next_room_ns = err ? clock_now_ns() + AGAIN_NS : 0;
	__atomic_store_n(&t->shared->is_full, !!err, __ATOMIC_RELEASE);
	/* A thread may have waited longer than it may. */
	if (!err)
		__atomic_store_n(&t->shared->is_dropping, 0, __ATOMIC_RELEASE);
}

int inline_room_shards(void *target, u32 nr)
{
	struct inline_target *t = target;
	u32 more = nr + MORE_SHARDS < PIECE_MAX_SHARDS ? nr + MORE_SHARDS : PIECE_MAX_SHARDS;
	int err;

	if (nr <= t->in->nr_shards)
		return (int)t->in->nr_shards;
	err = inline_room_grow(t, t->in->nr_places, more);
	if (err == -ESRCH || is_for_now(err))
		return err == -ESRCH ? err : -EINPROGRESS;
	return (int)t->in->nr_shards;
}
