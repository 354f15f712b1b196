/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The price of breakpoints, from what a call costs and what a process had at two moments. */
#include "user/session/session_price.h"

#include <stdio.h>
#include <unistd.h>

#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/proc.h"
#include "user/source/call_price.h"
#include "user/source/probe_runs.h"
#include "user/source/source.h"

#define MS 1000000ULL
static const u64 measure_ns = 300 * MS, measure_every_ns = 5000 * MS, measure_first_ns = 100 * MS;
enum { ENOUGH_CALLS = 100, KNOWN_PART = 5 };

void call_price_look(struct call_price *p, const struct source_ops *ops, struct source *source, u64 nr_calls,
		     u64 now_ns)
{
	/* The calls of a process that executes another program are counted anew. */
	u64 nr = nr_calls > p->calls ? nr_calls - p->calls : 0, age_ns = now_ns - p->begin_ns;
	u64 wait_ns = p->is_measuring ? measure_ns : p->traps_ns ? measure_every_ns : measure_first_ns;
	struct probe_runs runs;

	if (!p->begin_ns) {
		p->begin_ns = now_ns;
		p->calls = nr_calls;
		return;
	}
	if (age_ns < wait_ns || nr < ENOUGH_CALLS)
		return;
	p->is_measuring = !p->is_measuring;
	p->begin_ns = now_ns;
	p->calls = nr_calls;
	if (!ops->measure || ops->measure(source, p->is_measuring, &runs)) {
		p->is_measuring = false;
	} else if (!p->is_measuring && runs.nr_calls >= ENOUGH_CALLS) {
		p->traps_ns = runs.traps_ns / runs.nr_calls;
		p->programs_ns = runs.time_ns / runs.nr_calls;
	}
}

u64 call_price_ns(const struct call_price *p)
{
	return p->traps_ns ? p->traps_ns + p->programs_ns : CALL_BY_BPF_NS;
}

u64 session_price(const struct process_moment *then, const struct process_moment *now,
		  const struct call_price *p)
{
	u64 ns = (now->calls - then->calls) * call_price_ns(p), cpu_ns = now->cpu_ns - then->cpu_ns;

	return ns < cpu_ns ? ns : cpu_ns;
}

bool session_price_look(struct process_moment *out, int pid)
{
	struct proc_stat stat;

	if (proc_read_stat(&stat, pid))
		return false;
	*out = (struct process_moment){ .cpu_ns = stat.user_ns + stat.system_ns, .time_ns = clock_now_ns() };
	return true;
}

u64 session_price_age_ns(int pid)
{
	const u64 tick_ns = 1000 * MS / (u64)sysconf(_SC_CLK_TCK);
	u64 now_ns = clock_ns(CLOCK_BOOTTIME);
	struct proc_stat stat;

	if (proc_read_stat(&stat, pid) || stat.start_time * tick_ns > now_ns)
		return 0;
	return now_ns - stat.start_time * tick_ns;
}

const char *session_price_by_code(char buf[SESSION_PRICE_TEXT], u64 calls, u64 own_ns, u64 cpu_ns)
{
	u64 code_ns = calls * CALL_BY_CODE_NS;

	if (own_ns > cpu_ns / KNOWN_PART)
		snprintf(buf, SESSION_PRICE_TEXT, "about %s", human_percent(code_ns, own_ns + code_ns).text);
	else
		snprintf(buf, SESSION_PRICE_TEXT, "some %d ns each", CALL_BY_CODE_NS);
	return buf;
}
