/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a program can have the piece: its memory, and what it tells threads by. */
#include "user/source/inline_limits.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "user/inject/pages.h"
#include "user/inject/piece_object.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/lib/proc_limit.h"
#include "user/source/caps.h"
#include "user/source/inline_target.h"

#define LOOK_NS	 (100 * 1000 * 1000ULL)
#define AGAIN_NS (5 * 1000 * 1000 * 1000ULL)
/* Between a limit and the end of our memory the program's allocations may fail. */
#define TURN_NS (5 * 1000 * 1000ULL)

enum { MANY_TURNS = 16 /* that are made up for */ };

/*
 * The program must be able to map so many times our memory beyond what it has, or it may miss ours. Before the code is
 * in it, BPF can see its calls in place of us; later, all calls are missed.
 */
enum { ROOM_TO_BEGIN = 64, ROOM_TO_STAY = 4 };

/* Our memory in a program, as its limits count it, in bytes. */
struct our_memory {
	u64 all, data;
};

static struct our_memory memory_of(u32 nr_places, u32 nr_shards)
{
	u64 data = PIECE_PRIVATE_BYTES + PIECE_PLACES_MAPPED(nr_places);

	return (struct our_memory){ .all = PIECE_PRIVATE_OFFSET + data + PIECE_SHARED_MAPPED(nr_places) +
					   PIECE_TABLES_MAPPED(nr_shards),
				    .data = data };
}

/* Does @limit leave @bytes beyond @used? */
static bool inline_limits_leaves(u64 limit, u64 used, u64 bytes)
{
	return limit >= used && limit - used >= bytes;
}

/* Do its limits leave @times our memory to @pid? NULL, or which one does not. */
static const char *limit_of_memory(pid_t pid, const struct our_memory *ours, u32 times)
{
	u64 all = proc_limit(pid, RLIMIT_AS), data = proc_limit(pid, RLIMIT_DATA);
	struct proc_status status;

	if ((all == UINT64_MAX && data == UINT64_MAX) || proc_read_status(&status, pid))
		return NULL;
	if (inline_limits_leaves(all, status.mapped_bytes, times * ours->all) &&
	    inline_limits_leaves(data, status.data_bytes, times * ours->data))
		return NULL;
	return "its memory is limited (RLIMIT_AS or RLIMIT_DATA)";
}

const char *inline_limits_of(pid_t pid)
{
	const struct our_memory first = memory_of(PIECE_FIRST_PLACES, PIECE_FIRST_SHARDS);

	if (proc_limit(pid, RLIMIT_FSIZE) < PIECE_FILE_BYTES)
		return "the size of its files is limited (RLIMIT_FSIZE)";
	return limit_of_memory(pid, &first, ROOM_TO_BEGIN);
}

const char *inline_limits_here(const struct caps *caps, bool is_launch)
{
	struct proc_status status;

	if (!piece_object_bytes())
		return "not on this CPU yet";
	/* A program that cannot be changed could not be left to BPF. */
	if (!caps->is_uretprobe_safe)
		return "this kernel kills programs under seccomp at uretprobes";
	if (!inject_pages_can_move())
		return "breakpoints of other programs would end a program, as pages cannot be copied before Linux 5.13";
	if (!is_launch)
		return NULL;
	if (proc_read_status(&status, getpid()) || status.seccomp)
		return "programs here are under seccomp, which may forbid mmap";
	return inline_limits_of(getpid());
}

bool inline_limits_allow(pid_t pid, u32 nr_places, u32 nr_shards)
{
	const struct our_memory larger = memory_of(nr_places, nr_shards);

	/* Once more, because it is not mapped yet. */
	return !limit_of_memory(pid, &larger, ROOM_TO_STAY + 1);
}

static const char *lack_of_memory(const struct inline_target *t)
{
	const struct our_memory ours = memory_of(t->in->nr_places, t->in->nr_shards);

	return limit_of_memory(t->pid, &ours, ROOM_TO_STAY);
}

static const char *inline_limits_harm(const struct inline_target *t)
{
	if (t->has_twins)
		return "a thread of it has the thread pointer of another (clone without CLONE_SETTLS)";
	return lack_of_memory(t);
}

/* How many calls were not seen is not known. */
static void lose_calls(struct inline_target *t, u64 *why)
{
	t->past.allocs++;
	t->past.frees++;
	*why += 1;
}

static void inline_limits_leave(struct inline_target *t, const char *why)
{
	int err;

	if (!t->has_told_limit)
		warn("inline: PID %d: %s: the code is taken out of it, and its calls are not seen from now on: use "
		     "--backend bpf, or ptrace",
		     t->pid, why);
	t->has_told_limit = true;
	err = guard_take_out(t->guard, t->in);
	if (t->in->state == INJECT_NOTHING) {
		if (!t->has_twins)
			lose_calls(t, &t->past.cramped);
		t->is_leaving = true;
		return;
	}
	debug("inline: PID %d: the code is in it still: %s", t->pid, strerror(-err));
	if (err != -EINPROGRESS)
		t->next_look_ns = clock_now_ns() + AGAIN_NS;
}

void inline_limits_twin(struct inline_target *t)
{
	int err = inject_set_on(t->in, false);

	if (err && err != -ESRCH)
		warn("inline: PID %d: its probes cannot be switched off: %s", t->pid, strerror(-err));
	/* Here, as the program may end before the code is out of it. */
	if (!t->has_twins)
		lose_calls(t, &t->past.twins);
	t->has_twins = true;
	t->next_look_ns = 0;
}

bool inline_limits_turn(struct limits_turn *turn, struct inline_target *const *targets, size_t nr)
{
	u64 now = clock_now_ns();
	bool is_any = false;

	/* Looks may be rarer than turns. */
	if (now > turn->next_ns + MANY_TURNS * TURN_NS)
		turn->next_ns = now;
	for (size_t i = 0; i < nr && now >= turn->next_ns; i++, turn->next_ns += TURN_NS) {
		struct inline_target *t = targets[turn->nr++ % nr];

		if (!t->rings || t->is_limited)
			continue;
		t->is_limited = lack_of_memory(t);
		if (t->is_limited)
			__atomic_store_n(&t->wants_look, 1, __ATOMIC_RELEASE);
		is_any |= t->is_limited;
	}
	return is_any;
}

void inline_limits_look(struct inline_target *t, pthread_mutex_t *lock)
{
	const char *why;
	u64 now = clock_now_ns();

	if (t->is_leaving) {
		pthread_mutex_lock(lock);
		inline_target_lose(t);
		pthread_mutex_unlock(lock);
		t->sight = INLINE_REFUSED;
	}
	if (t->in->state != INJECT_IN || !t->is_open)
		return;
	if (now < t->next_look_ns && !__atomic_exchange_n(&t->wants_look, 0, __ATOMIC_ACQUIRE))
		return;
	t->next_look_ns = now + LOOK_NS;
	why = inline_limits_harm(t);
	if (why)
		inline_limits_leave(t, why);
}
