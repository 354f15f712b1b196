/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes of state of traced threads, checked against what the kernel can do. */
#include "fallback/tracer_state.h"

#include "fallback/tracer_private.h"
#include "user/lib/log.h"

#define TO(state) (1U << (state))

/* A thread in any stop may be killed; an exec by another thread of its process makes it the one that has executed. */
static const u16 thread_followers[NR_THREAD_STATES] = {
	[THREAD_RUNNING] =
		TO(THREAD_STOPPED) | TO(THREAD_GROUP_STOPPED) | TO(THREAD_AT_VFORK) | TO(THREAD_AT_EXIT),
	[THREAD_STOPPED] =
		TO(THREAD_RUNNING) | TO(THREAD_STOPPED) | TO(THREAD_GROUP_STOPPED) | TO(THREAD_AT_EXIT),
	[THREAD_GROUP_STOPPED] = TO(THREAD_LISTENING) | TO(THREAD_STOPPED) | TO(THREAD_AT_EXIT),
	[THREAD_LISTENING] = TO(THREAD_STOPPED) | TO(THREAD_GROUP_STOPPED) | TO(THREAD_AT_EXIT),
	[THREAD_AT_VFORK] = TO(THREAD_IN_VFORK) | TO(THREAD_STOPPED) | TO(THREAD_AT_EXIT),
	[THREAD_IN_VFORK] = TO(THREAD_STOPPED) | TO(THREAD_AT_EXIT),
	[THREAD_AT_EXIT] = TO(THREAD_EXITING) | TO(THREAD_STOPPED),
	[THREAD_EXITING] = TO(THREAD_STOPPED),
};

bool thread_state_may_follow(enum tracer_thread_state from, enum tracer_thread_state to)
{
	return thread_followers[from] & TO(to);
}

void tracer_set_thread_state(struct tracer_thread *th, enum tracer_thread_state state)
{
	if (!thread_state_may_follow(th->state, state))
		debug("ptrace: TID %d: state %d after %d", th->tid, state, th->state);
	th->state = state;
}
