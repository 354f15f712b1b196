/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The price of breakpoints, from what a process had at two moments. */
#include "user/session/session_price.h"

#include "user/lib/clock.h"
#include "user/lib/proc.h"

/* A call by breakpoints, on any machine and beside any load. */
enum { CHEAPEST_CALL_NS = 500, DEAREST_CALL_NS = 100 * 1000 };

/* Of so little time nothing can be said. */
static const u64 enough_ns = 5 * SESSION_PRICE_TICKS_NS;
enum { GUESSED_PERMILLE = 500, MOST_PERMILLE = 100 * 1000 };

u64 session_price(const struct process_moment *then, const struct process_moment *now, u32 own_permille)
{
	u64 calls = now->calls - then->calls, user_ns = now->user_ns - then->user_ns,
	    system_ns = now->system_ns - then->system_ns;
	u64 own_ns = user_ns / 1000 * own_permille, ns = system_ns > own_ns ? system_ns - own_ns : 0;

	if (ns < calls * CHEAPEST_CALL_NS)
		ns = calls * CHEAPEST_CALL_NS;
	if (ns > calls * DEAREST_CALL_NS)
		ns = calls * DEAREST_CALL_NS;
	return ns < user_ns + system_ns ? ns : user_ns + system_ns;
}

bool session_price_own(const struct process_moment *m, u32 *own_permille)
{
	u64 own = m->user_ns ? m->system_ns * 1000 / m->user_ns : MOST_PERMILLE;
	bool is_known = m->user_ns + m->system_ns >= enough_ns;

	*own_permille = (u32)(own < MOST_PERMILLE ? own : MOST_PERMILLE);
	if (!is_known)
		*own_permille = GUESSED_PERMILLE;
	return is_known;
}

bool session_price_look(struct process_moment *out, int pid)
{
	struct proc_stat stat;

	if (proc_read_stat(&stat, pid))
		return false;
	*out = (struct process_moment){ .user_ns = stat.user_ns,
					.system_ns = stat.system_ns,
					.time_ns = clock_now_ns() };
	return true;
}
