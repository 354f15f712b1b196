/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a program can have the piece: its memory, and what it tells threads by. */
#include "user/source/inline_limits.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/lib/proc_limit.h"
#include "user/source/inline_target.h"

/* While a call of mlockall() fills our memory, its thread cannot be stopped, and the others wait for each try. */
#define LOOK_NS	 (100 * 1000 * 1000ULL)
#define AGAIN_NS (5 * 1000 * 1000 * 1000ULL)
/* Between a limit and the end of our memory the program's allocations fail. */
#define TURN_NS (5 * 1000 * 1000ULL)

static const char *limit_of_memory(pid_t pid)
{
	if (proc_limit(pid, RLIMIT_AS) != UINT64_MAX || proc_limit(pid, RLIMIT_DATA) != UINT64_MAX)
		return "its memory is limited (RLIMIT_AS or RLIMIT_DATA)";
	return NULL;
}

const char *inline_limits_of(pid_t pid)
{
	if (proc_limit(pid, RLIMIT_FSIZE) < PIECE_FILE_BYTES)
		return "the size of its files is limited (RLIMIT_FSIZE)";
	return limit_of_memory(pid);
}

static const char *harm(const struct inline_target *t)
{
	struct proc_status status;
	pid_t pid = t->pid;

	if (t->has_twins)
		return "a thread of it has the thread pointer of another (clone without CLONE_SETTLS)";
	if (!proc_read_status(&status, pid) && status.locked_bytes >= PIECE_SHARED_BYTES)
		return "it has locked all of its memory, with ours (mlockall)";
	return limit_of_memory(pid);
}

static void leave(struct inline_target *t, struct guard *g, const char *why)
{
	int err;

	if (!t->has_told_limit)
		warn("inline: PID %d: %s: the code is taken out of it, and its calls are not seen from now on: use "
		     "--backend bpf",
		     t->pid, why);
	t->has_told_limit = true;
	err = guard_take_out(g, t->in);
	if (t->in->state == INJECT_NOTHING) {
		t->past.allocs++;
		t->past.frees++;
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
	t->has_twins = true;
	t->next_look_ns = 0;
}

bool inline_limits_turn(struct limits_turn *turn, struct inline_target *const *targets, size_t nr)
{
	u64 now = clock_now_ns();
	struct inline_target *t;

	if (!nr || now < turn->next_ns)
		return false;
	turn->next_ns = now + TURN_NS;
	t = targets[turn->nr++ % nr];
	if (!t->rings || t->is_limited)
		return false;
	t->is_limited = limit_of_memory(t->pid);
	if (t->is_limited)
		__atomic_store_n(&t->wants_look, true, __ATOMIC_RELEASE);
	return t->is_limited;
}

void inline_limits_look(struct inline_target *t, struct guard *g, pthread_mutex_t *lock)
{
	const char *why;
	u64 now = clock_now_ns();

	if (t->is_leaving) {
		pthread_mutex_lock(lock);
		inline_target_lose(t);
		pthread_mutex_unlock(lock);
		t->is_refused = true;
	}
	if (t->in->state != INJECT_IN || !t->is_open)
		return;
	if (now < t->next_look_ns && !__atomic_exchange_n(&t->wants_look, false, __ATOMIC_ACQUIRE))
		return;
	t->next_look_ns = now + LOOK_NS;
	why = harm(t);
	if (why)
		leave(t, g, why);
}
